//! Field values, decoded on demand.

use alloc::string::String;

use uuid::Uuid;

use crate::cursor::{Cursor, ReadError};
use crate::metadata::{Field, FieldType, TypeCode};
use crate::time::SystemTime;

/// The value of a field, borrowing the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants are the types of the format; see `TypeCode`")]
pub enum Value<'a> {
    Bool(bool),
    /// One UTF-16 code unit, which need not be a character.
    Utf16Unit(u16),
    /// One UTF-8 code unit, which need not be a character.
    Utf8Unit(u8),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    /// Also variable-length signed integers.
    I64(i64),
    /// Also variable-length unsigned integers.
    U64(u64),
    F32(f32),
    F64(f64),
    /// .NET's decimal: flags, high, low and middle 32 bits.
    Decimal([u8; 16]),
    DateTime(DateTime),
    Guid(Uuid),
    String(Utf16<'a>),
    Array(Array<'a>),
    Object(Fields<'a>),
}

/// A calendar time, in the form of the recording's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DateTime {
    /// 100 ns since 1601-01-01T00:00:00Z (before V6).
    FileTime(i64),
    /// Calendar fields (V6).
    SystemTime(SystemTime),
}

/// The fault of a field, behind which no field can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The payload ends inside the field.
    #[error("the payload ends inside field {field} of {fields}")]
    TooShort {
        /// Index of the field in its list.
        field: usize,
        /// Fields in the list.
        fields: usize,
    },
    /// This crate does not know the field's type, and so not its size.
    #[error("field {field} has the unknown type {}", code.0)]
    UnknownType {
        /// Index of the field in its list.
        field: usize,
        /// Its type.
        code: TypeCode,
    },
    /// The field's bytes are no value of its type.
    #[error("field {field}: {what}")]
    Invalid {
        /// Index of the field in its list.
        field: usize,
        /// The fault.
        what: &'static str,
    },
}

/// UTF-16 text in little-endian bytes, without its terminator. Lone surrogates may occur.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Utf16<'a>(pub(crate) &'a [u8]);

impl<'a> Utf16<'a> {
    /// Returns the text up to the first NUL, and the bytes behind that; `None` if there is no NUL.
    #[inline]
    pub fn until_nul(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut cursor = Cursor::new(bytes);
        let text = cursor.string16().ok()?;
        Some((Self(text), cursor.rest()))
    }
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

/// The context of decoding a field.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Context<'a> {
    /// The whole payload: `DataLoc` counts from its start.
    payload: &'a [u8],
    /// V6 stores times in another form.
    v6: bool,
}

/// The number of payload bytes that fields may still name as the place of their elements. Several fields could name the same
/// bytes: together they may name as many as the payload has, so that it never has more values than that.
type Locatable = usize;

/// The fields of a payload or of an object in it: an iterator of names and values.
///
/// After an error the iterator ends: the place of a field depends on the size of the one before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fields<'a> {
    list: &'a [Field],
    next: usize,
    rest: &'a [u8],
    locatable: Locatable,
    context: Context<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(fields: &'a [Field], payload: &'a [u8], v6: bool) -> Self {
        Self {
            list: fields,
            next: 0,
            rest: payload,
            locatable: payload.len(),
            context: Context { payload, v6 },
        }
    }

    /// The payload bytes behind the last decoded field.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(&'a str, Value<'a>), FieldError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let field = self.list.get(self.next)?;
        let index = self.next;
        let mut cursor = Cursor::new(self.rest);
        let value = match &field.field_type {
            FieldType::Scalar(code) => scalar(&mut cursor, *code, self.context.v6),
            other => value(&mut cursor, other, self.context, &mut self.locatable),
        };
        match value {
            Ok(value) => {
                self.next = index.saturating_add(1);
                self.rest = cursor.rest();
                Some(Ok((field.name(), value)))
            }
            Err(bad) => {
                self.next = self.list.len();
                Some(Err(bad.at(index, self.list.len())))
            }
        }
    }
}

/// The elements of an array: an iterator of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Array<'a> {
    element: &'a FieldType,
    left: usize,
    rest: &'a [u8],
    locatable: Locatable,
    context: Context<'a>,
}

