//! Values as text.

use core::fmt::{self, Display, Formatter, Write as _};

use super::{Array, DateTime, Value};
use crate::metadata::TypeCode;
use crate::time::SystemTime;

/// Numbers in decimal, addresses in hexadecimal with `0x`, bytes as pairs of digits, strings without quotes
/// and with U+FFFD for invalid characters, times in RFC 3339, arrays as `[1, 2]`, objects as `{name: value}`.
///
/// Text of the traced process is not escaped.
impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Value::Bool(value) => value.fmt(f),
            Value::Utf16Unit(unit) => {
                f.write_char(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            Value::Utf8Unit(byte) => utf8(f, &[byte]),
            Value::I8(value) => value.fmt(f),
            Value::U8(value) => value.fmt(f),
            Value::I16(value) => value.fmt(f),
            Value::U16(value) => value.fmt(f),
            Value::I32(value) => value.fmt(f),
            Value::U32(value) => value.fmt(f),
            Value::I64(value) => value.fmt(f),
            Value::U64(value) => value.fmt(f),
            Value::F32(value) => value.fmt(f),
            Value::F64(value) => value.fmt(f),
            Value::Decimal(bytes) => decimal(f, bytes),
            Value::DateTime(time) => time.fmt(f),
            Value::Guid(uuid) => uuid.fmt(f),
            Value::String(text) => text.fmt(f),
            Value::Utf8(bytes) => utf8(f, bytes),
            Value::Bytes(bytes) => hexadecimal(f, bytes),
            Value::Address(address) => write!(f, "{address:#x}"),
            Value::Named(value) => value.fmt(f),
            Value::Array(array) => array.fmt(f),
            Value::Object(fields) => {
                f.write_char('{')?;
                for (index, field) in fields.enumerate() {
                    let before = if index == 0 { "" } else { ", " };
                    match field {
                        Ok((name, value)) => write!(f, "{before}{name}: {value}")?,
                        Err(error) => write!(f, "{before}({error})")?,
                    }
                }
                f.write_char('}')
            }
        }
    }
}

/// As in a [`Value`].
impl Display for Array<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.element_code(), self.as_bytes(), self.as_utf16()) {
            (Some(TypeCode::U8), Some(bytes), _) => hexadecimal(f, bytes),
            (Some(TypeCode::UTF8_CODE_UNIT), Some(bytes), _) => utf8(f, bytes),
            (_, _, Some(text)) => text.fmt(f),
            _ => {
                f.write_char('[')?;
                for (index, value) in self.enumerate() {
                    f.write_str(if index == 0 { "" } else { ", " })?;
                    value.fmt(f)?;
                }
                f.write_char(']')
            }
        }
    }
}

/// In RFC 3339; file times before 1970 and after 9999 as numbers.
impl Display for DateTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        /// From 1601 to 1970, in units of 100 ns.
        const TICKS_BEFORE_1970: i64 = 116_444_736_000_000_000;
        const TICKS_PER_SECOND: u64 = 10_000_000;
        const TICKS_PER_MILLISECOND: u64 = 10_000;
        let (time, digits, fraction) = match *self {
            Self::FileTime(ticks) => {
                let since_1970 = ticks.checked_sub(TICKS_BEFORE_1970).and_then(|it| u64::try_from(it).ok());
                let Some(since_1970) = since_1970 else { return ticks.fmt(f) };
                let time = SystemTime::from_unix_milliseconds(since_1970 / TICKS_PER_MILLISECOND);
                if time.year > 9999 {
                    return ticks.fmt(f);
                }
                (time, 7, since_1970 % TICKS_PER_SECOND)
            }
            Self::SystemTime(time) => (time, 3, time.millisecond.into()),
        };
        let SystemTime { year, month, day, hour, minute, second, .. } = time;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:0digits$}Z")
    }
}

fn utf8(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.utf8_chunks().try_for_each(|chunk| {
        f.write_str(chunk.valid())?;
        if chunk.invalid().is_empty() { Ok(()) } else { f.write_char(char::REPLACEMENT_CHARACTER) }
    })
}

fn hexadecimal(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Writes a decimal of .NET: the scale is the third byte, the sign the highest bit of the fourth; the high,
/// low and middle 32 bits of an integer follow.
fn decimal(f: &mut Formatter<'_>, bytes: [u8; 16]) -> fmt::Result {
    let [_, _, scale, sign, h0, h1, h2, h3, l0, l1, l2, l3, m0, m1, m2, m3] = bytes;
    let integer = u128::from_le_bytes([l0, l1, l2, l3, m0, m1, m2, m3, h0, h1, h2, h3, 0, 0, 0, 0]);
    let scale = usize::from(scale);
    let digits = alloc::format!("{integer:0>width$}", width = scale.saturating_add(1));
    let (whole, fraction) =
        digits.split_at_checked(digits.len().saturating_sub(scale)).unwrap_or((&digits, ""));
    let sign = if sign & 0x80 == 0 { "" } else { "-" };
    let point = if fraction.is_empty() { "" } else { "." };
    write!(f, "{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;
    use crate::utf16::Utf16;

    #[test]
    fn values_as_text() {
        let uuid = crate::Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        let time = SystemTime::from_unix_milliseconds(1_795_251_731_023);
        for (value, expected) in [
            (Value::Bool(true), "true"),
            (Value::I8(-1), "-1"),
            (Value::U64(u64::MAX), "18446744073709551615"),
            (Value::F32(0.1), "0.1"),
            (Value::F64(f64::INFINITY), "inf"),
            (Value::Address(0x7f00), "0x7f00"),
            (Value::Utf16Unit(0xd800), "\u{FFFD}"),
            (Value::Utf16Unit(0x20ac), "€"),
            (Value::Utf8Unit(b'a'), "a"),
            (Value::Utf8Unit(0xc3), "\u{FFFD}"),
            (Value::String(Utf16(b"a\0\xac\x20\0\xd8")), "a€\u{FFFD}"),
            (Value::Utf8(b"a\xffb"), "a\u{FFFD}b"),
            (Value::Bytes(&[0, 0xab]), "00ab"),
            (Value::Guid(uuid), "00112233-4455-6677-8899-aabbccddeeff"),
            // `date -u -d @1795251731`
            (Value::DateTime(DateTime::SystemTime(time)), "2026-11-21T09:02:11.023Z"),
            (Value::DateTime(DateTime::FileTime(116_444_736_000_000_001)), "1970-01-01T00:00:00.0000001Z"),
            (Value::DateTime(DateTime::FileTime(-5)), "-5"),
            (Value::DateTime(DateTime::FileTime(i64::MAX)), "9223372036854775807"),
        ] {
            assert_eq!(value.to_string(), expected, "{value:?}");
        }
    }

    /// The numbers are the result of `decimal.GetBits`.
    #[test]
    fn decimals_as_text() {
        for (flags, high, low, middle, expected) in [
            (0_u32, 0_u32, 0_u32, 0_u32, "0"),
            (0x0002_0000, 0, 12345, 0, "123.45"),
            (0x8003_0000, 0, 5, 0, "-0.005"),
            (0x0001_0000, 0, 0, 0, "0.0"),
            (0, u32::MAX, u32::MAX, u32::MAX, "79228162514264337593543950335"),
            (0x001c_0000, 0, 1, 0, "0.0000000000000000000000000001"),
        ] {
            let mut bytes = [0; 16];
            for (at, word) in [flags, high, low, middle].into_iter().enumerate() {
                bytes[at * 4..][..4].copy_from_slice(&word.to_le_bytes());
            }
            assert_eq!(Value::Decimal(bytes).to_string(), expected);
        }
    }
}
