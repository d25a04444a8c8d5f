//! Metadata: what kinds of events there are.
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
//! A row whose fields cannot be read still names its event: it is kept with the fields before the fault, and the fault is
//! reported.

mod v4;
mod v6;

use alloc::boxed::Box;
use alloc::string::String;

use nom::error::ErrorKind;
use nom::{IResult, Parser as _};

use crate::metadata::{FieldType, Metadata, TypeCode};
use crate::value::Utf16;

pub(crate) use v4::{netperf_v1, row as v4_row};
pub(crate) use v6::block as v6_block;

/// Objects and arrays within one another go no deeper than this.
const DEEPEST: u32 = 32;

/// nom's own error, which never leaves this module.
type Bytes<'a, T> = IResult<&'a [u8], T>;

/// A row and what was wrong with its fields.
pub(crate) struct Row {
    pub(crate) metadata: Metadata,
    pub(crate) fault: Option<&'static str>,
}

/// A parser for something that nobody can make sense of.
fn refuse<T>(input: &[u8]) -> Bytes<'_, T> {
    Err(nom::Err::Error(nom::error::Error::new(input, ErrorKind::Verify)))
}

/// UTF-16 up to and without a NUL.
fn string16(input: &[u8]) -> Bytes<'_, String> {
    let mut cursor = crate::cursor::Cursor::new(input);
    match cursor.string16() {
        Ok(text) => Ok((cursor.rest(), Utf16(text).chars().collect())),
        Err(_) => refuse(input),
    }
}

/// A variable-length length, then UTF-8.
fn string8(input: &[u8]) -> Bytes<'_, String> {
    let (rest, length) = varuint32(input)?;
    let (rest, text) = nom::bytes::complete::take(length).parse(rest)?;
    Ok((rest, String::from_utf8_lossy(text).into_owned()))
}

fn varuint32(input: &[u8]) -> Bytes<'_, u32> {
    let mut cursor = crate::cursor::Cursor::new(input);
    match cursor.varuint32() {
        Ok(value) => Ok((cursor.rest(), value)),
        Err(_) => refuse(input),
    }
}

/// An array type, unless its elements take no bytes: then a payload could hold endlessly many.
fn array_of(element: FieldType, array: impl FnOnce(Box<FieldType>) -> FieldType) -> Option<FieldType> {
    let sized =
        element.least_size() > 0 || matches!(element, FieldType::Scalar(code) if code.name().is_none());
    sized.then(|| array(Box::new(element)))
}

/// A type without parts; `None` for the codes that have some.
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
