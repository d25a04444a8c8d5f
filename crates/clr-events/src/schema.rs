//! Schemas of payloads that the recording itself does not describe.

use nettrace::{Event, Metadata};

use crate::dynamic;
use crate::generated::schemas;
use crate::provider::Provider;
use crate::value::Fields;
use crate::value_names::ValueNames;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// 4 bytes, 0 is false.
    Bool32,
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
    /// IEEE 754, 8 bytes.
    F64,
    /// 4 or 8 bytes, as the traced process's pointers.
    Address,
    /// 16 bytes, the first three parts little-endian.
    Guid,
    /// UTF-16 up to a NUL.
    Utf16,
    /// UTF-8 up to a NUL.
    Utf8,
    /// 7 bits a byte, least significant first.
    Varuint,
    /// u16 length, then as many bytes of UTF-8.
    CountedUtf8,
    /// 2 bytes that mean nothing; no value.
    Pad16,
    /// A value that is read and not shown, such as a length that another value implies; no value.
    Hidden(&'static FieldType),
    /// With 8-byte pointers 4 bytes that mean nothing, with 4-byte ones none; no value.
    PadWord,
    /// 1 byte whose values have names.
    Named8(&'static ValueNames),
    /// 2 bytes whose values have names.
    Named16(&'static ValueNames),
    /// 4 bytes whose values have names.
    Named32(&'static ValueNames),
    /// So many bytes.
    Bytes(Count),
    /// So many values of a type without parts.
    Array(&'static FieldType, Count),
    /// So many structs.
    Rows(&'static [Field], Count),
}

/// The number of elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Always so many.
    Fixed(u16),
    /// As many as the field of the same list says that [counts](Field::counts).
    Counted,
}

/// A field of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The runtime's name for it.
    pub name: &'static str,
    /// Its type.
    pub field_type: FieldType,
    /// Whether it says how many elements arrays of the same list have.
    pub counts: bool,
}

pub(crate) const fn field(name: &'static str, field_type: FieldType) -> Field {
    Field { name, field_type, counts: false }
}

pub(crate) const fn counter(name: &'static str, field_type: FieldType) -> Field {
    Field { name, field_type, counts: true }
}

/// One version of an event.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schema {
    /// Its provider.
    pub provider: Provider,
    /// Its number within the provider.
    pub id: u16,
    /// The version.
    pub version: u8,
    /// The name that TraceEvent shows, such as `GC/Start`; empty where it knows none.
    pub name: &'static str,
    /// The runtime's name for what it is about, such as `GarbageCollection`.
    pub task: &'static str,
    /// The runtime's name for what happens, such as `win:Start`.
    pub opcode_name: &'static str,
    /// The number of that: 1 is start, 2 is stop.
    pub opcode: u8,
    /// Verbosity: 1 is critical, 5 is verbose, 0 is always.
    pub level: u8,
    /// The groups that it belongs to, as bits.
    pub keywords: u64,
    /// The fields of its payload, in order.
    pub fields: &'static [Field],
}

/// The events of a provider.
pub(crate) struct Table {
    /// By event id: where its versions begin in `schemas`. One more than there are ids.
    pub(crate) firsts: &'static [u16],
    pub(crate) schemas: &'static [Schema],
}

impl Schema {
    /// The schema for a version of an event: that version's own, or that of the newest version before it, since the runtime
    /// only appends fields. `None` for an event that is not known, or known only in newer versions.
    #[inline]
    pub fn find(provider: Provider, id: u32, version: u32) -> Option<&'static Self> {
        Self::versions(provider, id).iter().rev().find(|schema| u32::from(schema.version) <= version)
    }

    /// The versions of an event, oldest first.
    #[inline]
    pub fn versions(provider: Provider, id: u32) -> &'static [Self] {
        let table = schemas::table(provider);
        let range = usize::try_from(id).ok().and_then(|id| {
            let first = table.firsts.get(id)?;
            let end = table.firsts.get(id.checked_add(1)?)?;
            table.schemas.get(usize::from(*first)..usize::from(*end))
        });
        range.unwrap_or_default()
    }

    /// All schemas of a provider, by id and version.
    pub fn all(provider: Provider) -> &'static [Self] {
        schemas::table(provider).schemas
    }

    /// The schema of an event; `None` for one that is not known.
    ///
    /// An event that the garbage collector defines as it goes has a schema of its own where the layout of its data is known.
    #[inline]
    pub fn of(event: &Event<'_>) -> Option<&'static Self> {
        let schema = Self::find(Provider::of(event.metadata())?, event.id(), event.version())?;
        if event.id() == dynamic::ID && dynamic::is_dynamic(schema) {
            return dynamic::schema(event.payload()).or(Some(schema));
        }
        Some(schema)
    }

    /// The schema of a kind of event whose events carry no version of their own.
    pub fn of_kind(metadata: &Metadata) -> Option<&'static Self> {
        Self::find(Provider::of(metadata)?, metadata.event_id(), metadata.version())
    }

    /// Whether the schema is used in place of the recording's own field list, which is empty or wrong.
    ///
    /// Recorders of `Universal.System` describe its texts as single code units, which would lose all that follows.
    pub fn overrides(&self, metadata: &Metadata) -> bool {
        metadata.fields().is_empty()
            || self.provider == Provider::UniversalSystem
                && metadata
                    .fields()
                    .iter()
                    .map(nettrace::Field::name)
                    .eq(self.fields.iter().map(|field| field.name))
    }

    /// The fields of a payload, decoded one after the other as the iterator goes.
    #[inline]
    pub fn fields<'a>(&self, payload: &'a [u8], pointer_size: u8) -> Fields<'a> {
        Fields::new(self.fields, payload, pointer_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_not_known_are_read_as_the_newest_before() {
        let version = |version| Schema::find(Provider::Runtime, 1, version).map(|schema| schema.version);
        assert_eq!([0, 1, 2, 9, u32::MAX].map(version), [Some(0), Some(1), Some(2), Some(2), Some(2)]);
        // Event 204 begins with version 3.
        assert!(Schema::find(Provider::Runtime, 204, 2).is_none());
        for id in [24, 1000, u32::MAX] {
            assert!(Schema::find(Provider::Runtime, id, 0).is_none());
        }
        assert_eq!(
            Schema::find(Provider::Rundown, 144, 1).map(|schema| schema.name),
            Some("Method/DCStopVerbose")
        );
    }

    #[test]
    fn every_schema_is_found_under_its_number() {
        for &provider in Provider::ALL {
            for schema in Schema::all(provider) {
                let found = Schema::find(provider, schema.id.into(), schema.version.into());
                assert!(core::ptr::eq(schema, found.unwrap()));
                assert_eq!(schema.provider, provider);
            }
            assert_eq!(Provider::from_guid(provider.guid()), Some(provider));
            assert_eq!(Provider::from_name(provider.name()), Some(provider));
        }
    }
}
