//! Calls in the instructions of a method, and the fields that it reads.

use std::sync::Arc;

#[cfg(feature = "analysis")]
use crate::memory::address::Address;
use crate::memory::address::TypeHandle;
use crate::runtime::module::Module;
use crate::types::Types;
#[cfg(feature = "analysis")]
use crate::types::field::StaticField;
use crate::types::instructions::Instructions;
use crate::types::method::Method;

const CALL: u8 = 0x28;
const CALL_VIRTUAL: u8 = 0x6f;
const LOAD_FIELD: u8 = 0x7b;
const LOAD_FIELD_ADDRESS: u8 = 0x7c;
const LOAD_STATIC_FIELD: u8 = 0x7e;
const LOAD_STATIC_FIELD_ADDRESS: u8 = 0x7f;
/// The table of the fields that a program defines.
#[cfg(feature = "analysis")]
const FIELD: u32 = 0x04;
/// Maximum number of types to search for the one that defines a field.
#[cfg(feature = "analysis")]
const MAX_TYPES: u32 = 1 << 16;

/// The fields that a method reads.
#[cfg(feature = "analysis")]
#[derive(Debug, Default)]
pub(crate) struct FieldsRead {
    /// The names of fields of objects.
    pub(crate) names: Vec<String>,
    /// The addresses of static fields that its own program defines.
    pub(crate) statics: Vec<Address>,
}

impl Types<'_> {
    /// Returns true if a method calls a method of another assembly: its instructions have the call, whether
    /// or not it is reached. False if the memory lacks them. `type_name` has no type arguments.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let method = dump.heap().delegate_method(clr_dump::Address::new(0x7f00_1000_2000)).ok_or("no method")?;
    /// let releases = dump.types().calls(&method, "System.Threading.SemaphoreSlim", "Release");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn calls(self, method: &Method, type_name: &str, name: &str) -> bool {
        self.calls_any(method, &[type_name], &[name])
    }

    /// Returns true if a method calls any of these methods of any of these types.
    pub(crate) fn calls_any(self, method: &Method, types: &[&str], names: &[&str]) -> bool {
        let place = method.module.as_ref().zip(method.token);
        place.is_some_and(|(module, token)| self.row_calls(module, token & 0x00ff_ffff, types, names))
    }

    /// Returns the fields that a method reads.
    #[cfg(feature = "analysis")]
    pub(crate) fn fields_read(self, method: &Method) -> FieldsRead {
        let mut read = FieldsRead::default();
        let mut find = || {
            let module = method.module.as_ref()?;
            let metadata = self.metadata(module)?;
            for (instruction, token) in self.tokens(module, method.token? & 0x00ff_ffff)? {
                let row = token & 0x00ff_ffff;
                let own = (token >> 24 == FIELD).then(|| metadata.field(row).ok()).flatten();
                match (instruction, own) {
                    (LOAD_FIELD | LOAD_FIELD_ADDRESS, Some(field)) => read.names.push(field.name),
                    (LOAD_FIELD | LOAD_FIELD_ADDRESS, None) => {
                        let other = metadata.referenced_method(token).ok().flatten();
                        read.names.extend(other.map(|(_, name)| name));
                    }
                    (LOAD_STATIC_FIELD | LOAD_STATIC_FIELD_ADDRESS, Some(field)) => {
                        let defines =
                            |of: &u32| metadata.fields_of_type(*of).is_ok_and(|rows| rows.contains(&row));
                        let of = (1..=metadata.type_count().min(MAX_TYPES)).find(defines);
                        let of = of.and_then(|of| self.defined_type(module.address, of));
                        let fields = of.map(|of| self.dump.statics().fields_of(of, &[]));
                        let is_meant = |of: &StaticField| of.field.name == field.name;
                        read.statics.extend(fields.into_iter().flatten().find(is_meant).map(|of| of.address));
                    }
                    _ => {}
                }
            }
            Some(())
        };
        find();
        read
    }

    /// The same for a method of a type, by its name: the `MoveNext` of a state machine.
    pub fn method_of_type_calls(self, of: TypeHandle, method: &str, type_name: &str, name: &str) -> bool {
        self.method_of_type(of, method)
            .is_some_and(|(module, row)| self.row_calls(&module, row, &[type_name], &[name]))
    }

    /// The module and the row of a method that a type defines, by its name.
    pub(crate) fn method_of_type(self, of: TypeHandle, method: &str) -> Option<(Arc<Module>, u32)> {
        let module = self.module(of)?;
        let metadata = self.metadata(&module)?;
        let mut rows = metadata.methods_of_type(self.type_row(of).ok()?).ok()?;
        let row = rows.find(|row| metadata.method(*row).is_ok_and(|of| of.name == method))?;
        Some((module, row))
    }

    fn row_calls(self, module: &Module, row: u32, types: &[&str], names: &[&str]) -> bool {
        let calls = || {
            let metadata = self.metadata(module)?;
            let is_meant = |(instruction, token): (u8, u32)| {
                let referenced = metadata.referenced_method(token).ok().flatten();
                matches!(instruction, CALL | CALL_VIRTUAL)
                    && referenced.is_some_and(|(of, called)| {
                        types.contains(&of.as_str()) && names.contains(&called.as_str())
                    })
            };
            Some(self.tokens(module, row)?.into_iter().any(is_meant))
        };
        calls().unwrap_or_default()
    }

    /// The instructions of a method that call a method or load a field, with its token.
    fn tokens(self, module: &Module, row: u32) -> Option<Vec<(u8, u32)>> {
        Some(tokens_of(&self.instructions(module, row)?))
    }
}

/// The tokens of the methods that instructions call and of the fields that they load.
fn tokens_of(code: &[u8]) -> Vec<(u8, u32)> {
    let tokens = Instructions::new(code).filter(|of| {
        let is_call = matches!(of.first, CALL | CALL_VIRTUAL);
        let is_static = matches!(of.first, LOAD_STATIC_FIELD..=LOAD_STATIC_FIELD_ADDRESS);
        is_call || is_static || matches!(of.first, LOAD_FIELD..=LOAD_FIELD_ADDRESS)
    });
    tokens.filter_map(|of| Some((of.first, of.number()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_not_instructions() {
        // ldsfld, callvirt, ldc.i4 with the bytes of a call, a switch of one target, ldftn, ret, and a call.
        let code = [
            &[0x7e, 1, 0, 0, 4][..],
            &[0x6f, 2, 0, 0, 0x0a],
            &[0x20, 0x28, 0x28, 0x28, 0x28],
            &[0x45, 1, 0, 0, 0, 0x28, 0, 0, 0],
            &[0xfe, 0x06, 0x28, 0, 0, 6],
            &[0x2a],
            &[0x28, 3, 0, 0, 0x0a],
        ]
        .concat();
        let tokens = [(LOAD_STATIC_FIELD, 0x0400_0001), (CALL_VIRTUAL, 0x0a00_0002), (CALL, 0x0a00_0003)];
        assert_eq!(tokens_of(&code), tokens);
        // One that does not exist, and one that is cut off.
        assert_eq!(tokens_of(&[0x24, 0x28, 1, 0, 0, 6]), []);
        assert_eq!(tokens_of(&[0x28, 1, 0]), []);
        assert_eq!(tokens_of(&[0x45, 0xff, 0xff, 0xff, 0xff, 0]), []);
    }
}
