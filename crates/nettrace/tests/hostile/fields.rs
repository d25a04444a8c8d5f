//! Payloads that disagree with the fields that they should have.

use nettrace_synth::{
    Event, EventBlock, Field, Metadata, TraceHeader, Type, Value, nettrace as v4, payload, v6,
};

use crate::{Expected, Row, event, events, plain, row};

fn described(types: Vec<Type>) -> Metadata {
    let names = ["a", "b", "c", "d"];
    Metadata { fields: names.iter().zip(types).map(|(name, ty)| Field::new(name, ty)).collect(), ..plain() }
}

/// An event of V5 with this payload and fields of these types.
fn v5_event(types: Vec<Type>, payload: &[u8]) -> Vec<u8> {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    let mut block = EventBlock::v4();
    block.event(&Event { payload: payload.to_vec(), ..event(1) });
    trace.metadata_block(&[described(types)]).event_block(&block);
    trace.finish()
}

/// The same of V6.
fn v6_event(types: Vec<Type>, payload: &[u8]) -> Vec<u8> {
    let mut trace = v6::Trace::new(&TraceHeader::default());
    let mut block = EventBlock::v6();
    block.event(&Event { payload: payload.to_vec(), ..event(1) });
    trace.metadata_block(&[described(types)]).thread_block(&[v6::ThreadRow { index: 7, entries: vec![] }]);
    trace.event_block(&block);
    trace.finish()
}

/// An event with a payload that begins with `first`, and its fields.
fn fields(first: u8, fields: &[(&'static str, &'static str)]) -> Expected {
    events(&[first]).fields(fields)
}

fn array(element: Type) -> Type {
    Type::Array(Box::new(element))
}

fn rel_loc(element: Type) -> Type {
    Type::RelLoc(Box::new(element))
}

fn data_loc(element: Type) -> Type {
    Type::DataLoc(Box::new(element))
}

pub(crate) fn rows() -> Vec<Row> {
    [lengths(), arrays(), locations(), types()].into_iter().flatten().collect()
}

