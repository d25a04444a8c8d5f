//! The places of a method's variables.

use std::collections::BTreeMap;

use super::Nibbles;

/// Maximum number of entries of a method.
const MAX_ENTRIES: u32 = 1 << 14;
/// The lowest of the special numbers of variables, which are relative to it (`ICorDebugInfo::MAX_ILNUM`).
const BASE: i32 = -4;

/// Kinds of places (`ICorDebugInfo::VarLocType`).
mod kind {
    pub(super) const REGISTER: u32 = 0;
    pub(super) const ADDRESS_IN_REGISTER: u32 = 1;
    pub(super) const FLOATING_POINT: u32 = 2;
    pub(super) const STACK: u32 = 3;
    pub(super) const ADDRESS_ON_STACK: u32 = 4;
    pub(super) const TWO_REGISTERS: u32 = 5;
    pub(super) const REGISTER_AND_STACK: u32 = 6;
    pub(super) const STACK_AND_REGISTER: u32 = 7;
    pub(super) const TWO_SLOTS: u32 = 8;
    pub(super) const LAST: u32 = 10;
}

/// A variable of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NativeVariable {
    /// The number: arguments, with `this` as the first one, and then local variables.
    pub(crate) number: u32,
    /// The place at the code; `None` if it has none there.
    pub(crate) place: Option<VariablePlace>,
}

/// The place of a variable. Registers have their numbers as instructions have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariablePlace {
    Register(u8),
    /// The register has the address of the value.
    AddressInRegister(u8),
    Stack {
        base: u8,
        offset: i32,
    },
    /// The place on the stack has the address of the value.
    AddressOnStack {
        base: u8,
        offset: i32,
    },
    /// A place that is not read: a floating-point register, or two places.
    Other,
}

/// Reads the variables, in the order of their numbers; `None` if they are damaged.
pub(super) fn read(bytes: &[u8], native: u32) -> Option<Vec<NativeVariable>> {
    let mut numbers = Nibbles::new(bytes);
    let mut variables: BTreeMap<u32, Option<VariablePlace>> = BTreeMap::new();
    for _ in 0..numbers.number()?.min(MAX_ENTRIES) {
        let start = numbers.number()?;
        let end = start.checked_add(numbers.number()?)?;
        let number = BASE.checked_add_unsigned(numbers.number()?)?;
        let place = read_place(&mut numbers)?;
        // The others are hidden arguments.
        let Ok(number) = u32::try_from(number) else { continue };
        let place = (start..end).contains(&native).then_some(place);
        let known = variables.entry(number).or_default();
        *known = known.or(place);
    }
    Some(variables.into_iter().map(|(number, place)| NativeVariable { number, place }).collect())
}

fn read_place(numbers: &mut Nibbles<'_>) -> Option<VariablePlace> {
    let of = numbers.number()?;
    Some(match of {
        kind::REGISTER => VariablePlace::Register(register(numbers)?),
        kind::ADDRESS_IN_REGISTER => VariablePlace::AddressInRegister(register(numbers)?),
        kind::STACK => VariablePlace::Stack { base: register(numbers)?, offset: signed(numbers)? },
        kind::ADDRESS_ON_STACK => {
            VariablePlace::AddressOnStack { base: register(numbers)?, offset: signed(numbers)? }
        }
        _ => {
            let count = match of {
                kind::TWO_REGISTERS | kind::TWO_SLOTS => 2,
                kind::REGISTER_AND_STACK | kind::STACK_AND_REGISTER => 3,
                kind::FLOATING_POINT..=kind::LAST => 1,
                _ => return None,
            };
            for _ in 0..count {
                numbers.number()?;
            }
            VariablePlace::Other
        }
    })
}

fn register(numbers: &mut Nibbles<'_>) -> Option<u8> {
    u8::try_from(numbers.number()?).ok()
}

/// Reads a number with a sign, which is its lowest bit.
fn signed(numbers: &mut Nibbles<'_>) -> Option<i32> {
    let number = numbers.number()?;
    let value = i32::try_from(number >> 1).ok()?;
    Some(if number & 1 == 0 { value } else { value.wrapping_neg() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::nibbles;
    use super::*;

    /// An argument in rdi and then on the stack, one by its address, a hidden one, and a local variable.
    fn example() -> Vec<u8> {
        let entry = |number: u32, start: u32, end: u32| [start, end - start, number + 4];
        let parts: [&[u32]; 12] = [
            &[6],
            &entry(0, 0, 9),
            &[0, 7],
            &entry(0, 9, 90),
            &[3, 5, 24 << 1 | 1],
            &entry(1, 0, 90),
            &[4, 4, 16 << 1],
            // The hidden argument, in two registers, and a number of floating point.
            &[0, 90, 1, 5, 0, 2],
            &entry(2, 0, 90),
            &[2, 3],
            &entry(3, 20, 30),
            &[0, 3],
        ];
        nibbles(&parts.concat())
    }

    #[test]
    fn variables_have_the_place_of_the_code() {
        let at = |native| {
            let places = read(&example(), native).unwrap();
            places.into_iter().map(|variable| (variable.number, variable.place)).collect::<Vec<_>>()
        };
        let stack = VariablePlace::Stack { base: 5, offset: -24 };
        let address = VariablePlace::AddressOnStack { base: 4, offset: 16 };
        let number = VariablePlace::Other;
        let expected =
            [(0, Some(VariablePlace::Register(7))), (1, Some(address)), (2, Some(number)), (3, None)];
        assert_eq!(at(8), expected);
        let local = VariablePlace::Register(3);
        assert_eq!(at(20), [(0, Some(stack)), (1, Some(address)), (2, Some(number)), (3, Some(local))]);
        assert_eq!(at(90), [(0, None), (1, None), (2, None), (3, None)]);
    }

    #[test]
    fn more_entries_than_a_method_has_are_left_out() {
        // Each variable is in the register of its number.
        let entries = (0..MAX_ENTRIES + 9).flat_map(|number| [0, 9, number + 4, 0, number & 7]);
        let numbers: Vec<u32> = std::iter::once(MAX_ENTRIES + 9).chain(entries).collect();
        let variables = read(&nibbles(&numbers), 0).unwrap();
        assert_eq!(u32::try_from(variables.len()), Ok(MAX_ENTRIES));
        let last = variables.last().unwrap();
        assert_eq!((last.number, last.place), (MAX_ENTRIES - 1, Some(VariablePlace::Register(7))));
    }

    #[test]
    fn damaged_variables_are_none() {
        let bytes = example();
        for length in 0..bytes.len() - 1 {
            assert_eq!(read(&bytes[..length], 20), None, "{length}");
        }
        // A kind that does not exist, and one entry more than there is.
        assert_eq!(read(&nibbles(&[1, 0, 9, 4, 11]), 0), None);
        assert_eq!(read(&[0xff; 40], 0), None);
    }
}
