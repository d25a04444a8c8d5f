//! The objects of the garbage collector's heap, with their references.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/object.h`, `vm/methodtable.h`.

mod array;
pub(crate) mod contents;
pub(crate) mod delegate;
pub(crate) mod finalizers;
pub(crate) mod gc_root;
pub(crate) mod generations;
#[cfg(feature = "heap-graph")]
pub(crate) mod graph;
pub(crate) mod handle;
pub(crate) mod known_object;
pub(crate) mod object;
pub(crate) mod pointers;
pub(crate) mod regions;
pub(crate) mod selection;
pub(crate) mod semaphore;
#[cfg(feature = "heap-graph")]
pub(crate) mod stack_words;
pub(crate) mod strings;
pub(crate) mod utf16;
pub(crate) mod window;

use hashbrown::HashMap;

use crate::dump::{Dump, view};
use crate::heap::pointers::Pointers;
use crate::heap::regions::HeapLayout;
use crate::heap::window::HeapWindow;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{Memory, MemoryResult};
use crate::threads::lock::thin_lock;
use crate::types::names::HAS_COMPONENT_SIZE;

/// Maximum number of types.
const MAX_TYPES: usize = 1 << 20;
/// Maximum number of gaps and held thin locks to list.
const MAX_LISTED: usize = 4096;
/// The number of types that are found without a hash table, and the last place of them.
const RECENT: usize = 256;
const LAST_RECENT: u64 = 0xff;
/// Minimum number of objects in a run of objects that a collection moves.
const MIN_RUN_LENGTH: usize = 4;
/// Minimum value of a word that can be an address.
const MIN_ADDRESS: u64 = 1 << 16;
/// Minimum size of an object, in bytes.
const MIN_OBJECT_SIZE: u64 = 24;

/// The contents of a heap by type.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// The types of all objects, those with the most bytes first.
    pub types: Vec<TypeStatistics>,
    /// Objects with a thin lock that is held (no sync block): the object, and the managed id of the holder.
    pub thin_locks: Vec<(Address, u32)>,
    /// The walk through the heap, with its gaps.
    pub walk: HeapWalk,
}

/// Objects, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// The number of objects.
    pub objects: u64,
    /// Their bytes, without padding between objects.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.objects = self.objects.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The objects of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeStatistics {
    /// The address of its MethodTable.
    pub type_handle: TypeHandle,
    /// The name as the runtime writes it; `None` if the memory lacks it.
    pub name: Option<String>,
    /// The name of the module's file.
    pub module: Option<String>,
    /// The number and size of the type's objects.
    pub amount: Amount,
}

/// A part of the heap that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapGap {
    /// The address at which reading ended.
    pub address: Address,
    /// The bytes up to the end of the region.
    pub bytes: u64,
}

/// An object of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapObject {
    /// The address of the object.
    pub address: Address,
    /// The address of its MethodTable.
    pub type_handle: TypeHandle,
    /// Bytes without padding.
    pub size: u64,
    /// The number of its elements; of an object that is neither array nor string, the first bytes of its
    /// fields.
    pub(crate) length: u32,
    /// The word before it.
    header: u32,
}

impl HeapObject {
    const fn aligned_size(&self) -> u64 {
        let size = self.size.saturating_add(7) & !7;
        if size < MIN_OBJECT_SIZE { MIN_OBJECT_SIZE } else { size }
    }

    /// The number of UTF-16 units of a string, or of elements of an array.
    pub const fn length(&self) -> u32 {
        self.length
    }

    /// Returns true if an address is in the object.
    pub fn contains(&self, address: Address) -> bool {
        self.address <= address && address < self.address.saturating_add(self.aligned_size())
    }
}

