//! Objects with finalizers: those that are registered, and those that wait for their finalizers to be run.
//!
//! # Source
//! dotnet/runtime `src/coreclr/gc/gcpriv.h` (`CFinalize`), `gc/gcinterface.dac.h` (`dac_finalize_queue`).

use std::ops::Range;

use hashbrown::HashMap;

use crate::heap::MAX_TYPES;
use crate::heap::generations::HeapRegions;
use crate::heap::regions::HeapLayout;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{Memory, MemoryResult, PAGE, offset};

/// Maximum number of objects of a part of a queue.
const MAX_OBJECTS: u64 = 1 << 24;
/// Maximum number of entries that are looked for in vain.
const MAX_MISSING: u64 = 1 << 16;
/// The number of parts of a queue with objects that wait: critical finalizers, and others.
const READY_PARTS: u64 = 2;

/// The objects of a type with finalizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FinalizableType {
    /// The type.
    pub type_handle: TypeHandle,
    /// The number of objects that are in use, or that no collection has found unused yet.
    pub registered: u64,
    /// The number of unused objects that wait for their finalizers to be run, which keeps them alive.
    pub ready: u64,
}

/// The objects of a heap with finalizers that have not been run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FinalizerQueue {
    /// The number of registered objects of each generation, by its number.
    pub registered: Vec<u64>,
    /// The number of objects that wait for their finalizers to be run.
    pub ready: u64,
    /// The types of the objects, those with the most objects that wait first, then those with the most
    /// objects.
    pub types: Vec<FinalizableType>,
    /// The number of objects with types that the memory lacks.
    pub unread: u64,
    /// True if the memory lacks the registered objects of a heap.
    pub is_incomplete: bool,
}

impl FinalizerQueue {
    /// Returns the number of registered objects of all generations.
    pub fn registered_count(&self) -> u64 {
        self.registered.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl HeapRegions<'_> {
    /// Returns the objects that wait for their finalizers to be run, which keeps them alive.
    ///
    /// # Errors
    /// If the memory lacks the queue.
    pub fn finalizable(&self) -> MemoryResult<Vec<Address>> {
        let (memory, layout) = (self.dump.memory(), &self.layout);
        let mut objects = Vec::new();
        for queue in &layout.finalize_queues {
            let ready = ready(memory, layout, *queue)?;
            for index in 0..entries(&ready) {
                let object = memory.pointer(offset(ready.start, index.wrapping_mul(8)))?;
                if !object.is_null() {
                    objects.push(object);
                }
            }
        }
        Ok(objects)
    }

    /// Returns the number of objects that wait for their finalizers to be run.
    ///
    /// # Errors
    /// If the memory lacks the queue.
    pub fn finalizable_count(&self) -> MemoryResult<u64> {
        let (memory, layout) = (self.dump.memory(), &self.layout);
        let mut count = 0_u64;
        for queue in &layout.finalize_queues {
            count = count.saturating_add(entries(&ready(memory, layout, *queue)?));
        }
        Ok(count)
    }

    /// Counts the objects with finalizers that have not been run, by type.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let queue = dump.heap().regions()?.finalizer_queue()?;
    /// println!("{} objects are registered, and {} wait", queue.registered_count(), queue.ready);
    /// for of in queue.types.iter().filter(|of| of.ready > 0) {
    ///     println!("{:?}: {} objects wait", dump.types().name(of.type_handle), of.ready);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the queue.
    pub fn finalizer_queue(&self) -> MemoryResult<FinalizerQueue> {
        let (memory, layout) = (self.dump.memory(), &self.layout);
        let generations = usize::try_from(layout.generations).unwrap_or_default();
        let mut counter = Counter {
            memory,
            types: HashMap::new(),
            missing_left: MAX_MISSING,
            queue: FinalizerQueue { registered: vec![0; generations], ..FinalizerQueue::default() },
        };
        for queue in &layout.finalize_queues {
            match registered(memory, layout, *queue) {
                Some(parts) => {
                    // The parts begin with the generation of the highest number.
                    for (part, count) in parts.iter().rev().zip(&mut counter.queue.registered) {
                        *count = count.saturating_add(entries(part));
                    }
                    for part in &parts {
                        counter.count(part, |of| &mut of.registered);
                    }
                }
                None => counter.queue.is_incomplete = true,
            }
            let ready = ready(memory, layout, *queue)?;
            counter.queue.ready = counter.queue.ready.saturating_add(entries(&ready));
            counter.count(&ready, |of| &mut of.ready);
        }
        let Counter { types, mut queue, .. } = counter;
        queue.types = types.into_values().collect();
        queue.types.sort_unstable_by_key(|of| {
            let descending = std::cmp::Reverse((of.ready, of.registered));
            (descending, of.type_handle)
        });
        Ok(queue)
    }
}

/// The objects of queues by type.
struct Counter<'m> {
    memory: &'m dyn Memory,
    types: HashMap<TypeHandle, FinalizableType>,
    missing_left: u64,
    queue: FinalizerQueue,
}

