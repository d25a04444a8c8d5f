//! Names of types and methods by the runtime's structures and the metadata of their modules.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/method.hpp` (`MethodDesc`, `MethodDescChunk`), `vm/methodtable.h`,
//! `vm/typedesc.h`, `vm/typestring.cpp` for the notation, `vm/readytoruninfo.h` and `vm/hash.h` for the
//! methods of code that was compiled ahead of time.

mod aot;
mod debug_directory;
mod entry_point;
mod gc_info;
mod il_offset;
mod method_table;

use std::sync::Arc;

use portable_pdb::ProgramMetadata;

pub(crate) use self::method_table::{AUXILIARY, HAS_COMPONENT_SIZE, MODULE, is_instance, is_value};
use self::method_table::{is_array, is_vector};
use crate::code::map::{Code, CodeOrigin};
use crate::memory::address::{Address, MethodDesc, TypeHandle};
use crate::memory::{MemoryResult, offset};
use crate::runtime::module::Module;
use crate::types::Types;
use crate::types::method::{Method, MethodName};
use crate::types::signature;

/// Maximum number of types within the name of a type.
const MAX_TYPES: usize = 256;
/// Maximum nesting depth of types.
const MAX_DEPTH: u32 = 12;
/// Maximum nesting depth of arrays.
const MAX_ARRAY_NESTING: usize = 16;
/// Maximum number of arguments of a type.
const MAX_ARGUMENTS: u16 = 64;

