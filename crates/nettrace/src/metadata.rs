//! Kinds of events: provider, id, name, level, keywords and the list of fields.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use uuid::Uuid;

/// The number of a field's type. Unknown codes are values: an event with one decodes up to that field.
///
/// # Source
/// `NetTraceFormat.md`, enum TypeCode; 20 to 26 are new in V6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeCode(pub u32);

macro_rules! type_codes {
    ($($name:ident = $code:literal, $size:literal, $doc:literal;)*) => {
        impl TypeCode {
            $(#[doc = $doc] pub const $name: Self = Self($code);)*

            /// Returns the name of the constant; `None` for a code that this crate does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($code => Some(stringify!($name)),)* _ => None }
            }

            /// Returns the least size of a value of this type, in bytes; `None` for unknown codes.
            pub(crate) const fn least_size(self) -> Option<usize> {
                match self.0 { $($code => Some($size),)* _ => None }
            }
        }
    };
}

type_codes! {
    OBJECT = 1, 0, "The fields of the object, one after the other.";
    BOOLEAN = 3, 4, "4 bytes, 0 is false; 1 byte in the events of some providers.";
    UTF16_CODE_UNIT = 4, 2, "One UTF-16 code unit.";
    I8 = 5, 1, "Signed, 1 byte.";
    U8 = 6, 1, "Unsigned, 1 byte.";
    I16 = 7, 2, "Signed, 2 bytes.";
    U16 = 8, 2, "Unsigned, 2 bytes.";
    I32 = 9, 4, "Signed, 4 bytes.";
    U32 = 10, 4, "Unsigned, 4 bytes.";
    I64 = 11, 8, "Signed, 8 bytes.";
    U64 = 12, 8, "Unsigned, 8 bytes.";
    F32 = 13, 4, "IEEE 754, 4 bytes.";
    F64 = 14, 8, "IEEE 754, 8 bytes.";
    DECIMAL = 15, 16, ".NET's decimal, 16 bytes.";
    DATE_TIME = 16, 8, "V6: `SYSTEMTIME`, 16 bytes; before: `FILETIME`, 8 bytes.";
    GUID = 17, 16, "16 bytes, the first three fields little-endian.";
    STRING16 = 18, 2, "UTF-16 code units up to a NUL.";
    ARRAY = 19, 2, "u16 count, then the elements.";
    VARINT = 20, 1, "Variable-length signed integer.";
    VARUINT = 21, 1, "Variable-length unsigned integer.";
    FIXED_ARRAY = 22, 0, "As many elements as the field list says.";
    UTF8_CODE_UNIT = 23, 1, "One UTF-8 code unit.";
    REL_LOC = 24, 4, "The place of elements, counted from the end of this field.";
    DATA_LOC = 25, 4, "The place of elements, counted from the start of the payload.";
    BOOLEAN8 = 26, 1, "1 byte, 0 is false.";
}

impl TypeCode {
    /// Returns the size of values of the type in bytes; `None` if it varies, or the code is unknown.
    pub(crate) const fn fixed_size(self, v6: bool) -> Option<usize> {
        match self {
            Self::STRING16 | Self::VARINT | Self::VARUINT
            // Types with parts, of which only the code was kept.
            | Self::OBJECT | Self::ARRAY | Self::FIXED_ARRAY | Self::REL_LOC | Self::DATA_LOC => None,
            Self::DATE_TIME if v6 => Some(16),
            code => code.least_size(),
        }
    }
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// A value without parts, or a type that this crate does not know.
    Scalar(TypeCode),
    /// Fields of its own.
    Object(Vec<Field>),
    /// Elements after a u16 that counts them.
    Array(Box<FieldType>),
    /// As many elements as the type says.
    FixedArray(Box<FieldType>, u16),
    /// Elements elsewhere in the payload, counted from the end of this field.
    RelLoc(Box<FieldType>),
    /// Elements elsewhere in the payload, counted from its start.
    DataLoc(Box<FieldType>),
}

impl FieldType {
    /// Returns the least size of a value of this type, in bytes. Unknown types count as 0: nothing after them
    /// is decoded.
    pub(crate) fn least_size(&self) -> usize {
        match self {
            Self::Scalar(code) => code.least_size().unwrap_or(0),
            Self::Object(fields) => {
                fields.iter().fold(0, |sum: usize, field| sum.saturating_add(field.field_type.least_size()))
            }
            Self::Array(_) => 2,
            Self::FixedArray(element, count) => element.least_size().saturating_mul(usize::from(*count)),
            Self::RelLoc(_) | Self::DataLoc(_) => 4,
        }
    }

    /// Returns the number of the type's parts, itself among them, that take no bytes.
    pub(crate) fn empty_parts(&self) -> usize {
        match self {
            Self::Scalar(_) => 0,
            Self::Object(fields) => fields.iter().fold(usize::from(self.least_size() == 0), |sum, field| {
                sum.saturating_add(field.field_type.empty_parts())
            }),
            Self::FixedArray(_, 0) => 1,
            Self::Array(element)
            | Self::FixedArray(element, _)
            | Self::RelLoc(element)
            | Self::DataLoc(element) => element.empty_parts(),
        }
    }

