//! Kinds of events that do not come from a recording.

use nettrace::TypeCode;

/// The description of a kind of event.
#[derive(Debug, Clone, Copy)]
pub struct EventKind<'a> {
    /// The provider.
    pub provider: &'a str,
    /// The number of the event.
    pub id: u32,
    /// The name.
    pub name: &'a str,
    /// Names and types of the fields, in the order of the payload.
    pub fields: &'a [(&'a str, FieldKind)],
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A number or another type without parts.
    Scalar(TypeCode),
    /// UTF-8 after its length in two bytes: an array of [`UTF8_CODE_UNIT`](TypeCode::UTF8_CODE_UNIT).
    Text,
}
