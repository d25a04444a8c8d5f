//! Kinds of events from sources other than a recording.

use nettrace::TypeCode;

/// The description of a kind of event.
///
/// ```
/// use nettrace_writer::{EventKind, FieldKind};
///
/// let fields = [("Text", FieldKind::Text)];
/// let warning = EventKind::new("Demo", 2, "Warning", &fields).with_level(3).with_keywords(0x8);
/// assert_eq!((warning.level, warning.opcode), (3, None));
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct EventKind<'a> {
    /// The provider.
    pub provider: &'a str,
    /// The number of the event.
    pub id: u32,
    /// The name.
    pub name: &'a str,
    /// Names and types of the fields, in the order of the payload.
    pub fields: &'a [(&'a str, FieldKind)],
    /// The level: 1 (critical) to 5 (verbose); 0, the default, is for events that every level includes. V6
    /// has 8 bits for it.
    pub level: u32,
    /// The keywords; none by default.
    pub keywords: u64,
    /// The operation to which the event belongs, such as 1 for a start and 2 for a stop; `None` by default.
    pub opcode: Option<u8>,
    /// The version of the event's fields; 0 by default. V6 has 8 bits for it.
    pub version: u32,
}

impl<'a> EventKind<'a> {
    /// Describes a kind of event with these fields.
    pub const fn new(provider: &'a str, id: u32, name: &'a str, fields: &'a [(&'a str, FieldKind)]) -> Self {
        Self { provider, id, name, fields, level: 0, keywords: 0, opcode: None, version: 0 }
    }

    /// The same kind with another [`level`](Self::level).
    #[must_use]
    pub const fn with_level(self, level: u32) -> Self {
        Self { level, ..self }
    }

    /// The same kind with other [`keywords`](Self::keywords).
    #[must_use]
    pub const fn with_keywords(self, keywords: u64) -> Self {
        Self { keywords, ..self }
    }

    /// The same kind with an [`opcode`](Self::opcode).
    #[must_use]
    pub const fn with_opcode(self, opcode: u8) -> Self {
        Self { opcode: Some(opcode), ..self }
    }

    /// The same kind with another [`version`](Self::version).
    #[must_use]
    pub const fn with_version(self, version: u32) -> Self {
        Self { version, ..self }
    }
}

/// The type of a field.
///
/// ```
/// use nettrace::TypeCode;
/// use nettrace_writer::{EventKind, FieldKind};
///
/// let fields = [("Count", FieldKind::Scalar(TypeCode::U32)), ("Name", FieldKind::Text)];
/// let kind = EventKind::new("Demo", 1, "Tick", &fields).with_level(5).with_version(2);
/// assert_eq!((kind.version, kind.fields.len()), (2, 2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A number or another type without parts.
    Scalar(TypeCode),
    /// UTF-8 after its length in two bytes: an array of [`UTF8_CODE_UNIT`](TypeCode::UTF8_CODE_UNIT). V4
    /// cannot describe it: a kind with such a field is written without a field list there, and is counted in
    /// [`Omissions::field_lists`](crate::Omissions::field_lists).
    Text,
}
