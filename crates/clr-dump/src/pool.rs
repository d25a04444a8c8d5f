//! The thread pool: its workers, and the work that waits for them.

pub(crate) mod change;
pub(crate) mod queue;
pub(crate) mod work;
pub(crate) mod workers;

use crate::dump::view;
use crate::heap::object::{FieldValue, Value};

view! {
    /// The thread pool of a dump.
    ThreadPool, thread_pool
}

/// The value of a field of a structure, after the names of its enclosing structures.
fn value_of<'v>(fields: &'v [FieldValue], names: &[&str]) -> Option<&'v Value> {
    let (name, inner) = names.split_first()?;
    let value = &fields.iter().find(|of| of.field.name == *name)?.value;
    match value {
        Value::Structure { fields, .. } if !inner.is_empty() => value_of(fields, inner),
        value => inner.is_empty().then_some(value),
    }
}

/// A number without a fraction; `None` of other values.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Signed(number) | Value::Enumeration { number, .. } => Some(*number),
        Value::Unsigned(number) => Some(number.cast_signed()),
        _ => None,
    }
}
