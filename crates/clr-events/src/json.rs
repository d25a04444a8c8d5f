//! Fields of events as JSON, written straight into a byte buffer: one event a line must not cost an
//! allocation.
//!
//! No text can steer a terminal: control characters are escaped.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use jiff::Timestamp;
use nettrace::{Array, DateTime, Event, FieldError, Fields, SystemTime, TypeCode, Utf16, Value};
use serde_json::ser::{CompactFormatter, Formatter as _};
use uuid::Uuid;

use crate::escape::{is_control, may_begin_control};
use crate::event_fields;

/// Writes into a `Vec`, which cannot fail: only here are the formatter's errors dropped.
macro_rules! infallible {
    ($write:expr) => {
        let _: std::io::Result<()> = $write;
    };
}

/// Appends an unsigned integer.
pub fn push_u64(out: &mut Vec<u8>, value: u64) {
    infallible!(CompactFormatter.write_u64(out, value));
}

/// Appends a signed integer.
pub fn push_i64(out: &mut Vec<u8>, value: i64) {
    infallible!(CompactFormatter.write_i64(out, value));
}

/// Appends a float in the fewest digits that read back as the same value; JSON cannot express infinities and
/// NaN as numbers, so these are strings.
fn push_f64(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        infallible!(CompactFormatter.write_f64(out, value));
    } else {
        push_not_a_number(out, value);
    }
}

fn push_f32(out: &mut Vec<u8>, value: f32) {
    if value.is_finite() {
        infallible!(CompactFormatter.write_f32(out, value));
    } else {
        push_not_a_number(out, f64::from(value));
    }
}

fn push_not_a_number(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(if value.is_nan() {
        b"\"NaN\""
    } else if value > 0.0 {
        b"\"Infinity\""
    } else {
        b"\"-Infinity\""
    });
}

/// Appends a string with its quotes.
///
/// ```
/// let mut line = Vec::new();
/// clr_events::json::push_str(&mut line, "a \"name\"\n");
/// assert_eq!(line, br#""a \"name\"\n""#);
/// ```
pub fn push_str(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if !may_need_escape(byte) {
            continue;
        }
        // A byte that may need an escape begins a character.
        let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else { continue };
        if needs_escape(c) {
            out.extend_from_slice(bytes.get(written..at).unwrap_or_default());
            push_escaped(out, c);
            written = at.saturating_add(c.len_utf8());
        }
    }
    out.extend_from_slice(bytes.get(written..).unwrap_or_default());
    out.push(b'"');
}

/// Appends UTF-16 text as a string. A lone surrogate becomes U+FFFD: JSON in UTF-8 cannot carry it.
fn push_utf16(out: &mut Vec<u8>, text: Utf16<'_>) {
    out.push(b'"');
    let (units, _) = text.as_bytes().as_chunks::<2>();
    // Nearly all text is ASCII without characters to escape.
    let is_plain = |&[low, high]: &[u8; 2]| high == 0 && low < 0x80 && !may_need_escape(low);
    let plain = units.iter().take_while(|unit| is_plain(unit)).count();
    out.extend(units.iter().take(plain).map(|&[low, _]| low));
    if plain < units.len() {
        text.chars().skip(plain).for_each(|c| push_char(out, c));
    }
    out.push(b'"');
}

