//! V6.

use nettrace_synth::v6::{Label, ThreadEntry, ThreadRow, Trace};
use nettrace_synth::{
    Event, EventBlock, Field, Headers, Metadata, SystemTime, TraceHeader, Type, Value, payload, stack_bytes,
};

use crate::{at, header, numbered};

/// V6: two processes; threads with and without a description, including a removed thread; label lists that
/// replace the metadata; every optional part of metadata; every type of its own; an unknown block; a sequence
/// point that makes threads and metadata invalid. Lost are number 2 of thread 1 and number 3, the last, of
/// thread 2.
pub(crate) fn v6() -> Vec<u8> {
    let pairs = [("ProcessId", "4242"), ("HardwareThreadCount", "12"), ("OS", "of our own"), ("", "")];
    let key_values = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let mut trace = Trace::new(&TraceHeader { minor: 3, key_values, ..header(8) });
    trace.metadata_block(&[plain(1), described(2), types(3)]);
    trace.thread_block(&[
        thread(1, 4242, 1001, Some("main")),
        thread(2, 4343, 2001, Some("ärger")),
        ThreadRow { index: 300, entries: vec![ThreadEntry::KeyValue("kind".into(), "idle".into())] },
    ]);
    trace.stack_block(1, &[stack_bytes(&[0x7fff_0000_1000, 0x2000], 8)]);
    trace.label_list_block(1, &label_lists());
    let mut block = EventBlock::v6();
    block
        .event(&event(1, 1, 1, 10))
        .event(&Event { label_list: 1, ..event(1, 1, 3, 20) })
        .event(&Event { label_list: 2, stack_id: 1, ..event(2, 1, 4, 30) })
        .event(&Event { label_list: 3, ..event(2, 2, 1, 25) })
        .event(&Event { payload: type_values(2), ..event(3, 2, 2, 40) });
    trace.event_block(&block);
    trace.block(0xc3, &[1, 2, 3]);
    let mut block = EventBlock::v6().with_headers(Headers::Uncompressed).with_reserved(&[7; 5]);
    block.event(&Event { label_list: 2, sorted: true, ..event(1, 300, 1, 50) });
    trace.event_block(&block);
    trace.remove_thread_block(&[(2, 3)]);
    trace.sequence_point(at(60), 0, &[(1, 4), (300, 1)]);

    // List 1 is another list now.
    trace.thread_block(&[thread(4, 4343, 2002, None)]);
    trace.label_list_block(1, &[vec![Label::Text("anew".into(), String::new())]]);
    let mut block = EventBlock::v6();
    block.event(&Event { label_list: 1, thread: 1, ..event(1, 4, 1, 70) }).event(&event(1, 1, 5, 75));
    trace.event_block(&block);
    trace.sequence_point(at(80), 1 | 2, &[(1, 5), (4, 1), (300, 1)]);

    // Nothing is known any more: number 1 is another kind of event, index 1 another thread.
    trace.metadata_block(&[numbered(1, "Synth-Later", 9, "Anew", Vec::new())]);
    trace.thread_block(&[thread(1, 4444, 3001, Some("later"))]);
    let mut block = EventBlock::v6().with_headers(Headers::CompressedInFull);
    block.event(&event(1, 1, 1, 90));
    trace.event_block(&block);
    trace.finish()
}

fn thread(index: u64, process: u64, id: u64, name: Option<&str>) -> ThreadRow {
    let mut entries = vec![ThreadEntry::ProcessId(process), ThreadEntry::ThreadId(id)];
    entries.extend(name.map(|name| ThreadEntry::Name(name.to_owned())));
    ThreadRow { index, entries }
}

/// Number `sequence` of a thread, which says so itself.
fn event(metadata_id: u32, thread: u64, sequence: u32, microseconds: u64) -> Event {
    Event {
        metadata_id,
        sequence,
        thread,
        capture_thread: thread,
        processor: 11,
        timestamp: at(microseconds),
        payload: payload(&[Value::Int32(sequence.cast_signed())]),
        ..Event::default()
    }
}

fn label_lists() -> [Vec<Label>; 3] {
    [
        vec![Label::Activity([0xaa; 16]), Label::RelatedActivity([0xbb; 16])],
        vec![
            Label::TraceId([0x77; 16]),
            Label::SpanId(0x0102_0304_0506_0708),
            Label::Text("key".into(), "välue".into()),
            Label::Number("count".into(), -3),
        ],
        // Overrides the metadata.
        vec![Label::Opcode(9), Label::Keywords(0x8000_0000_0000_0001), Label::Level(1), Label::Version(77)],
    ]
}

fn plain(id: u32) -> Metadata {
    numbered(id, "Synth-V6", 1, "Plain", Vec::new())
}

fn described(id: u32) -> Metadata {
    Metadata {
        opcode: Some(1),
        provider_guid: Some([0x33; 16]),
        template: Some("number {number}".into()),
        description: Some("an event with everything".into()),
        key_values: vec![("a".into(), "b".into()), ("a".into(), "c".into())],
        ..numbered(id, "Synth-V6", 2, "DescribedStart", Vec::new())
    }
}

/// The types that only V6 has, or writes otherwise.
fn types(id: u32) -> Metadata {
    let boxed = |ty| Box::new(ty);
    let object = vec![Field::new("x", Type::VarInt), Field::new("y", Type::Boolean8)];
    let fields = [
        ("signed", Type::VarInt),
        ("unsigned", Type::VarUInt),
        ("yes", Type::Boolean8),
        ("unit", Type::Utf8CodeUnit),
        ("fixed", Type::FixedArray(boxed(Type::UInt16), 3)),
        ("array", Type::Array(boxed(Type::String16))),
        ("objects", Type::FixedArray(boxed(Type::Object(object)), 2)),
        ("relative", Type::RelLoc(boxed(Type::Utf8CodeUnit))),
        ("absolute", Type::DataLoc(boxed(Type::Int32))),
        ("last", Type::Byte),
        ("time", Type::DateTime),
    ];
    let fields = fields.map(|(name, ty)| Field::new(name, ty)).to_vec();
    numbered(id, "Synth-V6", 3, "Types", fields)
}

fn type_values(number: i32) -> Vec<u8> {
    let object = |x, y| Value::Object(vec![Value::VarInt(x), Value::Boolean8(y)]);
    let time =
        SystemTime { year: 1999, month: 12, day_of_week: 5, day: 31, hour: 23, ..SystemTime::default() };
    payload(&[
        Value::Int32(number),
        Value::VarInt(-1_000_000),
        Value::VarUInt(u64::MAX),
        Value::Boolean8(true),
        Value::Utf8CodeUnit(b'u'),
        Value::FixedArray([1, 2, 3].map(Value::UInt16).to_vec()),
        Value::Array(vec![Value::string16("one"), Value::string16("")]),
        Value::FixedArray(vec![object(-1, true), object(64, false)]),
        Value::RelLoc("nearby".bytes().map(Value::Utf8CodeUnit).collect()),
        Value::DataLoc([-1, i32::MAX].map(Value::Int32).to_vec()),
        Value::Byte(0xee),
        Value::SystemTime(time),
    ])
}
