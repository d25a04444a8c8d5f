//! V1, V2, V3.

use nettrace_synth::netperf::{EarlyTrace, Trace, event, metadata_event};
use nettrace_synth::{Event, Field, Metadata, TraceHeader, Type, Value, payload, stack_bytes};

use crate::{at, header, numbered};

/// V1 or V2: a kind of event as the EventSource describes it, a kind of the runtime's own, recorded only by
/// number, and a kind that is described shortly before its first event. Every fourth event has a stack;
/// pointers always have eight bytes.
pub(crate) fn early(new: fn(&TraceHeader) -> EarlyTrace) -> Vec<u8> {
    let mut trace = new(&header(8));
    let guid = |byte| Some([byte; 16]);
    let described = trace.metadata(&Metadata {
        provider_guid: guid(0x11),
        ..numbered(1, "Synth-Early", 7, "Described", plain_fields())
    });
    let runtime = trace.metadata(&Metadata {
        provider: "Microsoft-Windows-DotNETRuntime".into(),
        provider_guid: guid(0x22),
        event_id: 10,
        version: 3,
        ..Metadata::default()
    });
    for number in 0..8 {
        trace.event(&Event {
            metadata_id: if number % 2 == 0 { described } else { runtime },
            payload: if number % 2 == 0 {
                plain_values(number)
            } else {
                vec![0xc0, u8::try_from(number).unwrap()]
            },
            ..early_event(number)
        });
    }
    let late = trace.metadata(&Metadata {
        provider_guid: guid(0x11),
        ..numbered(2, "Synth-Early", 8, "Late", Vec::new())
    });
    for number in 8..10 {
        let payload = payload(&[Value::Int32(number)]);
        trace.event(&Event { metadata_id: late, payload, ..early_event(number) });
    }
    trace.finish()
}

fn early_event(number: i32) -> Event {
    let count = u64::from(number.unsigned_abs());
    Event {
        thread: 100 + count % 3,
        // In the order of time for each thread only.
        timestamp: at(100 * count + if count % 3 == 1 { 250 } else { 0 }),
        activity: if number == 2 { [0xaa; 16] } else { [0; 16] },
        related: if number == 3 { [0xbb; 16] } else { [0; 16] },
        stack: if number % 4 == 0 { stack_bytes(&[0x7f00_0000_1000 + count, 0x2000], 8) } else { Vec::new() },
        ..Event::default()
    }
}

/// The types that every version has, but for objects.
fn plain_fields() -> Vec<Field> {
    [
        ("yes", Type::Boolean32),
        ("letter", Type::Utf16CodeUnit),
        ("small", Type::SByte),
        ("byte", Type::Byte),
        ("text", Type::String16),
        ("ratio", Type::Double),
        ("id", Type::Guid),
        ("big", Type::UInt64),
    ]
    .map(|(name, ty)| Field::new(name, ty))
    .to_vec()
}

fn plain_values(number: i32) -> Vec<u8> {
    payload(&[
        Value::Int32(number),
        Value::Boolean32(number % 4 == 0),
        Value::Utf16CodeUnit(0x41 + u16::try_from(number).unwrap()),
        Value::SByte(-5),
        Value::Byte(250),
        Value::string16("grün 𝄞"),
        Value::Double(0.25 * f64::from(number)),
        Value::Guid(std::array::from_fn(|at| u8::try_from(at).unwrap())),
        Value::UInt64(u64::MAX - 1),
    ])
}

/// V3 of a 32-bit process: two event blocks; metadata among the events; an object among the fields; payloads
/// of every length modulo 4, so that events are padded.
pub(crate) fn v3() -> Vec<u8> {
    let inner = vec![Field::new("x", Type::Int16), Field::new("y", Type::String16)];
    let point = numbered(1, "Synth-V3", 3, "Point", vec![Field::new("point", Type::Object(inner))]);
    let bytes = Metadata { id: 2, provider: "Synth-V3".into(), event_id: 4, level: 2, ..Metadata::default() };
    let mut trace = Trace::new(&header(4));
    let mut block = vec![metadata_event(&point, 50, at(0))];
    block.extend([(0, ""), (1, "a"), (2, "bc")].map(|(number, text)| {
        let object = Value::Object(vec![Value::Int16(-1), Value::string16(text)]);
        let some = Event { payload: payload(&[Value::Int32(number), object]), ..v3_event(1, number) };
        event(&some, true)
    }));
    block.push(metadata_event(&bytes, 51, at(350)));
    trace.event_block(&block);
    trace.event_block(&[(3, 3), (4, 4), (5, 5), (6, 6)].map(|(number, length)| {
        let payload = vec![0xd0; length];
        event(&Event { payload, ..v3_event(2, number) }, true)
    }));
    trace.finish()
}

/// Stacks have no, one or two frames.
fn v3_event(metadata_id: u32, number: i32) -> Event {
    let count = u64::from(number.unsigned_abs());
    let frames = &[0x1000 + count, 0xffff_fff0][..number.unsigned_abs() as usize % 3];
    Event {
        metadata_id,
        thread: 50 + count % 2,
        timestamp: at(100 * count),
        activity: if number == 1 { [0xac; 16] } else { [0; 16] },
        related: if number == 5 { [0xbd; 16] } else { [0; 16] },
        stack: stack_bytes(frames, 4),
        ..Event::default()
    }
}
