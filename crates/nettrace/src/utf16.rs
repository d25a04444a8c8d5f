//! UTF-16 text.

use alloc::string::String;

/// UTF-16 text in little-endian bytes, without its terminator. Lone surrogates may occur.
///
/// ```
/// use nettrace::schema::{Field, FieldType};
/// use nettrace::{Fields, TypeCode, Value};
///
/// static NAME: &[Field] = &[Field::new("Name", FieldType::Scalar(TypeCode::STRING16))];
/// let payload: Vec<u8> = "Tax\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
/// let Some(Ok((_, Value::String(name)))) = Fields::with_schema(NAME, &payload, 8).next() else {
///     panic!("no string")
/// };
/// assert_eq!((name.to_string(), name.chars().count()), ("Tax".to_owned(), 3));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Utf16<'a>(pub(crate) &'a [u8]);

impl<'a> Utf16<'a> {
    /// The bytes: two for each code unit.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
    /// The code units.
    pub fn units(self) -> impl Iterator<Item = u16> + 'a {
        self.0.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit))
    }
    /// The characters, with U+FFFD for a lone surrogate.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        char::decode_utf16(self.units()).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

impl core::fmt::Display for Utf16<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use core::fmt::Write as _;
        self.chars().try_for_each(|character| f.write_char(character))
    }
}

impl core::fmt::Debug for Utf16<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(&self.chars().collect::<String>(), f)
    }
}
