//! Field lists that a program has for events which their recording does not describe.
//!
//! The runtime's own events are recorded without field lists. A program that knows their layout states it as
//! a list of [`Field`]s, which may be a constant, and decodes payloads with
//! [`Fields::with_schema`](crate::Fields::with_schema):
//!
//! ```
//! use nettrace::schema::{Count, Field, FieldType};
//! use nettrace::{Fields, Value};
//!
//! static FIELDS: &[Field] = &[
//!     Field::new("Address", FieldType::Address),
//!     Field::counter("Count", FieldType::U16),
//!     Field::new("Values", FieldType::Array(&FieldType::U8, Count::Counted)),
//! ];
//! let payload = [0x10, 0, 0, 0, 2, 0, 7, 8];
//! let mut fields = Fields::with_schema(FIELDS, &payload, 4);
//! assert_eq!(fields.next(), Some(Ok(("Address", Value::Address(16)))));
//! assert_eq!(fields.next(), Some(Ok(("Count", Value::U16(2)))));
//! let Some(Ok((_, Value::Array(values)))) = fields.next() else { panic!("no array") };
//! assert_eq!(values.as_bytes(), Some(&[7, 8][..]));
//! ```
//!
//! The crate `clr-events` has the schemas of the runtime's events.

use crate::metadata::TypeCode;

pub use crate::value_names::{NamedValue, ValueNames, ValueNamesKind};

/// The type of a field in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// A value without parts, of a type that recordings also use.
    Scalar(TypeCode),
    /// 4 or 8 bytes, as the traced process's pointers.
    Address,
    /// UTF-8 up to a NUL.
    Utf8,
    /// u16 length, then as many bytes of UTF-8.
    CountedUtf8,
    /// A byte with named values.
    Named8(&'static ValueNames),
    /// 2 bytes with named values.
    Named16(&'static ValueNames),
    /// 4 bytes with named values.
    Named32(&'static ValueNames),
    /// So many bytes.
    Bytes(Count),
    /// So many elements, which take at least a byte each.
    Array(&'static FieldType, Count),
    /// Fields of its own.
    Object(&'static [Field]),
    /// 2 bytes without meaning; no value.
    Pad16,
    /// With 8-byte pointers 4 bytes without meaning, with 4-byte ones none; no value.
    PadWord,
    /// A value that is read and not shown, such as a length that another value implies; no value.
    Hidden(&'static FieldType),
}

macro_rules! scalars {
    ($($name:ident = $code:ident, $doc:literal;)*) => {
        impl FieldType {
            $(#[doc = $doc] pub const $name: Self = Self::Scalar(TypeCode::$code);)*
        }
    };
}

scalars! {
    BOOL32 = BOOLEAN, "4 bytes, 0 is false.";
    U8 = U8, "Unsigned, 1 byte.";
    U16 = U16, "Unsigned, 2 bytes.";
    U32 = U32, "Unsigned, 4 bytes.";
    U64 = U64, "Unsigned, 8 bytes.";
    I32 = I32, "Signed, 4 bytes.";
    I64 = I64, "Signed, 8 bytes.";
    F64 = F64, "IEEE 754, 8 bytes.";
    GUID = GUID, "16 bytes, the first three parts little-endian.";
    STRING16 = STRING16, "UTF-16 up to a NUL.";
    VARUINT = VARUINT, "Variable-length unsigned integer.";
}

impl FieldType {
    /// Returns true if the field is read without giving a value.
    pub const fn is_hidden(&self) -> bool {
        matches!(self, Self::Pad16 | Self::PadWord | Self::Hidden(_))
    }

    /// Returns the size of values of the type in bytes; `None` if it varies, or the type has parts.
    pub(crate) fn fixed_size(&self, v6: bool, wide: bool) -> Option<usize> {
        match self {
            Self::Scalar(code) => code.fixed_size(v6),
            Self::Address => Some(if wide { 8 } else { 4 }),
            Self::Named8(_) => Some(1),
            Self::Named16(_) => Some(2),
            Self::Named32(_) => Some(4),
            _ => None,
        }
    }
}

/// The number of elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Count {
    /// A fixed number.
    Fixed(u16),
    /// The value of the [counter](Field::counter) of the same list.
    Counted,
}

impl Count {
    pub(crate) const fn resolve(self, counted: u32) -> u32 {
        match self {
            #[allow(clippy::cast_lossless, reason = "`From` is not const")]
            Self::Fixed(count) => count as u32,
            Self::Counted => counted,
        }
    }
}

/// A field of a schema.
#[allow(clippy::struct_field_names, reason = "`type` is a keyword")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    name: &'static str,
    field_type: FieldType,
    is_counter: bool,
}

impl Field {
    /// Creates a field.
    pub const fn new(name: &'static str, field_type: FieldType) -> Self {
        Self { name, field_type, is_counter: false }
    }

    /// Creates a field, a `U8`, `U16` or `U32`, that holds the number of elements of later arrays in the same
    /// list.
    pub const fn counter(name: &'static str, field_type: FieldType) -> Self {
        Self { name, field_type, is_counter: true }
    }

    /// The name of the field.
    #[inline]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The type of the field.
    #[inline]
    pub const fn field_type(&self) -> &FieldType {
        &self.field_type
    }

    /// Returns true if its value is the number of elements of later arrays in the same list.
    #[inline]
    pub const fn is_counter(&self) -> bool {
        self.is_counter
    }
}
