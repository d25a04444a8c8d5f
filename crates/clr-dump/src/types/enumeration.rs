//! Enumerations: the names of their numbers.
//!
//! # Source
//! ECMA-335 II.14.3, II.22.9 for constants; dotnet/runtime `src/coreclr/vm/methodtable.h` for the category.

use portable_pdb::FieldDefinition;

use crate::dump::Constants;
use crate::memory::address::TypeHandle;
use crate::types::Types;

/// Maximum number of constants of an enumeration.
const MAX_CONSTANTS: usize = 4096;

impl Types<'_> {
    /// Returns the constants of an enumeration; `None` of other types.
    pub(crate) fn enumeration(self, type_handle: TypeHandle) -> Option<Constants> {
        /// The category of enumerations, which primitive types do not share.
        const CATEGORY: u32 = 0xf_0000;
        const ENUMERATION: u32 = 0x6_0000;
        if let Some(known) = self.dump.enumerations.borrow().get(&type_handle) {
            return known.clone();
        }
        let flags = self.memory().u32(type_handle.get()).ok();
        let is_enumeration =
            !self.runtime().is_native_aot() && flags.is_some_and(|flags| flags & CATEGORY == ENUMERATION);
        let constants = if is_enumeration { self.read_constants(type_handle) } else { None };
        self.dump.enumerations.borrow_mut().insert(type_handle, constants.clone());
        constants
    }

    fn read_constants(self, type_handle: TypeHandle) -> Option<Constants> {
        let module = self.module_at(self.module_of(type_handle).ok()?);
        let metadata = self.metadata(&module)?;
        let numbers = metadata.fields_of_type(self.type_row(type_handle).ok()?).ok()?.take(MAX_CONSTANTS);
        let rows = numbers.filter_map(|number| metadata.field_row(number).ok());
        let is_signed =
            self.value_kind(type_handle).is_ok_and(|kind| matches!(kind.0, 0x04 | 0x06 | 0x08 | 0x0a));
        let constant = |row: u32| {
            let field = metadata.field(row).ok().filter(FieldDefinition::is_constant)?;
            Some((field.name, number(metadata.constant(row).ok()??, is_signed)?))
        };
        Some(rows.filter_map(constant).collect())
    }
}

/// A constant of one to eight bytes.
fn number(bytes: &[u8], is_signed: bool) -> Option<i64> {
    let bits = u32::try_from(bytes.len()).ok()?.checked_mul(8).filter(|bits| (8..=64).contains(bits))?;
    let value = bytes.iter().rev().fold(0_i64, |value, byte| value << 8 | i64::from(*byte));
    // The highest bit of the constant is the sign.
    let unused = 64_u32.checked_sub(bits)?;
    Some(if is_signed { value.wrapping_shl(unused).wrapping_shr(unused) } else { value })
}

/// Returns the name of a number, or the names of the flags that it consists of, as the runtime writes them.
pub(crate) fn name(constants: &[(String, i64)], number: i64) -> Option<String> {
    if let Some((name, _)) = constants.iter().find(|(_, of)| *of == number) {
        return Some(name.clone());
    }
    let mut flags: Vec<_> = constants.iter().filter(|(_, of)| *of != 0 && of & number == *of).collect();
    flags.sort_by_key(|(_, of)| std::cmp::Reverse(of.cast_unsigned()));
    let mut rest = number;
    let mut names = Vec::new();
    for (name, of) in flags {
        if rest & of == *of {
            rest &= !of;
            names.push(&**name);
        }
    }
    names.reverse();
    (rest == 0 && !names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_constants_and_of_flags() {
        let constants: Vec<_> = [("None", 0), ("Read", 1), ("Write", 2), ("Both", 3), ("Delete", 8)]
            .map(|(name, of)| (name.to_owned(), of))
            .into();
        let named = |number| name(&constants, number);
        assert_eq!([0, 2, 3].map(named), ["None", "Write", "Both"].map(|name| Some(name.to_owned())));
        assert_eq!(named(9).as_deref(), Some("Read, Delete"));
        assert_eq!(named(11).as_deref(), Some("Both, Delete"));
        assert_eq!([named(4), named(-1)], [None, None]);
        assert_eq!([number(&[0xff], false), number(&[0xff], true)], [Some(255), Some(-1)]);
        assert_eq!(
            [number(&[0xfe, 0xff], true), number(&[0xfe, 0xff, 0, 0], true)],
            [Some(-2), Some(0xfffe)]
        );
        assert_eq!(
            [number(&[0xff; 8], false), number(&[], true), number(&[0; 9], true)],
            [Some(-1), None, None]
        );
    }
}
