//! Descriptions of kinds of events.
//!
//! ```text
//! V4:  id:u32 provider:string16 event-id:u32 name:string16 keywords:u64 version:u32 level:u32 fields tag*
//!      fields = count:u32 (type name:string16)*              type = code:u32 [of an object: fields]
//!      tag    = size:u32 kind:u8                             1: opcode:u8  2: count:u32 (size:u32 name:string16 type)*
//! V6:  size:u16 id:varuint32 provider:string8 event-id:varuint32 name:string8 fields size:u16 option*
//!      fields = count:u16 (size:u16 name:string8 type)*      type = code:u8 [element | fields] [count:u16]
//!      option = kind:u8 value
//! ```

use alloc::vec::Vec;

use nettrace::{Field, FieldType, Metadata, TypeCode};

use crate::bytes::{string8, string16, u16, u32, u64, varuint};
use crate::error::Error;
use crate::event_kind::{EventKind, FieldKind};
use crate::omissions::Omissions;

/// The properties of a kind of event that labels of V6 may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Properties {
    pub(crate) version: u32,
    pub(crate) level: u32,
    pub(crate) keywords: u64,
    pub(crate) opcode: Option<u8>,
}

impl Properties {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            version: metadata.version(),
            level: metadata.level(),
            keywords: metadata.keywords(),
            opcode: metadata.opcode(),
        }
    }

    const fn of_kind(kind: &EventKind<'_>) -> Self {
        Self { version: kind.version, level: kind.level, keywords: kind.keywords, opcode: kind.opcode }
    }
}

/// The identity of a kind of event.
#[derive(Debug, Clone, Copy)]
struct Identity<'a> {
    /// The number of the row.
    row: u32,
    provider: &'a str,
    event: u32,
    name: &'a str,
}

impl<'a> Identity<'a> {
    fn of(row: u32, metadata: &'a Metadata) -> Self {
        Self { row, provider: metadata.provider(), event: metadata.event_id(), name: metadata.name() }
    }

    const fn of_kind(row: u32, kind: &EventKind<'a>) -> Self {
        Self { row, provider: kind.provider, event: kind.id, name: kind.name }
    }
}

const TAG_OPCODE: u8 = 1;
const TAG_FIELDS: u8 = 2;

/// Returns the payload of a metadata row of V4. Fields go into the list of V4 where that can describe them,
/// otherwise into the tag that V5 has for them.
pub(crate) fn v4(
    id: u32,
    metadata: &Metadata,
    properties: &Properties,
    from_v6: bool,
    omissions: &mut Omissions,
) -> Vec<u8> {
    let mut out = head_v4(Identity::of(id, metadata), properties);
    let fields = if from_v6 && metadata.fields().iter().any(|field| !is_in_v4(field.field_type())) {
        omissions.field_lists = omissions.field_lists.saturating_add(1);
        &[]
    } else {
        metadata.fields()
    };
    let needs_tag = fields.iter().any(|field| has_array(field.field_type()));
    fields_v4(&mut out, if needs_tag { &[] } else { fields });
    opcode_v4(&mut out, properties);
    if needs_tag {
        let mut content = Vec::new();
        fields_v5(&mut content, fields);
        u32(&mut out, content.len() as u32);
        out.push(TAG_FIELDS);
        out.extend_from_slice(&content);
    }
    let unsaid = metadata.message_template().is_some()
        || metadata.description().is_some()
        || !metadata.key_values().is_empty()
        || from_v6 && metadata.provider_id().is_some();
    omissions.descriptions = omissions.descriptions.saturating_add(unsaid.into());
    out
}

fn opcode_v4(out: &mut Vec<u8>, properties: &Properties) {
    if let Some(opcode) = properties.opcode {
        u32(out, 1);
        out.extend_from_slice(&[TAG_OPCODE, opcode]);
    }
}

