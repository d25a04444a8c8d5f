//! The description of kinds of events, in the encoding of every version.

use crate::{Bytes, Guid, bytes::length16, bytes::length32};

/// The type of a field.
///
/// | code | variant | versions |
/// |---|---|---|
/// | 1 | `Object` | all |
/// | 3–14, 16–18 | the plain ones | all |
/// | 15 | `Decimal` | V1–V5 |
/// | 19 | `Array` | V5 (in the `V2Params` tag only), V6 |
/// | 20–26 | `VarInt` … `Boolean8` | V6 |
/// | any | `Other` | a code without anything after it |
///
/// [`crate::Value`] has the encoding of the values.
///
/// ```
/// use nettrace_synth::{Field, Metadata, Type};
///
/// let point = Type::Object(vec![Field::new("X", Type::Int32), Field::new("Y", Type::Int32)]);
/// let fields = vec![Field::new("Points", Type::Array(Box::new(point)))];
/// let line = Metadata { id: 1, provider: "Demo".into(), fields, ..Metadata::default() };
/// // Only the second form of fields in V5, and V6, describe arrays.
/// assert!(line.payload_v5().len() > line.payload_v3().len() && !line.row_v6().is_empty());
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md`, "MetadataBlock"; 15 is .NET's
/// `System.TypeCode.Decimal`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the document")]
pub enum Type {
    Object(Vec<Field>),
    Boolean32,
    Utf16CodeUnit,
    SByte,
    Byte,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Single,
    Double,
    Decimal,
    DateTime,
    Guid,
    String16,
    Array(Box<Type>),
    VarInt,
    VarUInt,
    FixedArray(Box<Type>, u16),
    Utf8CodeUnit,
    RelLoc(Box<Type>),
    DataLoc(Box<Type>),
    Boolean8,
    Other(u32),
}

impl Type {
    /// Returns the code of the type.
    pub fn code(&self) -> u32 {
        match self {
            Self::Object(_) => 1,
            Self::Boolean32 => 3,
            Self::Utf16CodeUnit => 4,
            Self::SByte => 5,
            Self::Byte => 6,
            Self::Int16 => 7,
            Self::UInt16 => 8,
            Self::Int32 => 9,
            Self::UInt32 => 10,
            Self::Int64 => 11,
            Self::UInt64 => 12,
            Self::Single => 13,
            Self::Double => 14,
            Self::Decimal => 15,
            Self::DateTime => 16,
            Self::Guid => 17,
            Self::String16 => 18,
            Self::Array(_) => 19,
            Self::VarInt => 20,
            Self::VarUInt => 21,
            Self::FixedArray(..) => 22,
            Self::Utf8CodeUnit => 23,
            Self::RelLoc(_) => 24,
            Self::DataLoc(_) => 25,
            Self::Boolean8 => 26,
            Self::Other(code) => *code,
        }
    }

    fn element(&self) -> Option<&Type> {
        match self {
            Self::Array(element)
            | Self::FixedArray(element, _)
            | Self::RelLoc(element)
            | Self::DataLoc(element) => Some(element),
            _ => None,
        }
    }

    /// Returns true if the type is or has an array, which only the `V2Params` tag can describe.
    fn has_array(&self) -> bool {
        match self {
            Self::Object(fields) => fields.iter().any(|field| field.ty.has_array()),
            _ => self.element().is_some(),
        }
    }
}

/// A field of an event or of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name of the field.
    pub name: String,
    /// The type of the field.
    pub ty: Type,
}

impl Field {
    /// Creates a field.
    pub fn new(name: &str, ty: Type) -> Self {
        Self { name: name.to_owned(), ty }
    }
}

/// The description of one kind of event. Each version writes the fields that it has:
///
/// | field | V1 | V2 | V3, V4 | V5 | V6 |
/// |---|---|---|---|---|---|
/// | `id` | – (the stream offset) | – (same) | yes | yes | yes |
/// | `provider` | – | yes | yes | yes | yes |
/// | `provider_guid` | yes | – | – | – | kind 7 |
/// | `event_id`, `name` | yes | yes | yes | yes | yes |
/// | `version` | yes | yes | yes | yes | kind 9 |
/// | `keywords`, `level` | yes | yes | yes | yes | kinds 3, 8 |
/// | `opcode` | – | – | – | tag 1 | kind 1 |
/// | `fields` | yes | yes | yes | yes, or tag 2 | yes |
/// | `template`, `description`, `key_values` | – | – | – | – | kinds 4, 5, 6 |
///
/// ```
/// use nettrace_synth::{Field, Metadata, Type};
///
/// let order = Metadata {
///     id: 1,
///     provider: "Shop".into(),
///     event_id: 7,
///     name: "Order".into(),
///     fields: vec![Field::new("Total", Type::Double), Field::new("Customer", Type::String16)],
///     ..Metadata::default()
/// };
/// // The row of V6 begins with its size.
/// let row = order.row_v6();
/// assert_eq!(usize::from(u16::from_le_bytes([row[0], row[1]])), row.len() - 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The id by which events refer to it.
    pub id: u32,
    /// The provider's name.
    pub provider: String,
    /// The provider's GUID.
    pub provider_guid: Option<Guid>,
    /// The number of the event within its provider.
    pub event_id: u32,
    /// The event's name; empty for events of the runtime itself.
    pub name: String,
    /// The keywords (bits) that enable it.
    pub keywords: u64,
    /// The version of the event.
    pub version: u32,
    /// 1 critical … 5 verbose.
    pub level: u32,
    /// 1 start, 2 stop, and so on.
    pub opcode: Option<u8>,
    /// The fields of the payload.
    pub fields: Vec<Field>,
    /// A message with places for the fields.
    pub template: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// Further keys and values.
    pub key_values: Vec<(String, String)>,
}

