//! The place in the source of the `await` at which a method is.
//!
//! # Source
//! Compilers have a method store the number of the `await` in its state machine before it returns: that is
//! within the statement of the `await`. Seen with Roslyn 4.1, optimised and not, and Mono's compiler.

use crate::awaits::Awaits;
use crate::awaits::async_type::STATES;
use crate::awaits::graph::{AwaitKind, AwaitNode};
use crate::types::instructions::{Instruction, Instructions};
use crate::types::method::Method;

const STORE_FIELD: u8 = 0x7d;
const DUPLICATE: u8 = 0x25;
/// The table of the methods that a program defines, as the first byte of a token.
const METHOD: u32 = 0x0600_0000;
/// The same of its fields.
const FIELD: u32 = 0x04;

impl Awaits<'_> {
    /// Returns the method whose code an `async` method is, with the offset in its IL of the `await` at which
    /// it is: for source lines. `None` of methods that run, of other objects, and if the memory lacks the
    /// code.
    pub fn await_place(self, node: &AwaitNode) -> Option<(Method, u32)> {
        match node.kind {
            AwaitKind::Method { state_machine: Some(machine), state: Some(state @ 0..) } => {
                let types = self.dump.types();
                let (module, row) = types.method_of_type(machine, "MoveNext")?;
                let metadata = types.metadata(&module)?;
                let is_state = |token: u32| {
                    let own = || Some(metadata.field(token & 0x00ff_ffff).ok()?.name);
                    let other = || metadata.referenced_name(token).ok().flatten();
                    let name = if token >> 24 == FIELD { own() } else { other() };
                    name.is_some_and(|name| STATES.contains(&&*name))
                };
                let offset = store_of(&types.instructions(&module, row)?, state, is_state)?;
                let method = Method { module: Some(module.clone()), token: Some(METHOD | row), name: None };
                Some((method, u32::try_from(offset).ok()?))
            }
            AwaitKind::SuspendedCall { at } => {
                let code = self.runtime().code().find(self.memory(), at).ok()??;
                Some((self.suspended_method(node)?, self.dump.types().il_offset(&code, at)?))
            }
            _ => None,
        }
    }
}

/// The offset of the constant that is stored in a field as the number of a state.
fn store_of(code: &[u8], state: i32, is_state: impl Fn(u32) -> bool) -> Option<usize> {
    let mut loaded = None;
    for instruction in Instructions::new(code) {
        let is_store = instruction.first == STORE_FIELD && instruction.number().is_some_and(&is_state);
        match loaded {
            Some((offset, number)) if is_store && number == state => return Some(offset),
            _ => {}
        }
        if let Some(number) = constant(&instruction) {
            loaded = Some((instruction.offset, number));
        } else if !is_copy(&instruction) {
            loaded = None;
        }
    }
    None
}

/// The number that an instruction loads.
fn constant(instruction: &Instruction<'_>) -> Option<i32> {
    match instruction.first {
        first @ 0x16..=0x1e => Some(i32::from(first).saturating_sub(0x16)),
        0x1f => instruction.operand.first().map(|number| number.cast_signed().into()),
        0x20 => instruction.number().map(u32::cast_signed),
        _ => None,
    }
}

/// Returns true for instructions that keep a number for a local variable, too.
fn is_copy(instruction: &Instruction<'_>) -> bool {
    /// The second byte of the instruction that stores a local variable with a large number.
    const STORE_LOCAL: u8 = 0x0e;
    match instruction.first {
        DUPLICATE | 0x0a..=0x0d | 0x13 => true,
        0xfe => instruction.operand.first() == Some(&STORE_LOCAL),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_stored_in_the_statement_of_its_await() {
        // ldarg.0, ldc.i4.m1, dup, stloc.0, stfld; ldc.i4.s 9, stfld of another field; ldarg.0, ldc.i4.s 9,
        // dup, stloc 300, stfld.
        let code = [
            &[0x02, 0x15, 0x25, 0x0a, 0x7d, 1, 0, 0, 4][..],
            &[0x02, 0x1f, 9, 0x7d, 2, 0, 0, 4],
            &[0x02, 0x1f, 9, 0x25, 0xfe, 0x0e, 44, 1, 0x7d, 1, 0, 0, 4],
            &[0x02, 0x17, 0x7d, 1, 0, 0, 4],
        ]
        .concat();
        let is_state = |token| token == 0x0400_0001;
        assert_eq!(store_of(&code, 9, is_state), Some(18));
        assert_eq!(store_of(&code, 1, is_state), Some(31));
        assert_eq!(store_of(&code, 0, is_state), None);
        // A number that was used in between is not the one that is stored.
        assert_eq!(store_of(&[0x1f, 3, 0x26, 0x7d, 1, 0, 0, 4], 3, is_state), None);
        assert_eq!(store_of(&[0x1f], 3, is_state), None);
    }
}