/// A receiver of the objects of a heap, in order of address.
///
/// ```no_run
/// use clr_dump::{HeapObject, HeapVisitor};
///
/// /// The largest object.
/// #[derive(Default)]
/// struct Largest(Option<HeapObject>);
///
/// impl HeapVisitor for Largest {
///     fn object(&mut self, object: &HeapObject) {
///         if self.0.is_none_or(|largest| object.size > largest.size) {
///             self.0 = Some(*object);
///         }
///     }
/// }
///
/// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
/// # let dump = clr_dump::Dump::open(&core)?;
/// let mut largest = Largest::default();
/// let walk = dump.heap().walk(&mut largest)?;
/// println!("{:?}, {} gaps", largest.0, walk.gaps.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait HeapVisitor {
    /// Receives an object.
    fn object(&mut self, object: &HeapObject);

    /// Receives free memory between objects, which has the form of an object.
    fn free(&mut self, _object: &HeapObject) {}

    /// Receives a reference of the last object: an address other than null. References arrive in field order.
    fn reference(&mut self, _target: Address) {}

    /// Returns true if references are to be read.
    fn wants_references(&self) -> bool {
        false
    }
}

/// The result of a walk through a heap.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapWalk {
    /// The objects that were read.
    pub objects: Amount,
    /// Free memory between objects.
    pub free: Amount,
    /// The parts of the heap that could not be read.
    pub gaps: Vec<HeapGap>,
    /// The number of objects with references that could not be read, or that damaged data describes.
    pub objects_without_references: u64,
    /// The number of regions or segments.
    pub regions: usize,
    /// Bytes committed for regions or segments, used or free.
    pub committed_bytes: u64,
    /// True if a collection was moving objects: objects can be missing or counted twice.
    pub is_moving: bool,
}

impl HeapWalk {
    /// Returns the bytes of the heap that could not be read.
    pub fn missing_bytes(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.bytes).fold(0, u64::saturating_add)
    }

    /// Returns true if less than half of the heap was read.
    pub fn is_mostly_missing(&self) -> bool {
        self.objects.bytes.saturating_add(self.free.bytes) < self.missing_bytes()
    }

    /// Adds a gap, or extends the last gap of a full list.
    fn add_gap(&mut self, gap: HeapGap) {
        let is_full = self.gaps.len() >= MAX_LISTED;
        match self.gaps.last_mut().filter(|_| is_full) {
            Some(last) => last.bytes = last.bytes.saturating_add(gap.bytes),
            None => self.gaps.push(gap),
        }
    }
}

view! {
    /// The objects of a dump: the garbage collector's heap, contents of objects, and what keeps them alive.
    Heap, heap
}

