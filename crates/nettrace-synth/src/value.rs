//! Field values, and the payload that they make.

use crate::{Bytes, Guid, SystemTime, bytes::length16};
use std::collections::VecDeque;

/// The value of a field.
///
/// | variant | type code | encoding |
/// |---|---|---|
/// | `Object` | 1 | its fields, in order |
/// | `Boolean32` | 3 | 4 bytes, 0 or 1 |
/// | `Utf16CodeUnit` | 4 | 2 bytes |
/// | `SByte` … `UInt64` | 5–12 | 1, 2, 4 or 8 bytes |
/// | `Single`, `Double` | 13, 14 | 4, 8 bytes, IEEE 754 |
/// | `Decimal` | 15 | 16 bytes |
/// | `FileTime` | 16, V1–V5 | 8 bytes: units of 100 ns since 1601-01-01 UTC |
/// | `SystemTime` | 16, V6 | 16 bytes |
/// | `Guid` | 17 | 16 bytes |
/// | `String16` | 18 | UTF-16 units, then a unit of zero |
/// | `Array` | 19 | u16 count, elements |
/// | `VarInt`, `VarUInt` | 20, 21 | at most 10 bytes |
/// | `FixedArray` | 22 | elements; the count is in the type |
/// | `Utf8CodeUnit` | 23 | 1 byte |
/// | `RelLoc`, `DataLoc` | 24, 25 | u32: size in bytes << 16, position; the elements follow all other fields |
/// | `Boolean8` | 26 | 1 byte |
/// | `Raw` | any | the bytes |
///
/// A `RelLoc` counts its position from the end of its own four bytes, a `DataLoc` from the start of the
/// payload.
///
/// ```
/// use nettrace_synth::{Value, payload};
///
/// // Elements of a DataLoc are after all other fields, and their place counts from the payload's start.
/// let bytes = payload(&[Value::DataLoc(vec![Value::Byte(7)]), Value::UInt16(9)]);
/// assert_eq!(bytes, [6, 0, 1, 0, 9, 0, 7]);
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md`, "MetadataBlock", the enumeration
/// `TypeCode`; that a `DateTime` has eight bytes up to V5 is in TraceEvent's `EventPipeMetadata.cs`.
/// (TraceEvent 4.0 reads eight bytes in V6 as well, against the document; no writer of V6 that uses the code
/// is known.)
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the table above names them")]
pub enum Value {
    Object(Vec<Value>),
    Boolean32(bool),
    Utf16CodeUnit(u16),
    SByte(i8),
    Byte(u8),
    Int16(i16),
    UInt16(u16),
    Int32(i32),
    UInt32(u32),
    Int64(i64),
    UInt64(u64),
    Single(f32),
    Double(f64),
    Decimal([u8; 16]),
    FileTime(i64),
    SystemTime(SystemTime),
    Guid(Guid),
    String16(Vec<u16>),
    Array(Vec<Value>),
    VarInt(i64),
    VarUInt(u64),
    FixedArray(Vec<Value>),
    Utf8CodeUnit(u8),
    RelLoc(Vec<Value>),
    DataLoc(Vec<Value>),
    Boolean8(bool),
    Raw(Vec<u8>),
}

impl Value {
    /// A `String16` of this text.
    pub fn string16(text: &str) -> Self {
        Self::String16(text.encode_utf16().collect())
    }
}

/// Returns the payload of an event with these field values.
///
/// ```
/// use nettrace_synth::{Value, payload};
///
/// let fields = [Value::UInt16(7), Value::string16("a"), Value::Array(vec![Value::Byte(1), Value::Byte(2)])];
/// assert_eq!(payload(&fields), [7, 0, b'a', 0, 0, 0, 2, 0, 1, 2]);
/// ```
pub fn payload(values: &[Value]) -> Vec<u8> {
    let mut out = Bytes::new();
    let mut elsewhere = VecDeque::new();
    put_all(&mut out, values, &mut elsewhere);
    while let Some(located) = elsewhere.pop_front() {
        let start = out.len();
        put_all(&mut out, located.elements, &mut elsewhere);
        let size = u32::from(length16(out.len() - start));
        let position = u32::from(length16(start - located.origin));
        out.set_u32(located.at, size << 16 | position);
    }
    out.into_vec()
}

/// Elements with their place in four bytes at `at`, counted from `origin`.
struct Located<'a> {
    at: usize,
    origin: usize,
    elements: &'a [Value],
}

fn put_all<'a>(out: &mut Bytes, values: &'a [Value], elsewhere: &mut VecDeque<Located<'a>>) {
    for value in values {
        put(out, value, elsewhere);
    }
}