impl Metadata {
    /// Returns the payload of a metadata event of V1 (`guid_provider`) or V2.
    ///
    /// | size | meaning |
    /// |---|---|
    /// | 16, or … | V1: the provider's GUID; V2: its name, `string16` |
    /// | 4 | event id |
    /// | 4 | event version |
    /// | 4 | length of what follows; 0 for an event without further description |
    /// | … | event id, name, keywords, version, level, fields: as in V3 |
    ///
    /// # Source
    /// microsoft/perfview, `src/TraceEvent/EventPipe/EventPipeEventSourceV1.cs` as it was; bytes of a .NET
    /// Core 2.0 recording.
    pub fn payload_early(&self, guid_provider: bool) -> Vec<u8> {
        let mut out = Bytes::new();
        if guid_provider {
            out.raw(&self.provider_guid.unwrap_or_default());
        } else {
            out.string16(&self.provider);
        }
        out.u32(self.event_id).u32(self.version);
        let mut definition = Bytes::new();
        if !self.name.is_empty() || !self.fields.is_empty() {
            self.write_definition(&mut definition);
            write_fields_v1(&mut definition, &self.fields);
        }
        out.u32(length32(definition.len())).raw(definition.as_slice());
        out.into_vec()
    }

    /// Returns the payload of a metadata event of V3 and V4.
    ///
    /// | size | meaning |
    /// |---|---|
    /// | 4 | metadata id |
    /// | … | provider, `string16` |
    /// | 4 | event id |
    /// | … | name, `string16` |
    /// | 8 | keywords |
    /// | 4 | version |
    /// | 4 | level |
    /// | 4 | count of fields |
    /// | 4, …, … | a field: type code; of an object its count and fields; name, `string16` |
    ///
    /// # Source
    /// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md`, "Metadata event encoding".
    pub fn payload_v3(&self) -> Vec<u8> {
        let mut out = Bytes::new();
        out.u32(self.id).string16(&self.provider);
        self.write_definition(&mut out);
        write_fields_v1(&mut out, &self.fields);
        out.into_vec()
    }

    /// Returns the payload of a metadata event of V5: as in V3, followed by tags.
    ///
    /// | size | meaning |
    /// |---|---|
    /// | 4 | size of the tag's content |
    /// | 1 | 1 opcode, 2 `V2Params` |
    /// | 1 | of tag 1: the opcode |
    /// | 4 | of tag 2: count of fields |
    /// | 4, …, 4, … | a field: its size (itself included); name, `string16`; type code; of an array the element's type; of an object its count and fields |
    ///
    /// The second tag is written where a field is or holds an array; then the list of V3 is empty.
    ///
    /// # Source
    /// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md`, "Metadata event encoding";
    /// dotnet/runtime, `src/native/eventpipe/ep-metadata-generator.c`.
    pub fn payload_v5(&self) -> Vec<u8> {
        let mut out = Bytes::new();
        out.u32(self.id).string16(&self.provider);
        self.write_definition(&mut out);
        let in_tag = self.fields.iter().any(|field| field.ty.has_array());
        write_fields_v1(&mut out, if in_tag { &[] } else { &self.fields });
        if let Some(opcode) = self.opcode {
            out.u32(1).u8(1).u8(opcode);
        }
        if in_tag {
            let mut content = Bytes::new();
            write_fields_v5(&mut content, &self.fields);
            out.u32(length32(content.len())).u8(2).raw(content.as_slice());
        }
        out.into_vec()
    }

    fn write_definition(&self, out: &mut Bytes) {
        out.u32(self.event_id).string16(&self.name).u64(self.keywords).u32(self.version).u32(self.level);
    }