impl<'a> Array<'a> {
    /// The number of elements that are left.
    pub const fn len(&self) -> usize {
        self.left
    }
    /// Whether no element is left.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
    /// Type of the elements.
    pub const fn element_type(&self) -> &'a FieldType {
        self.element
    }
    /// The bytes, if the elements are single bytes: u8, i8 or UTF-8 code units.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match self.element {
            FieldType::Scalar(TypeCode::U8 | TypeCode::I8 | TypeCode::UTF8_CODE_UNIT) => {
                self.rest.get(..self.left)
            }
            _ => None,
        }
    }
    /// The text, if the elements are UTF-16 code units.
    pub fn as_utf16(&self) -> Option<Utf16<'a>> {
        match self.element {
            FieldType::Scalar(TypeCode::UTF16_CODE_UNIT) => {
                self.rest.get(..self.left.saturating_mul(2)).map(Utf16)
            }
            _ => None,
        }
    }
}

impl<'a> Iterator for Array<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let mut cursor = Cursor::new(self.rest);
        // The elements were checked when the array was decoded: this cannot fail.
        let value = value(&mut cursor, self.element, self.context, &mut self.locatable).ok()?;
        self.rest = cursor.rest();
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// The fault of a value, without the number of its field.
#[derive(Debug, Clone, Copy)]
enum ValueError {
    Bytes(ReadError),
    UnknownType(TypeCode),
}

impl From<ReadError> for ValueError {
    fn from(bad: ReadError) -> Self {
        Self::Bytes(bad)
    }
}

impl ValueError {
    const fn at(self, field: usize, fields: usize) -> FieldError {
        match self {
            Self::Bytes(ReadError::UnexpectedEnd) => FieldError::TooShort { field, fields },
            Self::Bytes(ReadError::Invalid(what)) => FieldError::Invalid { field, what },
            Self::UnknownType(code) => FieldError::UnknownType { field, code },
        }
    }
}

/// Reads a value.
#[inline(never)]
fn value<'a>(
    cursor: &mut Cursor<'a>,
    field_type: &'a FieldType,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<Value<'a>, ValueError> {
    match field_type {
        FieldType::Scalar(code) => scalar(cursor, *code, context.v6),
        FieldType::Object(list) => {
            let object = Fields { list, next: 0, rest: cursor.rest(), locatable: *locatable, context };
            skip(cursor, field_type, context, locatable)?;
            Ok(Value::Object(object))
        }
        FieldType::Array(element) => {
            let count = usize::from(cursor.u16()?);
            elements(cursor, element, count, context, locatable)
        }
        FieldType::FixedArray(element, count) => {
            elements(cursor, element, usize::from(*count), context, locatable)
        }
        FieldType::RelLoc(element) => {
            let location = cursor.u32()?;
            located(cursor.rest(), location, element, context, locatable)
        }
        FieldType::DataLoc(element) => {
            let location = cursor.u32()?;
            located(context.payload, location, element, context, locatable)
        }
    }
}

fn elements<'a>(
    cursor: &mut Cursor<'a>,
    element: &'a FieldType,
    left: usize,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<Value<'a>, ValueError> {
    let array = Array { element, left, rest: cursor.rest(), locatable: *locatable, context };
    skip_elements(cursor, element, left, context, locatable)?;
    Ok(Value::Array(array))
}

/// Returns the elements of a `RelLoc` or `DataLoc`: size in bytes in the high 16 bits, position in the low ones.
fn located<'a>(
    base: &'a [u8],
    location: u32,
    element: &'a FieldType,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<Value<'a>, ValueError> {
    const OUTSIDE: ReadError = ReadError::Invalid("its elements lie outside the payload");
    let size = usize::try_from(location >> 16).map_err(|_| OUTSIDE)?;
    let position = usize::try_from(location & 0xffff).map_err(|_| OUTSIDE)?;
    let bytes = position.checked_add(size).and_then(|end| base.get(position..end)).ok_or(OUTSIDE)?;
    let left = locatable.checked_sub(size);
    *locatable = left.ok_or(ReadError::Invalid("its elements lie where those of other fields lie"))?;
    let Some(element_size) = element.fixed_size(context.v6).filter(|size| *size > 0) else {
        return Err(ReadError::Invalid("its elements are of no fixed size").into());
    };
    let count = bytes.len().checked_div(element_size).unwrap_or(0);
    if count.checked_mul(element_size) != Some(bytes.len()) {
        return Err(ReadError::Invalid("its size is no multiple of its elements' size").into());
    }
    Ok(Value::Array(Array { element, left: count, rest: bytes, locatable: 0, context }))
}

