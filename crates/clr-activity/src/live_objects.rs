//! Allocated objects, followed through garbage collections.

use std::collections::BTreeMap;
use std::ops::Range;

use clr_events::ClrEvent;
use clr_events::enums::{GcAllocationKind, GcType};

/// The oldest generation of small objects. Large and pinned objects have higher numbers and are collected
/// with it.
const MAX_GENERATION: u8 = 2;

/// Objects of a process that are followed from their allocation through its garbage collections.
///
/// With the keyword `GCHeapSurvivalAndMovement` (0x400000) a collection reports the address ranges of the
/// generations as it begins, and then the ranges of the objects that it found alive: those that stay
/// (`BulkSurvivingObjectRanges`), and those that move (`BulkMovedObjectRanges`; in a compacting collection
/// also ranges that move by nothing). It reports only generations that it collects. So an object of such a
/// generation in none of these ranges is dead, and objects of other generations live on.
///
/// - A blocking collection collects all small objects allocated since the one before it, and the generations
///   up to its own. Large and pinned objects are collected with generation 2.
/// - A collection in the background collects all objects that there are as it begins, and reports what it
///   left at its end. Objects that a blocking collection reaches in between are that one's.
/// - Memory of dead objects is reused: where an object is allocated or moves to, no other one is left.
///
/// # Memory
/// Bounded by the limit of objects, about 100 bytes for each and its data.
///
/// # Source
/// `gcee.cpp`, `background.cpp`, `relocate_compact.cpp` and `diagnostics.cpp` in `src/coreclr/gc` of
/// dotnet/runtime; `eventtrace_gcheap.cpp` in `src/coreclr/vm`.
#[derive(Debug)]
pub struct LiveObjects<T> {
    limit: usize,
    /// Small objects allocated since the last blocking collection, by address.
    young: BTreeMap<u64, T>,
    /// Survivors of collections, and large objects, by address.
    old: BTreeMap<u64, Object<T>>,
    blocking: Option<Collection<T>>,
    background: Option<Collection<T>>,
    counts: LiveObjectCounts,
    /// True if a collection has reported survivors: NativeAOT reports generations alone.
    has_reports: bool,
    /// The numbers of the first and the last collection that began, and how many did.
    begun: Option<(u32, u32, u64)>,
    /// Reused between ranges.
    addresses: Vec<u64>,
}

/// Counts of collections, and of objects that are not followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveObjectCounts {
    /// Collections that objects were followed through.
    pub collections: u64,
    /// The collections among them that collected all generations.
    pub full_collections: u64,
    /// Collections without events of what survived them, or without any event. An object that moved in one of
    /// them is mistaken for a dead one later, or for another object.
    pub missing_collections: u64,
    /// Objects that died.
    pub dead: u64,
    /// Allocated objects that are not followed because the limit was reached.
    pub left_out: u64,
}

/// A followed object.
#[derive(Debug)]
struct Object<T> {
    /// True if a collection of its generation has found it alive.
    has_survived: bool,
    about: T,
}

/// A collection that has begun.
#[derive(Debug)]
struct Collection<T> {
    count: u32,
    /// The oldest generation that is collected.
    generation: u8,
    /// True if all generations are collected: all objects are condemned, whatever is known of generations.
    is_full: bool,
    /// True until an event follows the ranges of the generations as they were at its beginning: at its end
    /// there are others.
    takes_generations: bool,
    has_generations: bool,
    has_survivors: bool,
    /// Objects that are dead unless the collection reports them, by address.
    condemned: BTreeMap<u64, Object<T>>,
}