fn push_char(out: &mut Vec<u8>, c: char) {
    if needs_escape(c) {
        push_escaped(out, c);
    } else {
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// Appends bytes as a string; invalid UTF-8 becomes U+FFFD.
fn push_utf8(out: &mut Vec<u8>, bytes: &[u8]) {
    push_str(out, &String::from_utf8_lossy(bytes));
}

/// Returns true if JSON does not allow a character in a string, or a terminal would obey it.
const fn needs_escape(c: char) -> bool {
    matches!(c, '"' | '\\') || is_control(c)
}

/// Returns true if a character that needs an escape may begin with the byte.
const fn may_need_escape(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\') || may_begin_control(byte)
}

/// Appends the escape of a character of the basic plane.
fn push_escaped(out: &mut Vec<u8>, c: char) {
    let short = match c {
        '"' => b'"',
        '\\' => b'\\',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u");
            let [_, _, high, low] = u32::from(c).to_be_bytes();
            push_hex_digits(out, &[high, low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends a string of two lower-case digits for each byte.
pub fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    push_hex_digits(out, bytes);
    out.push(b'"');
}

/// Appends a string such as `"0x1f"`.
pub fn push_hex_number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(b"\"0x");
    let bytes = value.to_be_bytes();
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    // The last digit is written for 0, too.
    let zeros = usize::try_from(value.leading_zeros() / 4).unwrap_or(0).min(15);
    out.extend(digits.skip(zeros).map(hex_digit));
    out.push(b'"');
}

fn push_hex_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes.iter().flat_map(|byte| [hex_digit(byte >> 4), hex_digit(byte & 0xf)]));
}

const fn hex_digit(value: u8) -> u8 {
    match value & 0xf {
        digit @ 0..=9 => b'0'.wrapping_add(digit),
        letter => b'a'.wrapping_add(letter.wrapping_sub(10)),
    }
}

/// Appends a GUID as a string in lower case.
pub fn push_uuid(out: &mut Vec<u8>, uuid: Uuid) {
    out.push(b'"');
    out.extend_from_slice(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    out.push(b'"');
}

/// The reason why fields are missing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incomplete {
    /// A field is cut, or its type is not known.
    Invalid(FieldError),
    /// The fields with their names are longer than [`limit`] allows.
    TooLong,
    /// The payload has more bytes than the recording's list of fields. A field differs from the list, such as
    /// a string with a NUL in it.
    LeftOver(usize),
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => write!(f, "{error}"),
            Self::TooLong => write!(f, "with the names of all fields it would be too long"),
            Self::LeftOver(bytes) => {
                let bytes_follow = if *bytes == 1 { "byte follows" } else { "bytes follow" };
                write!(f, "{bytes} {bytes_follow} the last field: a string has a NUL, or values are wrong")
            }
        }
    }
}

/// Output allowed for any payload, in bytes. A name precedes a field of each element of an array, and may be
/// longer than everything else.
const FREE_JSON: usize = 1 << 20;
/// Bytes that each byte of a payload may become on top of that.
const JSON_PER_BYTE: usize = 256;

/// Returns the length of a buffer at which the fields of a payload end: 1 MiB, and 256 bytes for each of the
/// payload, from here on.
pub fn limit(out: &[u8], payload: &[u8]) -> usize {
    let more = payload.len().saturating_mul(JSON_PER_BYTE).saturating_add(FREE_JSON);
    out.len().saturating_add(more)
}

/// Appends the fields of an event as a JSON object, up to the first that is cut or exceeds [`limit`], field
/// names included; nothing if no field list is known. Returns true if they cover the payload.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # let recording = recording.at(5).exception("System.TimeoutException", "no answer").bytes();
/// let mut events = nettrace::SliceReader::new(&recording)?;
/// let event = events.next()?.ok_or("an event")?;
/// let mut line = Vec::new();
/// assert!(clr_events::json::push_fields(&mut line, &event));
/// let line = String::from_utf8(line)?;
/// assert!(line.contains(r#""ExceptionMessage":"no answer""#), "{line}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn push_fields(out: &mut Vec<u8>, event: &Event<'_>) -> bool {
    let Some(mut fields) = event_fields(event) else { return event.payload().is_empty() };
    let limit = limit(out, event.payload());
    push_object(out, &mut fields, limit).is_ok() && fields.rest().is_empty()
}

