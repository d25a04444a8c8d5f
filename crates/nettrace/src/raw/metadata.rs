//! Metadata blocks: the kinds of events.
//!
//! ```text
//! V3, V4, V5 row = id:u32 provider:string16 event-id:u32 name:string16 keywords:u64 version:u32 level:u32
//!                  fields tag*
//! fields         = count:u32 field*
//! field          = type:u32 [object: fields | array: element-type:u32 …] name:string16
//! tag            = size:u32 kind:u8 (1 opcode:u8 | 2 fields-v2)                              (V5)
//! fields-v2      = count:u32 (size:u32 name:string16 type …)*
//!
//! V6 block       = header-size:u16 header (size:u16 row)*
//! V6 row         = id:varuint32 provider:string event-id:varuint32 name:string fields-v6 options
//! fields-v6      = count:u16 (size:u16 name:string type-v6)*
//! type-v6        = code:u8 [array, rel-loc, data-loc: type-v6 | fixed-array: type-v6 count:u16 | object: fields-v6]
//! options        = size:u16 (1 opcode:u8 | 3 keywords:u64 | 4 template:string | 5 description:string
//!                            | 6 key:string value:string | 7 provider:guid | 8 level:u8 | 9 version:u8)*
//! ```
//!
//! A row with unreadable fields still names its event: it is kept with the fields before the fault, and the
//! fault is reported.

mod v4;
mod v6;

use alloc::boxed::Box;
use alloc::string::String;

use nom::error::ErrorKind;
use nom::{IResult, Parser as _};

use crate::cursor::Cursor;
use crate::metadata::{FieldType, Metadata, TypeCode};
use crate::utf16::Utf16;

/// Maximum nesting depth of objects and arrays.
const MAX_DEPTH: u32 = 32;

/// nom's own error, which never leaves this module.
type Bytes<'a, T> = IResult<&'a [u8], T>;

/// The encoding of metadata rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataEncoding {
    /// Netperf V1: the provider as GUID. The id is the row's offset in the recording.
    V1,
    /// Netperf V2: the provider as text. The id is the row's offset in the recording.
    V2,
    /// V3, V4 and V5.
    V3,
    V6,
}

/// A metadata row: the definition of one kind of event, not yet parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataRow<'a> {
    bytes: &'a [u8],
    /// In the recording.
    offset: u64,
    /// In the block's content.
    offset_in_content: u64,
    encoding: MetadataEncoding,
}

/// A metadata row, and the fault of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedMetadata {
    /// The kind of event. With a fault it has the fields before that.
    pub metadata: Metadata,
    /// The fault of the field list or of the bytes after it.
    pub fault: Option<&'static str>,
}

impl<'a> MetadataRow<'a> {
    pub(crate) const fn new(
        bytes: &'a [u8],
        offset: u64,
        offset_in_content: u64,
        encoding: MetadataEncoding,
    ) -> Self {
        Self { bytes, offset, offset_in_content, encoding }
    }

    /// The bytes of the definition, without the header or size before it.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Offset of the row, with the header or size before the definition, in the recording. Rows of content
    /// without a [`Block`](super::Block) count from the start of that.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Offset of the row in the block's content.
    pub const fn offset_in_content(&self) -> u64 {
        self.offset_in_content
    }

    /// Parses the definition; `None` if it does not even name its event.
    pub fn parse(&self) -> Option<ParsedMetadata> {
        let parsed = match self.encoding {
            MetadataEncoding::V1 | MetadataEncoding::V2 => {
                v4::netperf_v1(self.bytes, u32::try_from(self.offset).ok()?, self.encoding)
            }
            MetadataEncoding::V3 => v4::row(self.bytes),
            MetadataEncoding::V6 => v6::row(self.bytes),
        }?;
        Some(parsed.completed())
    }
}

impl ParsedMetadata {
    /// Parses a definition of V5 without the number of its row, as events outside a recording have it: those
    /// that a runtime writes to the kernel's user_events. `None` if it does not even name its event.
    ///
    /// ```
    /// use nettrace::raw::ParsedMetadata;
    ///
    /// let text = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    /// let mut definition = text("Demo");
    /// definition.extend(7_u32.to_le_bytes());
    /// definition.extend(text("Tick"));
    /// // Keywords, version, level, and no fields.
    /// definition.extend([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    /// let parsed = ParsedMetadata::of_definition(&definition).ok_or("a definition")?;
    /// let kind = parsed.metadata;
    /// assert_eq!((kind.provider(), kind.event_id(), kind.name()), ("Demo", 7, "Tick"));
    /// assert_eq!((kind.keywords(), kind.version(), kind.level(), parsed.fault), (1, 2, 4, None));
    /// assert_eq!(ParsedMetadata::of_definition(&definition[..8]), None);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn of_definition(definition: &[u8]) -> Option<Self> {
        Some(v4::description_of(0, definition)?.completed())
    }

    /// With what its fields say.
    fn completed(mut self) -> Self {
        let mut fields = self.metadata.fields.iter();
        self.metadata.has_booleans = fields.any(|field| field.field_type.has_booleans());
        self
    }
}

/// Fails: the bytes do not belong to the format.
fn refuse<T>(input: &[u8]) -> Bytes<'_, T> {
    Err(nom::Err::Error(nom::error::Error::new(input, ErrorKind::Verify)))
}

/// Parses UTF-16 up to a NUL, which is not part of the text.
fn string16(input: &[u8]) -> Bytes<'_, String> {
    let mut cursor = Cursor::new(input);
    match cursor.string16() {
        Ok(text) => Ok((cursor.rest(), Utf16(text).chars().collect())),
        Err(_) => refuse(input),
    }
}

/// Parses a variable-length length, then UTF-8.
fn string8(input: &[u8]) -> Bytes<'_, String> {
    let (rest, length) = varuint32(input)?;
    let (rest, text) = nom::bytes::complete::take(length).parse(rest)?;
    Ok((rest, String::from_utf8_lossy(text).into_owned()))
}

fn varuint32(input: &[u8]) -> Bytes<'_, u32> {
    let mut cursor = Cursor::new(input);
    match cursor.varuint32() {
        Ok(value) => Ok((cursor.rest(), value)),
        Err(_) => refuse(input),
    }
}

/// Returns an array type, unless its elements take no bytes: then a payload could hold any number of them.
fn array_of(element: FieldType, array: impl FnOnce(Box<FieldType>) -> FieldType) -> Option<FieldType> {
    let sized =
        element.least_size() > 0 || matches!(element, FieldType::Scalar(code) if code.name().is_none());
    sized.then(|| array(Box::new(element)))
}

/// Returns a type without parts; `None` for the codes of types that have some.
fn scalar(code: u32) -> Option<FieldType> {
    match TypeCode(code) {
        TypeCode::OBJECT
        | TypeCode::ARRAY
        | TypeCode::FIXED_ARRAY
        | TypeCode::REL_LOC
        | TypeCode::DATA_LOC => None,
        code => Some(FieldType::Scalar(code)),
    }
}
