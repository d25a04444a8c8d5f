//! Rows of V6.

use alloc::vec::Vec;

use nom::Parser as _;
use nom::bytes::complete::take;
use nom::number::complete::{le_u8, le_u16, le_u64};
use uuid::Uuid;

use super::{Bytes, MAX_DEPTH, ParsedMetadata, array_of, refuse, scalar, string8, varuint32};
use crate::metadata::{Field, FieldType, Metadata, TypeCode};

/// Parses a row; `None` if it does not even name its event.
pub(super) fn row(input: &[u8]) -> Option<ParsedMetadata> {
    let (rest, mut metadata) = head(input).ok()?;
    let fault = match fields(rest, 0, &mut metadata.fields) {
        Ok((rest, ())) => match options(rest, &mut metadata) {
            Ok(_) if metadata.fields.iter().any(|field| field.field_type.is_invalid()) => {
                Some("the field list of a metadata row has a type that cannot be")
            }
            Ok(_) => None,
            Err(_) => Some("the optional part of a metadata row is damaged"),
        },
        Err(_) => Some("the field list of a metadata row is damaged"),
    };
    Some(ParsedMetadata { metadata, fault })
}

fn head(input: &[u8]) -> Bytes<'_, Metadata> {
    (varuint32, string8, varuint32, string8)
        .map(|(id, provider, event_id, name)| Metadata {
            id,
            provider,
            event_id,
            name,
            ..Metadata::default()
        })
        .parse(input)
}

fn fields<'a>(input: &'a [u8], depth: u32, list: &mut Vec<Field>) -> Bytes<'a, ()> {
    let (mut rest, count) = le_u16(input)?;
    for _ in 0..count {
        let (after_size, size) = le_u16(rest)?;
        let (after_field, field) = take(size).parse(after_size)?;
        let (after_name, name) = string8(field)?;
        // The code of an invalid type is kept: later fields, and the rest of the row, have sizes of their
        // own.
        let field_type = match field_type(after_name, depth) {
            Ok((_, field_type)) => field_type,
            Err(_) => FieldType::Scalar(TypeCode(u32::from(le_u8(after_name)?.1))),
        };
        list.push(Field { name, field_type });
        rest = after_field;
    }
    Ok((rest, ()))
}

fn field_type(input: &[u8], depth: u32) -> Bytes<'_, FieldType> {
    if depth >= MAX_DEPTH {
        return refuse(input);
    }
    let deeper = depth.saturating_add(1);
    let (rest, code) = le_u8(input)?;
    let code = TypeCode(u32::from(code));
    match code {
        TypeCode::OBJECT => {
            let mut list = Vec::new();
            let (rest, ()) = fields(rest, deeper, &mut list)?;
            Ok((rest, FieldType::Object(list)))
        }
        TypeCode::ARRAY | TypeCode::REL_LOC | TypeCode::DATA_LOC => {
            let (rest, element) = field_type(rest, deeper)?;
            let array = match code {
                TypeCode::ARRAY => array_of(element, FieldType::Array),
                // The size of the elements elsewhere gives their count, so it must be fixed. If they named
                // further places, a payload could have any number of values.
                _ if element.fixed_size(true).is_none() || element.has_location() => None,
                TypeCode::REL_LOC => array_of(element, FieldType::RelLoc),
                _ => array_of(element, FieldType::DataLoc),
            };
            array.map_or_else(|| refuse(input), |array| Ok((rest, array)))
        }
        TypeCode::FIXED_ARRAY => {
            let (rest, (element, count)) = (|input| field_type(input, deeper), le_u16).parse(rest)?;
            let array = array_of(element, |element| FieldType::FixedArray(element, count));
            array.map_or_else(|| refuse(input), |array| Ok((rest, array)))
        }
        TypeCode(code) => Ok((rest, scalar(code).unwrap_or(FieldType::Scalar(TypeCode(code))))),
    }
}

/// Parses the optional part. The size of an unknown kind is not known: all that follows it is skipped.
fn options<'a>(input: &'a [u8], metadata: &mut Metadata) -> Bytes<'a, ()> {
    let (rest, size) = le_u16(input)?;
    let (rest, mut options) = take(size).parse(rest)?;
    while !options.is_empty() {
        let (after_kind, kind) = le_u8(options)?;
        let (after, ()) = match kind {
            1 => le_u8.map(|opcode| metadata.opcode = Some(opcode)).parse(after_kind)?,
            3 => le_u64.map(|keywords| metadata.keywords = keywords).parse(after_kind)?,
            4 => string8.map(|template| metadata.message_template = Some(template)).parse(after_kind)?,
            5 => string8.map(|description| metadata.description = Some(description)).parse(after_kind)?,
            6 => (string8, string8).map(|pair| metadata.key_values.push(pair)).parse(after_kind)?,
            7 => take(16usize)
                .map(|bytes: &[u8]| {
                    metadata.provider_id = bytes.first_chunk().map(|id| Uuid::from_bytes_le(*id));
                })
                .parse(after_kind)?,
            8 => le_u8.map(|level| metadata.level = u32::from(level)).parse(after_kind)?,
            9 => le_u8.map(|version| metadata.version = u32::from(version)).parse(after_kind)?,
            _ => return Ok((rest, ())),
        };
        options = after;
    }
    Ok((rest, ()))
}
