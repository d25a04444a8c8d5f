//! Field values, decoded on demand.

mod display;

use uuid::Uuid;

use crate::cursor::{Cursor, ReadError};
use crate::metadata::{Field, FieldType, Metadata, TypeCode};
use crate::schema;
use crate::time::SystemTime;
use crate::utf16::Utf16;
use crate::value_names::NamedValue;

/// The value of a field, borrowing the payload.
///
/// ```
/// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
/// use nettrace::Value;
///
/// let mut events = nettrace::SliceReader::new(bytes)?;
/// let event = events.next()?.expect("an event");
/// let count = event.fields().find_map(|field| match field {
///     Ok(("Count", Value::U32(count))) => Some(count),
///     _ => None,
/// });
/// assert_eq!(count, Some(1));
/// # Ok::<(), nettrace::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the variants are the types of fields; see `TypeCode` and `schema::FieldType`"
)]
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
    /// Text that should be UTF-8; it was not validated.
    Utf8(&'a [u8]),
    Bytes(&'a [u8]),
    /// A pointer of the traced process, or a number of a pointer's size.
    Address(u64),
    /// A number with named values.
    Named(NamedValue),
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

/// The fault of a field, after which no field can be decoded.
///
/// ```
/// use nettrace::schema::{Field, FieldType};
/// use nettrace::{FieldError, Fields, TypeCode};
///
/// static ROW: &[Field] = &[Field::new("Id", FieldType::Scalar(TypeCode::U32))];
/// let cut = Fields::with_schema(ROW, &[7, 0], 8).next();
/// assert_eq!(cut, Some(Err(FieldError::TooShort { field: 0, fields: 1 })));
/// ```
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
        /// The type of the value.
        code: TypeCode,
    },
    /// The field's bytes are not a value of its type.
    #[error("field {field}: {what}")]
    Invalid {
        /// Index of the field in its list.
        field: usize,
        /// The fault.
        what: &'static str,
    },
}

impl FieldError {
    /// Returns the error of the field with that index, given the number of fields.
    pub const fn from_read_error(error: ReadError, field: usize, fields: usize) -> Self {
        match error {
            ReadError::UnexpectedEnd => Self::TooShort { field, fields },
            ReadError::Invalid(what) => Self::Invalid { field, what },
        }
    }
}

/// A field's name and value, or its fault.
type FieldResult<'a> = Result<(&'a str, Value<'a>), FieldError>;

/// The fields of a list: the recording's, or a schema's.
#[derive(Debug, Clone, Copy, PartialEq)]
enum FieldList<'a> {
    Recorded(&'a [Field]),
    Schema(&'static [schema::Field]),
}

impl FieldList<'_> {
    const fn len(self) -> usize {
        match self {
            Self::Recorded(list) => list.len(),
            Self::Schema(list) => list.len(),
        }
    }
}

/// The type of a value: the recording's, or a schema's.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Type<'a> {
    Recorded(&'a FieldType),
    Schema(&'static schema::FieldType),
}

impl Type<'_> {
    /// Returns the code of a type without parts.
    const fn code(self) -> Option<TypeCode> {
        match self {
            Self::Recorded(FieldType::Scalar(code)) | Self::Schema(schema::FieldType::Scalar(code)) => {
                Some(*code)
            }
            _ => None,
        }
    }

    /// Returns the size of values without parts in bytes; `None` if it varies, or the type has parts.
    fn scalar_size(self, context: Context<'_>) -> Option<usize> {
        match self {
            Self::Recorded(FieldType::Scalar(TypeCode::BOOLEAN)) if context.has_byte_booleans => Some(1),
            Self::Recorded(FieldType::Scalar(code)) => code.fixed_size(context.v6),
            Self::Recorded(_) => None,
            Self::Schema(of) => of.fixed_size(context.v6, context.wide),
        }
    }
}

/// The context of decoding a field.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Context<'a> {
    /// The whole payload: `DataLoc` counts from its start.
    payload: &'a [u8],
    /// The value of the counter of the list, which schemas have.
    counted: u32,
    /// V6 stores times in another form.
    v6: bool,
    /// True if pointers have 8 bytes.
    wide: bool,
    /// True if booleans have one byte, although the field list says four.
    has_byte_booleans: bool,
}

