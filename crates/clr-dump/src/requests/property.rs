//! Fields and properties of objects.

use crate::dump::Dump;
use crate::heap::object::{FieldValue, Value};
use crate::memory::address::Address;

/// Returns the value of a field or of a property that the compiler has made a field for.
fn value(dump: &Dump<'_>, object: Address, name: &str) -> Option<Value> {
    let heap = dump.heap();
    heap.field_value(object, name).or_else(|| heap.field_value(object, &format!("<{name}>k__BackingField")))
}

/// Returns a field or property of an object that is a reference.
pub(super) fn reference(dump: &Dump<'_>, object: Address, name: &str) -> Option<Address> {
    match value(dump, object, name)? {
        Value::Reference { address, .. } => Some(address),
        _ => None,
    }
}

/// Returns the fields of a structure in a field or property of an object.
pub(super) fn structure(dump: &Dump<'_>, object: Address, name: &str) -> Option<Vec<FieldValue>> {
    match value(dump, object, name)? {
        Value::Structure { fields, .. } => Some(fields),
        _ => None,
    }
}

/// Returns the first characters of a field or property of an object that is a string, with a mark if it is
/// longer.
pub(super) fn text(dump: &Dump<'_>, object: Address, name: &str) -> Option<String> {
    match value(dump, object, name)? {
        Value::Reference { text: Some((text, is_cut)), .. } => known(text, is_cut),
        _ => None,
    }
}

/// Returns a text with a mark if it is longer; `None` of a copy of the memory without texts.
pub(super) fn known(text: String, is_cut: bool) -> Option<String> {
    let is_removed = !text.is_empty() && text.chars().all(|character| character == '\0');
    (!is_removed).then(|| if is_cut { text + "…" } else { text })
}

/// Returns the name of the constant that a field or property of an object has.
pub(super) fn constant(dump: &Dump<'_>, object: Address, name: &str) -> Option<String> {
    match value(dump, object, name)? {
        Value::Enumeration { name, .. } => name,
        _ => None,
    }
}

/// Returns a number of a field or property of an object.
pub(super) fn number(dump: &Dump<'_>, object: Address, name: &str) -> Option<u64> {
    match value(dump, object, name)? {
        Value::Signed(number) => u64::try_from(number).ok(),
        Value::Unsigned(number) => Some(number),
        _ => None,
    }
}

/// Returns the truth value of a field or property of an object.
pub(super) fn flag(dump: &Dump<'_>, object: Address, name: &str) -> Option<bool> {
    match value(dump, object, name)? {
        Value::Bool(flag) => Some(flag),
        _ => None,
    }
}
