//! Events of another recording at the end.

use nettrace::{Record, SliceReader, TypeCode, Value};
use nettrace_synth::{
    Event, EventBlock, Metadata, TraceHeader,
    v6::{ThreadEntry, ThreadRow, Trace},
};
use nettrace_writer::{EventKind, FieldKind, Transcoder, Version};

/// A recording of a number of events of one thread.
fn recording(count: u32) -> Vec<u8> {
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    trace.thread_block(&[ThreadRow { index: 1, entries: vec![ThreadEntry::ThreadId(100)] }]);
    let mut block = EventBlock::v6();
    for sequence in 1..=count {
        let timestamp = u64::from(sequence);
        let (metadata_id, thread, capture_thread) = (1, 1, 1);
        block.event(&Event { metadata_id, sequence, timestamp, thread, capture_thread, ..Event::default() });
    }
    trace.event_block(&block);
    trace.sequence_point(count.into(), 0, &[(1, count)]);
    trace.finish()
}

#[test]
fn a_thread_of_both_recordings_has_lost_nothing_between_them() {
    let (first, second) = (recording(5), recording(3));
    for version in [Version::V4, Version::V6] {
        let mut events = SliceReader::new(&first).unwrap();
        let mut out = Transcoder::new(version, events.info().unwrap()).unwrap();
        while let Some(record) = events.next_record().unwrap() {
            out.write(&record).unwrap();
        }
        let mut others = SliceReader::new(&second).unwrap();
        out.next_source(others.info().unwrap(), events.threads()).unwrap();
        while let Some(event) = others.next().unwrap() {
            out.event_at_end(&event).unwrap();
        }
        out.sequence_point(others.threads()).unwrap();
        out.finish(others.threads()).unwrap();
        let mut events = SliceReader::new(out.bytes()).unwrap();
        let mut count = 0;
        events.for_each(|_| count += 1).unwrap();
        assert_eq!((events.damage(), count, events.loss().total()), (&[][..], 8, 0), "{version:?}");
    }
}

#[test]
fn an_event_of_ones_own_is_the_last_one_and_copies_have_one_thread_for_it() {
    let kind = EventKind::new("Own", 7, "End", &[("Count", FieldKind::Scalar(TypeCode::I64))]);
    for version in [Version::V4, Version::V6] {
        let mut bytes = recording(3);
        for round in 1..=3_i64 {
            let mut events = SliceReader::new(&bytes).unwrap();
            let mut transcoder = Transcoder::new(version, events.info().unwrap()).unwrap();
            while let Some(record) = events.next_record().unwrap() {
                match &record {
                    Record::Event(event) if event.provider() == "Own" => transcoder.remove(event),
                    record => transcoder.write(record).unwrap(),
                }
            }
            transcoder.finish_with(events.threads(), &kind, &round.to_le_bytes()).unwrap();
            bytes = transcoder.bytes().to_vec();
            let mut events = SliceReader::new(&bytes).unwrap();
            let mut found = Vec::new();
            while let Some(event) = events.next().unwrap() {
                let value = event.fields().next().and_then(|field| match field.ok()?.1 {
                    Value::I64(value) => Some(value),
                    _ => None,
                });
                found.push((event.id(), event.thread_id().0, event.time(), value));
            }
            assert_eq!(found.len(), 4, "{version:?}");
            assert_eq!(found[3], (7, 0, found[2].2, Some(round)), "{version:?}");
            assert_eq!((events.loss().total(), events.truncated_at()), (0, None), "{version:?}");
            assert_eq!(events.threads().len(), 2, "{version:?}");
        }
    }
}