/// Returns the payload of a metadata row of V4 for an event of the caller's own. V4 cannot describe
/// [strings](FieldKind::Text), so a kind with such fields is written without a field list.
pub(crate) fn v4_of_kind(id: u32, kind: &EventKind<'_>, omissions: &mut Omissions) -> Vec<u8> {
    let properties = Properties::of_kind(kind);
    let mut out = head_v4(Identity::of_kind(id, kind), &properties);
    let scalars = kind.fields.iter().filter_map(|(name, kind)| match kind {
        FieldKind::Scalar(code) => Some((*name, *code)),
        FieldKind::Text => None,
    });
    let mut scalars: Vec<_> = scalars.collect();
    if scalars.len() < kind.fields.len() {
        omissions.field_lists = omissions.field_lists.saturating_add(1);
        scalars.clear();
    }
    u32(&mut out, scalars.len() as u32);
    for (name, code) in scalars {
        u32(&mut out, code.0);
        string16(&mut out, name);
    }
    opcode_v4(&mut out, &properties);
    out
}

/// Returns the part of a V4 row before the fields.
fn head_v4(identity: Identity<'_>, properties: &Properties) -> Vec<u8> {
    let mut out = Vec::new();
    u32(&mut out, identity.row);
    string16(&mut out, identity.provider);
    u32(&mut out, identity.event);
    string16(&mut out, identity.name);
    u64(&mut out, properties.keywords);
    u32(&mut out, properties.version);
    u32(&mut out, properties.level);
    out
}

/// Returns a row of V6 for an event of the caller's own.
pub(crate) fn v6_of_kind(id: u32, kind: &EventKind<'_>, omissions: &mut Omissions) -> Result<Vec<u8>, Error> {
    let mut fields = Vec::new();
    u16(&mut fields, size(kind.fields.len())?);
    for (name, kind) in kind.fields {
        let mut field = Vec::new();
        string8(&mut field, name.as_bytes());
        match kind {
            FieldKind::Scalar(code) => field.push(code.0 as u8),
            FieldKind::Text => {
                field.extend([TypeCode::ARRAY, TypeCode::UTF8_CODE_UNIT].map(|code| code.0 as u8));
            }
        }
        u16(&mut fields, size(field.len())?);
        fields.extend_from_slice(&field);
    }
    let (mut options, properties) = (Vec::new(), Properties::of_kind(kind));
    opcode_and_keywords(&mut options, &properties);
    level_and_version(&mut options, &properties, omissions);
    sized(&row_v6(Identity::of_kind(id, kind), &fields, &options))
}

fn size(len: usize) -> Result<u16, Error> {
    u16::try_from(len).map_err(|_| Error::TooLarge {
        what: "description of an event",
        size: len as u64,
        limit: MAX_ROW_SIZE as u64,
    })
}

/// Returns a row of V6 after its size.
fn sized(row: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(row.len().saturating_add(2));
    u16(&mut out, size(row.len())?);
    out.extend_from_slice(row);
    Ok(out)
}

/// Returns true if V4 has values of the type in the same form.
fn is_in_v4(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Scalar(code) => {
            code.0 <= TypeCode::ARRAY.0 && *code != TypeCode::DATE_TIME && !is_invalid(field_type)
        }
        FieldType::Object(fields) => fields.iter().all(|field| is_in_v4(field.field_type())),
        FieldType::Array(element) => is_in_v4(element),
        _ => false,
    }
}

fn has_array(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Array(_) => true,
        FieldType::Object(fields) => fields.iter().any(|field| has_array(field.field_type())),
        _ => false,
    }
}

fn has_date(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Scalar(code) => *code == TypeCode::DATE_TIME,
        FieldType::Object(fields) => fields.iter().any(|field| has_date(field.field_type())),
        FieldType::Array(element) => has_date(element),
        _ => false,
    }
}

