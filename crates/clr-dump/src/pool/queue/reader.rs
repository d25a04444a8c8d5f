//! The reading of the pool's queues: their items, counted by what they run.

use hashbrown::{HashMap, HashSet};

use super::{PoolQueues, QueuedWork, WorkQueue};
use crate::dump::Dump;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, Missing, offset};
use crate::pool::work::{Work, Works};
use crate::pool::{ThreadPool, number};

/// Maximum number of work items to read.
const MAX_ITEMS: u64 = 1 << 20;
/// Maximum number of segments of a queue.
const MAX_SEGMENTS: usize = 1 << 16;
/// Maximum number of groups of work.
const MAX_GROUPS: usize = 1 << 16;
/// The offset of the first element of an array.
const ELEMENTS: u64 = 16;

/// The offset of an element in an array.
pub(super) const fn element_offset(index: u64, size: u64) -> u64 {
    index.wrapping_mul(size).wrapping_add(ELEMENTS)
}

/// The offsets of a segment's fields from its address, and those in a slot.
#[derive(Debug, Clone, Copy)]
struct SegmentFields {
    slots: u64,
    head: u64,
    next: u64,
    item: u64,
    sequence: u64,
    slot_size: u64,
}

/// The reading of the queues.
pub(super) struct Reader<'n, 'm> {
    pool: ThreadPool<'n>,
    works: Works<'n, 'm>,
    segments: HashMap<TypeHandle, Option<SegmentFields>>,
    /// The places of groups in the result.
    groups: HashMap<(WorkQueue, TypeHandle, Option<Address>), usize>,
    queues: PoolQueues,
}

impl<'n, 'm> Reader<'n, 'm> {
    pub(super) fn new(pool: ThreadPool<'n>, dump: &'n Dump<'m>) -> Self {
        Self {
            pool,
            works: Works::new(dump),
            segments: HashMap::new(),
            groups: HashMap::new(),
            queues: PoolQueues::default(),
        }
    }

    /// Reads a `ConcurrentQueue`: a list of segments.
    pub(super) fn concurrent_queue(&mut self, of: Address, queue: WorkQueue) {
        let mut segment = self.pool.dump.heap().reference_field(of, "_head");
        let mut seen = HashSet::new();
        while let Some(of) = segment {
            if seen.len() >= MAX_SEGMENTS || !seen.insert(of) {
                self.queues.is_incomplete = true;
                return;
            }
            let Ok(next) = self.segment(of, queue) else {
                self.queues.is_incomplete = true;
                return;
            };
            segment = next;
        }
    }

    /// Reads the items of a segment, and returns the next segment.
    fn segment(&mut self, of: Address, queue: WorkQueue) -> MemoryResult<Option<Address>> {
        let memory = self.pool.memory();
        let type_handle = memory.object_type(of)?;
        let known = *self.segments.entry(type_handle).or_insert_with(|| segment_fields(self.pool, of));
        let missing = Missing { address: of.get() };
        let fields = known.ok_or(missing)?;
        let slots = memory.pointer(of.at(fields.slots))?;
        let (head, length) = (memory.u32(of.at(fields.head))?, memory.u32(slots.at(8))?);
        if !length.is_power_of_two() {
            return Err(missing);
        }
        for index in 0..length {
            let position = head.wrapping_add(index);
            let slot = u64::from(position & length.wrapping_sub(1));
            let at = slots.at(element_offset(slot, fields.slot_size));
            // A slot is full if its number is the next after its position.
            if memory.u32(offset(at, fields.sequence))? != position.wrapping_add(1) {
                break;
            }
            let item = memory.pointer(offset(at, fields.item))?;
            if !self.add(item, queue) {
                return Ok(None);
            }
        }
        Ok(Some(memory.pointer(of.at(fields.next))?).filter(|next| !next.is_null()))
    }

    /// Reads the queue of a worker: an array with two ends.
    pub(super) fn local_queue(&mut self, of: Address, queue: WorkQueue) {
        if self.read_local_queue(of, queue).is_none() {
            self.queues.is_incomplete = true;
        }
    }

    fn read_local_queue(&mut self, of: Address, queue: WorkQueue) -> Option<()> {
        let memory = self.pool.memory();
        let index = |name: &str| number(&self.pool.dump.heap().field_value(of, name)?);
        let (first, end) = (index("m_headIndex")?, index("m_tailIndex")?);
        let array = self.pool.dump.heap().reference_field(of, "m_array")?;
        let length = i64::from(memory.u32(array.at(8)).ok()?);
        // Indexes wrap around: their lowest bits are places.
        let mask = length.checked_sub(1).filter(|mask| length & mask == 0)?;
        for position in first..end.min(first.saturating_add(length)) {
            let place = u64::try_from(position & mask).ok()?;
            let item = memory.pointer(array.at(element_offset(place, 8))).ok()?;
            if !self.add(item, queue) {
                break;
            }
        }
        Some(())
    }

    /// Counts an item; false if there are too many.
    fn add(&mut self, item: Address, queue: WorkQueue) -> bool {
        // A worker has taken it meanwhile.
        if item.is_null() {
            return true;
        }
        if self.queues.count >= MAX_ITEMS {
            self.queues.is_incomplete = true;
            return false;
        }
        self.queues.count = self.queues.count.saturating_add(1);
        let Ok(type_handle) = self.pool.memory().object_type(item) else {
            self.queues.is_incomplete = true;
            return true;
        };
        let work = self.works.of(item, type_handle);
        let called = match work {
            Work::Method { state_machine } => Some(Address::new(state_machine.get())),
            Work::Delegate(delegate) => self.pool.dump.heap().delegate_entry(delegate),
            Work::Object => None,
        };
        let key = (queue, type_handle, called);
        if let Some(group) = self.groups.get(&key).and_then(|index| self.queues.work.get_mut(*index)) {
            group.count = group.count.saturating_add(1);
        } else if self.queues.work.len() < MAX_GROUPS {
            self.groups.insert(key, self.queues.work.len());
            self.queues.work.push(QueuedWork { queue, type_handle, work, count: 1, first: item });
        } else {
            self.queues.is_incomplete = true;
        }
        true
    }

    pub(super) fn finish(self) -> PoolQueues {
        let mut queues = self.queues;
        queues.work.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.queue.cmp(&b.queue)));
        queues
    }
}

/// The places of a segment's data, by the fields of its type and of the type of its slots.
fn segment_fields(pool: ThreadPool<'_>, of: Address) -> Option<SegmentFields> {
    let (memory, types) = (pool.memory(), pool.dump.types());
    let fields = types.fields(pool.dump.heap().type_of(of)?);
    let field = |name: &str| fields.iter().find(|field| field.name == name);
    let place = |name: &str| field(name).map(|field| offset(8, field.offset.into()));
    let head_and_tail = types.fields(field("_headAndTail")?.value_type?);
    let head = head_and_tail.iter().find(|field| field.name == "Head")?;
    let slots = place("_slots")?;
    let array = memory.object_type(memory.pointer(of.at(slots)).ok()?).ok()?;
    let slot_size = u64::from(memory.u32(array.get()).ok()? & 0xffff);
    let slot = types.fields(memory.type_handle(array.at(48)).ok()?);
    let in_slot =
        |name: &str| slot.iter().find(|field| field.name == name).map(|field| u64::from(field.offset));
    Some(SegmentFields {
        slots,
        head: place("_headAndTail")?.wrapping_add(head.offset.into()),
        next: place("_nextSegment")?,
        item: in_slot("Item")?,
        sequence: in_slot("SequenceNumber")?,
        slot_size,
    })
}