impl Counter<'_> {
    /// Counts the objects of a part, by pages.
    fn count(&mut self, part: &Range<u64>, field: impl Fn(&mut FinalizableType) -> &mut u64) {
        let mut at = part.start;
        let end = offset(part.start, entries(part).wrapping_mul(8));
        while at < end {
            let next = at.saturating_add(1).next_multiple_of(PAGE).min(end);
            let size = usize::try_from(next.saturating_sub(at)).unwrap_or_default();
            if let Ok(bytes) = self.memory.bytes(at, size) {
                for word in bytes.as_chunks().0 {
                    self.add(Address::new(u64::from_le_bytes(*word)), &field);
                }
            } else {
                // Small core dumps have parts of pages.
                for word in (at..next).step_by(8) {
                    match self.memory.pointer(word) {
                        Ok(object) => self.add(object, &field),
                        Err(_) => self.add_unread(),
                    }
                }
            }
            if self.missing_left == 0 {
                let left = end.saturating_sub(next) / 8;
                self.queue.unread = self.queue.unread.saturating_add(left);
                break;
            }
            at = next;
        }
    }

    fn add(&mut self, object: Address, field: impl Fn(&mut FinalizableType) -> &mut u64) {
        if object.is_null() {
            return;
        }
        let Ok(type_handle) = self.memory.object_type(object) else { return self.add_unread() };
        if self.types.len() >= MAX_TYPES && !self.types.contains_key(&type_handle) {
            return self.add_unread();
        }
        let new = || FinalizableType { type_handle, registered: 0, ready: 0 };
        let count = field(self.types.entry(type_handle).or_insert_with(new));
        *count = count.saturating_add(1);
    }

    const fn add_unread(&mut self) {
        self.missing_left = self.missing_left.saturating_sub(1);
        self.queue.unread = self.queue.unread.saturating_add(1);
    }
}

/// The number of entries of a part of a queue.
const fn entries(part: &Range<u64>) -> u64 {
    let entries = part.end.saturating_sub(part.start) / 8;
    if entries < MAX_OBJECTS { entries } else { MAX_OBJECTS }
}

/// The part of a queue with objects that wait, which follows the parts of all generations.
fn ready(memory: &dyn Memory, layout: &HeapLayout, queue: u64) -> MemoryResult<Range<u64>> {
    let [start, _, end] = memory.words(end_of(queue, layout.generations.saturating_sub(1)))?;
    Ok(start..end)
}

/// The parts of a queue with registered objects; `None` if the memory lacks them. The queue has the ends of
/// all parts, and then the address of the first part.
fn registered(memory: &dyn Memory, layout: &HeapLayout, queue: u64) -> Option<Vec<Range<u64>>> {
    let word = |index: u64| memory.u64(end_of(queue, index)).ok();
    let mut start = word(layout.generations.wrapping_add(READY_PARTS))?;
    let mut parts = Vec::new();
    for part in 0..layout.generations {
        let end = word(part)?;
        // A copy of a core dump has zeros for what it lacks.
        if start == 0 || end < start || end.saturating_sub(start) / 8 > MAX_OBJECTS {
            return None;
        }
        parts.push(start..end);
        start = end;
    }
    Some(parts)
}

/// The address of the end of a part in a queue.
fn end_of(queue: u64, part: u64) -> u64 {
    offset(queue, part.wrapping_mul(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    #[test]
    fn parts_of_a_queue_are_bounded() {
        let layout = HeapLayout { generations: 4, ..HeapLayout::default() };
        let mut memory = TestMemory::default();
        // The ends of the parts of four generations and of two parts that wait, and the first address.
        memory.put_words(0x1000, &[0x2000, 0x2010, 0x2010, 0x2018, 0x2020, 0x2030, 0x2000]);
        let parts = registered(&memory, &layout, 0x1000).unwrap();
        assert_eq!(parts.iter().map(entries).collect::<Vec<_>>(), [0, 2, 0, 1]);
        assert_eq!(ready(&memory, &layout, 0x1000), Ok(0x2018..0x2030));
        // Zeros, a first address past the end, and an end that no memory reaches.
        memory.put_words(0x3000, &[0, 0, 0, 0x2018, 0x2020, 0x2030, 0]);
        memory.put_words(0x4000, &[0x2000, 0x2000, 0x2000, 0x2000, 0x2000, 0x2000, 0x9000]);
        memory.put_words(0x5000, &[0x2000, u64::MAX, u64::MAX, u64::MAX, 0, u64::MAX, 0x2000]);
        for queue in [0x3000, 0x4000, 0x5000, 0x9000] {
            assert_eq!(registered(&memory, &layout, queue), None, "{queue:#x}");
        }
        assert_eq!(entries(&ready(&memory, &layout, 0x5000).unwrap()), 0);
        assert_eq!(entries(&(8..u64::MAX)), MAX_OBJECTS);
    }

    #[test]
    fn missing_entries_are_counted_and_bounded() {
        let mut memory = TestMemory::default();
        memory.put_words(0x5000, &[0x7000]);
        memory.put_words(0x7000, &[0x8001]);
        let counter = |missing_left| Counter {
            memory: &memory,
            types: HashMap::new(),
            missing_left,
            queue: FinalizerQueue::default(),
        };
        let mut some = counter(MAX_MISSING);
        some.count(&(0x5000..0x5018), |of| &mut of.registered);
        let of = FinalizableType { type_handle: TypeHandle::new(0x8000), registered: 1, ready: 0 };
        assert_eq!((some.types.into_values().collect::<Vec<_>>(), some.queue.unread), (vec![of], 2));
        // Nothing is looked for after the limit.
        let mut few = counter(1);
        few.count(&(0x10_0000..u64::MAX), |of| &mut of.ready);
        assert_eq!(few.queue.unread, MAX_OBJECTS);
    }
}