/// Appends the fields of an event as the member `fields` of an object that has members already: null if they
/// are not known; with the member `fields_error` if some are missing. False if they do not cover the payload.
pub fn push_fields_member(out: &mut Vec<u8>, event: &Event<'_>) -> bool {
    out.extend_from_slice(b",\"fields\":");
    let Some(mut fields) = event_fields(event) else {
        out.extend_from_slice(b"null");
        return false;
    };
    let limit = limit(out, event.payload());
    match push_object(out, &mut fields, limit).and_then(|()| left_over(&fields)) {
        Ok(()) => fields.rest().is_empty(),
        Err(error) => {
            out.extend_from_slice(b",\"fields_error\":");
            push_str(out, &error.to_string());
            false
        }
    }
}

/// Fails if bytes are left over after all fields of the recording's own list were read. After the fields of a
/// schema, these are fields that a newer version of the runtime has appended.
pub const fn left_over(fields: &Fields<'_>) -> Result<(), Incomplete> {
    match fields.rest().len() {
        bytes @ 1.. if fields.is_recorded() => Err(Incomplete::LeftOver(bytes)),
        _ => Ok(()),
    }
}

/// Appends an object with the fields. `Err` has the reason if some are missing at its end; the written object
/// is well-formed in any case.
fn push_object(out: &mut Vec<u8>, fields: &mut Fields<'_>, limit: usize) -> Result<(), Incomplete> {
    out.push(b'{');
    let mut first = true;
    let mut result = Ok(());
    for field in fields {
        match field {
            Ok((name, value)) => {
                if out.len().saturating_add(name.len()) > limit {
                    result = Err(Incomplete::TooLong);
                    break;
                }
                if !first {
                    out.push(b',');
                }
                first = false;
                push_str(out, name);
                out.push(b':');
                if !push_within(out, value, limit) {
                    result = Err(Incomplete::TooLong);
                    break;
                }
            }
            Err(error) => result = Err(Incomplete::Invalid(error)),
        }
    }
    out.push(b'}');
    result
}

/// Appends one value. A number that has a name is that name.
///
/// False if elements are missing at its end: with the names of their fields they would have taken more than 1
/// MiB.
pub fn push_value(out: &mut Vec<u8>, value: Value<'_>) -> bool {
    let limit = limit(out, &[]);
    push_within(out, value, limit)
}

/// Appends one value. False if elements are missing at its end, because the buffer has reached its limit.
pub fn push_within(out: &mut Vec<u8>, value: Value<'_>, limit: usize) -> bool {
    match value {
        Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        Value::Utf16Unit(unit) => {
            out.push(b'"');
            push_char(out, char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER));
            out.push(b'"');
        }
        Value::Utf8Unit(byte) => push_utf8(out, &[byte]),
        Value::I8(value) => push_i64(out, value.into()),
        Value::U8(value) => push_u64(out, value.into()),
        Value::I16(value) => push_i64(out, value.into()),
        Value::U16(value) => push_u64(out, value.into()),
        Value::I32(value) => push_i64(out, value.into()),
        Value::U32(value) => push_u64(out, value.into()),
        Value::I64(value) => push_i64(out, value),
        Value::U64(value) | Value::Address(value) => push_u64(out, value),
        Value::F32(value) => push_f32(out, value),
        Value::F64(value) => push_f64(out, value),
        Value::Decimal(bytes) => out.extend_from_slice(decimal(bytes).as_bytes()),
        Value::DateTime(time) => push_date_time(out, time),
        Value::Guid(uuid) => push_uuid(out, uuid),
        Value::String(text) => push_utf16(out, text),
        Value::Utf8(bytes) => push_utf8(out, bytes),
        Value::Bytes(bytes) => push_hex(out, bytes),
        Value::Named(named) if named.has_name() => push_str(out, &named.to_string()),
        Value::Named(named) => push_u64(out, named.number.into()),
        Value::Array(array) => return push_array(out, array, limit),
        // The object was walked when its value was read, so it has every field.
        Value::Object(mut fields) => return push_object(out, &mut fields, limit).is_ok(),
        // The reader may learn types that this crate does not know.
        _ => out.extend_from_slice(b"null"),
    }
    true
}

