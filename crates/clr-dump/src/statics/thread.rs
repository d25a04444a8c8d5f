//! The places of static fields that each thread has for itself (`[ThreadStatic]`).
//!
//! From .NET 9 on, a type has an index for its references, and one for its other fields. An index leads to an
//! array on the heap that a thread has for the type, or to a place among the thread's own data. In .NET Core
//! 3.1, a thread has data for each module, as the module itself has for its other static fields.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/threadstatics.h` (`TLSIndex`, `ThreadLocalData`, `InFlightTLSData`),
//! `vm/threadstatics.cpp` (`GetThreadLocalStaticBaseNoCreate`), `vm/methodtable.h` (`ThreadStaticsInfo`); for
//! 3.1 dotnet/coreclr `src/vm/threadstatics.h` (`ThreadLocalBlock`, `ThreadLocalModule`). Measured on 9.0.1,
//! 10.0.5 and 3.1.23.

use std::ops::Range;

use crate::memory::address::TypeHandle;
use crate::memory::{MemoryResult, offset};
use crate::runtime::layout::StaticFields;
use crate::statics::Statics;
use crate::threads::thread::Thread;
use crate::types::names::{AUXILIARY, MODULE};

/// Maximum number of static constructors that run in a thread at the same time.
const MAX_IN_FLIGHT: usize = 1024;
/// The offset of the first element of an array.
const ELEMENTS: u64 = 16;
/// The part of ThreadLocalData that has fields of types.
const OWN_PLACES: Range<u64> = 40..96;
/// The lowest index in the array of arrays.
const FIRST_INDEX: u32 = 2;