    /// Returns true if the type is a boolean of four bytes or has such a part.
    pub(crate) fn has_booleans(&self) -> bool {
        match self {
            Self::Scalar(code) => *code == TypeCode::BOOLEAN,
            Self::Object(fields) => fields.iter().any(|field| field.field_type.has_booleans()),
            Self::Array(element)
            | Self::FixedArray(element, _)
            | Self::RelLoc(element)
            | Self::DataLoc(element) => element.has_booleans(),
        }
    }

    /// Returns true if values of the type name other places of the payload.
    pub(crate) fn has_location(&self) -> bool {
        match self {
            Self::Scalar(_) => false,
            Self::Object(fields) => fields.iter().any(|field| field.field_type.has_location()),
            Self::Array(element) | Self::FixedArray(element, _) => element.has_location(),
            Self::RelLoc(_) | Self::DataLoc(_) => true,
        }
    }

    /// Returns true if the type or a part of it is invalid: only its code was kept.
    pub(crate) fn is_invalid(&self) -> bool {
        match self {
            Self::Scalar(code) => matches!(
                *code,
                TypeCode::OBJECT
                    | TypeCode::ARRAY
                    | TypeCode::FIXED_ARRAY
                    | TypeCode::REL_LOC
                    | TypeCode::DATA_LOC
            ),
            Self::Object(fields) => fields.iter().any(|field| field.field_type.is_invalid()),
            Self::Array(element)
            | Self::FixedArray(element, _)
            | Self::RelLoc(element)
            | Self::DataLoc(element) => element.is_invalid(),
        }
    }

    /// Returns the size of values of the type in bytes; `None` if it varies.
    pub(crate) fn fixed_size(&self, v6: bool) -> Option<usize> {
        match self {
            Self::Array(_) => None,
            Self::Scalar(code) => code.fixed_size(v6),
            Self::Object(fields) => {
                fields.iter().try_fold(0usize, |sum, field| sum.checked_add(field.field_type.fixed_size(v6)?))
            }
            Self::FixedArray(element, count) => element.fixed_size(v6)?.checked_mul(usize::from(*count)),
            Self::RelLoc(_) | Self::DataLoc(_) => Some(4),
        }
    }
}

/// One field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub(crate) name: String,
    pub(crate) field_type: FieldType,
}

impl Field {
    /// The name of the field.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the field.
    pub const fn field_type(&self) -> &FieldType {
        &self.field_type
    }
}

/// A kind of event. Every [`Event`](crate::Event) has exactly one.
///
/// ```
/// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
/// let mut events = nettrace::SliceReader::new(bytes)?;
/// let kind = events.next()?.expect("an event").metadata();
/// assert_eq!((kind.provider(), kind.event_id(), kind.name(), kind.level()), ("Demo", 1, "Tick", 4));
/// assert!(kind.fields().iter().map(nettrace::Field::name).eq(["Count"]));
/// # Ok::<(), nettrace::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    pub(crate) id: u32,
    pub(crate) provider: String,
    pub(crate) provider_id: Option<Uuid>,
    pub(crate) event_id: u32,
    pub(crate) version: u32,
    pub(crate) name: String,
    pub(crate) level: u32,
    pub(crate) keywords: u64,
    pub(crate) opcode: Option<u8>,
    pub(crate) fields: Vec<Field>,
    pub(crate) message_template: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) key_values: Vec<(String, String)>,
    /// True if a field or a part of one has the type [`TypeCode::BOOLEAN`].
    pub(crate) has_booleans: bool,
}

impl Metadata {
    /// The number by which the recording's events refer to this row.
    pub const fn id(&self) -> u32 {
        self.id
    }
    /// Name of the provider (EventSource).
    pub fn provider(&self) -> &str {
        &self.provider
    }
    /// GUID of the provider, if recorded: in netperf V1, which has no names, and V6.
    pub const fn provider_id(&self) -> Option<Uuid> {
        self.provider_id
    }
    /// Number of the event within its provider.
    pub const fn event_id(&self) -> u32 {
        self.event_id
    }
    /// Version of the event.
    pub const fn version(&self) -> u32 {
        self.version
    }
    /// Name of the event; empty for the runtime's own events.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Verbosity: 1 is critical, 5 is verbose, 0 is always.
    pub const fn level(&self) -> u32 {
        self.level
    }
    /// The groups that the event belongs to, as bits.
    pub const fn keywords(&self) -> u64 {
        self.keywords
    }
    /// The opcode, such as 1 for start and 2 for stop; `None` if missing in the recording.
    pub const fn opcode(&self) -> Option<u8> {
        self.opcode
    }
    /// The fields of the payload, in its order. Empty for the runtime's own events, and for events with a
    /// field that the runtime could not describe, although their payload is not empty.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }
    /// V6: the template of the event's message.
    pub fn message_template(&self) -> Option<&str> {
        self.message_template.as_deref()
    }
    /// V6: a description of the event.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
    /// V6: further pairs, as they are.
    pub fn key_values(&self) -> &[(String, String)] {
        &self.key_values
    }
}

