//! The places of the static fields of types.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/methodtable.h` (`DynamicStaticsInfo`); for 3.1 dotnet/coreclr
//! `src/vm/appdomain.hpp` (`DomainLocalModule`), `src/vm/methodtable.h` (`GenericsStaticsInfo`),
//! `src/vm/field.cpp` (`FieldDesc::GetBase`), `src/vm/loaderallocator.cpp`
//! (`LoaderAllocator::GetHandleValue`).

use crate::heap::object::Value;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, offset};
use crate::runtime::layout::StaticFields;
use crate::runtime::module::follow;
use crate::statics::Statics;
use crate::types::field::{Field, Storage};
use crate::types::names::{AUXILIARY, HAS_COMPONENT_SIZE, MODULE};

/// Offset in a MethodTable.
const OPTIONAL_MEMBERS: u64 = 64;

/// The addresses of a type's static fields; zero for a kind that the type lacks, or that is not allocated
/// yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StaticPlaces {
    /// References, and references to the boxes of structures.
    pub(crate) references: u64,
    pub(crate) others: u64,
}

/// The entry of a type in a module's data.
struct StaticEntry {
    address: u64,
    /// True if it has handles in place of the fields.
    is_collectible: bool,
}

impl Statics<'_> {
    /// Returns true if the places of static fields are known in this version of the runtime.
    pub fn has_places(self) -> bool {
        self.runtime().layout.types.static_fields != StaticFields::Unknown
    }

    /// Returns true for a type with static fields at unread places: before .NET 9, thread statics of types
    /// that can be unloaded.
    pub fn has_unread(self, type_handle: TypeHandle) -> bool {
        const COLLECTIBLE: u32 = 0x20_0000;
        let is_unread = |field: &Field| match field.storage {
            Storage::Thread => true,
            Storage::Static => self.runtime().layout.module.loader_allocator.is_empty(),
            Storage::Object | Storage::Elsewhere => false,
        };
        matches!(self.runtime().layout.types.static_fields, StaticFields::DomainLocalModule(_))
            && self.memory().u32(type_handle.get()).is_ok_and(|flags| flags & COLLECTIBLE != 0)
            && self.dump.types().own_fields(type_handle).is_ok_and(|fields| fields.iter().any(is_unread))
    }

    /// Returns the places of a type's static fields; `None` if it lacks static fields.
    pub(crate) fn places(self, type_handle: TypeHandle) -> MemoryResult<Option<StaticPlaces>> {
        match self.runtime().layout.types.static_fields {
            StaticFields::Unknown => Ok(None),
            StaticFields::Auxiliary => self.places_by_type(type_handle),
            StaticFields::DomainLocalModule(place) => self.places_by_module(type_handle, place),
        }
    }

    fn places_by_type(self, type_handle: TypeHandle) -> MemoryResult<Option<StaticPlaces>> {
        const HAS_STATICS: u32 = 2;
        let memory = self.memory();
        if memory.u32(type_handle.at(8))? & HAS_STATICS == 0 {
            return Ok(None);
        }
        let auxiliary = memory.u64(type_handle.at(AUXILIARY))?;
        let [references, others, of] = memory.words(auxiliary.wrapping_sub(24))?;
        // The lowest bit says that the type is not initialized.
        let places = StaticPlaces { references: references & !1, others: others & !1 };
        Ok((of == type_handle.get()).then_some(places))
    }

    /// Finds the places in the DomainLocalModule of the module that loaded the type: in its own arrays, or in
    /// the type's own entry.
    fn places_by_module(self, type_handle: TypeHandle, place: u64) -> MemoryResult<Option<StaticPlaces>> {
        let memory = self.memory();
        let local = memory.u64(offset(memory.u64(type_handle.at(MODULE))?, place))?;
        if local == 0 {
            return Ok(None);
        }
        if !self.has_static_entry(type_handle)? {
            let references = memory.u64(offset(local, 32))?;
            return Ok(Some(StaticPlaces { references, others: local }));
        }
        match self.any_static_entry(type_handle, offset(local, 8))? {
            Some(StaticEntry { address, is_collectible: false }) => {
                Ok(Some(StaticPlaces { references: memory.u64(address)?, others: address }))
            }
            Some(StaticEntry { address, .. }) => self.collectible_places(type_handle, address),
            None => Ok(None),
        }
    }

    /// Finds the places of a type that can be unloaded: in two arrays, which the LoaderAllocator of its
    /// module keeps.
    fn collectible_places(self, type_handle: TypeHandle, entry: u64) -> MemoryResult<Option<StaticPlaces>> {
        const ELEMENTS: u64 = 16;
        // The other fields of other types follow the pointer to the references.
        const OTHERS: u64 = 8;
        let memory = self.memory();
        let module = memory.u64(type_handle.at(MODULE))?;
        let path = self.runtime().layout.module.loader_allocator;
        let allocator = if path.is_empty() { 0 } else { follow(memory, module, path)? };
        let allocator = Address::new(allocator);
        let Some(Value::Reference { address: slots, .. }) =
            self.dump.heap().field_value(allocator, "m_slots")
        else {
            return Ok(None);
        };
        let count = u64::from(memory.u32(slots.at(8))?);
        let array = |handle: u64| {
            // The address of a reference with the lowest bit set, or twice the number of a slot, which counts
            // from 1.
            let slot = (handle >> 1).wrapping_sub(1);
            match handle & 1 {
                _ if handle == 0 => Ok(0),
                0 if slot < count => memory.u64(slots.at(slot.wrapping_mul(8).wrapping_add(ELEMENTS))),
                0 => Ok(0),
                _ => memory.u64(handle & !1),
            }
        };
        let place = |array: u64, at: u64| if array == 0 { 0 } else { offset(array, at) };
        let [references, others] = memory.words(entry)?;
        Ok(Some(StaticPlaces {
            references: place(array(references)?, ELEMENTS),
            others: place(array(others)?, ELEMENTS.wrapping_sub(OTHERS)),
        }))
    }

    /// Returns true if a type has an entry of its own in a module's data, as instances of generic types and
    /// types made at run time do.
    pub(crate) fn has_static_entry(self, type_handle: TypeHandle) -> MemoryResult<bool> {
        const IN_ENTRY: u32 = 6;
        let flags = self.memory().u32(type_handle.get())?;
        Ok(flags & IN_ENTRY != 0 && flags & HAS_COMPONENT_SIZE == 0)
    }

    /// Returns a type's entry; `None` before its allocation, or if handles lead to its fields, as for types
    /// that can be unloaded. `table` has the address of the entries, and their number.
    pub(crate) fn static_entry(self, type_handle: TypeHandle, table: u64) -> MemoryResult<Option<u64>> {
        let entry = self.any_static_entry(type_handle, table)?;
        Ok(entry.filter(|entry| !entry.is_collectible).map(|entry| entry.address))
    }

    /// Returns the entry of any type; `None` before its allocation.
    fn any_static_entry(self, type_handle: TypeHandle, table: u64) -> MemoryResult<Option<StaticEntry>> {
        const COLLECTIBLE: u32 = 8;
        let memory = self.memory();
        let Some(number) = self.static_entry_number(type_handle)? else { return Ok(None) };
        let [entries, count] = memory.words(table)?;
        if number >= count {
            return Ok(None);
        }
        let at = offset(entries, number.wrapping_mul(16));
        let (address, flags) = (memory.u64(at)?, memory.u32(offset(at, 8))?);
        Ok((address != 0).then_some(StaticEntry { address, is_collectible: flags & COLLECTIBLE != 0 }))
    }

    /// The number of a type's entry.
    fn static_entry_number(self, type_handle: TypeHandle) -> MemoryResult<Option<u64>> {
        const IS_GENERIC: u32 = 4;
        let memory = self.memory();
        if memory.u32(type_handle.get())? & IS_GENERIC == 0 {
            let optional = memory.u64(offset(self.dump.types().class(type_handle)?, 8))?;
            return Ok(if optional == 0 { None } else { Some(memory.u32(offset(optional, 16))?.into()) });
        }
        // Two of the five optional fields fill places in the MethodTable. The others follow the pointers to
        // the parts of the vtable, which have eight methods each, and the optional members are last.
        let fields = memory.u16(type_handle.at(8))? & 0x1f;
        let fields = u64::from(fields.count_ones().saturating_sub(2)).wrapping_mul(8);
        let methods = u64::from(memory.u16(type_handle.at(12))?).next_multiple_of(8);
        let members = type_handle.at(OPTIONAL_MEMBERS.wrapping_add(fields).wrapping_add(methods));
        Ok(Some(memory.u32(offset(members, 8))?.into()))
    }
}