fn fields_v4(out: &mut Vec<u8>, fields: &[Field]) {
    u32(out, fields.len() as u32);
    for field in fields {
        type_v4(out, field.field_type(), fields_v4);
        string16(out, field.name());
    }
}

fn fields_v5(out: &mut Vec<u8>, fields: &[Field]) {
    u32(out, fields.len() as u32);
    for field in fields {
        let mut content = Vec::new();
        string16(&mut content, field.name());
        type_v4(&mut content, field.field_type(), fields_v5);
        // The size counts itself.
        u32(out, (content.len() as u32).saturating_add(4));
        out.extend_from_slice(&content);
    }
}

fn type_v4(out: &mut Vec<u8>, field_type: &FieldType, object: fn(&mut Vec<u8>, &[Field])) {
    match field_type {
        FieldType::Object(fields) => {
            u32(out, TypeCode::OBJECT.0);
            object(out, fields);
        }
        FieldType::Array(element) => {
            u32(out, TypeCode::ARRAY.0);
            type_v4(out, element, object);
        }
        FieldType::Scalar(code) => u32(out, code.0),
        // Types that only V6 has were left out before.
        _ => u32(out, 0),
    }
}

/// Maximum size of a V6 row: its field has 16 bits.
const MAX_ROW_SIZE: usize = 0xffff;

/// Returns a row of V6.
pub(crate) fn v6(
    id: u32,
    metadata: &Metadata,
    properties: &Properties,
    from_v6: bool,
    omissions: &mut Omissions,
) -> Result<Vec<u8>, Error> {
    let mut fields = Vec::new();
    // The reader keeps the code of an invalid type; the fields before it are readable.
    let valid = metadata.fields().iter().position(|field| is_invalid(field.field_type()));
    let valid = metadata.fields().get(..valid.unwrap_or(metadata.fields().len())).unwrap_or_default();
    if !from_v6 && valid.iter().any(|field| has_date(field.field_type())) {
        omissions.dates = omissions.dates.saturating_add(1);
    }
    if fields_v6(&mut fields, valid, from_v6).is_none() {
        omissions.field_lists = omissions.field_lists.saturating_add(1);
        fields.clear();
        u16(&mut fields, 0);
    }
    let identity = Identity::of(id, metadata);
    let mut row = row_v6(identity, &fields, &options(metadata, properties, omissions));
    if row.len() > MAX_ROW_SIZE {
        omissions.field_lists = omissions.field_lists.saturating_add(1);
        row = row_v6(identity, &[0, 0], &options(metadata, properties, &mut Omissions::default()));
    }
    sized(&row)
}

/// Returns true if the type or a part of it is the code of a type with parts, without them.
fn is_invalid(field_type: &FieldType) -> bool {
    match field_type {
        FieldType::Scalar(code) => matches!(
            *code,
            TypeCode::OBJECT
                | TypeCode::ARRAY
                | TypeCode::FIXED_ARRAY
                | TypeCode::REL_LOC
                | TypeCode::DATA_LOC
        ),
        FieldType::Object(fields) => fields.iter().any(|field| is_invalid(field.field_type())),
        FieldType::Array(element)
        | FieldType::FixedArray(element, _)
        | FieldType::RelLoc(element)
        | FieldType::DataLoc(element) => is_invalid(element),
        _ => false,
    }
}

/// Returns a row of V6 without its size.
fn row_v6(identity: Identity<'_>, fields: &[u8], options: &[u8]) -> Vec<u8> {
    let mut row = Vec::new();
    varuint(&mut row, identity.row.into());
    string8(&mut row, identity.provider.as_bytes());
    varuint(&mut row, identity.event.into());
    string8(&mut row, identity.name.as_bytes());
    row.extend_from_slice(fields);
    u16(&mut row, u16::try_from(options.len()).unwrap_or(u16::MAX));
    row.extend_from_slice(options);
    row
}

