//! Payload fields, decoded by a schema when they are asked for.

use nettrace::{FieldError, Utf16};
use uuid::Uuid;

use crate::reader::{ReadError, ReadResult, Reader};
use crate::schema::{Count, Field, FieldType};
use crate::value_names::NamedValue;

/// The value of a field, borrowing the payload.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants are the types of fields; see `FieldType`")]
pub enum Value<'a> {
    Bool(bool),
    U8(u8),
    U16(u16),
    U32(u32),
    /// Also variable-length integers.
    U64(u64),
    I32(i32),
    I64(i64),
    F64(f64),
    /// A pointer or something of a pointer's size.
    Address(u64),
    Guid(Uuid),
    Utf16(Utf16<'a>),
    /// Meant to be UTF-8; whether it is was not looked at.
    Utf8(&'a [u8]),
    Bytes(&'a [u8]),
    Named(NamedValue),
    Array(Array<'a>),
    Rows(Rows<'a>),
}

/// The fields of a payload or of a struct in it: an iterator of names and values.
///
/// After an error the iterator ends: where a field begins is known only when the one before it could be read.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    list: &'static [Field],
    next: usize,
    reader: Reader<'a>,
    /// The value of the counting field.
    count: u64,
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(list: &'static [Field], payload: &'a [u8], pointer_size: u8) -> Self {
        Self::from_reader(list, Reader::new(payload, pointer_size != 4))
    }

    const fn from_reader(list: &'static [Field], reader: Reader<'a>) -> Self {
        Self { list, next: 0, reader, count: 0 }
    }

    /// The payload bytes behind the last field that was read: what a newer version has added.
    pub const fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }

    /// The value of the field; padding has none.
    #[inline]
    fn read(&mut self, field: &'static Field) -> ReadResult<Option<Value<'a>>> {
        let value = match field.field_type {
            FieldType::Pad16 => return self.reader.pad16().map(|()| None),
            FieldType::PadWord => return self.reader.padword().map(|()| None),
            FieldType::Hidden(hidden) => return value(&mut self.reader, *hidden, self.count).map(|_| None),
            field_type => value(&mut self.reader, field_type, self.count)?,
        };
        if field.counts {
            self.count = match value {
                Value::U8(count) => count.into(),
                Value::U16(count) => count.into(),
                Value::U32(count) => count.into(),
                _ => 0,
            };
        }
        Ok(Some(value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(&'static str, Value<'a>), FieldError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let field = self.list.get(self.next)?;
            let index = self.next;
            self.next = index.saturating_add(1);
            match self.read(field) {
                Ok(Some(value)) => return Some(Ok((field.name, value))),
                Ok(None) => {}
                Err(bad) => {
                    self.next = self.list.len();
                    return Some(Err(bad.at(index, self.list.len())));
                }
            }
        }
    }
}

/// The elements of an array, none of which has parts: an iterator of values.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    element: FieldType,
    left: usize,
    reader: Reader<'a>,
}

impl Array<'_> {
    /// Returns the number of elements left.
    pub const fn len(&self) -> usize {
        self.left
    }
    /// Whether no element is left.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Array<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        // The elements were walked when the array was read: this cannot fail.
        value(&mut self.reader, self.element, 0).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// Structs one after the other: an iterator of their fields.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    list: &'static [Field],
    left: usize,
    reader: Reader<'a>,
}

impl Rows<'_> {
    /// Returns the number of structs left.
    pub const fn len(&self) -> usize {
        self.left
    }
    /// Whether no struct is left.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Fields<'a>;

    fn next(&mut self) -> Option<Fields<'a>> {
        self.left = self.left.checked_sub(1)?;
        let fields = Fields::from_reader(self.list, self.reader);
        let mut behind = fields;
        // The fields were walked when the rows were read: this cannot fail.
        behind.by_ref().for_each(drop);
        self.reader = behind.reader;
        Some(fields)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// Reads one value. `count` is how many elements it has if it says so elsewhere.
#[inline]
fn value<'a>(reader: &mut Reader<'a>, field_type: FieldType, count: u64) -> ReadResult<Value<'a>> {
    Ok(match field_type {
        FieldType::Bool32 => Value::Bool(reader.bool32()?),
        FieldType::U8 => Value::U8(reader.u8()?),
        FieldType::U16 => Value::U16(reader.u16()?),
        FieldType::U32 => Value::U32(reader.u32()?),
        FieldType::U64 => Value::U64(reader.u64()?),
        FieldType::I32 => Value::I32(reader.i32()?),
        FieldType::I64 => Value::I64(reader.i64()?),
        FieldType::F64 => Value::F64(reader.f64()?),
        FieldType::Address => Value::Address(reader.address()?),
        FieldType::Guid => Value::Guid(reader.guid()?),
        FieldType::Utf16 => Value::Utf16(reader.utf16()?),
        FieldType::Utf8 => Value::Utf8(reader.utf8()?),
        FieldType::Varuint => Value::U64(reader.varuint()?),
        FieldType::CountedUtf8 => Value::Utf8(reader.counted_utf8()?),
        FieldType::Pad16 | FieldType::PadWord | FieldType::Hidden(_) => {
            return Err(ReadError::Invalid("padding has no value"));
        }
        FieldType::Named8(names) => Value::Named(NamedValue { number: reader.u8()?.into(), names }),
        FieldType::Named16(names) => Value::Named(NamedValue { number: reader.u16()?.into(), names }),
        FieldType::Named32(names) => Value::Named(NamedValue { number: reader.u32()?, names }),
        FieldType::Bytes(of) => Value::Bytes(reader.bytes(of.resolve(count))?),
        FieldType::Array(element, of) => return array(reader, *element, of.resolve(count)),
        FieldType::Rows(list, of) => return rows(reader, list, of.resolve(count)),
    })
}

impl Count {
    fn resolve(self, counted: u64) -> u64 {
        match self {
            Self::Fixed(count) => count.into(),
            Self::Counted => counted,
        }
    }
}

fn array<'a>(reader: &mut Reader<'a>, element: FieldType, count: u64) -> ReadResult<Value<'a>> {
    let before = *reader;
    // Every element takes at least a byte, so both loops end with the payload.
    for _ in 0..count {
        value(reader, element, 0)?;
    }
    Ok(Value::Array(Array { element, left: usize::try_from(count).unwrap_or(0), reader: before }))
}

#[inline(never)]
fn rows<'a>(reader: &mut Reader<'a>, list: &'static [Field], count: u64) -> ReadResult<Value<'a>> {
    let before = *reader;
    for _ in 0..count {
        let mut fields = Fields::from_reader(list, *reader);
        for field in list {
            fields.read(field)?;
        }
        *reader = fields.reader;
    }
    Ok(Value::Rows(Rows { list, left: usize::try_from(count).unwrap_or(0), reader: before }))
}
