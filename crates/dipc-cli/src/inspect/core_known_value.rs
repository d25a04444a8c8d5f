//! Values of the framework's structures as people write them: dates, times, ids, decimal numbers.

use clr_dump::{FieldValue, Value};
use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

/// Ticks of a second.
const SECOND: i64 = 10_000_000;

/// The value of a structure in words; `None` of other types, and if a field is missing.
pub(crate) fn known_text(type_name: &str, fields: &[FieldValue]) -> Option<String> {
    let number = |name: &str| number(fields, name);
    Some(match type_name {
        "System.Guid" => guid(fields)?,
        "System.DateTime" => date_time(number("_dateData")?)?,
        "System.TimeSpan" | "System.TimeOnly" => time_span(i64::try_from(number("_ticks")?).ok()?),
        "System.DateTimeOffset" => {
            let Value::Structure { fields: of_time, .. } = value(fields, "_dateTime")? else { return None };
            let minutes = i64::try_from(number("_offsetMinutes")?).ok()?;
            let ticks = self::number(of_time, "_dateData")? & TICKS;
            let sign = if minutes < 0 { '-' } else { '+' };
            let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
            let local = i64::try_from(ticks).ok()?.checked_add(minutes.checked_mul(60 * SECOND)?)?;
            format!("{} {sign}{hours:02}:{rest:02}", ticks_text(local)?)
        }
        "System.DateOnly" => {
            let days = i64::try_from(number("_dayNumber")?).ok()?;
            time_of(days.checked_mul(24 * 3600 * SECOND)?)?.date().to_string()
        }
        "System.Decimal" => decimal(fields)?,
        _ => return None,
    })
}

/// The value in a `Nullable`, [`Value::Null`] if it is empty; `None` for other types.
pub(crate) fn nullable<'v>(type_name: &str, fields: &'v [FieldValue]) -> Option<&'v Value> {
    if !type_name.starts_with("System.Nullable`1[") {
        return None;
    }
    match value(fields, "hasValue")? {
        Value::Bool(true) => value(fields, "value"),
        Value::Bool(false) => Some(&Value::Null),
        _ => None,
    }
}

fn value<'v>(fields: &'v [FieldValue], name: &str) -> Option<&'v Value> {
    fields.iter().find(|field| field.field.name == name).map(|field| &field.value)
}

fn number(fields: &[FieldValue], name: &str) -> Option<i128> {
    match value(fields, name)? {
        Value::Signed(number) => Some((*number).into()),
        Value::Unsigned(number) => Some((*number).into()),
        _ => None,
    }
}

/// The bits of a DateTime that are its ticks; the others are its kind.
const TICKS: i128 = (1 << 62) - 1;

fn date_time(data: i128) -> Option<String> {
    let kind = match data >> 62 {
        0 => "",
        1 => "Z",
        _ => " (local)",
    };
    Some(ticks_text(i64::try_from(data & TICKS).ok()?)? + kind)
}

/// The date and time after ticks from the first year on.
fn time_of(ticks: i64) -> Option<DateTime> {
    let since = SignedDuration::new(ticks / SECOND, i32::try_from(ticks % SECOND * 100).ok()?);
    date(1, 1, 1).at(0, 0, 0, 0).checked_add(since).ok()
}

fn ticks_text(ticks: i64) -> Option<String> {
    Some(time_of(ticks)?.to_string().replace('T', " "))
}

/// A time span as .NET writes it, `1.02:03:04.5`.
fn time_span(ticks: i64) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    let all = ticks.unsigned_abs();
    let second = SECOND.unsigned_abs();
    let (seconds, rest) = (all / second, all % second);
    let days = match seconds / 86_400 {
        0 => String::new(),
        days => format!("{days}."),
    };
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    let text = format!("{sign}{days}{hours:02}:{minutes:02}:{:02}", seconds % 60);
    if rest == 0 { text } else { format!("{text}.{rest:07}") }
}

fn guid(fields: &[FieldValue]) -> Option<String> {
    let part = |name: &str, bits: u32| Some(number(fields, name)? & ((1_i128 << bits) - 1));
    let (a, b, c) = (part("_a", 32)?, part("_b", 16)?, part("_c", 16)?);
    let bytes = ["_d", "_e", "_f", "_g", "_h", "_i", "_j", "_k"].map(|name| part(name, 8));
    let bytes: Vec<String> =
        bytes.into_iter().map(|byte| Some(format!("{:02x}", byte?))).collect::<Option<_>>()?;
    let (clock, node) = bytes.split_at_checked(2)?;
    Some(format!("{a:08x}-{b:04x}-{c:04x}-{}-{}", clock.concat(), node.concat()))
}

fn decimal(fields: &[FieldValue]) -> Option<String> {
    let any = |names: [&str; 2]| names.into_iter().find_map(|name| number(fields, name));
    let flags = any(["_flags", "flags"])?;
    let high = any(["_hi32", "hi"])? & 0xffff_ffff;
    let low = match number(fields, "_lo64") {
        Some(low) => low & 0xffff_ffff_ffff_ffff,
        None => (any(["mid", "_mid"])? & 0xffff_ffff) << 32 | any(["lo", "_lo"])? & 0xffff_ffff,
    };
    let scale = usize::try_from(flags >> 16 & 0xff).ok()?;
    let digits = format!("{:0>width$}", high << 64 | low, width = scale + 1);
    let (whole, fraction) = digits.split_at_checked(digits.len() - scale)?;
    let sign = if flags & 0x8000_0000 != 0 { "-" } else { "" };
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_write_them() {
        let ticks = 638_396_640_000_000_000_i128;
        assert_eq!(date_time(ticks).as_deref(), Some("2024-01-01 00:00:00"));
        assert_eq!(
            date_time((ticks + 5_000_001) | (1 << 62)).as_deref(),
            Some("2024-01-01 00:00:00.5000001Z")
        );
        assert_eq!(time_span(90_000 * SECOND + 5_000_000), "1.01:00:00.5000000");
        assert_eq!([time_span(0), time_span(-61 * SECOND)], ["00:00:00", "-00:01:01"]);
        assert_eq!(date_time(TICKS), None);
    }
}