impl Context<'_> {
    /// Takes in the value of a counter.
    const fn count(&mut self, value: &Value<'_>) {
        #[allow(clippy::cast_lossless, reason = "`From` is not const")]
        let count = match value {
            Value::U8(count) => *count as u32,
            Value::U16(count) => *count as u32,
            Value::U32(count) => *count,
            _ => 0,
        };
        self.counted = count;
    }
}

/// The number of payload bytes that fields may still name as the place of their elements. Several fields
/// could name the same bytes: together they may name as many as the payload has, so that it never has more
/// values than that.
type Locatable = usize;

/// The fields of a payload or of an object in it: an iterator of names and values.
///
/// After an error the iterator ends: the place of a field depends on the size of the previous field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fields<'a> {
    list: FieldList<'a>,
    next: usize,
    rest: &'a [u8],
    locatable: Locatable,
    context: Context<'a>,
}

impl<'a> Fields<'a> {
    /// Returns the fields of a payload by the recording's list.
    ///
    /// Self-describing EventSources and native profilers write booleans of one byte, and their lists have the
    /// type of those with four: one byte each is right where the payload ends with its last field only so.
    pub(crate) fn recorded(metadata: &'a Metadata, payload: &'a [u8], v6: bool, wide: bool) -> Self {
        let context = Context { payload, counted: 0, v6, wide, has_byte_booleans: false };
        let fields = Self::new(FieldList::Recorded(&metadata.fields), payload, context);
        if !metadata.has_booleans || fields.cover_payload() {
            return fields;
        }
        let narrow = Self { context: Context { has_byte_booleans: true, ..context }, ..fields };
        if narrow.cover_payload() { narrow } else { fields }
    }

    /// Returns true if the last field ends where the payload does: a list of another version, or of another
    /// event, often ends elsewhere. It is asked before the first field is taken.
    ///
    /// ```
    /// use nettrace::schema::{Field, FieldType};
    /// use nettrace::{Fields, TypeCode};
    ///
    /// static ROW: &[Field] = &[Field::new("Id", FieldType::Scalar(TypeCode::U32))];
    /// let cover = |payload| Fields::with_schema(ROW, payload, 8).cover_payload();
    /// assert_eq!([&[7, 0, 0, 0][..], &[7, 0], &[7, 0, 0, 0, 1]].map(cover), [true, false, false]);
    /// ```
    pub fn cover_payload(&self) -> bool {
        let mut cursor = Cursor::new(self.rest);
        let mut locatable = self.locatable;
        skip_fields(&mut cursor, self.list, self.context, &mut locatable).is_ok() && cursor.left() == 0
    }

    /// Returns the fields of a payload that the recording does not describe. `pointer_size` is 4 or 8.
    ///
    /// ```
    /// use nettrace::schema::{Field, FieldType};
    /// use nettrace::{Fields, TypeCode, Value};
    ///
    /// static ROW: &[Field] = &[Field::new("Id", FieldType::Scalar(TypeCode::U32))];
    /// let mut fields = Fields::with_schema(ROW, &[7, 0, 0, 0, 1], 8);
    /// assert_eq!(fields.next(), Some(Ok(("Id", Value::U32(7)))));
    /// // A field that a newer version has added.
    /// assert_eq!(fields.rest(), [1]);
    /// ```
    #[inline]
    pub const fn with_schema(schema: &'static [schema::Field], payload: &'a [u8], pointer_size: u8) -> Self {
        let wide = pointer_size != 4;
        let context = Context { payload, counted: 0, v6: false, wide, has_byte_booleans: false };
        Self::new(FieldList::Schema(schema), payload, context)
    }

    #[inline]
    const fn new(list: FieldList<'a>, payload: &'a [u8], context: Context<'a>) -> Self {
        Self { list, next: 0, rest: payload, locatable: payload.len(), context }
    }

    /// The payload bytes after the last decoded field: the added fields if the event's version is newer than
    /// the schema's. After the last field of a recording's list they show that a field is not what the list
    /// says, such as a string with a NUL in it: values from there on are wrong.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns true if the recording describes the fields, and not a schema.
    pub const fn is_recorded(&self) -> bool {
        matches!(self.list, FieldList::Recorded(_))
    }
}

impl<'a> Fields<'a> {
    /// Moves past a field, to the remaining bytes.
    #[inline]
    const fn advance(&mut self, cursor: Cursor<'a>) {
        self.next = self.next.wrapping_add(1);
        self.rest = cursor.rest();
    }

