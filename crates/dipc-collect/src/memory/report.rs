//! A reading as JSON.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use clr_dump::{GenerationUse, NativeArena, NativeHeap, OwnedMemory, OwnedPart};
use linux_proc_stat::MappingSizes;
use serde::Serialize;

use super::answer::first_line;
use super::names::owner_name;
use super::reading::{MemoryGroup, MemoryReading};

/// Maximum number of parts of an owner.
const MAX_PARTS: usize = 1000;

/// A reading as the JSON of `dipc memory`, which [`MemorySnapshot::parse`](super::MemorySnapshot::parse)
/// reads.
#[derive(Debug, Serialize)]
pub struct MemoryReport<'r> {
    time_unix_ms: Option<u64>,
    /// Null of a core dump.
    rss_bytes: Option<u64>,
    /// Null of a process.
    dump_bytes: Option<u64>,
    unattributed_bytes: u64,
    answer: String,
    process_id: Option<u32>,
    runtime: Option<&'r str>,
    pss_bytes: Option<u64>,
    private_dirty_bytes: Option<u64>,
    private_clean_bytes: Option<u64>,
    swap_bytes: Option<u64>,
    lazily_freed_bytes: Option<u64>,
    peak_rss_bytes: Option<u64>,
    virtual_bytes: Option<u64>,
    page_table_bytes: Option<u64>,
    threads: Option<u64>,
    owners: Vec<OwnerRow<'r>>,
    native_heap: Option<Native>,
    control_group: Option<ControlGroup>,
    gc_limit: Option<GcLimit>,
    /// Variables of the environment, and properties of `runtimeconfig.json`.
    settings: BTreeMap<&'r str, &'r str>,
    missing: &'r [String],
}

#[derive(Debug, Serialize)]
struct OwnerRow<'r> {
    owner: &'static str,
    /// For people.
    name: String,
    /// Resident, or in the dump.
    bytes: u64,
    pss_bytes: Option<u64>,
    private_dirty_bytes: Option<u64>,
    swap_bytes: Option<u64>,
    /// Of addresses.
    mapped_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<Generation>,
    part_count: u64,
    parts: Vec<Part<'r>>,
}

#[derive(Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "the fields of the JSON object")]
struct Generation {
    used_bytes: u64,
    free_bytes: Option<u64>,
    unused_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Part<'r> {
    name: Option<&'r str>,
    tid: Option<u32>,
    address: String,
    bytes: u64,
    private_dirty_bytes: Option<u64>,
    mapped_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Native {
    arenas: usize,
    used_bytes: u64,
    /// Free and resident.
    free_bytes: u64,
    top_bytes: u64,
    returned_bytes: u64,
    unread_bytes: u64,
    own_mapping_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ControlGroup {
    limit_bytes: Option<u64>,
    /// Of the group that has the limit.
    limited_bytes: Option<u64>,
    usage_bytes: Option<u64>,
    working_set_bytes: u64,
    oom_kills: Option<u64>,
    limit_hits: Option<u64>,
    high_hits: Option<u64>,
    stalled_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
struct GcLimit {
    bytes: u64,
    source: &'static str,
}

impl<'r> MemoryReport<'r> {
    /// The report of a reading.
    pub fn new(reading: &'r MemoryReading) -> Self {
        let account = &reading.account;
        let of_process = |bytes: u64| (!reading.is_dump()).then_some(bytes);
        let total = &account.total;
        Self {
            time_unix_ms: unix_ms(reading.time),
            rss_bytes: of_process(total.resident),
            dump_bytes: reading.is_dump().then_some(total.resident),
            unattributed_bytes: account.unattributed(),
            answer: first_line(reading),
            process_id: reading.pid,
            runtime: reading.runtime.as_deref(),
            pss_bytes: of_process(total.proportional),
            private_dirty_bytes: of_process(total.private_dirty),
            private_clean_bytes: of_process(total.private_clean),
            swap_bytes: of_process(total.swap),
            lazily_freed_bytes: of_process(total.lazily_freed),
            peak_rss_bytes: reading.process.peak_resident,
            virtual_bytes: reading.process.virtual_size,
            page_table_bytes: reading.process.page_tables,
            threads: reading.process.threads,
            owners: account.owners.iter().map(|owned| OwnerRow::new(owned, reading)).collect(),
            native_heap: account.native_heap.as_ref().ok().map(Native::new),
            control_group: reading.group.as_ref().map(ControlGroup::new),
            gc_limit: reading.heap_limit().map(|limit| GcLimit { bytes: limit.bytes, source: limit.source }),
            settings: reading.settings.iter().map(|(name, value)| (&**name, &**value)).collect(),
            missing: &reading.missing,
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn unix_ms(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

impl<'r> OwnerRow<'r> {
    fn new(owned: &'r OwnedMemory, reading: &MemoryReading) -> Self {
        let MappingSizes { resident, proportional, private_dirty, swap, .. } = owned.sizes;
        let of_process = |bytes: u64| (!reading.is_dump()).then_some(bytes);
        let generation = |of: &GenerationUse| Generation {
            used_bytes: of.used,
            free_bytes: of.free,
            unused_bytes: of.unused,
        };
        let of = reading.account.generations.iter().find(|of| of.owner == owned.owner);
        Self {
            owner: owned.owner.id(),
            name: owner_name(owned.owner, reading),
            bytes: resident,
            pss_bytes: of_process(proportional),
            private_dirty_bytes: of_process(private_dirty),
            swap_bytes: of_process(swap),
            mapped_bytes: owned.mapped,
            generation: of.map(generation),
            part_count: owned.part_count,
            parts: owned.parts.iter().take(MAX_PARTS).map(|part| Part::new(part, reading)).collect(),
        }
    }
}

impl<'r> Part<'r> {
    fn new(part: &'r OwnedPart, reading: &MemoryReading) -> Self {
        Self {
            name: Some(&*part.name).filter(|name| !name.is_empty()),
            tid: part.tid,
            address: part.address.to_string(),
            bytes: part.sizes.resident,
            private_dirty_bytes: (!reading.is_dump()).then_some(part.sizes.private_dirty),
            mapped_bytes: part.mapped,
        }
    }
}

impl Native {
    fn new(heap: &NativeHeap) -> Self {
        Self {
            arenas: heap.arenas.len(),
            used_bytes: heap.sum(NativeArena::used),
            free_bytes: heap.held(),
            top_bytes: heap.sum(|arena| arena.top),
            returned_bytes: heap.sum(|arena| arena.returned),
            unread_bytes: heap.sum(|arena| arena.unread),
            own_mapping_bytes: heap.mapped,
        }
    }
}

impl ControlGroup {
    fn new(group: &MemoryGroup) -> Self {
        let events = group.events.unwrap_or_default();
        Self {
            limit_bytes: group.limited.map(|(_, limit)| limit),
            limited_bytes: group.limited.map(|(used, _)| used),
            usage_bytes: group.usage,
            working_set_bytes: group.working_set,
            oom_kills: events.oom_kills,
            limit_hits: events.max,
            high_hits: events.high,
            stalled_ns: group.pressure.map(|pressure| pressure.some_ns),
        }
    }
}