impl Heap<'_> {
    /// Passes every object of the heap to a visitor. While a collection moves objects, those are passed that
    /// lie in whole runs.
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn walk(self, visitor: &mut dyn HeapVisitor) -> MemoryResult<HeapWalk> {
        self.walk_layout(&HeapLayout::read(self.memory(), self.runtime())?, visitor)
    }

    /// Passes every object of the regions of a layout to a visitor, as [`walk`](Self::walk).
    pub(crate) fn walk_layout(
        self,
        layout: &HeapLayout,
        visitor: &mut dyn HeapVisitor,
    ) -> MemoryResult<HeapWalk> {
        let (memory, runtime) = (self.memory(), self.runtime());
        let free = TypeHandle::new(runtime.variable(memory, runtime.layout.slots.free_type)?);
        let mut result = HeapWalk {
            regions: layout.regions.len(),
            committed_bytes: layout.committed,
            is_moving: layout.is_moving,
            ..HeapWalk::default()
        };
        let mut walk = Walk::new(memory, runtime.layout.types.contains_pointers);
        let mut holes: Vec<_> = layout.holes.iter().map(|(start, end)| (*start, *end)).collect();
        holes.sort_unstable();
        let mut holes = holes.into_iter().peekable();
        for region in &layout.regions {
            walk.window.set_end(region.end);
            let mut at = region.start;
            while at < region.end {
                while holes.next_if(|(start, _)| *start < at).is_some() {}
                if let Some((_, end)) = holes.next_if(|(start, end)| *start == at && *end >= at) {
                    at = end.saturating_add(MIN_OBJECT_SIZE);
                    continue;
                }
                let left = region.end.saturating_sub(at);
                let fits = |object: &HeapObject| object.aligned_size() <= left;
                let object = if layout.is_moving {
                    walk.object_of_type(self.dump, at, false).filter(fits)
                } else {
                    walk.object(at).filter(fits)
                };
                let Some(object) = object else {
                    // Between the objects that a collection moves are its own notes.
                    let next = if layout.is_moving { walk.resume(self.dump, at, region.end) } else { None };
                    let end = next.unwrap_or(region.end);
                    result.add_gap(HeapGap { address: Address::new(at), bytes: end.saturating_sub(at) });
                    at = end;
                    continue;
                };
                if object.type_handle == free {
                    result.free.add(object.size);
                    visitor.free(&object);
                } else {
                    result.objects.add(object.size);
                    visitor.object(&object);
                    if visitor.wants_references() && !walk.references(&object, visitor) {
                        let count = &mut result.objects_without_references;
                        *count = count.saturating_add(1);
                    }
                }
                at = at.saturating_add(object.aligned_size());
            }
        }
        Ok(result)
    }

    /// Counts the objects of the heap by type.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for of in dump.heap().statistics()?.types.iter().take(10) {
    ///     println!("{:?} {:?}", dump.types().name(of.type_handle), of.amount);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn statistics(self) -> MemoryResult<HeapStatistics> {
        let owner_bits = self.runtime().layout.thin_lock_owner_bits;
        let mut counter = Counter { owner_bits, ..Counter::default() };
        let walk = self.walk(&mut counter)?;
        let types = counter.amounts.into_iter().map(|(type_handle, amount)| TypeStatistics {
            type_handle,
            name: self.dump.types().name(type_handle).map(|name| name.to_string()),
            module: self.dump.types().module(type_handle).map(|module| module.file_name().to_owned()),
            amount,
        });
        let mut types: Vec<_> = types.collect();
        types.sort_by(|a, b| {
            b.amount.bytes.cmp(&a.amount.bytes).then_with(|| a.type_handle.cmp(&b.type_handle))
        });
        Ok(HeapStatistics { types, thin_locks: counter.thin_locks, walk })
    }

    /// Returns the object at an address; `None` if nothing there is an object, or the memory lacks it.
    ///
    /// The address is checked by the type alone: dead objects and copies of them are found, too.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// if let Some(object) = dump.heap().object_at(clr_dump::Address::new(0x7f00_1000_2000)) {
    ///     println!("{:?}: {:?}", dump.types().name(object.type_handle), dump.heap().content(&object, 100)?);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn object_at(self, address: Address) -> Option<HeapObject> {
        let address = address.get();
        if !address.is_multiple_of(8) {
            return None;
        }
        let mut walk = Walk::new(self.memory(), self.runtime().layout.types.contains_pointers);
        walk.window.set_end(address.saturating_add(MIN_OBJECT_SIZE));
        walk.object(address).filter(|object| self.dump.types().is_type(object.type_handle))
    }

    /// Returns the first objects that an object refers to.
    #[cfg(feature = "analysis")]
    pub(crate) fn references_of(self, object: Address, most: usize) -> Vec<Address> {
        let (memory, flag) = (self.memory(), self.runtime().layout.types.contains_pointers);
        let mut found = Vec::new();
        let mut read = || {
            let object = self.object_at(object)?;
            (memory.u32(object.type_handle.get()).ok()? & flag != 0).then_some(())?;
            let pointers = Pointers::read(memory, object.type_handle).ok()?;
            pointers.each(object.address.get(), object.size, |at| {
                let target = memory.pointer(at).ok()?;
                if !target.is_null() {
                    found.push(target);
                }
                (found.len() < most).then_some(())
            });
            Some(())
        };
        read();
        found
    }
}

/// The counts of objects by type.
#[derive(Default)]
struct Counter {
    amounts: HashMap<TypeHandle, Amount>,
    thin_locks: Vec<(Address, u32)>,
    /// The bits of a thin lock's holder.
    owner_bits: u32,
}

impl HeapVisitor for Counter {
    fn object(&mut self, object: &HeapObject) {
        if self.amounts.len() < MAX_TYPES || self.amounts.contains_key(&object.type_handle) {
            self.amounts.entry(object.type_handle).or_default().add(object.size);
        }
        if let Some((holder, _)) = thin_lock(object.header, self.owner_bits)
            && self.thin_locks.len() < MAX_LISTED
        {
            self.thin_locks.push((object.address, holder));
        }
    }
}