/// The index of a row in [`MetadataTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MetadataSlot(pub(crate) u32);

impl MetadataSlot {
    /// No kind of event.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// The kinds of events. A row that is defined again gets a new slot, so that earlier events keep their
/// meaning.
#[derive(Debug, Default)]
pub(crate) struct MetadataTable {
    rows: Vec<Metadata>,
    /// Slot + 1 by id, for the small dense ids that runtimes give.
    dense: Vec<u32>,
    /// Slot by id, for ids that would make `dense` larger than the recording justifies.
    sparse: BTreeMap<u32, u32>,
    /// Ids with slots that they had before.
    replaced: BTreeSet<(u32, u32)>,
}

impl MetadataTable {
    pub(crate) fn insert(&mut self, row: Metadata) {
        let id = row.id;
        let Ok(slot) = u32::try_from(self.rows.len()) else { return };
        let before = self.slot(id);
        if before != MetadataSlot::NONE {
            self.replaced.insert((id, before.0));
        }
        self.rows.push(row);
        let index = usize::try_from(id).unwrap_or(usize::MAX);
        let dense_limit = self.rows.len().saturating_mul(4).saturating_add(4096);
        if index < dense_limit {
            if self.dense.len() <= index {
                self.dense.resize(index.saturating_add(1), 0);
            }
            if let Some(entry) = self.dense.get_mut(index) {
                *entry = slot.saturating_add(1);
            }
            self.sparse.remove(&id);
        } else {
            self.sparse.insert(id, slot);
        }
    }

    /// Invalidates ids, as sequence points of V6 may do. The rows stay, for events that were read before.
    pub(crate) fn forget_ids(&mut self) {
        self.dense.clear();
        self.sparse.clear();
        self.replaced.clear();
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }

    /// Returns the meaning that the id had among the first `known` rows.
    #[inline]
    pub(crate) fn slot_among(&self, id: u32, known: u32) -> MetadataSlot {
        let slot = self.slot(id);
        if slot.0 < known { slot } else { self.replaced_slot(id, known) }
    }

    #[inline(never)]
    fn replaced_slot(&self, id: u32, known: u32) -> MetadataSlot {
        let before = self.replaced.range((id, 0)..(id, known)).next_back();
        before.map_or(MetadataSlot::NONE, |(_, slot)| MetadataSlot(*slot))
    }

    #[inline]
    pub(crate) fn slot(&self, id: u32) -> MetadataSlot {
        match usize::try_from(id).ok().and_then(|index| self.dense.get(index)) {
            Some(0) | None => self.sparse_slot(id),
            // No row has the number `MetadataSlot::NONE`.
            Some(entry) => MetadataSlot(entry.wrapping_sub(1)),
        }
    }

    #[inline(never)]
    fn sparse_slot(&self, id: u32) -> MetadataSlot {
        self.sparse.get(&id).copied().map_or(MetadataSlot::NONE, MetadataSlot)
    }

    #[inline]
    pub(crate) fn get(&self, slot: MetadataSlot) -> Option<&Metadata> {
        self.rows.get(usize::try_from(slot.0).ok()?)
    }

    pub(crate) fn rows(&self) -> &[Metadata] {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u32, name: &str) -> Metadata {
        Metadata { id, name: name.into(), ..Metadata::default() }
    }

    #[test]
    fn ids_far_apart_cost_nothing() {
        let mut table = MetadataTable::default();
        table.insert(row(1, "one"));
        table.insert(row(u32::MAX, "far"));
        table.insert(row(1, "one again"));
        let name = |id| table.get(table.slot(id)).map(Metadata::name);
        assert_eq!(name(1), Some("one again"));
        assert_eq!(name(u32::MAX), Some("far"));
        assert_eq!(name(0), None);
        assert_eq!(name(2), None);
        assert!(table.dense.capacity() < 10_000);
        assert_eq!(table.get(MetadataSlot(0)).map(Metadata::name), Some("one"));
        table.insert(row(1, "one for the third time"));
        let among = |id, known| table.get(table.slot_among(id, known)).map(Metadata::name);
        let names = [None, Some("one"), Some("one"), Some("one again"), Some("one for the third time")];
        assert_eq!([0, 1, 2, 3, 4].map(|known| among(1, known)), names);
        assert_eq!(among(u32::MAX, 1), None);
    }

    #[test]
    fn forgotten_ids_keep_their_rows() {
        let mut table = MetadataTable::default();
        table.insert(row(1, "one"));
        let slot = table.slot(1);
        table.forget_ids();
        assert_eq!(table.slot(1), MetadataSlot::NONE);
        assert_eq!(table.get(slot).map(Metadata::name), Some("one"));
    }
}