fn put<'a>(out: &mut Bytes, value: &'a Value, elsewhere: &mut VecDeque<Located<'a>>) {
    match value {
        Value::Object(fields) | Value::FixedArray(fields) => put_all(out, fields, elsewhere),
        Value::Boolean32(v) => _ = out.u32(u32::from(*v)),
        Value::Boolean8(v) => _ = out.u8(u8::from(*v)),
        Value::Utf16CodeUnit(v) | Value::UInt16(v) => _ = out.u16(*v),
        Value::SByte(v) => _ = out.raw(&v.to_le_bytes()),
        Value::Byte(v) | Value::Utf8CodeUnit(v) => _ = out.u8(*v),
        Value::Int16(v) => _ = out.raw(&v.to_le_bytes()),
        Value::Int32(v) => _ = out.i32(*v),
        Value::UInt32(v) => _ = out.u32(*v),
        Value::Int64(v) | Value::FileTime(v) => _ = out.i64(*v),
        Value::UInt64(v) => _ = out.u64(*v),
        Value::Single(v) => _ = out.raw(&v.to_le_bytes()),
        Value::Double(v) => _ = out.raw(&v.to_le_bytes()),
        Value::Decimal(v) | Value::Guid(v) => _ = out.raw(v),
        Value::SystemTime(v) => v.write(out),
        Value::String16(units) => {
            for unit in units {
                out.u16(*unit);
            }
            out.u16(0);
        }
        Value::Array(elements) => {
            out.u16(length16(elements.len()));
            put_all(out, elements, elsewhere);
        }
        Value::VarInt(v) => _ = out.var_i64(*v),
        Value::VarUInt(v) => _ = out.var_u64(*v),
        Value::RelLoc(elements) => {
            let at = out.len();
            elsewhere.push_back(Located { at, origin: at + 4, elements });
            out.u32(0);
        }
        Value::DataLoc(elements) => {
            elsewhere.push_back(Located { at: out.len(), origin: 0, elements });
            out.u32(0);
        }
        Value::Raw(bytes) => _ = out.raw(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, payload};
    use crate::SystemTime;

    #[test]
    fn every_type_code_has_its_bytes() {
        let start = SystemTime {
            year: 2024,
            month: 2,
            day_of_week: 4,
            day: 29,
            hour: 23,
            minute: 59,
            second: 58,
            millisecond: 999,
        };
        let rows: Vec<(Value, Vec<u8>)> = vec![
            (Value::Object(vec![Value::Byte(1), Value::Int16(-2)]), vec![1, 0xfe, 0xff]),
            (Value::Boolean32(true), vec![1, 0, 0, 0]),
            (Value::Utf16CodeUnit(0xe9), vec![0xe9, 0]),
            (Value::SByte(-1), vec![0xff]),
            (Value::Byte(255), vec![255]),
            (Value::Int16(-2), vec![0xfe, 0xff]),
            (Value::UInt16(0x0102), vec![2, 1]),
            (Value::Int32(-2), vec![0xfe, 0xff, 0xff, 0xff]),
            (Value::UInt32(0x0102_0304), vec![4, 3, 2, 1]),
            (Value::Int64(-2), vec![0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (Value::UInt64(1), vec![1, 0, 0, 0, 0, 0, 0, 0]),
            (Value::Single(1.5), vec![0, 0, 0xc0, 0x3f]),
            (Value::Double(-2.0), vec![0, 0, 0, 0, 0, 0, 0, 0xc0]),
            (Value::Decimal([3; 16]), vec![3; 16]),
            (Value::FileTime(256), vec![0, 1, 0, 0, 0, 0, 0, 0]),
            (Value::SystemTime(start), vec![0xe8, 7, 2, 0, 4, 0, 29, 0, 23, 0, 59, 0, 58, 0, 0xe7, 3]),
            (Value::Guid([9; 16]), vec![9; 16]),
            (Value::string16("hi"), vec![0x68, 0, 0x69, 0, 0, 0]),
            (Value::Array(vec![Value::Byte(7), Value::Byte(8)]), vec![2, 0, 7, 8]),
            (Value::VarInt(-3), vec![5]),
            (Value::VarUInt(300), vec![0xac, 2]),
            (Value::FixedArray(vec![Value::Byte(7), Value::Byte(8)]), vec![7, 8]),
            (Value::Utf8CodeUnit(b'x'), vec![b'x']),
            (Value::Boolean8(true), vec![1]),
            (Value::Raw(vec![1, 2, 3]), vec![1, 2, 3]),
        ];
        for (value, expected) in rows {
            assert_eq!(payload(std::slice::from_ref(&value)), expected, "{value:?}");
        }
    }

    #[test]
    fn located_elements_follow_the_fields() {
        let values = [
            Value::RelLoc(vec![Value::Byte(1), Value::Byte(2)]),
            Value::DataLoc(vec![Value::UInt16(3)]),
            Value::Byte(9),
        ];
        // The first counts from offset 4, where it begins 5 bytes on; the second from offset 0.
        assert_eq!(payload(&values), [5, 0, 2, 0, 11, 0, 2, 0, 9, 1, 2, 3, 0]);
    }

    #[test]
    fn located_elements_can_be_located_themselves() {
        let values = [Value::DataLoc(vec![Value::RelLoc(vec![Value::Byte(5)])])];
        assert_eq!(payload(&values), [4, 0, 4, 0, 0, 0, 1, 0, 5]);
    }
}