fn lengths() -> Vec<Row> {
    let empty = |count| Type::Object((0..count).map(|_| Field::new("e", Type::Object(vec![]))).collect());
    vec![
        row(
            "an object of 63 empty objects",
            v5_event(vec![empty(63), Type::Byte], &[1]),
            fields(1, &[("a", ""), ("b", "u8 1")]),
        ),
        row(
            "an object of 64 empty objects",
            v5_event(vec![empty(64), Type::Byte], &[1]),
            events(&[1]).damage("take no bytes").fields(&[]),
        ),
        row(
            "a payload without bytes",
            v5_event(vec![Type::Byte], &[]),
            fields(0, &[("!", "ends inside field 0 of 1")]),
        ),
        row(
            "a payload that ends inside a field",
            v5_event(vec![Type::Byte, Type::Int32], &[7, 1, 2]),
            fields(7, &[("a", "u8 7"), ("!", "ends inside field 1 of 2")]),
        ),
        row(
            "a payload with bytes to spare",
            v5_event(vec![Type::Byte], &[7, 8, 9]),
            fields(7, &[("a", "u8 7")]),
        ),
        row(
            "a string without an end",
            v5_event(vec![Type::String16], &[1, 0, 2, 0]),
            fields(1, &[("!", "field 0")]),
        ),
        row(
            "a string without an end, of odd length",
            v5_event(vec![Type::String16], &[1, 0, 0]),
            fields(1, &[("!", "field 0")]),
        ),
        row(
            "an object that the payload ends in",
            v5_event(
                vec![Type::Object(vec![Field::new("x", Type::Byte), Field::new("y", Type::Guid)])],
                &[1, 2],
            ),
            fields(1, &[("!", "ends inside field 0 of 1")]),
        ),
        row(
            "an endless number",
            v6_event(vec![Type::VarUInt], &[0xff; 30]),
            fields(0xff, &[("!", "field 0")]),
        ),
        row(
            "a number of 70 bits",
            v6_event(vec![Type::VarInt], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            fields(0xff, &[("!", "field 0")]),
        ),
        row(
            "a number that the payload ends in",
            v6_event(vec![Type::VarUInt], &[0x80]),
            fields(0x80, &[("!", "ends inside field 0 of 1")]),
        ),
        row(
            "a boolean that is neither",
            v5_event(vec![Type::Boolean32], &[2, 0, 0, 0]),
            fields(2, &[("a", "bool true")]),
        ),
        row(
            "booleans of one byte",
            v5_event(vec![Type::Boolean32, Type::String16, Type::Boolean32], &[1, b'x', 0, 0, 0, 0]),
            fields(1, &[("a", "bool true"), ("b", "string [120]"), ("c", "bool false")]),
        ),
        row(
            "booleans of one byte in an array",
            v5_event(vec![array(Type::Boolean32), Type::Byte], &[3, 0, 1, 0, 1, 7]),
            fields(3, &[("a", "[bool true, bool false, bool true]"), ("b", "u8 7")]),
        ),
        row(
            "a boolean that fits in neither width",
            v5_event(vec![Type::Boolean32, Type::Byte], &[0, 0, 0, 1, 7, 8]),
            fields(0, &[("a", "bool true"), ("b", "u8 7")]),
        ),
    ]
}

fn arrays() -> Vec<Row> {
    let object = Type::Object(vec![Field::new("s", Type::String16), Field::new("n", array(Type::Byte))]);
    vec![
        row(
            "an array of 65535 bytes that are not there",
            v5_event(vec![array(Type::Byte)], &[0xff, 0xff, 1]),
            fields(0xff, &[("!", "ends inside field 0 of 1")]),
        ),
        row(
            "an array of 65535 strings in 4 bytes",
            v5_event(vec![array(Type::String16)], &[0xff, 0xff, 0, 0, 0, 0]),
            fields(0xff, &[("!", "field 0")]),
        ),
        row(
            "an array of objects, cut in the second",
            v5_event(vec![array(object)], &[2, 0, 0, 0, 1, 0, 5, 0, 0, 9, 0, 5]),
            fields(2, &[("!", "ends inside field 0 of 1")]),
        ),
        row(
            "a fixed array of 65535 that are not there",
            v6_event(vec![Type::FixedArray(Box::new(Type::UInt64), u16::MAX)], &[1; 8]),
            fields(1, &[("!", "ends inside field 0 of 1")]),
        ),
        row(
            "a fixed array of nothing",
            v6_event(vec![Type::FixedArray(Box::new(Type::UInt64), 0), Type::Byte], &[7]),
            fields(7, &[("a", "[]"), ("b", "u8 7")]),
        ),
        row(
            "fixed arrays of 65535 within one another",
            v6_event(
                vec![(0..8).fold(Type::Byte, |inner, _| Type::FixedArray(Box::new(inner), u16::MAX))],
                &[1; 100],
            ),
            fields(1, &[("!", "ends inside field 0 of 1")]),
        ),
    ]
}

fn location(size: u16, position: u16) -> Value {
    Value::UInt32(u32::from(size) << 16 | u32::from(position))
}

fn locations() -> Vec<Row> {
    let outside = |name, ty, size, position| {
        row(name, v6_event(vec![ty], &payload(&[location(size, position), Value::UInt32(1)])), {
            let first = position.to_le_bytes()[0];
            fields(first, &[("!", "outside the payload")])
        })
    };
    vec![
        outside("a RelLoc past the payload", rel_loc(Type::Byte), 1, 4),
        outside("a RelLoc that ends past the payload", rel_loc(Type::Byte), 5, 0),
        outside("a RelLoc of 64 KB far away", rel_loc(Type::Byte), u16::MAX, u16::MAX),
        outside("a DataLoc past the payload", data_loc(Type::Byte), 1, 8),
        outside("a DataLoc that ends past the payload", data_loc(Type::Byte), 9, 0),
        row(
            "a DataLoc of itself",
            v6_event(vec![data_loc(Type::Byte)], &payload(&[location(4, 0)])),
            fields(0, &[("a", "[u8 0, u8 0, u8 4, u8 0]")]),
        ),
        row(
            "a DataLoc of nothing at the payload's end",
            v6_event(vec![data_loc(Type::Byte)], &payload(&[location(0, 4)])),
            fields(4, &[("a", "[]")]),
        ),
        row(
            "a RelLoc of half an element",
            v6_event(vec![rel_loc(Type::UInt16)], &payload(&[location(3, 0), Value::UInt32(1)])),
            fields(0, &[("!", "multiple")]),
        ),
        row(
            "a RelLoc of strings",
            v6_event(vec![rel_loc(Type::String16)], &payload(&[location(2, 0), Value::UInt16(0)])),
            events(&[0]).damage("field list"),
        ),
        row(
            "a RelLoc that the payload ends in",
            v6_event(vec![rel_loc(Type::Byte)], &[1, 2, 3]),
            fields(1, &[("!", "ends inside field 0 of 1")]),
        ),
    ]
}

fn types() -> Vec<Row> {
    vec![
        row(
            "a type that nobody knows, V4",
            v5_event(vec![Type::Byte, Type::Other(2000), Type::Byte], &[7, 8, 9]),
            fields(7, &[("a", "u8 7"), ("!", "unknown type 2000")]),
        ),
        row(
            "a type that nobody knows, V6",
            v6_event(vec![Type::Byte, Type::Other(200), Type::Byte], &[7, 8, 9]),
            fields(7, &[("a", "u8 7"), ("!", "unknown type 200")]),
        ),
        row(
            "an array of a type that nobody knows",
            v6_event(vec![array(Type::Other(200))], &[1, 0, 9]),
            fields(1, &[("!", "unknown type 200")]),
        ),
        row("type 0", v5_event(vec![Type::Other(0)], &[7]), fields(7, &[("!", "unknown type 0")])),
        row(
            "type 2, .NET's DBNull",
            v5_event(vec![Type::Other(2)], &[7]),
            fields(7, &[("!", "unknown type 2")]),
        ),
    ]
}

#[cfg(test)]
mod bounds {
    use super::*;

    /// A payload of 64 KB can name each of its own parts thousands of times. A reader's work must not grow
    /// exponentially with the nesting.
    #[test]
    fn locations_within_locations_do_not_explode() {
        const LIMIT: u64 = 10_000_000;
        // Each element of the array, which takes the whole payload, is a location of the whole payload, and
        // so on.
        let ty = (0..6).fold(data_loc(Type::Byte), |inner, _| data_loc(inner));
        let whole = location(0x8000, 0);
        let bytes = v6_event(vec![ty], &payload(&vec![whole; 0x2000]));
        let mut events = nettrace::SliceReader::new(&bytes).expect("a recording");
        let event = events.next().expect("readable").expect("an event");
        let mut left = LIMIT;
        for field in event.fields().flatten() {
            walk(&field.1, &mut left);
        }
        assert!(left > 0, "a payload of 32 KB has more than {LIMIT} values");
    }

    fn walk(value: &nettrace::Value<'_>, left: &mut u64) {
        *left = left.saturating_sub(1);
        if let nettrace::Value::Array(array) = value {
            for element in *array {
                if *left == 0 {
                    return;
                }
                walk(&element, left);
            }
        }
    }
}
