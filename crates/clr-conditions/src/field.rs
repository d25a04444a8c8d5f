//! Fields of events, and the values to compare with.

use clr_counters::Comparison;
use std::cmp::Ordering;

use clr_events::{Glob, event_fields};
use nettrace::{Event, Fields, Value};

/// A field, and the value to compare with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldCondition {
    /// The name as written; nested parts are separated by dots.
    pub(crate) name: String,
    pub(crate) comparison: Comparison,
    pub(crate) bound: Bound,
}

/// The value to compare with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    /// The value as a number, if it is one.
    pub(crate) number: Option<f64>,
    pub(crate) text: Glob,
}

/// Maximum nesting depth of objects to search.
const MAX_DEPTH: usize = 4;
/// Maximum length of a string to parse as a number, in characters.
const MAX_NUMBER_LENGTH: usize = 64;

impl Bound {
    pub(crate) fn new(text: &str) -> Self {
        let hexadecimal = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        #[allow(clippy::cast_precision_loss, reason = "a number that people write")]
        let number = hexadecimal.map(|number| number as f64).or_else(|| text.parse().ok());
        Self { number: number.filter(|number| !number.is_nan()), text: Glob::new(text) }
    }
}

/// Returns true if the fields of an event meet all conditions.
pub(crate) fn are_met(conditions: &[FieldCondition], event: &Event<'_>) -> bool {
    conditions.is_empty()
        || event_fields(event).is_some_and(|fields| {
            conditions.iter().all(|it| {
                find(fields, &it.name, MAX_DEPTH)
                    .is_some_and(|value| is_met(it.comparison, &it.bound, &value))
            })
        })
}

/// The field with a name, also in nested objects.
fn find<'a>(fields: Fields<'a>, name: &str, depth: usize) -> Option<Value<'a>> {
    for (field, value) in fields.flatten() {
        if field.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        let Some((start, rest)) = name.split_once('.') else { continue };
        if let Value::Object(inner) = value
            && depth > 0
            && field.eq_ignore_ascii_case(start)
        {
            return find(inner, rest, depth.saturating_sub(1));
        }
    }
    None
}

fn is_met(comparison: Comparison, bound: &Bound, value: &Value<'_>) -> bool {
    let order = match (number(value), bound.number) {
        (Some(number), Some(bound)) => number.partial_cmp(&bound),
        _ => None,
    };
    if order.is_some() || comparison.is_ordered() {
        return comparison.is_met(order);
    }
    let is_equal = text(value).is_some_and(|text| bound.text.matches(&text));
    comparison.is_met(is_equal.then_some(Ordering::Equal))
}

#[allow(clippy::cast_precision_loss, reason = "compared with numbers that people write")]
fn number(value: &Value<'_>) -> Option<f64> {
    Some(match value {
        Value::I8(number) => f64::from(*number),
        Value::U8(number) => f64::from(*number),
        Value::I16(number) => f64::from(*number),
        Value::U16(number) => f64::from(*number),
        Value::I32(number) => f64::from(*number),
        Value::U32(number) => f64::from(*number),
        Value::I64(number) => *number as f64,
        Value::U64(number) | Value::Address(number) => *number as f64,
        Value::F32(number) => f64::from(*number),
        Value::F64(number) => *number,
        Value::Named(value) => f64::from(value.number),
        // Counters and status codes may be strings.
        Value::String(text) => text.chars().take(MAX_NUMBER_LENGTH).collect::<String>().parse().ok()?,
        _ => return None,
    })
}

/// The text to compare with; numbers are compared as numbers, and values with parts not at all.
fn text(value: &Value<'_>) -> Option<String> {
    let has_text = matches!(
        value,
        Value::Bool(_) | Value::String(_) | Value::Utf8(_) | Value::Guid(_) | Value::Named(_)
    );
    has_text.then(|| value.to_string())
}
