//! Values of promoted columns.

use clr_events::event_fields;
use clr_events::json::push_value;
use nettrace::{Event, Fields, Value};

use crate::promoted::{PromotedColumn, PromotedType};
use crate::table_writer::Row;

/// Sets the column `place` to the field of an event, if the field exists and its value has the column's type.
pub(crate) fn set(
    column: &PromotedColumn,
    event: &Event<'_>,
    row: &mut Row<'_>,
    place: usize,
    json: &mut Vec<u8>,
) {
    let Some(value) = event_fields(event).and_then(|fields| find(fields, column.field())) else { return };
    match column.kind() {
        PromotedType::Text => {
            if let Value::String(text) = value {
                return row.text(place, &text.to_string());
            }
            json.clear();
            if !push_value(json, value) {
                return;
            }
            // For a value in quotes in JSON, such as a time, take the text between the quotes.
            let text = match serde_json::from_slice(json) {
                Ok(serde_json::Value::String(text)) => text,
                _ => String::from_utf8_lossy(json).into_owned(),
            };
            row.text(place, &text);
        }
        PromotedType::Long => {
            if let Some(number) = long(value) {
                row.long(place, number);
            }
        }
        PromotedType::Double => {
            if let Some(number) = double(value) {
                row.double(place, number);
            }
        }
        PromotedType::Bool => {
            if let Some(is_true) = boolean(value) {
                row.bool(place, is_true);
            }
        }
    }
}

fn find<'a>(fields: Fields<'a>, name: &str) -> Option<Value<'a>> {
    fields.map_while(Result::ok).find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn long(value: Value<'_>) -> Option<i64> {
    Some(match value {
        Value::Bool(is_true) => is_true.into(),
        Value::I8(number) => number.into(),
        Value::U8(number) => number.into(),
        Value::I16(number) => number.into(),
        Value::U16(number) => number.into(),
        Value::I32(number) => number.into(),
        Value::U32(number) => number.into(),
        Value::I64(number) => number,
        Value::U64(number) | Value::Address(number) => number.cast_signed(),
        Value::Named(named) => named.number.into(),
        Value::String(text) => text.to_string().trim().parse().ok()?,
        _ => return None,
    })
}

#[allow(clippy::cast_precision_loss, reason = "a float was asked for")]
fn double(value: Value<'_>) -> Option<f64> {
    Some(match value {
        Value::F32(number) => number.into(),
        Value::F64(number) => number,
        Value::U64(number) | Value::Address(number) => number as f64,
        Value::String(text) => text.to_string().trim().parse().ok()?,
        value => long(value)? as f64,
    })
}

fn boolean(value: Value<'_>) -> Option<bool> {
    match value {
        Value::String(text) => text.to_string().trim().to_ascii_lowercase().parse().ok(),
        value => long(value).map(|number| number != 0),
    }
}
