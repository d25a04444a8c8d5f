//! Flags, rows, modules and arguments of types, read from MethodTables.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/methodtable.h`, `vm/class.h`; for 3.1 dotnet/coreclr `src/vm/methodtable.h`
//! (optional members).

use super::MAX_ARGUMENTS;
use crate::aot::names;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, Missing, offset};
use crate::runtime::layout::TypeForm;
use crate::types::Types;

/// The flag of types with a length in each object.
pub(crate) const HAS_COMPONENT_SIZE: u32 = 0x8000_0000;
/// The flags of generic types.
pub(super) const GENERIC: u32 = 0x30;
/// The offset of the module in a MethodTable.
pub(crate) const MODULE: u64 = 24;
/// The offset of the auxiliary data in a MethodTable (`StaticFields::Auxiliary`).
pub(crate) const AUXILIARY: u64 = 32;
/// The .NET Core 3.1 flag of types loaded by a module that does not define them.
const HAS_MODULE_OVERRIDE: u16 = 0x10;
/// The offset of the first optional field in a MethodTable of .NET Core 3.1.
const FIRST_OPTIONAL: u64 = 48;

impl Types<'_> {
    /// Returns true for an array type.
    pub fn is_array(self, type_handle: TypeHandle) -> bool {
        self.memory().u32(type_handle.get()).is_ok_and(|flags| self.is_of_array(flags))
    }

    /// Returns true if a type is `System.String`.
    pub fn is_string(self, type_handle: TypeHandle) -> bool {
        let flags = self.memory().u32(type_handle.get()).unwrap_or_default();
        // Units of two bytes, and no array.
        flags & (HAS_COMPONENT_SIZE | 0xffff) == HAS_COMPONENT_SIZE | 2 && !self.is_of_array(flags)
    }

    /// Returns true for the flags of an array type.
    pub(crate) fn is_of_array(self, flags: u32) -> bool {
        match self.runtime().native_aot() {
            Some(_) => names::is_array(flags),
            None => is_array(flags),
        }
    }

    /// The offset of the element type in an array's type.
    pub(super) fn element_type(self) -> u64 {
        if self.runtime().is_native_aot() { 8 } else { 48 }
    }

    /// Returns true if the memory has a type at an address: its class knows it.
    pub(crate) fn is_type(self, type_handle: TypeHandle) -> bool {
        self.check_type(type_handle).unwrap_or_default()
    }

    /// Like `is_type`; an error if the memory lacks the class.
    pub(crate) fn check_type(self, type_handle: TypeHandle) -> MemoryResult<bool> {
        if self.runtime().is_native_aot() {
            return Ok(self.name(type_handle).is_some());
        }
        let canonical = self.canonical(type_handle)?;
        let class = self.memory().u64(canonical.at(40))?;
        Ok(self.memory().type_handle(offset(class, 16))? == canonical)
    }

    pub(crate) fn rank(self, handle: TypeHandle, flags: u32) -> MemoryResult<u8> {
        if self.runtime().is_native_aot() {
            return names::rank(self.memory(), handle);
        }
        if is_vector(flags) {
            return Ok(1);
        }
        let class = self.class(handle)?;
        self.memory().u8(offset(class, self.runtime().layout.types.rank)).map(|rank| rank.min(32))
    }

    /// The EEClass of a type, which the canonical MethodTable has.
    pub(crate) fn class(self, handle: TypeHandle) -> MemoryResult<u64> {
        self.memory().u64(self.canonical(handle)?.at(40))
    }

    /// The canonical MethodTable of a type: a type with reference arguments has a different one.
    fn canonical(self, handle: TypeHandle) -> MemoryResult<TypeHandle> {
        let mark = self.runtime().layout.types.canonical_mark;
        let class = self.memory().u64(handle.at(40))?;
        Ok(if class & mark == 0 { handle } else { TypeHandle::new(class & !mark) })
    }

    /// The row of a type in its module's metadata.
    pub(crate) fn type_row(self, handle: TypeHandle) -> MemoryResult<u32> {
        match self.runtime().layout.types.form {
            TypeForm::RowInFlags => self.memory().u32(handle.at(8)).map(|flags| flags >> 8),
            TypeForm::ShortRow => match self.memory().u16(handle.at(10))? {
                // The row has more bits, and is elsewhere.
                u16::MAX => Err(Missing { address: handle.at(10) }),
                row => Ok(row.into()),
            },
            TypeForm::NativeAot => Err(Missing { address: handle.get() }),
        }
    }

    /// The address of the module that defines a type.
    pub(crate) fn module_of(self, handle: TypeHandle) -> MemoryResult<Address> {
        let memory = self.memory();
        let plain = handle.at(MODULE);
        match self.runtime().layout.types.form {
            TypeForm::RowInFlags => return memory.pointer(plain),
            TypeForm::ShortRow => {}
            TypeForm::NativeAot => return Err(Missing { address: handle.get() }),
        }
        let flags = memory.u32(handle.get())?;
        if flags & (HAS_COMPONENT_SIZE | GENERIC) == 0 {
            return memory.pointer(plain);
        }
        let handle = if is_array(flags) { handle } else { self.canonical(handle)? };
        let optional = memory.u16(handle.at(8))?;
        if optional & HAS_MODULE_OVERRIDE == 0 {
            return memory.pointer(handle.at(MODULE));
        }
        // The optional fields before it fill two places in the MethodTable, and then those after the pointers
        // to the parts of the vtable, which have eight methods each.
        let before = optional & HAS_MODULE_OVERRIDE.wrapping_sub(1);
        let fields = match u64::from(before.count_ones()) {
            1 if before & 3 == 2 => 0,
            count => count,
        };
        let place = match fields {
            0 | 1 => fields.wrapping_mul(8).wrapping_add(FIRST_OPTIONAL),
            more => {
                let methods = u64::from(memory.u16(handle.at(12))?);
                more.wrapping_mul(8).wrapping_add(FIRST_OPTIONAL).wrapping_add(methods.next_multiple_of(8))
            }
        };
        memory.pointer(handle.at(place))
    }

    pub(crate) fn arguments(self, handle: TypeHandle) -> MemoryResult<Vec<TypeHandle>> {
        let memory = self.memory();
        let dictionaries = memory.u64(handle.at(48))?;
        let count = memory.u16(dictionaries.wrapping_sub(4))?;
        let arguments = memory.u16(dictionaries.wrapping_sub(2))?.min(MAX_ARGUMENTS);
        // The last dictionary is the type's own.
        let last = u64::from(count.saturating_sub(1)).wrapping_mul(8);
        let dictionary = memory.u64(offset(dictionaries, last))?;
        (0..u64::from(arguments))
            .map(|index| memory.type_handle(offset(dictionary, index.wrapping_mul(8))))
            .collect()
    }
}