    /// Ends the iterator with the error of the current field.
    #[inline]
    const fn end(&mut self, error: ValueError) -> FieldError {
        let fields = self.list.len();
        error.at(core::mem::replace(&mut self.next, fields), fields)
    }

    /// Calls a function with a copy and takes over its position: no function that is not inlined borrows
    /// `self`, so that loops over fields keep it in registers and need not check again which list they have.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the copy is all that may be borrowed")]
    fn next_of_copy<T>(&mut self, next: impl FnOnce(&mut Self) -> T) -> T {
        let mut copy = *self;
        let result = next(&mut copy);
        Self { next: self.next, rest: self.rest, locatable: self.locatable, context: self.context, .. } =
            copy;
        result
    }

    /// Decodes the current recorded field, of any type.
    #[inline(never)]
    fn next_recorded(&mut self, field: &'a Field) -> FieldResult<'a> {
        let mut cursor = Cursor::new(self.rest);
        match recorded_value(&mut cursor, &field.field_type, self.context, &mut self.locatable) {
            Ok(value) => {
                self.advance(cursor);
                Ok((field.name(), value))
            }
            Err(error) => Err(self.end(error)),
        }
    }

    /// Decodes the fields of a schema, of any type, up to the next field with a value.
    #[inline(never)]
    fn next_in_schema(&mut self, list: &'static [schema::Field]) -> Option<FieldResult<'a>> {
        loop {
            let field = list.get(self.next)?;
            let mut cursor = Cursor::new(self.rest);
            match schema_value(&mut cursor, field.field_type(), self.context, &mut self.locatable) {
                Ok(value) => {
                    self.advance(cursor);
                    let Some(value) = value else { continue };
                    if field.is_counter() {
                        self.context.count(&value);
                    }
                    return Some(Ok((field.name(), value)));
                }
                Err(error) => return Some(Err(self.end(error))),
            }
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = FieldResult<'a>;

    // The most common types are decoded in place: a value from a call would be copied into the result.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "which list it is, and most types that callers ignore, are known there"
    )]
    fn next(&mut self) -> Option<Self::Item> {
        let mut cursor = Cursor::new(self.rest);
        let (name, value) = match self.list {
            FieldList::Recorded(list) => {
                let field = list.get(self.next)?;
                let FieldType::Scalar(code) = field.field_type else {
                    return self.next_of_copy(|copy| Some(copy.next_recorded(field)));
                };
                (field.name(), scalar(&mut cursor, code, self.context))
            }
            FieldList::Schema(list) => {
                let field = list.get(self.next)?;
                let value = match *field.field_type() {
                    _ if field.is_counter() => return self.next_of_copy(|copy| copy.next_in_schema(list)),
                    schema::FieldType::Scalar(code) => scalar(&mut cursor, code, self.context),
                    schema::FieldType::Address => {
                        cursor.address(self.context.wide).map(Value::Address).map_err(ValueError::from)
                    }
                    schema::FieldType::Named32(names) => cursor
                        .u32()
                        .map(|number| Value::Named(NamedValue::new(number, names)))
                        .map_err(ValueError::from),
                    _ => return self.next_of_copy(|copy| copy.next_in_schema(list)),
                };
                (field.name(), value)
            }
        };
        Some(match value {
            Ok(value) => {
                self.advance(cursor);
                Ok((name, value))
            }
            Err(error) => Err(self.end(error)),
        })
    }
}

/// The elements of an array: an iterator of values.
///
/// ```
/// use nettrace::schema::{Count, Field, FieldType};
/// use nettrace::{Fields, TypeCode, Value};
///
/// const NUMBER: FieldType = FieldType::Scalar(TypeCode::U16);
/// static FIELDS: &[Field] =
///     &[Field::counter("Count", NUMBER), Field::new("Ports", FieldType::Array(&NUMBER, Count::Counted))];
/// let mut fields = Fields::with_schema(FIELDS, &[2, 0, 80, 0, 187, 1], 8);
/// let Some(Ok((_, Value::Array(ports)))) = fields.nth(1) else { panic!("no array") };
/// assert_eq!(ports.collect::<Vec<_>>(), [Value::U16(80), Value::U16(443)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Array<'a> {
    element: Type<'a>,
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
    /// Returns true if no element is left.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
    /// The type of the elements, if they are not composite.
    pub const fn element_code(&self) -> Option<TypeCode> {
        self.element.code()
    }
    /// The bytes, if the elements are single bytes: u8, i8 or UTF-8 code units.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match self.element_code() {
            Some(TypeCode::U8 | TypeCode::I8 | TypeCode::UTF8_CODE_UNIT) => self.rest.get(..self.left),
            _ => None,
        }
    }
    /// The text, if the elements are UTF-16 code units.
    pub fn as_utf16(&self) -> Option<Utf16<'a>> {
        match self.element_code() {
            Some(TypeCode::UTF16_CODE_UNIT) => self.rest.get(..self.left.checked_mul(2)?).map(Utf16),
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
        let value = value(&mut cursor, self.element, self.context, &mut self.locatable).ok()??;
        self.rest = cursor.rest();
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Array<'_> {}

/// The fault of a value, without the number of its field.
#[derive(Debug, Clone, Copy)]
enum ValueError {
    Bytes(ReadError),
    UnknownType(TypeCode),
}

impl From<ReadError> for ValueError {
    fn from(error: ReadError) -> Self {
        Self::Bytes(error)
    }
}

impl ValueError {
    const fn at(self, field: usize, fields: usize) -> FieldError {
        match self {
            Self::Bytes(error) => FieldError::from_read_error(error, field, fields),
            Self::UnknownType(code) => FieldError::UnknownType { field, code },
        }
    }
}

/// Reads a value; `None` for hidden fields of a schema.
fn value<'a>(
    cursor: &mut Cursor<'a>,
    value_type: Type<'a>,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<Option<Value<'a>>, ValueError> {
    match value_type {
        Type::Recorded(of) => recorded_value(cursor, of, context, locatable).map(Some),
        Type::Schema(of) => schema_value(cursor, of, context, locatable),
    }
}

/// Reads a value of a recorded type.
#[inline(never)]
fn recorded_value<'a>(
    cursor: &mut Cursor<'a>,
    value_type: &'a FieldType,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<Value<'a>, ValueError> {
    match value_type {
        FieldType::Scalar(code) => scalar(cursor, *code, context),
        FieldType::Object(list) => object(cursor, FieldList::Recorded(list), context, locatable),
        FieldType::Array(element) => {
            let count = usize::from(cursor.u16()?);
            elements(cursor, Type::Recorded(element), count, context, locatable)
        }
        FieldType::FixedArray(element, count) => {
            elements(cursor, Type::Recorded(element), usize::from(*count), context, locatable)
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

/// Reads a value of a schema's type; `None` for hidden fields.
#[inline(never)]
fn schema_value<'a>(
    cursor: &mut Cursor<'a>,
    value_type: &'static schema::FieldType,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<Option<Value<'a>>, ValueError> {
    use schema::FieldType;

    Ok(Some(match *value_type {
        FieldType::Scalar(code) => scalar(cursor, code, context)?,
        FieldType::Address => Value::Address(cursor.address(context.wide)?),
        FieldType::Utf8 => Value::Utf8(cursor.until_nul()?),
        FieldType::CountedUtf8 => {
            let length = usize::from(cursor.u16()?);
            Value::Utf8(cursor.bytes(length)?)
        }
        FieldType::Named8(names) => Value::Named(NamedValue::new(cursor.u8()?.into(), names)),
        FieldType::Named16(names) => Value::Named(NamedValue::new(cursor.u16()?.into(), names)),
        FieldType::Named32(names) => Value::Named(NamedValue::new(cursor.u32()?, names)),
        FieldType::Bytes(count) => Value::Bytes(cursor.bytes(length(count, context)?)?),
        FieldType::Array(element, count) => {
            elements(cursor, Type::Schema(element), length(count, context)?, context, locatable)?
        }
        FieldType::Object(list) => object(cursor, FieldList::Schema(list), context, locatable)?,
        FieldType::Pad16 | FieldType::PadWord | FieldType::Hidden(_) => {
            skip(cursor, Type::Schema(value_type), context, locatable)?;
            return Ok(None);
        }
    }))
}

fn length(count: schema::Count, context: Context<'_>) -> Result<usize, ReadError> {
    usize::try_from(count.resolve(context.counted)).map_err(|_| ReadError::UnexpectedEnd)
}

fn object<'a>(
    cursor: &mut Cursor<'a>,
    list: FieldList<'a>,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<Value<'a>, ValueError> {
    let context = Context { counted: 0, ..context };
    let object = Fields { list, next: 0, rest: cursor.rest(), locatable: *locatable, context };
    skip_fields(cursor, list, context, locatable)?;
    Ok(Value::Object(object))
}

fn elements<'a>(
    cursor: &mut Cursor<'a>,
    element: Type<'a>,
    left: usize,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<Value<'a>, ValueError> {
    if let Type::Schema(of) = element
        && of.is_hidden()
    {
        return Err(ReadError::Invalid("its elements have no value").into());
    }
    // Only fields count elements: an array of arrays has no counter.
    let context = Context { counted: 0, ..context };
    let array = Array { element, left, rest: cursor.rest(), locatable: *locatable, context };
    skip_elements(cursor, element, left, context, locatable)?;
    Ok(Value::Array(array))
}

/// Returns the elements of a `RelLoc` or `DataLoc`: size in bytes in the high 16 bits, position in the low
/// ones.
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
        return Err(ReadError::Invalid("its size is not a multiple of its elements' size").into());
    }
    Ok(Value::Array(Array {
        element: Type::Recorded(element),
        left: count,
        rest: bytes,
        locatable: 0,
        context,
    }))
}

/// Skips a value.
fn skip<'a>(
    cursor: &mut Cursor<'a>,
    value_type: Type<'a>,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<(), ValueError> {
    match value_type {
        Type::Recorded(FieldType::Object(list)) => {
            skip_fields(cursor, FieldList::Recorded(list), context, locatable)
        }
        Type::Recorded(FieldType::Array(element)) => {
            let count = usize::from(cursor.u16()?);
            skip_elements(cursor, Type::Recorded(element), count, context, locatable)
        }
        Type::Recorded(FieldType::FixedArray(element, count)) => {
            skip_elements(cursor, Type::Recorded(element), usize::from(*count), context, locatable)
        }
        Type::Schema(schema::FieldType::Object(list)) => {
            skip_fields(cursor, FieldList::Schema(list), context, locatable)
        }
        Type::Schema(schema::FieldType::Pad16) => Ok(cursor.bytes(2).map(drop)?),
        Type::Schema(schema::FieldType::PadWord) => {
            Ok(cursor.bytes(if context.wide { 4 } else { 0 }).map(drop)?)
        }
        Type::Schema(schema::FieldType::Hidden(hidden)) => {
            skip(cursor, Type::Schema(hidden), context, locatable)
        }
        other => match other.code() {
            Some(code) => scalar(cursor, code, context).map(drop),
            None => value(cursor, other, context, locatable).map(drop),
        },
    }
}

