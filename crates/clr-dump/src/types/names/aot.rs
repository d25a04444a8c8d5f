//! Names of methods and types of a program that was compiled ahead of time.

use std::sync::Arc;

use super::MAX_DEPTH;
use crate::aot::names::{self, AotNames, Owner};
use crate::memory::MemoryResult;
use crate::memory::address::{Address, TypeHandle};
use crate::runtime::module::Module;
use crate::types::Types;
use crate::types::method::{Method, MethodName};

impl<'d> Types<'d> {
    /// The names of a program that was compiled ahead of time.
    fn aot_names(self) -> Option<&'d AotNames> {
        self.runtime().native_aot()?.names(self.memory()).map(|names| &**names)
    }

    /// The method of a NativeAOT program that starts at an address.
    pub(super) fn aot_method(self, start: Address) -> Option<Method> {
        let names = self.aot_names()?;
        let method = names.method(start.get())?;
        let (type_name, module) = match method.owner {
            Owner::Definition(handle) => {
                let module = names.assembly_of(handle).map(|assembly| self.assembly(assembly));
                (names.type_name(handle)?, module)
            }
            Owner::Type(handle) => (self.name(handle)?.to_string(), self.module(handle)),
        };
        let name = MethodName { type_name, name: method.name.to_owned(), signature: method.signature };
        Some(Method { module, token: None, name: Some(name) })
    }

    /// An assembly of a program that was compiled ahead of time.
    fn assembly(self, (address, name): (u64, &str)) -> Arc<Module> {
        let address = Address::new(address);
        let mut modules = self.dump.modules.borrow_mut();
        let read = || Arc::new(Module::of_program(address, name, self.runtime().base()));
        Arc::clone(modules.entry(address).or_insert_with(read))
    }

    /// The assembly of a type of a NativeAOT program: the assembly of its element type or of its definition.
    pub(super) fn aot_module(self, type_handle: TypeHandle) -> MemoryResult<Option<Arc<Module>>> {
        let mut of = type_handle;
        for _ in 0..MAX_DEPTH {
            let flags = self.memory().u32(of.get())?;
            if names::suffix(self.memory(), of, flags)?.is_some() {
                of = self.memory().type_handle(of.at(self.element_type()))?;
                continue;
            }
            if let Some((definition, _)) = self.aot_instance(of, flags)? {
                of = definition;
            }
            let assembly = self.aot_names().and_then(|names| names.assembly(of));
            return Ok(assembly.map(|assembly| self.assembly(assembly)));
        }
        Ok(None)
    }

    fn aot_instance(
        self,
        type_handle: TypeHandle,
        flags: u32,
    ) -> MemoryResult<Option<(TypeHandle, Vec<TypeHandle>)>> {
        names::instance(self.memory(), type_handle, flags, self.runtime().layout.types.optional_fields)
    }

    /// The name of a type that the compiler has made for the objects that have static fields. The program
    /// does not name them; no type of a program can have this name.
    fn storage_name(self, type_handle: TypeHandle) -> Option<String> {
        let storage = self.dump.storage.get_or_init(|| {
            let type_of = |object: Address| self.memory().object_type(object).ok();
            let objects = self.dump.statics().objects().unwrap_or_default();
            let threads = self.runtime().threads(self.memory()).unwrap_or_default();
            let of_threads =
                threads.iter().filter_map(|thread| self.dump.statics().thread_object(thread).ok().flatten());
            let of_threads = of_threads.filter_map(type_of).map(|of| (of, "[thread static fields]"));
            of_threads
                .chain(objects.into_iter().filter_map(type_of).map(|of| (of, "[static fields]")))
                .collect()
        });
        storage.get(&type_handle).map(|name| (*name).to_owned())
    }

    /// The name of a type of a program that was compiled ahead of time.
    pub(super) fn read_aot_type(self, handle: TypeHandle, depth: u32, left: &mut usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        *left = left.checked_sub(1)?;
        let memory = self.memory();
        let flags = memory.u32(handle.get()).ok()?;
        if let Some(suffix) = names::suffix(memory, handle, flags).ok()? {
            let of = memory.type_handle(handle.at(self.element_type())).ok()?;
            return Some([self.read_aot_type(of, depth, left)?, suffix].concat());
        }
        let Some((definition, arguments)) = self.aot_instance(handle, flags).ok()? else {
            return self.aot_names()?.definition(handle).or_else(|| self.storage_name(handle));
        };
        let name = self.aot_names()?.definition(definition)?;
        let arguments: Option<Vec<String>> =
            arguments.into_iter().map(|argument| self.read_aot_type(argument, depth, left)).collect();
        Some([&*name, "[", &arguments?.join(","), "]"].concat())
    }
}