/// Appends an array.
pub fn push_list<T>(
    out: &mut Vec<u8>,
    elements: impl Iterator<Item = T>,
    mut push: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, element) in elements.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push(out, element);
    }
    out.push(b']');
}

fn push_array(out: &mut Vec<u8>, array: Array<'_>, limit: usize) -> bool {
    match (array.element_code(), array.as_bytes(), array.as_utf16()) {
        (Some(TypeCode::U8), Some(bytes), _) => push_hex(out, bytes),
        (Some(TypeCode::UTF8_CODE_UNIT), Some(bytes), _) => push_utf8(out, bytes),
        (_, _, Some(text)) => push_utf16(out, text),
        _ => {
            out.push(b'[');
            for (index, element) in array.enumerate() {
                let has_room = out.len() < limit;
                if has_room && index > 0 {
                    out.push(b',');
                }
                if !has_room || !push_within(out, element, limit) {
                    out.push(b']');
                    return false;
                }
            }
            out.push(b']');
        }
    }
    true
}

/// .NET's decimal: sign and scale in the first 32 bits, then the high, low and middle 32 bits of an integer.
fn decimal(bytes: [u8; 16]) -> String {
    let [_, _, scale, sign, ..] = bytes;
    let bits = u128::from_le_bytes(bytes);
    let low_32 = u128::from(u32::MAX);
    let integer = (bits >> 32 & low_32) << 64 | (bits >> 96) << 32 | bits >> 64 & low_32;
    let scale = usize::from(scale);
    let mut text = format!("{integer:0>width$}", width = scale.saturating_add(1));
    if scale > 0 {
        text.insert(text.len().saturating_sub(scale), '.');
    }
    if sign & 0x80 != 0 {
        text.insert(0, '-');
    }
    text
}

fn push_date_time(out: &mut Vec<u8>, time: DateTime) {
    match timestamp(time) {
        Some(timestamp) => push_str(out, &timestamp.to_string()),
        None => match time {
            DateTime::FileTime(ticks) => push_i64(out, ticks),
            _ => out.extend_from_slice(b"null"),
        },
    }
}

/// The instant, if it lies in the years that RFC 3339 can write.
fn timestamp(time: DateTime) -> Option<Timestamp> {
    /// From 1601-01-01 to 1970-01-01, in units of 100 ns.
    const FILE_TIME_OF_UNIX_EPOCH: i128 = 116_444_736_000_000_000;
    match time {
        DateTime::FileTime(ticks) => {
            let ticks = i128::from(ticks).checked_sub(FILE_TIME_OF_UNIX_EPOCH)?;
            Timestamp::from_nanosecond(ticks.checked_mul(100)?).ok()
        }
        DateTime::SystemTime(time) => system_time(time),
        _ => None,
    }
    .filter(|timestamp| *timestamp >= Timestamp::from_second(-62_167_219_200).unwrap_or(Timestamp::MIN))
}