impl<T> LiveObjects<T> {
    /// Creates an empty collection of objects that follows at most `limit`.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            young: BTreeMap::new(),
            old: BTreeMap::new(),
            blocking: None,
            background: None,
            counts: LiveObjectCounts {
                collections: 0,
                full_collections: 0,
                missing_collections: 0,
                dead: 0,
                left_out: 0,
            },
            has_reports: false,
            begun: None,
            addresses: Vec::new(),
        }
    }

    /// Returns the number of followed objects.
    pub fn len(&self) -> usize {
        let of = |collection: &Option<Collection<T>>| collection.as_ref().map_or(0, |it| it.condemned.len());
        let parts = [self.young.len(), self.old.len(), of(&self.blocking), of(&self.background)];
        parts.into_iter().fold(0, usize::saturating_add)
    }

    /// Returns true if no object is followed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Changes the limit for objects that are allocated from now on.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Stops following all objects: what is known of collections is kept.
    pub fn forget(&mut self) {
        self.young.clear();
        self.old.clear();
        for collection in [&mut self.blocking, &mut self.background].into_iter().flatten() {
            collection.condemned.clear();
        }
    }

    /// Follows an object that is allocated now. Objects at its address, or within its `size`, must have died.
    pub fn allocate(&mut self, address: u64, size: Option<u64>, kind: GcAllocationKind, about: T) {
        let range = range(address, size.unwrap_or(0).max(1));
        let Self { young, old, background, addresses, .. } = self;
        take(young, range.clone(), addresses, |_, _| {});
        take(old, range.clone(), addresses, |_, _| {});
        if let Some(collection) = background {
            take(&mut collection.condemned, range, addresses, |_, _| {});
        }
        if self.len() >= self.limit {
            self.counts.left_out = self.counts.left_out.saturating_add(1);
        } else if kind == GcAllocationKind::SMALL {
            self.young.insert(address, about);
        } else {
            self.old.insert(address, Object { has_survived: false, about });
        }
    }

    /// Adds an event of a collection: its beginning or end, a generation's range, or ranges of objects that
    /// it found alive. Returns false for other events.
    pub fn add(&mut self, view: &ClrEvent<'_>) -> bool {
        match view {
            ClrEvent::GcStart(start) => self.begin(start.count, start.depth, start.kind),
            ClrEvent::GcStop(stop) => self.end(stop.count),
            ClrEvent::GcGenerationRange(of) => {
                self.add_generation(of.generation, range(of.range_start, of.range_used_length));
            }
            ClrEvent::GcBulkSurvivingObjectRanges(survivors) => {
                let rows = survivors.values.map(|row| (row.range_base, row.range_base, row.range_length));
                self.add_survivors(rows);
            }
            ClrEvent::GcBulkMovedObjectRanges(moved) => {
                let rows = moved.values.map(|row| (row.old_range_base, row.new_range_base, row.range_length));
                self.add_survivors(rows);
            }
            _ => return false,
        }
        true
    }

    fn begin(&mut self, count: u32, depth: u32, kind: GcType) {
        self.begun = Some(match self.begun {
            None => (count, count, 1),
            Some((first, last, begun)) => (first.min(count), last.max(count), begun.saturating_add(1)),
        });
        let is_background = kind == GcType::BACKGROUND_GC;
        let generation = u8::try_from(depth).unwrap_or(u8::MAX);
        let is_full = is_background || generation >= MAX_GENERATION;
        // Collections of one kind do not overlap, and one in the background does not outlast one of
        // everything that is blocking: the end of the previous one is missing.
        let previous = if is_background { None } else { self.blocking.take() };
        let background = if is_full { self.background.take() } else { None };
        for collection in [previous, background].into_iter().flatten() {
            self.keep_all(collection);
        }
        let mut condemned = not_survived(std::mem::take(&mut self.young));
        if is_full {
            condemned.append(&mut self.old);
        }
        let collection = Collection {
            count,
            generation,
            is_full,
            takes_generations: true,
            has_generations: false,
            has_survivors: false,
            condemned,
        };
        if is_background {
            self.background = Some(collection);
        } else {
            self.blocking = Some(collection);
        }
    }

    fn add_generation(&mut self, generation: u8, range: Range<u64>) {
        let Self { old, blocking, background, addresses, .. } = self;
        let (collection, others) = match (blocking, background) {
            (Some(blocking), background) => (blocking, background.as_mut()),
            (None, Some(background)) => (background, None),
            (None, None) => return,
        };
        if !collection.takes_generations {
            return;
        }
        collection.has_generations = true;
        if collection.is_full || generation > collection.generation {
            return;
        }
        let mut condemn = |address, object| {
            collection.condemned.insert(address, object);
        };
        take(old, range.clone(), addresses, &mut condemn);
        if let Some(background) = others {
            take(&mut background.condemned, range, addresses, &mut condemn);
        }
    }

    /// Adds the ranges of objects that the current collection found alive: the old address, the new one, and
    /// the length.
    fn add_survivors(&mut self, ranges: impl Iterator<Item = (u64, u64, u64)>) {
        let Self { old, blocking, background, addresses, .. } = self;
        let (collection, mut others) = match (blocking, background) {
            (Some(blocking), background) => (blocking, background.as_mut()),
            (None, Some(background)) => (background, None),
            (None, None) => return,
        };
        collection.takes_generations = false;
        collection.has_survivors = true;
        for (from, to, length) in ranges {
            if from != to {
                take(old, range(to, length), addresses, |_, _| {});
                if let Some(background) = &mut others {
                    take(&mut background.condemned, range(to, length), addresses, |_, _| {});
                }
            }
            take(&mut collection.condemned, range(from, length), addresses, |address, object| {
                let address = address.wrapping_sub(from).wrapping_add(to);
                old.insert(address, Object { has_survived: true, ..object });
            });
        }
    }

    fn end(&mut self, count: u32) {
        let ends = |collection: &mut Option<Collection<T>>| collection.take_if(|it| it.count == count);
        let Some(collection) = ends(&mut self.blocking).or_else(|| ends(&mut self.background)) else {
            return;
        };
        self.has_reports |= collection.has_survivors;
        // Nothing may survive a collection of the youngest generations.
        let may_be_none = self.has_reports && !collection.is_full;
        if collection.has_generations && (collection.has_survivors || may_be_none) {
            self.keep_none(&collection);
        } else {
            self.keep_all(collection);
        }
    }

    /// Ends a collection that has reported everything that lives.
    fn keep_none(&mut self, collection: &Collection<T>) {
        let counts = &mut self.counts;
        counts.collections = counts.collections.saturating_add(1);
        counts.full_collections = counts.full_collections.saturating_add(collection.is_full.into());
        counts.dead = counts.dead.saturating_add(collection.condemned.len() as u64);
    }

    /// Ends a collection that has not reported what lives, or has not ended.
    fn keep_all(&mut self, mut collection: Collection<T>) {
        self.counts.missing_collections = self.counts.missing_collections.saturating_add(1);
        self.old.append(&mut collection.condemned);
    }

    /// Returns the objects that were alive in the last collection of their generation.
    pub fn survivors(&self) -> impl Iterator<Item = &T> {
        self.old_objects().filter(|object| object.has_survived).map(|object| &object.about)
    }

    /// Returns the objects that no collection of their generation has reached yet: whether they are in use is
    /// unknown.
    pub fn not_collected(&self) -> impl Iterator<Item = &T> {
        let old = self.old_objects().filter(|object| !object.has_survived).map(|object| &object.about);
        self.young.values().chain(old)
    }

    fn old_objects(&self) -> impl Iterator<Item = &Object<T>> {
        let begun = self.blocking.iter().chain(&self.background);
        self.old.values().chain(begun.flat_map(|collection| collection.condemned.values()))
    }

    /// Returns the counts of collections so far.
    pub fn counts(&self) -> LiveObjectCounts {
        let numbers = |(first, last, begun): (u32, u32, u64)| {
            u64::from(last.saturating_sub(first)).saturating_add(1).saturating_sub(begun)
        };
        let without_start = self.begun.map_or(0, numbers);
        let missing_collections = self.counts.missing_collections.saturating_add(without_start);
        LiveObjectCounts { missing_collections, ..self.counts }
    }
}

/// Returns objects that no collection has reached.
fn not_survived<T>(objects: BTreeMap<u64, T>) -> BTreeMap<u64, Object<T>> {
    let objects = objects.into_iter();
    objects.map(|(address, about)| (address, Object { has_survived: false, about })).collect()
}

/// Returns the range of addresses with a length.
const fn range(start: u64, length: u64) -> Range<u64> {
    start..start.saturating_add(length)
}

/// Removes the objects of a range of addresses. `addresses` is scratch space.
fn take<T>(
    objects: &mut BTreeMap<u64, T>,
    range: Range<u64>,
    addresses: &mut Vec<u64>,
    mut each: impl FnMut(u64, T),
) {
    addresses.clear();
    addresses.extend(objects.range(range).map(|(address, _)| *address));
    for address in addresses.drain(..) {
        if let Some(object) = objects.remove(&address) {
            each(address, object);
        }
    }
}

#[cfg(test)]
mod tests;