/// The reading of objects, with facts about their types.
struct Walk<'m> {
    window: HeapWindow<'m>,
    memory: &'m dyn Memory,
    /// The places of types in `types`.
    places: HashMap<TypeHandle, usize>,
    types: Vec<ObjectType>,
    /// The places of the last types with a hash.
    recent: [usize; RECENT],
    /// Cached answers of `check_type`; `None` if the memory lacks the data.
    known: HashMap<TypeHandle, Option<bool>>,
    /// The flag of types with references in their objects.
    contains_pointers: u32,
}

/// A type of objects.
struct ObjectType {
    type_handle: TypeHandle,
    flags: u32,
    base_size: u32,
    /// The places of references in its objects; `None` before these were asked for.
    pointers: Option<MemoryResult<Pointers>>,
}

impl<'m> Walk<'m> {
    fn new(memory: &'m dyn Memory, contains_pointers: u32) -> Self {
        let window = HeapWindow::new(memory);
        Self {
            window,
            memory,
            places: HashMap::new(),
            types: Vec::new(),
            recent: [0; RECENT],
            known: HashMap::new(),
            contains_pointers,
        }
    }

    /// Returns the place in `types` of the type with a handle; `None` if it cannot be read.
    fn type_place(&mut self, type_handle: TypeHandle) -> Option<usize> {
        // The lowest bits of addresses are zero.
        let hash = (type_handle.get() >> 3 ^ type_handle.get() >> 11) & LAST_RECENT;
        let recent = self.recent.get_mut(usize::try_from(hash).ok()?)?;
        if self.types.get(*recent).is_some_and(|of| of.type_handle == type_handle) {
            return Some(*recent);
        }
        *recent = if let Some(place) = self.places.get(&type_handle) {
            *place
        } else {
            let flags = self.memory.u32(type_handle.get()).ok()?;
            let base_size = self.memory.u32(type_handle.at(4)).ok()?;
            // The last entry sums all types past the limit.
            self.types.truncate(MAX_TYPES);
            let place = self.types.len();
            if place < MAX_TYPES {
                self.places.insert(type_handle, place);
            }
            self.types.push(ObjectType { type_handle, flags, base_size, pointers: None });
            place
        };
        Some(*recent)
    }

    /// Returns true if an address holds a type; `None` if the memory lacks the data.
    fn check_type(&mut self, dump: &Dump<'_>, type_handle: TypeHandle) -> Option<bool> {
        if type_handle.get() < MIN_ADDRESS {
            return Some(false);
        }
        if let Some(known) = self.known.get(&type_handle) {
            return *known;
        }
        let known = dump.types().check_type(type_handle).ok();
        if self.known.len() < MAX_TYPES {
            self.known.insert(type_handle, known);
        }
        known
    }

    /// Returns the object at an address if its type is valid. With `must`, the memory has to have the type.
    fn object_of_type(&mut self, dump: &Dump<'_>, at: u64, must: bool) -> Option<HeapObject> {
        let bytes: [u8; 8] = self.window.array(at)?;
        let is_type = self.check_type(dump, TypeHandle::of_word(u64::from_le_bytes(bytes))).unwrap_or(!must);
        is_type.then(|| self.object(at)).flatten()
    }

    /// Returns the address of the next run of objects: several of known types, each where the one before
    /// ends.
    fn resume(&mut self, dump: &Dump<'_>, at: u64, end: u64) -> Option<u64> {
        let mut candidate = at.checked_add(8)?;
        while candidate < end {
            let mut next = candidate;
            for _ in 0..MIN_RUN_LENGTH {
                match self.object_of_type(dump, next, true) {
                    Some(object) if object.aligned_size() <= end.saturating_sub(next) => {
                        next = next.saturating_add(object.aligned_size());
                    }
                    _ => {
                        next = candidate;
                        break;
                    }
                }
                if next == end {
                    break;
                }
            }
            if next > candidate {
                return Some(candidate);
            }
            candidate = candidate.saturating_add(8);
        }
        None
    }

