//! Schemas of payloads that the recording itself does not describe.

use nettrace::schema::{Field, FieldType};
use nettrace::{Fields, Metadata};

use crate::provider::Provider;

pub(crate) const fn field(name: &'static str, field_type: FieldType) -> Field {
    Field::new(name, field_type)
}

pub(crate) const fn counter(name: &'static str, field_type: FieldType) -> Field {
    Field::counter(name, field_type)
}

/// One version of an event.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schema {
    /// The provider of the event.
    pub provider: Provider,
    /// The number of the event within the provider.
    pub id: u16,
    /// The version.
    pub version: u8,
    /// The name that TraceEvent shows, such as `GC/Start`; empty if TraceEvent does not know the event.
    pub name: &'static str,
    /// The runtime's name for the task, such as `GarbageCollection`.
    pub task: &'static str,
    /// The runtime's name for the opcode, such as `win:Start`.
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
    /// By event id, the index of its first version in `schemas`. One more entry than ids.
    pub(crate) firsts: &'static [u16],
    pub(crate) schemas: &'static [Schema],
}

impl Schema {
    /// Returns true if the schema is used in place of the recording's own field list, which is empty or
    /// wrong.
    ///
    /// Recorders of `Universal.System` describe its strings as single code units, which would lose all that
    /// follows.
    pub fn overrides(&self, metadata: &Metadata) -> bool {
        metadata.fields().is_empty()
            || self.provider == Provider::UniversalSystem
                && metadata.fields().iter().map(nettrace::Field::name).eq(self.fields.iter().map(Field::name))
    }

    /// Returns the fields of a payload, each decoded when the iterator reaches it. `pointer_size` is 4 or 8.
    ///
    /// ```
    /// use clr_events::{Provider, Schema};
    /// use nettrace::Value;
    ///
    /// let stop = Schema::find(Provider::Runtime, 2, 1).ok_or("unknown")?;
    /// let first = stop.fields(&[7, 0, 0, 0, 2, 0, 0, 0, 0, 0], 8).next();
    /// assert_eq!(first, Some(Ok(("Count", Value::U32(7)))));
    /// # Ok::<(), &str>(())
    /// ```
    #[inline]
    pub fn fields<'a>(&self, payload: &'a [u8], pointer_size: u8) -> Fields<'a> {
        Fields::with_schema(self.fields, payload, pointer_size)
    }
}
