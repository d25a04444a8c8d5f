//! Dynamic events of the garbage collector: event 39, with a name, bytes and the CLR's number as its payload.

use nettrace::Utf16;
use nettrace::raw::ReadResult;
use nettrace::schema::{Field, FieldType as T};

use crate::generated::ids;
use crate::generated::views::GcDynamic;
use crate::provider::Provider;
use crate::reader::Reader;
use crate::schema::{Schema, field as f};

/// The event's id.
pub(crate) const ID: u32 = ids::runtime::GC_DYNAMIC;

/// TraceEvent's name for unknown dynamic events.
pub(crate) const NAME: &str = "GC/DynamicTraceEvent";

/// Maximum length of a name, in UTF-16 code units; longer strings are not names.
const MAX_NAME_LENGTH: usize = 64;

const COMMITTED_USAGE: &str = "CommittedUsage";

/// Bytes of the data of `CommittedUsage`.
const COMMITTED_USAGE_SIZE: u32 = 42;

/// The payload of `CommittedUsage`: the name, the size of the data, the data, and last the CLR's number.
///
/// | offset | type | field |
/// |---|---|---|
/// | 0 | u16 | `Version` |
/// | 2 | i64 | `TotalCommittedInUse` |
/// | 10 | i64 | `TotalCommittedInGlobalDecommit` |
/// | 18 | i64 | `TotalCommittedInFree` |
/// | 26 | i64 | `TotalCommittedInGlobalFree` |
/// | 34 | i64 | `TotalBookkeepingCommitted` |
///
/// # Source
/// `dynamic_event_payload` of dotnet/runtime (`gc.cpp`), `GCDynamicTraceEventParser.cs` of
/// microsoft/perfview.
const COMMITTED_USAGE_FIELDS: &[Field] = &[
    f("Name", T::Hidden(&T::STRING16)),
    f("DataSize", T::Hidden(&T::U32)),
    f("Version", T::U16),
    f("TotalCommittedInUse", T::I64),
    f("TotalCommittedInGlobalDecommit", T::I64),
    f("TotalCommittedInFree", T::I64),
    f("TotalCommittedInGlobalFree", T::I64),
    f("TotalBookkeepingCommitted", T::I64),
    f("ClrInstanceID", T::U16),
];

const fn committed_usage(fields: &'static [Field]) -> Schema {
    Schema {
        provider: Provider::Runtime,
        id: 39,
        version: 0,
        name: "GC/CommittedUsage",
        task: "GarbageCollection",
        opcode_name: "GCDynamicEvent",
        opcode: 41,
        level: 4,
        keywords: 0x3f0_0003,
        fields,
    }
}

static EXACT: Schema = committed_usage(COMMITTED_USAGE_FIELDS);
/// For data that continues after the known fields: the CLR's number is not at its place in the known version.
static LONGER: Schema = committed_usage(COMMITTED_USAGE_FIELDS.split_at(8).0);

/// Returns true if the layout of the event's data is not known.
pub(crate) fn is_dynamic(schema: &Schema) -> bool {
    u32::from(schema.id) == ID && schema.provider == Provider::Runtime && schema.name == NAME
}

/// The schema of an event with a known data layout; `None` also if the payload is shorter than it states.
#[cold]
pub(crate) fn schema(payload: &[u8]) -> Option<&'static Schema> {
    let mut reader = Reader::new(payload, true);
    let name = reader.utf16().ok()?;
    let size = reader.u32().ok()?;
    if !is_committed_usage(name) || size < COMMITTED_USAGE_SIZE {
        return None;
    }
    // The view of the event fails without them.
    reader.bytes(size).ok()?;
    reader.u16().ok()?;
    Some(if size == COMMITTED_USAGE_SIZE { &EXACT } else { &LONGER })
}

fn is_committed_usage(name: Utf16<'_>) -> bool {
    name.chars().map(|c| c.to_ascii_lowercase()).eq(COMMITTED_USAGE.chars().map(|c| c.to_ascii_lowercase()))
}

/// The name in a payload; `None` if it cannot be shown: it is cut, empty, too long or not an identifier.
pub(crate) fn name(payload: &[u8]) -> Option<Utf16<'_>> {
    let name = Reader::new(payload, true).utf16().ok()?;
    let length = name.units().count();
    let is_identifier = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    ((1..=MAX_NAME_LENGTH).contains(&length) && is_identifier).then_some(name)
}

/// The memory that the garbage collector has committed, in bytes: the data of the event `GC/CommittedUsage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommittedUsage {
    /// The version of this record.
    pub version: u16,
    /// Bytes committed for memory in use.
    pub total_committed_in_use: i64,
    /// Bytes committed for memory that waits to be decommitted.
    pub total_committed_in_global_decommit: i64,
    /// Bytes committed for memory that a heap keeps free.
    pub total_committed_in_free: i64,
    /// Bytes committed for memory that is free for all heaps.
    pub total_committed_in_global_free: i64,
    /// Bytes committed for the collector's own tables.
    pub total_bookkeeping_committed: i64,
}

impl GcDynamic<'_> {
    /// Decodes the data of `CommittedUsage`; `None` for another event, or too few bytes.
    pub fn committed_usage(&self) -> Option<CommittedUsage> {
        is_committed_usage(self.name).then(|| CommittedUsage::read(&mut Reader::new(self.data, true)).ok())?
    }
}

impl CommittedUsage {
    fn read(reader: &mut Reader<'_>) -> ReadResult<Self> {
        Ok(Self {
            version: reader.u16()?,
            total_committed_in_use: reader.i64()?,
            total_committed_in_global_decommit: reader.i64()?,
            total_committed_in_free: reader.i64()?,
            total_committed_in_global_free: reader.i64()?,
            total_bookkeeping_committed: reader.i64()?,
        })
    }
}