/// The data of a thread that leads to its static fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadStatics {
    /// The thread's id in the system.
    pub(crate) os_id: u64,
    data: ThreadData,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ThreadData {
    /// ThreadLocalData.
    Indexed(IndexedData),
    /// The array of ThreadLocalModule, by the index of the module.
    ByModule { modules: u64, count: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexedData {
    address: u64,
    /// The number of indexes that have a place, and the array with the arrays of types.
    count: u32,
    array: u64,
    /// The number and the array for types that can be unloaded: the array has handles.
    unloadable_count: u32,
    unloadable: u64,
    /// The indexes of types with running constructors, and their arrays.
    in_flight: Vec<(u32, u64)>,
}

/// The places that a thread has for the static fields of a type; `None` where it has not used them yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThreadPlaces {
    /// References, and references to the boxes of structures.
    pub(crate) references: Option<ThreadPlace>,
    pub(crate) others: Option<ThreadPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadPlace {
    /// The address that the offsets of fields are relative to.
    base: u64,
    /// The addresses that fields can have.
    fields: [u64; 2],
}

impl ThreadPlace {
    /// Returns the address of a field; `None` if it is not in the place.
    pub(crate) fn field(self, at: u32) -> Option<u64> {
        let address = offset(self.base, at.into());
        let [start, end] = self.fields;
        (start..end).contains(&address).then_some(address)
    }
}

impl Statics<'_> {
    /// Returns the data that leads to the static fields of a thread; `None` if the thread lacks it.
    pub(crate) fn thread_statics(self, thread: &Thread) -> MemoryResult<Option<ThreadStatics>> {
        let (memory, layout) = (self.memory(), &self.runtime().layout.thread);
        if self.runtime().is_native_aot() {
            return Ok(None);
        }
        let data = match (layout.static_fields, layout.static_modules) {
            (Some(place), _) => match self.indexed_data(thread, memory.u64(thread.address.at(place))?)? {
                Some(data) => ThreadData::Indexed(data),
                None => return Ok(None),
            },
            (None, Some(place)) => {
                let [modules, count] = memory.words(thread.address.at(place))?;
                ThreadData::ByModule { modules, count }
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(ThreadStatics { os_id: thread.os_id, data }))
    }

    fn indexed_data(self, thread: &Thread, address: u64) -> MemoryResult<Option<IndexedData>> {
        let memory = self.memory();
        if address == 0 {
            return Ok(None);
        }
        let [_, array, unloadable, of, mut next] = memory.words(address)?;
        if of != thread.address.get() {
            return Ok(None);
        }
        let mut in_flight = Vec::new();
        while next != 0 && in_flight.len() < MAX_IN_FLIGHT {
            let [link, _, handle] = memory.words(next)?;
            in_flight.push((memory.u32(offset(next, 8))?, memory.u64(handle)?));
            next = link;
        }
        let (count, unloadable_count) = (memory.u32(address)?, memory.u32(offset(address, 4))?);
        Ok(Some(IndexedData { address, count, array, unloadable_count, unloadable, in_flight }))
    }

    /// Returns the places of a type that declares static fields of threads.
    pub(crate) fn thread_places(
        self,
        statics: &ThreadStatics,
        type_handle: TypeHandle,
    ) -> MemoryResult<ThreadPlaces> {
        let memory = self.memory();
        match &statics.data {
            ThreadData::Indexed(data) => {
                let auxiliary = memory.u64(type_handle.at(AUXILIARY))?;
                if memory.u64(auxiliary.wrapping_sub(8))? != type_handle.get() {
                    return Ok(ThreadPlaces::default());
                }
                let index = |before: u64| memory.u32(auxiliary.wrapping_sub(before));
                Ok(ThreadPlaces {
                    references: self.place_of_index(data, index(36)?)?,
                    others: self.place_of_index(data, index(40)?)?,
                })
            }
            ThreadData::ByModule { modules, count } => {
                let of = self.module_data(*modules, *count, type_handle)?;
                let Some((references, others)) = of else {
                    return Ok(ThreadPlaces::default());
                };
                let references = match references {
                    0 => None,
                    handle => self.place_in_array(memory.u64(handle)?)?.map(|place| {
                        let [start, _] = place.fields;
                        ThreadPlace { base: start, ..place }
                    }),
                };
                let others = ThreadPlace { base: others, fields: [offset(others, 8), u64::MAX] };
                Ok(ThreadPlaces { references, others: Some(others) })
            }
        }
    }

    fn place_of_index(self, data: &IndexedData, index: u32) -> MemoryResult<Option<ThreadPlace>> {
        const ARRAY: u32 = 0;
        const UNLOADABLE: u32 = 1;
        const OWN: u32 = 2;
        let memory = self.memory();
        let number = index & 0x00ff_ffff;
        let array = match index >> 24 {
            ARRAY if number < data.count && data.array != 0 => {
                let length = memory.u32(offset(data.array, 8))?;
                let Some(element) = number.checked_sub(FIRST_INDEX).filter(|element| *element < length)
                else {
                    return Ok(None);
                };
                memory.u64(offset(data.array, u64::from(element).wrapping_mul(8).wrapping_add(ELEMENTS)))?
            }
            UNLOADABLE if number < data.unloadable_count && data.unloadable != 0 => {
                match memory.u64(offset(data.unloadable, u64::from(number).wrapping_mul(8)))? {
                    0 => 0,
                    handle => memory.u64(handle)?,
                }
            }
            OWN => {
                let base = offset(data.address, number.into());
                let fields = [OWN_PLACES.start, OWN_PLACES.end].map(|at| offset(data.address, at));
                return Ok(Some(ThreadPlace { base, fields }));
            }
            _ => 0,
        };
        match array {
            0 => match data.in_flight.iter().find(|(of, _)| *of == index) {
                Some((_, array)) => self.place_in_array(*array),
                None => Ok(None),
            },
            array => self.place_in_array(array),
        }
    }

    /// Returns the place in an array on the heap; `None` without an array.
    fn place_in_array(self, array: u64) -> MemoryResult<Option<ThreadPlace>> {
        let memory = self.memory();
        if array == 0 {
            return Ok(None);
        }
        // The lowest bits are marks of a collection.
        let flags = memory.u32(memory.u64(array)? & !7)?;
        if !self.dump.types().is_of_array(flags) {
            return Ok(None);
        }
        let bytes = u64::from(memory.u32(offset(array, 8))?).wrapping_mul(u64::from(flags & 0xffff));
        let start = offset(array, ELEMENTS);
        Ok(Some(ThreadPlace { base: array, fields: [start, offset(start, bytes)] }))
    }

    /// Returns the handle of the references and the address of the other fields that a thread has for a type:
    /// in ThreadLocalModule, or in the type's entry there.
    fn module_data(
        self,
        modules: u64,
        count: u64,
        type_handle: TypeHandle,
    ) -> MemoryResult<Option<(u64, u64)>> {
        let memory = self.memory();
        let StaticFields::DomainLocalModule(place) = self.runtime().layout.types.static_fields else {
            return Ok(None);
        };
        let local = memory.u64(offset(memory.u64(type_handle.at(MODULE))?, place))?;
        if local == 0 {
            return Ok(None);
        }
        let index = memory.u64(offset(local, 40))?;
        if index >= count {
            return Ok(None);
        }
        let of_module = memory.u64(offset(modules, index.wrapping_mul(8)))?;
        if of_module == 0 {
            return Ok(None);
        }
        if !self.has_static_entry(type_handle)? {
            return Ok(Some((memory.u64(offset(of_module, 16))?, of_module)));
        }
        match self.static_entry(type_handle, of_module)? {
            Some(entry) => Ok(Some((memory.u64(entry)?, entry))),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Dump;
    use crate::memory::tests::TestMemory;
    use crate::runtime::Runtime;
    use crate::runtime::layout::NET_9;

    const THREAD: u64 = 0x1000;
    const DATA: u64 = 0x2000;
    const ARRAY: u64 = 0x3000;
    const TYPE: u64 = 0x5000;
    const ARRAY_TYPE: u64 = 0x6000;

    /// A thread with data, and a type with the indexes of its references and its other fields.
    fn memory(data: &[u64], references: u32, others: u32) -> TestMemory {
        let place = NET_9.thread.static_fields.unwrap();
        let mut memory = TestMemory::default();
        let mut words = vec![0; usize::try_from(place / 8).unwrap()];
        words.push(DATA);
        memory.put_words(THREAD, &words).put_words(DATA, data);
        // The type's auxiliary data follows the indexes.
        memory.put_words(TYPE, &[0, 0, 0, 0, TYPE + 0x128]);
        let indexes = u64::from(references) << 32 | u64::from(others);
        memory.put_words(TYPE + 0x100, &[indexes, 0, 0, 0, TYPE, 0]);
        // An array of elements of eight bytes.
        memory.put_words(ARRAY_TYPE, &[0x8008_0008]);
        memory
    }

    fn places(memory: &TestMemory) -> Option<ThreadPlaces> {
        let runtime = Runtime::of_slots(&NET_9, &[]);
        let dump = Dump::new(memory, &runtime);
        let statics = dump.statics().thread_statics(&Thread::at(THREAD)).unwrap()?;
        Some(dump.statics().thread_places(&statics, TypeHandle::new(TYPE)).unwrap())
    }

    #[test]
    fn an_index_leads_to_an_element_or_into_the_threads_own_data() {
        let mut memory = memory(&[4, ARRAY, 0, THREAD, 0], 3, 2 << 24 | 0x28);
        memory.put_words(ARRAY, &[ARRAY_TYPE, 2, 0, 0x4000]).put_words(0x4000, &[ARRAY_TYPE | 1, 1, 0]);
        let found = places(&memory).unwrap();
        let references = found.references.unwrap();
        assert_eq!([15, 16, 23, 24].map(|at| references.field(at)), [None, Some(0x4010), Some(0x4017), None]);
        let others = found.others.unwrap();
        assert_eq!([16, 55, 56].map(|at| others.field(at)), [Some(DATA + 56), Some(DATA + 95), None]);
    }

    #[test]
    fn an_index_without_a_slot_belongs_to_a_type_under_construction() {
        let mut memory = memory(&[3, ARRAY, 0, THREAD, 0x7000], 3, 9);
        memory.put_words(ARRAY, &[ARRAY_TYPE, 2, 0, 0]);
        memory.put_words(0x7000, &[0x7100, 3, 0x7200]).put_words(0x7200, &[0x4000]);
        // The list leads back to itself.
        memory.put_words(0x7100, &[0x7100, 5, 0x7200]).put_words(0x4000, &[ARRAY_TYPE, 1, 0]);
        let found = places(&memory).unwrap();
        assert_eq!(found.references.and_then(|place| place.field(16)), Some(0x4010));
        assert_eq!(found.others, None);
    }

    #[test]
    fn ignores_data_of_other_threads_and_objects_other_than_arrays() {
        assert_eq!(places(&memory(&[3, ARRAY, 0, THREAD + 8, 0], 2, 2)), None);
        let mut memory = memory(&[4, ARRAY, 0, THREAD, 0], 2, u32::MAX);
        memory.put_words(ARRAY, &[ARRAY_TYPE, 1, 0x4000]).put_words(0x4000, &[TYPE, 1, 0]);
        assert_eq!(places(&memory), Some(ThreadPlaces { references: None, others: None }));
    }
}