    /// Returns the row of V6.
    ///
    /// | size | meaning |
    /// |---|---|
    /// | 2 | size of the row, not counting this |
    /// | … | metadata id, `var_u64` |
    /// | … | provider, `string8` |
    /// | … | event id, `var_u64` |
    /// | … | name, `string8` |
    /// | 2 | count of fields |
    /// | 2, …, … | a field: its size, not counting this; name, `string8`; type |
    /// | 2 | size of the optional part |
    /// | 1, … | an optional element: kind, value |
    ///
    /// A type is a u8 code; then of an array, fixed array, `RelLoc` or `DataLoc` the element's type; then of
    /// a fixed array the u16 count; of an object its u16 count and fields.
    ///
    /// # Source
    /// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md`, "MetadataBlock".
    pub fn row_v6(&self) -> Vec<u8> {
        self.row_v6_with(&self.optional_v6(), &[])
    }

    /// Returns the V6 row with this optional part, followed by bytes that readers must skip.
    pub fn row_v6_with(&self, optional: &[u8], undefined: &[u8]) -> Vec<u8> {
        let mut row = Bytes::new();
        row.var_u64(self.id.into()).string8(&self.provider).var_u64(self.event_id.into()).string8(&self.name);
        write_fields_v6(&mut row, &self.fields);
        row.u16(length16(optional.len())).raw(optional).raw(undefined);
        let mut out = Bytes::new();
        out.u16(length16(row.len())).raw(row.as_slice());
        out.into_vec()
    }

    /// Returns the optional part of the row of V6: an element for each property that is present or not zero.
    ///
    /// | kind | value |
    /// |---|---|
    /// | 1 | opcode, u8 |
    /// | 3 | keywords, u64 |
    /// | 4 | message template, `string8` |
    /// | 5 | description, `string8` |
    /// | 6 | key and value, `string8` each |
    /// | 7 | the provider's GUID |
    /// | 8 | level, u8 |
    /// | 9 | version, u8 |
    pub fn optional_v6(&self) -> Vec<u8> {
        let mut out = Bytes::new();
        if let Some(opcode) = self.opcode {
            out.u8(1).u8(opcode);
        }
        if self.keywords != 0 {
            out.u8(3).u64(self.keywords);
        }
        if let Some(template) = &self.template {
            out.u8(4).string8(template);
        }
        if let Some(description) = &self.description {
            out.u8(5).string8(description);
        }
        for (key, value) in &self.key_values {
            out.u8(6).string8(key).string8(value);
        }
        if let Some(guid) = &self.provider_guid {
            out.u8(7).raw(guid);
        }
        if self.level != 0 {
            out.u8(8).u8(narrow(self.level));
        }
        if self.version != 0 {
            out.u8(9).u8(narrow(self.version));
        }
        out.into_vec()
    }
}

/// Narrows a level, a version or a type code, which have four bytes up to V5 and one byte in V6.
fn narrow(value: u32) -> u8 {
    u8::try_from(value).expect("V6 has one byte for this number")
}

fn write_fields_v1(out: &mut Bytes, fields: &[Field]) {
    out.u32(length32(fields.len()));
    for field in fields {
        out.u32(field.ty.code());
        if let Type::Object(inner) = &field.ty {
            write_fields_v1(out, inner);
        }
        out.string16(&field.name);
    }
}

fn write_fields_v5(out: &mut Bytes, fields: &[Field]) {
    out.u32(length32(fields.len()));
    for field in fields {
        let mut content = Bytes::new();
        content.string16(&field.name);
        write_type_v5(&mut content, &field.ty);
        out.u32(length32(content.len() + 4)).raw(content.as_slice());
    }
}

fn write_type_v5(out: &mut Bytes, ty: &Type) {
    out.u32(ty.code());
    if let Type::Object(fields) = ty {
        write_fields_v5(out, fields);
    } else if let Some(element) = ty.element() {
        write_type_v5(out, element);
    }
}

fn write_fields_v6(out: &mut Bytes, fields: &[Field]) {
    out.u16(length16(fields.len()));
    for field in fields {
        let mut content = Bytes::new();
        content.string8(&field.name);
        write_type_v6(&mut content, &field.ty);
        out.u16(length16(content.len())).raw(content.as_slice());
    }
}

fn write_type_v6(out: &mut Bytes, ty: &Type) {
    out.u8(narrow(ty.code()));
    if let Some(element) = ty.element() {
        write_type_v6(out, element);
    }
    match ty {
        Type::FixedArray(_, count) => _ = out.u16(*count),
        Type::Object(fields) => write_fields_v6(out, fields),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
