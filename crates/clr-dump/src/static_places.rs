//! The places of the static fields of types.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/methodtable.h` (`DynamicStaticsInfo`); for 3.1 dotnet/coreclr
//! `src/vm/appdomain.hpp` (`DomainLocalModule`), `src/vm/methodtable.h` (`GenericsStaticsInfo`),
//! `src/vm/field.cpp` (`FieldDesc::GetBase`).

use crate::field::Field;
use crate::layout::StaticFields;
use crate::memory::{MemoryResult, offset};
use crate::names::{HAS_COMPONENT_SIZE, MODULE, Names};

/// Offsets in a MethodTable.
pub(crate) const AUXILIARY: u64 = 32;
const OPTIONAL_MEMBERS: u64 = 64;

/// The addresses of a type's static fields; zero where it has none of a kind, or they have no place yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StaticPlaces {
    /// References, and references to the boxes of structures.
    pub(crate) references: u64,
    pub(crate) others: u64,
}

impl Names<'_> {
    /// Returns true if the places of static fields are known in this version of the runtime.
    pub fn has_static_places(&self) -> bool {
        self.runtime().layout.types.static_fields != StaticFields::Unknown
    }

    /// Returns true for a type with static fields whose places are not read: of types that can be unloaded, handles
    /// lead to them before .NET 9.
    pub fn has_unread_statics(&self, type_handle: u64) -> bool {
        const COLLECTIBLE: u32 = 0x20_0000;
        matches!(self.runtime().layout.types.static_fields, StaticFields::DomainLocalModule(_))
            && self.memory().u32(type_handle).is_ok_and(|flags| flags & COLLECTIBLE != 0)
            && self.own_fields(type_handle).is_ok_and(|fields| fields.iter().any(Field::is_static))
    }

    /// Returns the places of a type's static fields; `None` if it has none.
    pub(crate) fn static_places(&self, type_handle: u64) -> MemoryResult<Option<StaticPlaces>> {
        match self.runtime().layout.types.static_fields {
            StaticFields::Unknown => Ok(None),
            StaticFields::Auxiliary => self.places_by_type(type_handle),
            StaticFields::DomainLocalModule(place) => self.places_by_module(type_handle, place),
        }
    }

    fn places_by_type(&self, type_handle: u64) -> MemoryResult<Option<StaticPlaces>> {
        const HAS_STATICS: u32 = 2;
        let memory = self.memory();
        if memory.u32(offset(type_handle, 8))? & HAS_STATICS == 0 {
            return Ok(None);
        }
        let auxiliary = memory.u64(offset(type_handle, AUXILIARY))?;
        let [references, others, of] = memory.words(auxiliary.wrapping_sub(24))?;
        // The lowest bit says that the type is not initialized.
        let places = StaticPlaces { references: references & !1, others: others & !1 };
        Ok((of == type_handle).then_some(places))
    }

    /// Finds the places in the DomainLocalModule of the module that loaded the type: in its own arrays, or in
    /// the type's own entry.
    fn places_by_module(&self, type_handle: u64, place: u64) -> MemoryResult<Option<StaticPlaces>> {
        let memory = self.memory();
        let local = memory.u64(offset(memory.u64(offset(type_handle, MODULE))?, place))?;
        if local == 0 {
            return Ok(None);
        }
        if !self.has_static_entry(type_handle)? {
            let references = memory.u64(offset(local, 32))?;
            return Ok(Some(StaticPlaces { references, others: local }));
        }
        match self.static_entry(type_handle, offset(local, 8))? {
            Some(entry) => Ok(Some(StaticPlaces { references: memory.u64(entry)?, others: entry })),
            None => Ok(None),
        }
    }

    /// Whether a type has an entry of its own in a module's data: instances of generic types have, and types
    /// that were made at run time.
    pub(crate) fn has_static_entry(&self, type_handle: u64) -> MemoryResult<bool> {
        const IN_ENTRY: u32 = 6;
        let flags = self.memory().u32(type_handle)?;
        Ok(flags & IN_ENTRY != 0 && flags & HAS_COMPONENT_SIZE == 0)
    }

    /// Returns a type's entry; `None` if it has none yet, or if handles lead to its fields, as to those of types
    /// that can be unloaded. `table` has the address of the entries, and their number.
    pub(crate) fn static_entry(&self, type_handle: u64, table: u64) -> MemoryResult<Option<u64>> {
        const COLLECTIBLE: u32 = 8;
        let memory = self.memory();
        let Some(number) = self.static_entry_number(type_handle)? else { return Ok(None) };
        let [entries, count] = memory.words(table)?;
        if number >= count {
            return Ok(None);
        }
        let at = offset(entries, number.wrapping_mul(16));
        let (entry, flags) = (memory.u64(at)?, memory.u32(offset(at, 8))?);
        Ok((entry != 0 && flags & COLLECTIBLE == 0).then_some(entry))
    }

    /// The number of a type's entry.
    fn static_entry_number(&self, type_handle: u64) -> MemoryResult<Option<u64>> {
        const IS_GENERIC: u32 = 4;
        let memory = self.memory();
        if memory.u32(type_handle)? & IS_GENERIC == 0 {
            let optional = memory.u64(offset(self.class(type_handle)?, 8))?;
            return Ok(if optional == 0 { None } else { Some(memory.u32(offset(optional, 16))?.into()) });
        }
        // Two of the five optional fields fill places in the MethodTable. The others follow the pointers to the
        // parts of the vtable, which have eight methods each, and the optional members come after them.
        let fields = memory.u16(offset(type_handle, 8))? & 0x1f;
        let fields = u64::from(fields.count_ones().saturating_sub(2)).wrapping_mul(8);
        let methods = u64::from(memory.u16(offset(type_handle, 12))?).next_multiple_of(8);
        let members = offset(type_handle, OPTIONAL_MEMBERS.wrapping_add(fields).wrapping_add(methods));
        Ok(Some(memory.u32(offset(members, 8))?.into()))
    }
}
