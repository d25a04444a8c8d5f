//! Names and opcodes of events, and the events that the garbage collector defines as it goes.

use clr_events::view::GcDynamic;
use clr_events::{ClrEvent, EventName, Schema, event_name, event_opcode, is_named_by_kind};
use nettrace::{Event as Read, SliceReader, Value};
use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Bytes, Event, EventBlock, Metadata, TraceHeader};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// A recording of V4, without opcodes in its metadata, and with one event of each kind.
fn recording(kinds: &[(&str, u32, &str, Vec<u8>)]) -> Vec<u8> {
    let mut trace = Trace::new(&TraceHeader::default());
    let metadata = kinds.iter().zip(1..).map(|((provider, event_id, name, _), id)| Metadata {
        id,
        provider: (*provider).into(),
        event_id: *event_id,
        name: (*name).into(),
        ..Metadata::default()
    });
    trace.metadata_block_v4(&metadata.collect::<Vec<_>>());
    let mut block = EventBlock::v4();
    for ((.., payload), id) in kinds.iter().zip(1..) {
        block.event(&Event { metadata_id: id, sequence: id, payload: payload.clone(), ..Event::default() });
    }
    trace.event_block(&block);
    trace.finish()
}

fn of_each<T>(recording: &[u8], what: impl Fn(&Read<'_>) -> T) -> Vec<T> {
    let mut events = SliceReader::new(recording).unwrap();
    let mut found = Vec::new();
    while let Some(event) = events.next().unwrap() {
        found.push(what(&event));
    }
    found
}

fn named(recording: &[u8]) -> Vec<(String, Option<u8>)> {
    of_each(recording, |event| (event_name(event).to_string(), event_opcode(event)))
}

/// The payload of event 39: name, size of the data, data, the CLR's number.
fn dynamic(name: &str, data: &[u8]) -> Vec<u8> {
    let mut payload = Bytes::new();
    payload.string16(name).u32(u32::try_from(data.len()).unwrap()).raw(data).u16(9);
    payload.into_vec()
}

fn committed_usage() -> Vec<u8> {
    let mut data = Bytes::new();
    data.u16(1).i64(2_248_704).i64(-1).i64(4096).i64(0).i64(229_376);
    data.into_vec()
}

#[test]
fn missing_opcodes_are_derived_from_event_names() {
    let kinds = [
        ("App", 1, "RequestStart", vec![]),
        ("App", 2, "RequestStop", vec![]),
        ("App", 3, "Request", vec![]),
        (RUNTIME, 2, "", vec![]),
        (RUNTIME, 9, "", vec![]),
    ];
    let expected = [
        ("Request/Start", Some(1)),
        ("Request/Stop", Some(2)),
        ("Request", None),
        ("GC/Stop", Some(2)),
        ("GC/SuspendEEStart", Some(10)),
    ];
    assert_eq!(named(&recording(&kinds)), expected.map(|(name, opcode)| (name.to_owned(), opcode)));
}

#[test]
fn events_of_the_runtime_without_a_name_take_the_recordings_or_the_manifests() {
    let kinds = [(RUNTIME, 200, "", vec![]), (RUNTIME, 200, "Pressure", vec![]), (RUNTIME, 9999, "", vec![])];
    let names = of_each(&recording(&kinds), |event| event_name(event).to_string());
    assert_eq!(names, ["GC/IncreaseMemoryPressure", "Pressure", "EventID(9999)"]);
}

#[test]
fn dynamic_events_of_the_collector_are_named_by_their_payload() {
    let long = "n".repeat(65);
    let payloads = [
        ("GC/CommittedUsage", dynamic("CommittedUsage", &committed_usage())),
        ("GC/CommittedUsage", dynamic("CommittedUsage", &[committed_usage(), vec![1]].concat())),
        ("GC/CommittedUsage", dynamic("CommittedUsage", &committed_usage()[..41])),
        ("GC/SizeAdaptationTuning", dynamic("SizeAdaptationTuning", &[1, 2, 3])),
        // No names that could be shown.
        ("GC/DynamicTraceEvent", dynamic("", &[])),
        ("GC/DynamicTraceEvent", dynamic("a\u{1b}[2J", &[])),
        ("GC/DynamicTraceEvent", dynamic(&long, &[])),
        ("GC/DynamicTraceEvent", vec![b'a', 0]),
        ("GC/DynamicTraceEvent", vec![]),
    ];
    let kinds: Vec<_> = payloads.iter().map(|(_, payload)| (RUNTIME, 39, "", payload.clone())).collect();
    let recording = recording(&kinds);
    assert_eq!(named(&recording), payloads.map(|(name, _)| (name.to_owned(), Some(41))));
    assert!(of_each(&recording, |event| !is_named_by_kind(event)).into_iter().all(|is_own| is_own));

    let matches = |text: &str| of_each(&recording, |event| event_name(event).matches(text));
    assert_eq!(matches("gc/committedusage").iter().filter(|found| **found).count(), 3);
    assert_eq!(matches("GCSizeAdaptationTuning").iter().filter(|found| **found).count(), 1);
    // TraceEvent's name for all events with an unknown layout.
    assert_eq!(matches("GC/DynamicTraceEvent"), [false, false, true, true, true, true, true, true, true]);
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A payload that is shorter than it says: its fields end with the view's error, wherever it is cut.
#[test]
fn schema_and_view_agree_on_cut_dynamic_events() {
    let longer = dynamic("CommittedUsage", &[committed_usage(), vec![0xaa; 20]].concat());
    let exact = dynamic("CommittedUsage", &committed_usage());
    let cut =
        [longer, exact].into_iter().flat_map(|whole| (0..=whole.len()).map(move |end| whole[..end].to_vec()));
    let kinds: Vec<_> = cut.map(|payload| (RUNTIME, 39, "", payload)).collect();
    let differences = of_each(&recording(&kinds), |event| {
        let mut fields = Schema::of(event).unwrap().fields(event.payload(), event.pointer_size());
        let error = fields.find_map(Result::err);
        let of_view = ClrEvent::of(event).err();
        (error != of_view).then(|| format!("{} bytes: {error:?}, {of_view:?}", event.payload().len()))
    });
    assert_eq!(differences.into_iter().flatten().collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn committed_usage_has_fields() {
    let more = [committed_usage(), vec![0xaa]].concat();
    let kinds = [
        (RUNTIME, 39, "", dynamic("CommittedUsage", &committed_usage())),
        (RUNTIME, 39, "", dynamic("CommittedUsage", &more)),
        (RUNTIME, 39, "", dynamic("Other", &[1, 2])),
    ];
    let fields = of_each(&recording(&kinds), |event| {
        let mut fields = Schema::of(event).unwrap().fields(event.payload(), event.pointer_size());
        let texts: Vec<_> = fields
            .by_ref()
            .map(|field| field.unwrap())
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                value => format!("{name}={value:?}"),
            })
            .collect();
        (texts, fields.rest().to_vec())
    });
    let known = [
        "Version=U16(1)",
        "TotalCommittedInUse=I64(2248704)",
        "TotalCommittedInGlobalDecommit=I64(-1)",
        "TotalCommittedInFree=I64(4096)",
        "TotalCommittedInGlobalFree=I64(0)",
        "TotalBookkeepingCommitted=I64(229376)",
    ];
    assert_eq!(fields[0], (texts(&[&known[..], &["ClrInstanceID=U16(9)"]].concat()), vec![]));
    assert_eq!(fields[1], (texts(&known), vec![0xaa, 9, 0]));
    let other = ["Name=Other", "DataSize=U32(2)", "Data=Bytes([1, 2])", "ClrInstanceID=U16(9)"];
    assert_eq!(fields[2], (texts(&other), vec![]));

    let views = of_each(&recording(&kinds), |event| match ClrEvent::of(event).unwrap() {
        Some(ClrEvent::GcDynamic(GcDynamic { clr_instance_id, .. })) if clr_instance_id != 9 => panic!(),
        Some(ClrEvent::GcDynamic(dynamic)) => dynamic
            .committed_usage()
            .map(|usage| (usage.version, usage.total_committed_in_use, usage.total_bookkeeping_committed)),
        other => panic!("{other:?}"),
    });
    let usage = Some((1, 2_248_704, 229_376));
    assert_eq!(views, [usage, usage, None]);
}

#[test]
fn a_kind_has_the_name_of_its_events() {
    let kinds = [("App", 1, "RequestStart", vec![]), (RUNTIME, 10, "", vec![]), ("App", 7, "", vec![])];
    let names = of_each(&recording(&kinds), |event| {
        assert!(is_named_by_kind(event));
        assert_eq!(EventName::of_kind(event.metadata()), event_name(event));
        event_name(event).to_string()
    });
    assert_eq!(names, ["Request/Start", "GC/AllocationTick", "EventID(7)"]);
}
