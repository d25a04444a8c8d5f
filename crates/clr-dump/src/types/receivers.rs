//! The objects on which a method calls others: the fields by which its instructions reach them.

use std::collections::HashMap;

use crate::types::Types;
use crate::types::instructions::{Instruction, Instructions};
use crate::types::method::Method;

const LOAD_THIS: u8 = 0x02;
const CALL: u8 = 0x28;
const CALL_VIRTUAL: u8 = 0x6f;
const LOAD_FIELD: u8 = 0x7b;
const TWO_BYTES: u8 = 0xfe;
/// The table of the fields that a program defines, as the first byte of a token.
const FIELD: u32 = 0x04;

/// A call in the instructions of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The offset of the instruction.
    pub(crate) offset: u32,
    /// The fields from the method's own object to the one that it calls, the first one first; `None` if the
    /// instructions reach it in another way.
    pub(crate) receiver: Option<Vec<String>>,
}

impl Types<'_> {
    /// Returns the calls of any of these methods of any of these types; none if the memory lacks the
    /// instructions.
    pub(crate) fn calls_of(self, method: &Method, types: &[&str], names: &[&str]) -> Vec<Call> {
        let find = || {
            let (module, token) = method.module.as_ref().zip(method.token)?;
            let metadata = self.metadata(module)?;
            let code = self.instructions(module, token & 0x00ff_ffff)?;
            let is_meant = |token: u32| {
                let called = metadata.referenced_method(token).ok().flatten();
                called.is_some_and(|(of, name)| types.contains(&&*of) && names.contains(&&*name))
            };
            let field = |token: u32| {
                let own = || Some(metadata.field(token & 0x00ff_ffff).ok()?.name);
                let other = || metadata.referenced_name(token).ok().flatten();
                if token >> 24 == FIELD { own() } else { other() }
            };
            Some(calls_in(&code, is_meant, field))
        };
        find().unwrap_or_default()
    }
}

/// The fields that lead from a method's own object to the value on the stack.
type Fields = Vec<u32>;

fn calls_in(code: &[u8], is_meant: impl Fn(u32) -> bool, field: impl Fn(u32) -> Option<String>) -> Vec<Call> {
    let mut calls = Vec::new();
    // The last value on the stack, and those of local variables that are stored once.
    let mut last: Option<Fields> = None;
    let mut locals: HashMap<u32, Option<Fields>> = HashMap::new();
    for instruction in Instructions::new(code) {
        let token = instruction.number();
        match instruction.first {
            CALL | CALL_VIRTUAL => {
                if token.is_some_and(&is_meant) {
                    let names = |fields: Fields| fields.into_iter().map(&field).collect();
                    let receiver = last.take().and_then(names);
                    let offset = u32::try_from(instruction.offset).unwrap_or(u32::MAX);
                    calls.push(Call { offset, receiver });
                }
                last = None;
            }
            LOAD_THIS => last = Some(Vec::new()),
            LOAD_FIELD => {
                last = last.zip(token).map(|(mut fields, token)| {
                    fields.push(token);
                    fields
                });
            }
            _ => match local(&instruction) {
                Some((number, true)) => {
                    let stored = last.take();
                    let of = locals.entry(number).or_insert_with(|| stored.clone());
                    if *of != stored {
                        *of = None;
                    }
                }
                Some((number, false)) => last = locals.get(&number).cloned().flatten(),
                None => last = None,
            },
        }
    }
    calls
}

/// The number of the local variable that an instruction stores or loads, and true if it stores it.
fn local(instruction: &Instruction<'_>) -> Option<(u32, bool)> {
    let short = || instruction.operand.first().map(|number| u32::from(*number));
    let number = |base: u8| Some(u32::from(instruction.first.saturating_sub(base)));
    match instruction.first {
        0x06..=0x09 => Some((number(0x06)?, false)),
        0x0a..=0x0d => Some((number(0x0a)?, true)),
        0x11 => Some((short()?, false)),
        0x13 => Some((short()?, true)),
        TWO_BYTES => {
            let (second, number) = instruction.operand.split_first()?;
            let number = u32::from(u16::from_le_bytes(*number.first_chunk()?));
            match second {
                0x0c => Some((number, false)),
                0x0e => Some((number, true)),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(code: &[&[u8]]) -> Vec<Call> {
        let field = |token: u32| Some(format!("f{}", token & 0xff));
        calls_in(&code.concat(), |token| token == 0x0a00_0001, field)
    }

    fn call(offset: u32, receiver: Option<&[&str]>) -> Call {
        let receiver = receiver.map(|fields| fields.iter().map(|field| (*field).to_owned()).collect());
        Call { offset, receiver }
    }

    const CALLED: &[u8] = &[CALL_VIRTUAL, 1, 0, 0, 0x0a];

    #[test]
    fn objects_are_reached_by_fields_and_variables() {
        // this.f1.f2.M(); v0 = this.f3; v0.f4.M(); N(); M() of what N returns; static; this.f5.M(7)
        let found = calls(&[
            &[LOAD_THIS, LOAD_FIELD, 1, 0, 0, 4, LOAD_FIELD, 2, 0, 0, 4],
            CALLED,
            &[LOAD_THIS, LOAD_FIELD, 3, 0, 0, 4, 0x0a, 0x06, LOAD_FIELD, 4, 0, 0, 4],
            CALLED,
            &[LOAD_THIS, CALL, 2, 0, 0, 0x0a],
            CALLED,
            &[0x7e, 9, 0, 0, 4],
            CALLED,
            &[LOAD_THIS, LOAD_FIELD, 5, 0, 0, 4, 0x1d],
            CALLED,
        ]);
        let expected = [
            call(11, Some(&["f1", "f2"])),
            call(29, Some(&["f3", "f4"])),
            call(40, None),
            call(50, None),
            call(62, None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_variable_with_two_values_is_not_known() {
        // v300 = this.f1; v300 = this.f2; v300.M(); v1 = this; v1.M()
        let found = calls(&[
            &[LOAD_THIS, LOAD_FIELD, 1, 0, 0, 4, TWO_BYTES, 0x0e, 44, 1],
            &[LOAD_THIS, LOAD_FIELD, 2, 0, 0, 4, TWO_BYTES, 0x0e, 44, 1],
            &[TWO_BYTES, 0x0c, 44, 1],
            CALLED,
            &[LOAD_THIS, 0x13, 1, 0x11, 1],
            CALLED,
        ]);
        assert_eq!(found, [call(24, None), call(34, Some(&[]))]);
    }
}