    fn object(&mut self, at: u64) -> Option<HeapObject> {
        let bytes: [u8; 20] = self.window.array(at.wrapping_sub(4))?;
        let (header, rest) = bytes.split_first_chunk()?;
        let (word, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*rest.first_chunk()?);
        let type_handle = TypeHandle::of_word(u64::from_le_bytes(*word));
        let place = self.type_place(type_handle)?;
        let &ObjectType { flags, base_size: base, .. } = self.types.get(place)?;
        let mut size = u64::from(base);
        if flags & HAS_COMPONENT_SIZE != 0 {
            size = size.saturating_add(u64::from(flags & 0xffff).saturating_mul(length.into()));
        }
        // A smaller size is not valid for a type.
        let header = u32::from_le_bytes(*header);
        (base >= 16).then_some(HeapObject { address: Address::new(at), type_handle, size, length, header })
    }

    /// Passes the references of an object on. Returns whether they could be read.
    fn references(&mut self, object: &HeapObject, visitor: &mut dyn HeapVisitor) -> bool {
        let (place, memory) = (self.type_place(object.type_handle), self.memory);
        let Some(of) = place.and_then(|place| self.types.get_mut(place)) else { return false };
        let (type_handle, flags) = (of.type_handle, of.flags);
        let read = || match flags & self.contains_pointers {
            0 => Ok(Pointers::None),
            _ => Pointers::read(memory, type_handle),
        };
        let Ok(pointers) = of.pointers.get_or_insert_with(read) else { return false };
        let window = &mut self.window;
        pointers.each(object.address.get(), object.size, |at| {
            let target = Address::new(u64::from_le_bytes(window.array(at)?));
            if !target.is_null() {
                visitor.reference(target);
            }
            Some(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::regions::variables::moving_mark;
    use crate::memory::core_file::CoreFile;
    use crate::runtime::Runtime;

    #[derive(Default)]
    struct Addresses(Vec<u64>);

    impl HeapVisitor for Addresses {
        fn object(&mut self, object: &HeapObject) {
            self.0.push(object.address.get());
        }
    }

    /// The objects of a core dump.
    fn walk(bytes: &[u8]) -> (Vec<u64>, HeapWalk) {
        let core = CoreFile::open(bytes.to_vec()).unwrap();
        let runtime = Runtime::find(&core, core.files()).unwrap();
        let mut addresses = Addresses::default();
        let walk = Dump::new(&core, &runtime).heap().walk(&mut addresses).unwrap();
        (addresses.0, walk)
    }

    #[test]
    fn runs_of_objects_are_read_while_a_collection_moves_others() {
        for name in ["deadlock-3.1", "shop-heap"] {
            let mut bytes = testdata::bytes(&format!("cores/{name}.core.xz"));
            let (all, whole) = walk(&bytes);
            assert!(whole.gaps.is_empty() && !whole.is_moving);
            let core = CoreFile::open(bytes.clone()).unwrap();
            let runtime = Runtime::find(&core, core.files()).unwrap();
            let mark = core.file_offset(moving_mark(&core, &runtime).unwrap()).unwrap();
            bytes[usize::try_from(mark).unwrap()] = 1;
            // Nothing is lost by the collection alone.
            let (same, moving) = walk(&bytes);
            assert!(moving.is_moving && same == all && moving.gaps.is_empty(), "{name}: {:?}", moving.gaps);
            // The other core dump lacks the classes of most types, with which no run begins.
            if name == "shop-heap" {
                continue;
            }
            // The types of the heap's first object and of two others are overwritten.
            let lost = [all[0], all[all.len() / 2], all[all.len() / 2 + 1]];
            for address in lost {
                let at = usize::try_from(core.file_offset(address).unwrap()).unwrap();
                bytes[at..at + 8].copy_from_slice(&[0; 8]);
            }
            let (found, damaged) = walk(&bytes);
            let is_left = |address: &u64| all.binary_search(address).is_ok() && !lost.contains(address);
            assert!(found.iter().all(is_left), "{name}");
            assert!(found.len() + 16 > all.len(), "{name}: {} of {}", found.len(), all.len());
            assert_eq!(damaged.gaps.len(), 2, "{name}: {:?}", damaged.gaps);
        }
    }
}