pub(super) const fn is_array(flags: u32) -> bool {
    flags & 0xc_0000 == 0x8_0000
}

/// Returns true for the flags of an instance of a generic type.
pub(crate) const fn is_instance(flags: u32) -> bool {
    // Without a component size: the bits mean something else in strings.
    flags & GENERIC != 0 && flags & HAS_COMPONENT_SIZE == 0
}

/// Returns true for the flags of a type of structures or enumerations.
pub(crate) const fn is_value(flags: u32) -> bool {
    flags & 0xc_0000 == 0x4_0000
}

/// Returns true for the flags of a one-dimensional, zero-based array.
pub(super) const fn is_vector(flags: u32) -> bool {
    const SINGLE_DIMENSION: u32 = 0x2_0000;
    flags & SINGLE_DIMENSION != 0
}

#[cfg(test)]
mod tests {
    use crate::dump::Dump;
    use crate::memory::address::{Address, TypeHandle};
    use crate::memory::tests::TestMemory;
    use crate::runtime::Runtime;

    /// The module of a .NET Core 3.1 type; each of its words equals its own offset.
    fn module_of(words: &[(usize, u64)]) -> Option<u64> {
        let mut table: Vec<u64> = (0..32).map(|index| index * 8).collect();
        for (index, word) in words {
            table[*index] = *word;
        }
        let mut memory = TestMemory::default();
        memory.put_words(0x1000, &table);
        let runtime = Runtime::of_slots(&crate::runtime::layout::NET_3_1, &[]);
        Dump::new(&memory, &runtime).types().module_of(TypeHandle::new(0x1000)).ok().map(Address::get)
    }

    #[test]
    fn the_module_of_an_old_type_is_where_its_flags_say() {
        // Neither generic nor an array: the flags of optional fields do not matter.
        assert_eq!(module_of(&[(0, 0), (1, 0x10)]), Some(24));
        // Generic: the flags of optional fields, the number of methods in the upper half.
        let generic =
            |optional: u64, methods: u64| module_of(&[(0, 0x30), (1, optional | methods << 32), (5, 0)]);
        assert_eq!(generic(0x0f, 4), Some(24));
        // The module fills the first or the second place, which are in the table itself.
        assert_eq!([generic(0x10, 4), generic(0x11, 4), generic(0x12, 4)], [Some(48), Some(56), Some(48)]);
        // It follows the pointers to parts of the vtable.
        assert_eq!([generic(0x13, 0), generic(0x13, 1), generic(0x1f, 17)], [Some(64), Some(72), Some(104)]);
        // An instance leads to the canonical type, which the memory lacks.
        assert_eq!(module_of(&[(0, 0x30), (5, 0x9002)]), None);
    }
}