/// Skips the fields of an object.
fn skip_fields<'a>(
    cursor: &mut Cursor<'a>,
    list: FieldList<'a>,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<(), ValueError> {
    match list {
        FieldList::Recorded(list) => list
            .iter()
            .try_for_each(|field| skip(cursor, Type::Recorded(&field.field_type), context, locatable)),
        FieldList::Schema(list) => {
            let mut context = Context { counted: 0, ..context };
            for field in list {
                let field_type = Type::Schema(field.field_type());
                if !field.is_counter() {
                    skip(cursor, field_type, context, locatable)?;
                } else if let Some(value) = value(cursor, field_type, context, locatable)? {
                    context.count(&value);
                }
            }
            Ok(())
        }
    }
}

/// Skips elements. They take at least a byte each, so this ends with the payload.
fn skip_elements<'a>(
    cursor: &mut Cursor<'a>,
    element: Type<'a>,
    count: usize,
    context: Context<'a>,
    locatable: &mut Locatable,
) -> Result<(), ValueError> {
    if let Some(size) = element.scalar_size(context) {
        cursor.bytes(size.checked_mul(count).ok_or(ReadError::UnexpectedEnd)?)?;
        return Ok(());
    }
    for _ in 0..count {
        let left = cursor.left();
        skip(cursor, element, context, locatable)?;
        // Field lists of recordings with such elements are refused; a schema is first seen here.
        if cursor.left() == left {
            return Err(ReadError::Invalid("its elements take no bytes").into());
        }
    }
    Ok(())
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "most fields are scalars, and callers handle few types of them")]
fn scalar<'a>(
    cursor: &mut Cursor<'a>,
    code: TypeCode,
    context: Context<'_>,
) -> Result<Value<'a>, ValueError> {
    Ok(match code {
        TypeCode::BOOLEAN if !context.has_byte_booleans => Value::Bool(cursor.u32()? != 0),
        TypeCode::BOOLEAN | TypeCode::BOOLEAN8 => Value::Bool(cursor.u8()? != 0),
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
        TypeCode::DATE_TIME if context.v6 => {
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
