//! V4, V5.

use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Field, Headers, Metadata, Type, Value, group, payload, stack_bytes};

use crate::{at, header, numbered};

/// V4 of a 32-bit process: headers of all three forms, a block header that is longer than known, stacks that
/// a sequence point makes invalid, and two losses: number 3 of thread 70, and numbers 3 and 4 of thread 71.
pub(crate) fn v4() -> Vec<u8> {
    let mut trace = Trace::new(&header(4));
    trace.metadata_block_v4(&[
        numbered(1, "Synth-V4", 1, "Tick", Vec::new()),
        Metadata { id: 2, provider: "Synth-V4".into(), event_id: 2, ..Metadata::default() },
    ]);
    trace.stack_block(1, &[stack_bytes(&[0x1000, 0x2000], 4), stack_bytes(&[0xffff_0000], 4), Vec::new()]);
    let mut block = EventBlock::v4().with_headers(Headers::Uncompressed);
    block.event(&event(70, 1, 10)).event(&event(70, 2, 20)).event(&event(71, 1, 15));
    trace.event_block(&block);
    let mut block = EventBlock::v4().with_reserved(&[9; 7]);
    block.event(&event(70, 4, 40)).event(&event(70, 5, 50));
    let unnamed = Event { metadata_id: 2, payload: vec![1, 2, 3], stack_id: 2, ..event(71, 2, 35) };
    block.event(&unnamed);
    trace.event_block(&block);
    trace.sequence_point(at(60), &[(70, 5), (71, 4)]);
    // The same number, and another stack.
    trace.stack_block(1, &[stack_bytes(&[0x3000], 4)]);
    let mut block = EventBlock::v4().with_headers(Headers::CompressedInFull);
    let about_another = Event { thread: 72, activity: [0xaa; 16], related: [0xbb; 16], ..event(70, 6, 70) };
    block.event(&about_another).event(&Event { sorted: true, ..event(71, 5, 80) });
    trace.event_block(&block);
    trace.sequence_point(at(90), &[(70, 6), (71, 5)]);
    trace.finish()
}

/// Number `sequence` of a thread, which says so itself.
fn event(thread: u64, sequence: u32, microseconds: u64) -> Event {
    Event {
        metadata_id: 1,
        sequence,
        thread,
        capture_thread: thread,
        processor: u32::try_from(thread % 2).unwrap(),
        stack_id: sequence % 2,
        timestamp: at(microseconds),
        payload: payload(&[Value::Int32(sequence.cast_signed())]),
        ..Event::default()
    }
}

/// V5: the tag with an opcode, the tag with fields (arrays of numbers, strings and objects; an object that
/// holds an array), both tags in one row, and an activity that many events share.
pub(crate) fn v5() -> Vec<u8> {
    let start = Metadata { opcode: Some(1), ..numbered(1, "Synth-V5", 1, "WorkStart", Vec::new()) };
    let stop = Metadata { opcode: Some(2), ..numbered(2, "Synth-V5", 2, "WorkStop", array_fields()) };
    let arrays = numbered(3, "Synth-V5", 3, "Arrays", array_fields());
    let all = numbered(4, "Synth-V5", 4, "Types", types().into_iter().map(|(field, _)| field).collect());
    let mut trace = Trace::new(&header(8));
    trace.metadata_block(&[start, stop]);
    trace.metadata_block(&[arrays, all]);
    trace.stack_block(1, &[stack_bytes(&[0x7fff_0000_1000], 8)]);
    let mut block = EventBlock::v4();
    for sequence in 1..=8 {
        let mut some = Event { activity: [0x55; 16], ..event(80, sequence, 10 * u64::from(sequence)) };
        let number = Value::Int32(sequence.cast_signed());
        some.metadata_id = (sequence - 1) % 4 + 1;
        some.payload = match some.metadata_id {
            1 => payload(&[number]),
            2 | 3 => payload(&[&[number][..], &array_values(sequence)].concat()),
            _ => {
                let values = types().into_iter().map(|(_, value)| value);
                payload(&[number].into_iter().chain(values).collect::<Vec<_>>())
            }
        };
        some.related = if sequence == 5 { [0x66; 16] } else { [0; 16] };
        if sequence == 6 {
            // Every group is written, although next to nothing in them has changed.
            block.compressed(group::ALL, &some);
        } else {
            block.event(&some);
        }
    }
    trace.event_block(&block);
    trace.sequence_point(at(100), &[(80, 8)]);
    trace.finish()
}

fn array_fields() -> Vec<Field> {
    let array = |element| Type::Array(Box::new(element));
    let object = || vec![Field::new("key", Type::String16), Field::new("values", array(Type::Byte))];
    vec![
        Field::new("numbers", array(Type::Int32)),
        Field::new("texts", array(Type::String16)),
        Field::new("objects", array(Type::Object(object()))),
        Field::new("object", Type::Object(object())),
        Field::new("last", Type::UInt16),
    ]
}

/// Arrays that grow with `count`, from one element.
fn array_values(count: u32) -> Vec<Value> {
    let numbers = (0..count).map(|number| Value::Int32(number.cast_signed() - 2)).collect();
    let texts = (0..count % 3).map(|number| Value::string16(["", "zwei"][number as usize])).collect();
    let object = |key: &str, bytes: &[u8]| {
        let values = bytes.iter().map(|byte| Value::Byte(*byte)).collect();
        Value::Object(vec![Value::string16(key), Value::Array(values)])
    };
    vec![
        Value::Array(numbers),
        Value::Array(texts),
        Value::Array(vec![object("one", &[1]), object("none", &[])]),
        object("alone", &[7, 8]),
        Value::UInt16(0xabcd),
    ]
}

/// A field of every type without parts, and a value of each.
fn types() -> Vec<(Field, Value)> {
    let row = |name: &str, ty, value| (Field::new(name, ty), value);
    vec![
        row("yes", Type::Boolean32, Value::Boolean32(true)),
        row("letter", Type::Utf16CodeUnit, Value::Utf16CodeUnit(0x51)),
        row("i8", Type::SByte, Value::SByte(-8)),
        row("u8", Type::Byte, Value::Byte(8)),
        row("i16", Type::Int16, Value::Int16(-16)),
        row("u16", Type::UInt16, Value::UInt16(16)),
        row("u32", Type::UInt32, Value::UInt32(32)),
        row("i64", Type::Int64, Value::Int64(-64)),
        row("u64", Type::UInt64, Value::UInt64(64)),
        row("f32", Type::Single, Value::Single(1.5)),
        row("f64", Type::Double, Value::Double(-2.25)),
        // 2017-09-01 12:34:56.789 UTC.
        row("time", Type::DateTime, Value::FileTime(131_487_428_967_890_000)),
        row("guid", Type::Guid, Value::Guid([0x10; 16])),
        row("text", Type::String16, Value::string16("äöü")),
    ]
}
