//! Recordings of a caller's own events, in each version.

use nettrace::raw::ParsedMetadata;
use nettrace::{SliceReader, Ticks, TraceInfo, TypeCode, Uuid, Value};
use nettrace_writer::{Activities, EventKind, EventWriter, FieldKind, OwnEvent, Version};

#[test]
fn kinds_keep_their_level_keywords_opcode_and_version_in_each_version() {
    let fields = [("Count", FieldKind::Scalar(TypeCode::U32))];
    let plain = EventKind::new("Demo", 1, "Plain", &fields);
    let full = EventKind::new("Demo", 2, "Full", &fields)
        .with_level(3)
        .with_keywords(1 << 40)
        .with_opcode(0)
        .with_version(7);
    let info = TraceInfo::new_v6(1_000, Ticks(10), vec![("ProcessId".into(), "7".into())]);
    for version in [Version::V4, Version::V6] {
        let mut writer = EventWriter::of_version(version, &info).unwrap();
        let kinds = [writer.define(&plain).unwrap(), writer.define(&full).unwrap()];
        let threads = [writer.thread(7, 8, None).unwrap(), writer.thread(7, 9, Some("named")).unwrap()];
        for time in 0..4 {
            let (kind, thread) = (kinds[time % 2], threads[time / 2]);
            let payload = u32::try_from(time).unwrap().to_le_bytes();
            writer.event(kind, Ticks(20 + time as u64), thread, Some(1), &[0x10, 0x20], &payload).unwrap();
        }
        writer.lost(threads[0], 5);
        writer.finish().unwrap();

        let mut events = SliceReader::new(writer.bytes()).unwrap();
        let mut found = Vec::new();
        while let Some(event) = events.next().unwrap() {
            let metadata = event.metadata();
            let properties = (metadata.level(), metadata.keywords(), metadata.opcode(), metadata.version());
            let Value::U32(count) = event.fields().next().unwrap().unwrap().1 else { panic!("{version:?}") };
            let place = (event.thread_id().0, event.process_id(), event.stack().collect::<Vec<_>>());
            found.push((event.name().to_owned(), properties, place, count));
        }
        let row = |name: &str, properties, thread, count| {
            (name.to_owned(), properties, (thread, Some(7), vec![0x10, 0x20]), count)
        };
        let (none, all) = ((0, 0, None, 0), (3, 1 << 40, Some(0), 7));
        let expected = [
            row("Plain", none, 8, 0),
            row("Full", all, 8, 1),
            row("Plain", none, 9, 2),
            row("Full", all, 9, 3),
        ];
        assert_eq!(found, expected, "{version:?}");
        assert_eq!((events.loss().total(), events.damage().len()), (5, 0), "{version:?}");
        assert_eq!(writer.omissions().is_empty(), version == Version::V6);
    }
}

#[test]
fn a_thread_of_v4_is_known_by_its_id() {
    let info = TraceInfo::new_v6(1_000, Ticks(10), vec![("ProcessId".into(), "7".into())]);
    let mut writer = EventWriter::of_version(Version::V4, &info).unwrap();
    let text = [("Text", FieldKind::Text)];
    let kind = writer.define(&EventKind::new("Demo", 1, "Text", &text)).unwrap();
    let [first, again] = [(); 2].map(|()| writer.thread(7, 8, None).unwrap());
    assert_eq!(first, again);
    for thread in [first, again] {
        writer.event(kind, Ticks(11), thread, None, &[], &[1, 0, b'a']).unwrap();
    }
    writer.finish().unwrap();
    let mut events = SliceReader::new(writer.bytes()).unwrap();
    let mut count = 0;
    events.for_each(|event| count += event.payload().len()).unwrap();
    assert_eq!((count, events.loss().total()), (6, 0));
    // V4 cannot describe the text, nor the thread.
    assert_eq!((writer.omissions().field_lists, writer.omissions().thread_descriptions), (1, 1));
}

/// A description of V5 with a field, without the number of its row.
fn definition() -> Vec<u8> {
    let text = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let mut bytes = [text("Demo"), 7_u32.to_le_bytes().to_vec(), text("Tick")].concat();
    bytes.extend(0x10_u64.to_le_bytes());
    bytes.extend([2_u32, 4, 1, TypeCode::STRING16.0].iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend(text("Name"));
    bytes
}

#[test]
fn events_keep_their_activities_and_kinds_their_description_in_each_version() {
    let kind = ParsedMetadata::of_definition(&definition()).unwrap().metadata;
    let info = TraceInfo::new_v6(1_000, Ticks(10), vec![("ProcessId".into(), "7".into())]);
    let [one, two] = [1, 2].map(|byte| Some(Uuid::from_bytes([byte; 16])));
    let all = [(None, None), (one, None), (one, two), (None, two), (None, None)];
    for version in [Version::V4, Version::V6] {
        let mut writer = EventWriter::of_version(version, &info).unwrap();
        let tick = writer.define_as(&kind).unwrap();
        let thread = writer.thread(7, 8, None).unwrap();
        for (activity, related) in all {
            let activities = Activities { activity, related };
            let payload = &[b'a', 0, 0, 0];
            let event = OwnEvent {
                kind: tick,
                time: Ticks(20),
                thread,
                processor: None,
                stack: &[],
                activities,
                payload,
            };
            writer.write(&event).unwrap();
        }
        writer.finish().unwrap();
        let mut events = SliceReader::new(writer.bytes()).unwrap();
        let mut found = Vec::new();
        while let Some(event) = events.next().unwrap() {
            let kind = event.metadata();
            assert_eq!((kind.provider(), kind.event_id(), kind.name()), ("Demo", 7, "Tick"));
            assert_eq!((kind.keywords(), kind.version(), kind.level()), (0x10, 2, 4));
            let (name, value) = event.fields().next().unwrap().unwrap();
            assert_eq!((name, value.to_string()), ("Name", "a".to_owned()));
            found.push((event.activity(), event.related_activity()));
        }
        assert_eq!(found, all, "{version:?}");
    }
}