/// The instant that the calendar fields name, if they name one.
fn system_time(time: SystemTime) -> Option<Timestamp> {
    Timestamp::from_millisecond(time.unix_milliseconds()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn value(value: Value<'_>) -> String {
        written(|out| assert!(push_value(out, value)))
    }

    #[test]
    fn strings_read_back_as_they_were() {
        for text in
            ["", "plain", "a\"b\\c\n\r\t\u{1}\u{7f}", "ü😀عâ\u{a0}", "\u{2028}x\u{9b}\u{202e}", "tail\""]
        {
            let json = written(|out| push_str(out, text));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "{json}");
            assert!(!json.contains(is_control), "{json}");
        }
        assert_eq!(written(|out| push_str(out, "\u{1}")), "\"\\u0001\"");
    }

    #[test]
    fn integers_are_exact_and_floats_round_trip() {
        assert_eq!(value(Value::U64(u64::MAX)), "18446744073709551615");
        assert_eq!(value(Value::I64(i64::MIN)), "-9223372036854775808");
        assert_eq!(value(Value::I8(-128)), "-128");
        assert_eq!(value(Value::F64(0.1)), "0.1");
        assert_eq!(value(Value::F32(0.1)), "0.1");
        assert_eq!(value(Value::F64(1.0)), "1.0");
        for float in [1e300, f64::MIN_POSITIVE, 1.0 / 3.0, -0.0, f64::MAX] {
            let json = value(Value::F64(float));
            assert_eq!(json.parse::<f64>().unwrap().to_bits(), float.to_bits(), "{json}");
        }
    }

    #[test]
    fn non_finite_numbers_are_strings() {
        assert_eq!(value(Value::F64(f64::NAN)), "\"NaN\"");
        assert_eq!(value(Value::F64(f64::INFINITY)), "\"Infinity\"");
        assert_eq!(value(Value::F32(f32::NEG_INFINITY)), "\"-Infinity\"");
    }

    #[test]
    fn guids_are_lower_case() {
        let uuid = Uuid::from_u128(0x0000_0011_0000_0000_0000_0000_58D1_9D59);
        assert_eq!(value(Value::Guid(uuid)), "\"00000011-0000-0000-0000-000058d19d59\"");
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(value(Value::DateTime(DateTime::FileTime(0))), "\"1601-01-01T00:00:00Z\"");
        assert_eq!(
            value(Value::DateTime(DateTime::FileTime(116_444_736_000_000_001))),
            "\"1970-01-01T00:00:00.0000001Z\""
        );
        assert_eq!(value(Value::DateTime(DateTime::FileTime(i64::MAX))), i64::MAX.to_string());
        assert_eq!(value(Value::DateTime(DateTime::FileTime(i64::MIN))), i64::MIN.to_string());
        let time =
            SystemTime { year: 2026, month: 11, day: 21, hour: 9, millisecond: 7, ..SystemTime::default() };
        assert_eq!(value(Value::DateTime(DateTime::SystemTime(time))), "\"2026-11-21T09:00:00.007Z\"");
        assert_eq!(value(Value::DateTime(DateTime::SystemTime(SystemTime::default()))), "null");
    }

    #[test]
    fn decimals_keep_every_digit() {
        let decimal = |scale: u8, negative: bool, high: u32, middle: u32, low: u32| {
            let mut bytes = [0; 16];
            bytes[2] = scale;
            bytes[3] = u8::from(negative) << 7;
            bytes[4..8].copy_from_slice(&high.to_le_bytes());
            bytes[8..12].copy_from_slice(&low.to_le_bytes());
            bytes[12..].copy_from_slice(&middle.to_le_bytes());
            value(Value::Decimal(bytes))
        };
        assert_eq!(decimal(0, false, 0, 0, 0), "0");
        assert_eq!(decimal(3, true, 0, 0, 47_625), "-47.625");
        assert_eq!(decimal(3, false, 0, 0, 7), "0.007");
        assert_eq!(decimal(0, false, u32::MAX, u32::MAX, u32::MAX), "79228162514264337593543950335");
    }

    #[test]
    fn hexadecimal_numbers_have_no_leading_zeros() {
        for (number, json) in [(0, "\"0x0\""), (0x10, "\"0x10\""), (u64::MAX, "\"0xffffffffffffffff\"")] {
            assert_eq!(written(|out| push_hex_number(out, number)), json);
        }
        assert_eq!(written(|out| push_hex(out, &[0, 0xAB])), "\"00ab\"");
    }

    #[test]
    fn code_units_are_characters() {
        assert_eq!(value(Value::Utf16Unit(u16::from(b'"'))), "\"\\\"\"");
        assert_eq!(value(Value::Utf16Unit(0xD800)), "\"\u{fffd}\"");
        assert_eq!(value(Value::Utf8Unit(0xff)), "\"\u{fffd}\"");
        assert_eq!(value(Value::Bool(true)), "true");
    }
}