/// Skips a value.
fn skip<'a>(
    cursor: &mut Cursor<'a>,
    field_type: &'a FieldType,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<(), ValueError> {
    match field_type {
        FieldType::Scalar(code) => scalar(cursor, *code, context.v6).map(drop),
        FieldType::Object(fields) => {
            fields.iter().try_for_each(|field| skip(cursor, &field.field_type, context, locatable))
        }
        FieldType::Array(element) => {
            let count = usize::from(cursor.u16()?);
            skip_elements(cursor, element, count, context, locatable)
        }
        FieldType::FixedArray(element, count) => {
            skip_elements(cursor, element, usize::from(*count), context, locatable)
        }
        FieldType::RelLoc(_) | FieldType::DataLoc(_) => {
            value(cursor, field_type, context, locatable).map(drop)
        }
    }
}

/// Skips elements. They take at least a byte each (other field lists are refused), so this ends with the payload.
fn skip_elements<'a>(
    cursor: &mut Cursor<'a>,
    element: &'a FieldType,
    count: usize,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<(), ValueError> {
    if let (FieldType::Scalar(_), Some(size)) = (element, element.fixed_size(context.v6)) {
        cursor.bytes(size.checked_mul(count).ok_or(ReadError::UnexpectedEnd)?)?;
        return Ok(());
    }
    (0..count).try_for_each(|_| skip(cursor, element, context, locatable))
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "most fields are scalars, and callers handle few types of them")]
fn scalar<'a>(cursor: &mut Cursor<'a>, code: TypeCode, v6: bool) -> Result<Value<'a>, ValueError> {
    Ok(match code {
        TypeCode::BOOLEAN => Value::Bool(cursor.u32()? != 0),
        TypeCode::BOOLEAN8 => Value::Bool(cursor.u8()? != 0),
        TypeCode::UTF16_CODE_UNIT => Value::Utf16Unit(cursor.u16()?),
        TypeCode::UTF8_CODE_UNIT => Value::Utf8Unit(cursor.u8()?),
        TypeCode::I8 => Value::I8(cursor.u8()?.cast_signed()),
        TypeCode::U8 => Value::U8(cursor.u8()?),
        TypeCode::I16 => Value::I16(cursor.u16()?.cast_signed()),
        TypeCode::U16 => Value::U16(cursor.u16()?),
        TypeCode::I32 => Value::I32(cursor.i32()?),
        TypeCode::U32 => Value::U32(cursor.u32()?),
        TypeCode::I64 => Value::I64(cursor.i64()?),
        TypeCode::U64 => Value::U64(cursor.u64()?),
        TypeCode::F32 => Value::F32(f32::from_bits(cursor.u32()?)),
        TypeCode::F64 => Value::F64(f64::from_bits(cursor.u64()?)),
        TypeCode::DECIMAL => Value::Decimal(cursor.array()?),
        TypeCode::DATE_TIME if v6 => {
            Value::DateTime(DateTime::SystemTime(SystemTime::from_le_bytes(cursor.array()?)))
        }
        TypeCode::DATE_TIME => Value::DateTime(DateTime::FileTime(cursor.i64()?)),
        TypeCode::GUID => Value::Guid(Uuid::from_bytes_le(cursor.array()?)),
        TypeCode::STRING16 => Value::String(Utf16(cursor.string16()?)),
        TypeCode::VARINT => Value::I64(cursor.varint64()?),
        TypeCode::VARUINT => Value::U64(cursor.varuint64()?),
        other => return Err(ValueError::UnknownType(other)),
    })
}
