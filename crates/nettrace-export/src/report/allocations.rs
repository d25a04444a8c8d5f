//! Allocated types.

use clr_events::enums::GcAllocationKind;
use clr_events::{ClrEvent, sets};
use nettrace::{Event, Metadata};
use serde::Serialize;

use crate::decode::decode;
use crate::report::timeline::Timeline;
use crate::report::type_table::{TypeTable, csharp_type};
use crate::report::user_caller::UserCallerName;

/// A type with allocated objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TypeRow {
    /// Name of the type.
    #[serde(rename = "type")]
    pub name: String,
    /// The type's name in C#.
    pub csharp: String,
    /// Bytes that are put down to it: for each event all that was allocated since the event before.
    pub bytes: u64,
    /// Events that named it.
    pub samples: u64,
    /// The bytes of large objects, which are included.
    pub large_bytes: u64,
    /// Size of the largest named object; 0 if the recording does not say.
    pub largest_object_bytes: u64,
    /// The user's method that allocated most of it, directly or not, if it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<UserCallerName>,
}

/// The allocations of a recording.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct AllocationsReport {
    /// All bytes.
    pub bytes: u64,
    /// All events.
    pub samples: u64,
    /// Bytes over time.
    pub timeline: Timeline,
    /// Most bytes first.
    pub types: Vec<TypeRow>,
}

impl AllocationsReport {
    /// Returns true if no allocation was sampled.
    pub const fn is_empty(&self) -> bool {
        self.samples == 0
    }
}

/// Gathers allocation ticks, which the runtime sends every 100 KB or so: runtime keyword `GC` (1) at level
/// verbose; or, without them, sampled allocations (.NET 10, keyword `AllocationSampling`).
///
/// ```no_run
/// use nettrace_export::{nettrace::Reader, report::{Allocations, read_kinds}};
///
/// let recording = Reader::new(std::fs::File::open("app.nettrace")?)?;
/// let mut allocations = Allocations::default();
/// read_kinds(recording, Allocations::needs, |event| allocations.add(event))?;
/// for row in allocations.finish().types.iter().take(10) {
///     println!("{} {} bytes", row.csharp, row.bytes);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Allocations {
    types: TypeTable<TypeRow, MAX_TYPES>,
    sampled: TypeTable<TypeRow, MAX_TYPES>,
    ticks: Timeline,
    samples: Timeline,
}

/// The number of distinct types.
const MAX_TYPES: usize = 1 << 17;

impl Allocations {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        sets::ALLOCATION_TICKS.contains(kind)
    }

    /// Adds an event. Looks at [`sets::ALLOCATION_TICKS`].
    pub fn add(&mut self, event: &Event<'_>) {
        if let Some(view) = decode(event, &sets::ALLOCATION_TICKS) {
            self.add_decoded(event, &view);
        }
    }

    /// Adds an event that was decoded already.
    pub fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let (rows, timeline, name, bytes, kind, object) = match view {
            ClrEvent::AllocationTick(tick) => (
                &mut self.types,
                &mut self.ticks,
                tick.type_name,
                tick.allocation_amount64,
                tick.allocation_kind,
                tick.object_size.unwrap_or(0),
            ),
            ClrEvent::AllocationSampled(sampled) => (
                &mut self.sampled,
                &mut self.samples,
                sampled.type_name,
                sampled.estimated_bytes(),
                sampled.allocation_kind,
                sampled.object_size,
            ),
            _ => return,
        };
        timeline.add(event.relative_time(), bytes);
        let row = rows.row(name.to_string(), |name| TypeRow {
            csharp: csharp_type(&name),
            name,
            ..TypeRow::default()
        });
        row.bytes = row.bytes.saturating_add(bytes);
        row.samples += 1;
        if kind == GcAllocationKind::LARGE {
            row.large_bytes = row.large_bytes.saturating_add(bytes);
        }
        row.largest_object_bytes = row.largest_object_bytes.max(object);
    }

    /// Returns the report.
    pub fn finish(self) -> AllocationsReport {
        // Both count the same bytes.
        let (rows, timeline) =
            if self.types.is_empty() { (self.sampled, self.samples) } else { (self.types, self.ticks) };
        let types = rows.heaviest_first(|row| row.bytes);
        AllocationsReport {
            bytes: types.iter().map(|row| row.bytes).fold(0, u64::saturating_add),
            samples: types.iter().map(|row| row.samples).sum(),
            timeline,
            types,
        }
    }
}