impl Types<'_> {
    /// Returns the method of managed code; `None` if the memory lacks the way to it.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for thread in dump.threads().list()? {
    ///     let stack = dump.threads().stack(&thread, core.registers(thread.os_id));
    ///     for (_, code) in stack.managed() {
    ///         if let Some(name) = dump.types().method(code).and_then(|method| method.name) {
    ///             println!("{}.{}", name.type_name, name.name);
    ///         }
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn method(self, code: &Code) -> Option<Method> {
        let method_desc = match code.origin {
            CodeOrigin::Jit { method_desc } => method_desc,
            CodeOrigin::ReadyToRun { module, index } => {
                self.entry_point(module, code.function.image_base, index).ok().flatten()?.0
            }
            CodeOrigin::NativeAot { method } => return self.aot_method(method),
        };
        self.method_of(method_desc).ok()
    }

    /// Returns the method of managed code with the type that it is of; `None` if the memory lacks the way to
    /// it, and for code of NativeAOT programs.
    pub(crate) fn method_and_type(self, code: &Code) -> Option<(Method, TypeHandle)> {
        let method_desc = match code.origin {
            CodeOrigin::Jit { method_desc } => method_desc,
            CodeOrigin::ReadyToRun { module, index } => {
                self.entry_point(module, code.function.image_base, index).ok().flatten()?.0
            }
            CodeOrigin::NativeAot { .. } => return None,
        };
        let method_table = self.memory().type_handle(self.chunk(method_desc).ok()?).ok()?;
        Some((self.method_of(method_desc).ok()?, method_table))
    }

    /// Returns a method by the address of its MethodDesc.
    pub(crate) fn method_of(self, method_desc: MethodDesc) -> MemoryResult<Method> {
        const DYNAMIC: u16 = 7;
        let memory = self.memory();
        if memory.u16(method_desc.at(6))? & 7 == DYNAMIC {
            return Ok(Method { module: None, token: None, name: None });
        }
        let chunk = self.chunk(method_desc)?;
        let method_table = memory.type_handle(chunk)?;
        let low_bits = self.runtime().layout.method_row_bits;
        let part = |at: u64, bits: u32| memory.u16(at).map(|part| u32::from(part) & !(u32::MAX << bits));
        let high = part(offset(chunk, 18), 24_u32.saturating_sub(low_bits))?;
        let row = high << low_bits | part(method_desc.get(), low_bits)?;
        let module = self.module_at(self.module_of(method_table)?);
        let name = self.method_name(&module, method_table, row);
        Ok(Method { module: Some(module), token: Some(0x0600_0000 | row), name })
    }

    /// Returns a method by an address that can be wrong: `None` if its type does not declare it.
    pub(crate) fn checked_method(self, method_desc: MethodDesc) -> Option<Method> {
        let method = self.method_of(method_desc).ok()?;
        let Some((module, token)) = method.module.as_ref().zip(method.token) else { return Some(method) };
        if module.size == 0 && !module.has_metadata() {
            return None;
        }
        if let Some(metadata) = self.metadata(module) {
            let method_table = self.memory().type_handle(self.chunk(method_desc).ok()?).ok()?;
            let type_row = self.type_row(method_table).ok()?;
            if metadata.method(token & 0x00ff_ffff).ok()?.type_row != type_row {
                return None;
            }
        }
        Some(method)
    }

    /// The address of the MethodDescChunk that a MethodDesc is in. It begins with the method's type.
    pub(crate) fn chunk(self, method_desc: MethodDesc) -> MemoryResult<u64> {
        let index = u64::from(self.memory().u8(method_desc.at(2))?);
        Ok(method_desc.get().wrapping_sub(index.wrapping_mul(8).wrapping_add(24)))
    }

    fn method_name(self, module: &Module, method_table: TypeHandle, row: u32) -> Option<MethodName> {
        let metadata = self.metadata(module)?;
        let method = metadata.method(row).ok()?;
        let type_name = match self.name(method_table) {
            Some(name) => name.to_string(),
            None => metadata.type_name(method.type_row).ok()?,
        };
        let signature = signature::method(&metadata, method.signature).unwrap_or_default();
        Some(MethodName { type_name, name: method.name, signature })
    }

    /// Returns the module at an address.
    pub fn module_at(self, address: Address) -> Arc<Module> {
        if let Some(module) = self.dump.modules.borrow().get(&address) {
            return Arc::clone(module);
        }
        let module = Arc::new(Module::read(self.memory(), &self.runtime().layout.module, address));
        self.dump.modules.borrow_mut().insert(address, Arc::clone(&module));
        module
    }

    /// Returns the metadata of a module; `None` if the memory lacks it, it is damaged, or that of all modules
    /// is too large.
    pub(crate) fn metadata(self, module: &Module) -> Option<ProgramMetadata<'_>> {
        ProgramMetadata::parse(self.metadata_bytes(module)?).ok()
    }

    /// The same before it is parsed.
    pub(crate) fn metadata_bytes(self, module: &Module) -> Option<&[u8]> {
        module.metadata(self.memory(), &self.dump.metadata_left)
    }

    /// Returns the modules that have been read so far and all modules with code of their own, by path.
    pub fn modules(self) -> Vec<Arc<Module>> {
        for address in self.runtime().code().modules(self.memory()) {
            self.module_at(address);
        }
        let mut modules: Vec<_> = self.dump.modules.borrow().values().cloned().collect();
        modules.retain(|module| !module.base.is_null() || !module.path.is_empty());
        modules.sort_by(|a, b| a.path.cmp(&b.path).then_with(|| a.base.cmp(&b.base)));
        modules
    }

    /// Returns the name of a type, given its MethodTable address or type handle, as the runtime writes it:
    /// ``System.Collections.Generic.List`1[System.Int32]``. `None` if the memory lacks it.
    pub fn name(self, type_handle: TypeHandle) -> Option<Arc<str>> {
        if let Some(name) = self.dump.types.borrow().get(&type_handle) {
            return name.clone();
        }
        let mut left = MAX_TYPES;
        let name = match self.runtime().native_aot() {
            Some(_) => self.read_aot_type(type_handle, MAX_DEPTH, &mut left),
            None => self.read_type(type_handle, MAX_DEPTH, &mut left),
        };
        let name = name.map(Arc::from);
        self.dump.types.borrow_mut().insert(type_handle, name.clone());
        name
    }

    /// Returns the name of a type as the runtime writes it in its events: a nested type without its enclosing
    /// types, though they are in type arguments. `None` if the memory lacks it.
    pub fn event_name(self, type_handle: TypeHandle) -> Option<String> {
        let memory = self.memory();
        let (mut of, mut ranks) = (type_handle, Vec::new());
        let mut flags = memory.u32(of.get()).ok()?;
        while self.is_of_array(flags) && ranks.len() < MAX_ARRAY_NESTING {
            ranks.push(self.rank(of, flags).ok()?);
            of = memory.type_handle(of.at(self.element_type())).ok()?;
            flags = memory.u32(of.get()).ok()?;
        }
        let name = self.name(of)?;
        let arguments = name.find('[').unwrap_or(name.len());
        let (own, arguments) = name.split_at_checked(arguments)?;
        let mut name = [own.rsplit('+').next().unwrap_or(own), arguments].concat();
        for rank in ranks.iter().rev() {
            name.push('[');
            name.push_str(&",".repeat(usize::from(rank.saturating_sub(1))));
            name.push(']');
        }
        Some(name)
    }

    /// Returns the module of a type; `None` if the memory lacks the way to it.
    pub fn module(self, type_handle: TypeHandle) -> Option<Arc<Module>> {
        if self.runtime().is_native_aot() {
            return self.aot_module(type_handle).ok().flatten();
        }
        let module = self.module_at(self.module_of(type_handle).ok()?);
        Some(module).filter(|module| !module.file_name().is_empty())
    }

    /// Returns true if a type is of a module that was made in memory.
    pub fn is_dynamic(self, type_handle: TypeHandle) -> bool {
        let module = self.module_of(type_handle).ok().filter(|_| !self.runtime().is_native_aot());
        module.is_some_and(|module| self.module_at(module).is_dynamic)
    }

    /// Returns a name for a type of a module that was made in memory, whose own name the memory lacks; `None`
    /// for types of other modules.
    pub fn dynamic_name(self, type_handle: TypeHandle) -> Option<String> {
        self.is_dynamic(type_handle).then(|| format!("(dynamic module) {type_handle}"))
    }

    fn read_type(self, handle: TypeHandle, depth: u32, left: &mut usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        *left = left.checked_sub(1)?;
        let memory = self.memory();
        if let Some(description) = handle.description() {
            // Of a pointer or a reference, and of an array in .NET Core 3.1.
            let suffix = match memory.u8(description).ok()? {
                0x0f => "*",
                0x10 => "&",
                0x1d => "[]",
                0x14 => return self.read_type(memory.type_handle(offset(description, 8)).ok()?, depth, left),
                _ => return None,
            };
            let of = memory.type_handle(offset(description, 16)).ok()?;
            return Some([&*self.read_type(of, depth, left)?, suffix].concat());
        }
        let flags = memory.u32(handle.get()).ok()?;
        if is_array(flags) {
            let rank = self.rank(handle, flags).ok()?;
            let of = self.read_type(memory.type_handle(handle.at(48)).ok()?, depth, left)?;
            // A one-dimensional array with any lower bound.
            let dimensions = match rank {
                1 if !is_vector(flags) => "*".to_owned(),
                rank => ",".repeat(usize::from(rank.saturating_sub(1))),
            };
            return Some([&*of, "[", &dimensions, "]"].concat());
        }
        let module = self.module_at(self.module_of(handle).ok()?);
        let metadata = self.metadata(&module)?;
        let row = self.type_row(handle).ok()?;
        if row == 0 {
            // The runtime makes types without metadata from one that has it: continuations of .NET 11.
            return self.read_type(self.base_type(handle).ok()?, depth, left);
        }
        let name = metadata.type_name(row).ok()?;
        if !is_instance(flags) {
            return Some(name);
        }
        let arguments = self.arguments(handle).ok()?;
        let arguments: Option<Vec<String>> =
            arguments.into_iter().map(|argument| self.read_type(argument, depth, left)).collect();
        Some([&*name, "[", &arguments?.join(","), "]"].concat())
    }
}
