//! Rows of netperf V1 to V3 and of nettrace V4, with V5's tags.

use alloc::vec::Vec;

use nom::Parser as _;
use nom::number::complete::{le_u8, le_u32, le_u64};
use uuid::Uuid;

use super::{Bytes, MAX_DEPTH, MetadataEncoding, ParsedMetadata, array_of, refuse, scalar, string16};
use crate::metadata::{Field, FieldType, Metadata, TypeCode};

const TAG_OPCODE: u8 = 1;
const TAG_FIELDS: u8 = 2;

/// Parses a row of V3, V4 and V5; `None` if it does not even name its event.
pub(super) fn row(payload: &[u8]) -> Option<ParsedMetadata> {
    let (description, id) = le_u32::<_, nom::error::Error<&[u8]>>(payload).ok()?;
    description_of(id, description)
}

/// Parses what follows the number of a row; `None` if it does not even name its event.
pub(super) fn description_of(id: u32, description: &[u8]) -> Option<ParsedMetadata> {
    let (rest, mut metadata) = head(id, description).ok()?;
    let fault = match fields(rest, 0, &mut metadata.fields) {
        Ok((tags, ())) => read_tags(tags, &mut metadata),
        Err(_) => Some("the field list of a metadata row is damaged"),
    };
    Some(ParsedMetadata { metadata, fault })
}

fn head(id: u32, input: &[u8]) -> Bytes<'_, Metadata> {
    (string16, le_u32, string16, le_u64, le_u32, le_u32)
        .map(|(provider, event_id, name, keywords, version, level)| Metadata {
            id,
            provider,
            event_id,
            version,
            name,
            level,
            keywords,
            ..Metadata::default()
        })
        .parse(input)
}

/// Parses a row of netperf V1 (provider as GUID) or V2 (as text). `id` is the offset of the row in the
/// recording.
///
/// ```text
/// row  = provider event-id:u32 version:u32 size:u32 [name:string16 keywords:u64 version:u32 level:u32 fields]
/// ```
pub(super) fn netperf_v1(payload: &[u8], id: u32, encoding: MetadataEncoding) -> Option<ParsedMetadata> {
    let (rest, (provider_id, provider)) = if encoding == MetadataEncoding::V1 {
        let (rest, bytes) =
            nom::bytes::complete::take::<_, _, nom::error::Error<&[u8]>>(16usize).parse(payload).ok()?;
        let id = Uuid::from_bytes_le(*bytes.first_chunk()?);
        (rest, (Some(id), alloc::format!("{id}")))
    } else {
        let (rest, name) = string16(payload).ok()?;
        (rest, (None, name))
    };
    let (rest, (event_id, event_version, size)) = numbers(rest).ok()?;
    let mut metadata =
        Metadata { id, provider, provider_id, event_id, version: event_version, ..Metadata::default() };
    let fault = match described(rest, usize::try_from(size).ok()?, &mut metadata) {
        Ok(_) => None,
        Err(_) => Some("the field list of a metadata row is damaged"),
    };
    Some(ParsedMetadata { metadata, fault })
}

fn numbers(input: &[u8]) -> Bytes<'_, (u32, u32, u32)> {
    (le_u32, le_u32, le_u32).parse(input)
}

/// Parses the description that EventSources add to their events; the runtime's own events do not have one.
fn described<'a>(input: &'a [u8], size: usize, metadata: &mut Metadata) -> Bytes<'a, ()> {
    let (rest, description) = nom::bytes::complete::take(size).parse(input)?;
    if description.is_empty() {
        return Ok((rest, ()));
    }
    let (description, (_, name, keywords, _, level)) =
        (le_u32, string16, le_u64, le_u32, le_u32).parse(description)?;
    metadata.name = name;
    metadata.keywords = keywords;
    metadata.level = level;
    fields(description, 0, &mut metadata.fields)?;
    Ok((rest, ()))
}

/// Parses a V1 field list. Fields read before a fault stay in `list`.
fn fields<'a>(input: &'a [u8], depth: u32, list: &mut Vec<Field>) -> Bytes<'a, ()> {
    let (mut rest, count) = le_u32(input)?;
    // A field takes at least 6 bytes: a larger count ends at the first field that is not there.
    for _ in 0..count {
        let (after_type, field_type) = field_type(rest, depth, Version::V1)?;
        let (after_name, name) = string16(after_type)?;
        list.push(Field { name, field_type });
        rest = after_name;
    }
    Ok((rest, ()))
}

/// Parses a V2 field list, of V5's tag: every field has its size.
fn fields_v2<'a>(input: &'a [u8], depth: u32, list: &mut Vec<Field>) -> Bytes<'a, ()> {
    let (mut rest, count) = le_u32(input)?;
    for _ in 0..count {
        let (after_size, size) = le_u32(rest)?;
        // The size counts itself.
        let Some(size) = size.checked_sub(4) else { return refuse(rest) };
        let (after_field, field) = nom::bytes::complete::take(size).parse(after_size)?;
        let (after_name, name) = string16(field)?;
        let (_, field_type) = field_type(after_name, depth, Version::V2)?;
        list.push(Field { name, field_type });
        rest = after_field;
    }
    Ok((rest, ()))
}

/// The form of field lists in objects.
#[derive(Clone, Copy)]
enum Version {
    V1,
    V2,
}

fn field_type(input: &[u8], depth: u32, version: Version) -> Bytes<'_, FieldType> {
    if depth >= MAX_DEPTH {
        return refuse(input);
    }
    let deeper = depth.saturating_add(1);
    let (rest, code) = le_u32(input)?;
    match TypeCode(code) {
        TypeCode::OBJECT => {
            let mut list = Vec::new();
            let (rest, ()) = match version {
                Version::V1 => fields(rest, deeper, &mut list)?,
                Version::V2 => fields_v2(rest, deeper, &mut list)?,
            };
            Ok((rest, FieldType::Object(list)))
        }
        TypeCode::ARRAY => {
            let (rest, element) = field_type(rest, deeper, version)?;
            match array_of(element, FieldType::Array) {
                Some(array) => Ok((rest, array)),
                None => refuse(input),
            }
        }
        // The codes of V6 mean nothing here.
        TypeCode(code) => Ok((rest, scalar(code).unwrap_or(FieldType::Scalar(TypeCode(code))))),
    }
}

/// Parses V5's tags and returns a fault. Unknown kinds are skipped, using their size.
fn read_tags(tags: &[u8], metadata: &mut Metadata) -> Option<&'static str> {
    let mut rest = tags;
    while !rest.is_empty() {
        match tag(rest, metadata) {
            Ok((after, ())) => rest = after,
            Err(_) => return Some("a tag of a metadata row is damaged"),
        }
    }
    None
}

fn tag<'a>(input: &'a [u8], metadata: &mut Metadata) -> Bytes<'a, ()> {
    let (rest, (size, kind)) = (le_u32, le_u8).parse(input)?;
    let (rest, content) = nom::bytes::complete::take(size).parse(rest)?;
    match kind {
        TAG_OPCODE => metadata.opcode = Some(le_u8(content)?.1),
        TAG_FIELDS => {
            metadata.fields.clear();
            fields_v2(content, 0, &mut metadata.fields)?;
        }
        _ => {}
    }
    Ok((rest, ()))
}
