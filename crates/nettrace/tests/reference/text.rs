//! Names and values as the other reader prints them.

use nettrace::{Array, DateTime, Event, Metadata, TypeCode, Value};

use crate::differences;

/// A name with its mark of start or stop, which the other reader separates by a slash.
pub(crate) fn plain_name(metadata: &Metadata) -> String {
    if metadata.name().is_empty() {
        format!("EventID({})", metadata.event_id())
    } else {
        metadata.name().to_owned()
    }
}

/// Compares all fields, by name and in order.
pub(crate) fn same_fields(
    event: &Event<'_>,
    theirs: &serde_json::Map<String, serde_json::Value>,
) -> Result<(), String> {
    let mut count = 0;
    for (field, (name, text)) in event.fields().zip(theirs) {
        let text = text.as_str().unwrap_or_default();
        let (ours, value) = match field {
            Ok(field) => field,
            // Where the payload ends inside a field the other reader throws, and says so instead of a value.
            Err(_) if text.starts_with("<<<EXCEPTION_DURING_VALUE_LOOKUP") => return Ok(()),
            Err(error) => return Err(format!("field {name}: {error}")),
        };
        if ours != name || !(prints_as(&value, text) || differences::is_misread_date(&value)) {
            return Err(format!("field {name}: ours is {ours} = {value:?}, theirs {text:?}"));
        }
        count += 1;
    }
    let (ours, theirs) = (event.fields().count(), theirs.len());
    if ours == count && theirs == count {
        Ok(())
    } else {
        Err(format!("fields: ours are {ours}, theirs {theirs}"))
    }
}

fn prints_as(value: &Value<'_>, text: &str) -> bool {
    match value {
        // Floats are compared as numbers: both print the shortest text that reads back, in notations of their
        // own.
        Value::F32(number) => text.parse() == Ok(*number),
        Value::F64(number) => text.parse() == Ok(*number),
        _ => printed(value) == text,
    }
}

fn printed(value: &Value<'_>) -> String {
    match value {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Utf16Unit(unit) => String::from_utf16_lossy(&[*unit]),
        Value::Utf8Unit(unit) => char::from(*unit).into(),
        Value::I8(number) => number.to_string(),
        Value::U8(number) => number.to_string(),
        Value::I16(number) => number.to_string(),
        Value::U16(number) => number.to_string(),
        Value::I32(number) => number.to_string(),
        Value::U32(number) => number.to_string(),
        Value::I64(number) => number.to_string(),
        Value::U64(number) => format!("0x{number:08x}"),
        Value::F32(number) => float(f64::from(*number), number.to_string()),
        Value::F64(number) => float(*number, number.to_string()),
        Value::Guid(id) => id.to_string(),
        Value::String(text) => text.to_string(),
        Value::DateTime(time) => date_time(*time),
        Value::Array(array) if array.as_utf16().is_some() => array.as_utf16().unwrap().to_string(),
        Value::Array(array) if array.element_code() == Some(TypeCode::UTF8_CODE_UNIT) => {
            String::from_utf8_lossy(array.as_bytes().unwrap()).into_owned()
        }
        Value::Array(array) => {
            let elements: Vec<_> = array.map(|element| printed(&element)).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .map(|field| {
                    field.map_or_else(
                        |error| error.to_string(),
                        |(name, value)| format!("\"{name}\":{}", nested(&value)),
                    )
                })
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn is_text(array: &Array<'_>) -> bool {
    matches!(array.element_code(), Some(TypeCode::UTF16_CODE_UNIT | TypeCode::UTF8_CODE_UNIT))
}

fn float(number: f64, finite: String) -> String {
    match number {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => finite,
    }
}

/// Within objects everything is quoted but booleans, the commonest numbers and objects.
fn nested(value: &Value<'_>) -> String {
    match value {
        Value::Bool(_) | Value::I16(_) | Value::I32(_) | Value::F32(_) | Value::F64(_) | Value::Object(_) => {
            printed(value)
        }
        Value::Array(array) if !is_text(array) => {
            let elements: Vec<_> = array.map(|element| nested(&element)).collect();
            format!("[ {} ]", elements.join(", "))
        }
        Value::U64(number) => format!("\"{number}\""),
        _ => format!("\"{}\"", printed(value)),
    }
}

fn date_time(time: DateTime) -> String {
    let seconds = match time {
        DateTime::FileTime(ticks) => ticks.div_euclid(10_000_000) - 11_644_473_600,
        DateTime::SystemTime(time) => time.unix_milliseconds().unwrap_or(0).div_euclid(1000),
        _ => unreachable!("no other form of time is known"),
    };
    let days = seconds.div_euclid(86_400);
    let (hour, minute, second) =
        (seconds.rem_euclid(86_400) / 3600, seconds.rem_euclid(3600) / 60, seconds.rem_euclid(60));
    let (year, month, day) = calendar(days);
    format!("{month:02}/{day:02}/{year:04} {hour:02}:{minute:02}:{second:02}")
}

/// The date that many days after 1970-01-01, by counting.
fn calendar(mut days: i64) -> (i64, i64, i64) {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + i64::from(leap(year)) {
        days -= 365 + i64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, i64::try_from(month).unwrap_or(0) + 1, days + 1)
}