/// Appends a field list; `None` if V6 cannot say it.
fn fields_v6(out: &mut Vec<u8>, fields: &[Field], from_v6: bool) -> Option<()> {
    u16(out, u16::try_from(fields.len()).ok()?);
    for field in fields {
        let mut content = Vec::new();
        string8(&mut content, field.name().as_bytes());
        type_v6(&mut content, field.field_type(), from_v6)?;
        u16(out, u16::try_from(content.len()).ok()?);
        out.extend_from_slice(&content);
    }
    Some(())
}

fn type_v6(out: &mut Vec<u8>, field_type: &FieldType, from_v6: bool) -> Option<()> {
    match field_type {
        // Before V6 a time is a number of 64 bits, and codes above that of arrays mean nothing.
        FieldType::Scalar(TypeCode::DATE_TIME) if !from_v6 => out.push(TypeCode::I64.0 as u8),
        FieldType::Scalar(code) if from_v6 || code.0 <= TypeCode::ARRAY.0 => {
            out.push(u8::try_from(code.0).ok()?);
        }
        FieldType::Object(fields) => {
            out.push(TypeCode::OBJECT.0 as u8);
            fields_v6(out, fields, from_v6)?;
        }
        FieldType::Array(element) => of_elements(out, TypeCode::ARRAY, element, from_v6)?,
        FieldType::RelLoc(element) => of_elements(out, TypeCode::REL_LOC, element, from_v6)?,
        FieldType::DataLoc(element) => of_elements(out, TypeCode::DATA_LOC, element, from_v6)?,
        FieldType::FixedArray(element, count) => {
            of_elements(out, TypeCode::FIXED_ARRAY, element, from_v6)?;
            u16(out, *count);
        }
        _ => return None,
    }
    Some(())
}

fn of_elements(out: &mut Vec<u8>, code: TypeCode, element: &FieldType, from_v6: bool) -> Option<()> {
    out.push(code.0 as u8);
    type_v6(out, element, from_v6)
}

/// Returns the optional part of a V6 row: every property that is not the default.
fn options(metadata: &Metadata, properties: &Properties, omissions: &mut Omissions) -> Vec<u8> {
    let mut out = Vec::new();
    opcode_and_keywords(&mut out, properties);
    let mut text = |out: &mut Vec<u8>, kind: u8, texts: &[&str]| {
        let size = texts.iter().fold(out.len(), |sum, text| sum.saturating_add(text.len()).saturating_add(6));
        if size > MAX_OPTION_BYTES {
            omissions.descriptions = omissions.descriptions.saturating_add(1);
            return;
        }
        out.push(kind);
        for text in texts {
            string8(out, text.as_bytes());
        }
    };
    if let Some(template) = metadata.message_template() {
        text(&mut out, 4, &[template]);
    }
    if let Some(description) = metadata.description() {
        text(&mut out, 5, &[description]);
    }
    for (key, value) in metadata.key_values() {
        text(&mut out, 6, &[key, value]);
    }
    if let Some(id) = metadata.provider_id() {
        out.push(7);
        out.extend_from_slice(&id.to_bytes_le());
    }
    level_and_version(&mut out, properties, omissions);
    out
}

fn opcode_and_keywords(out: &mut Vec<u8>, properties: &Properties) {
    if let Some(opcode) = properties.opcode {
        out.extend_from_slice(&[1, opcode]);
    }
    if properties.keywords != 0 {
        out.push(3);
        u64(out, properties.keywords);
    }
}

fn level_and_version(out: &mut Vec<u8>, properties: &Properties, omissions: &mut Omissions) {
    for (kind, number) in [(8, properties.level), (9, properties.version)] {
        match u8::try_from(number) {
            Ok(0) => {}
            Ok(number) => out.extend_from_slice(&[kind, number]),
            Err(_) => omissions.numbers = omissions.numbers.saturating_add(1),
        }
    }
}

/// Maximum number of bytes of strings in the optional part: the other options fit after them.
const MAX_OPTION_BYTES: usize = 0xff00;
