//! Names of types and methods by the runtime's structures and the metadata of their modules.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/method.hpp` (`MethodDesc`, `MethodDescChunk`), `vm/methodtable.h`,
//! `vm/typedesc.h`, `vm/typestring.cpp` for the notation, `vm/readytoruninfo.h` and `vm/hash.h` for the
//! methods of code that was compiled ahead of time.

mod native;

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use hashbrown::HashMap;
use portable_pdb::ProgramMetadata;

use crate::code_map::{Code, CodeOrigin};
use crate::layout::TypeForm;
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::module::Module;
use crate::native_names;
use crate::runtime::Runtime;
use crate::signature;

/// The most types in the name of one.
const MOST_TYPES: usize = 256;
/// The deepest nesting of types.
const DEEPEST: u32 = 12;
/// The most arrays in one another.
const MOST_RANKS: usize = 16;
/// The most arguments of a type.
const MOST_ARGUMENTS: u16 = 64;
/// The most bytes of metadata that are kept.
const MOST_METADATA: usize = 1 << 30;
/// The most functions of a method of an image: its body and its funclets.
const MOST_FUNCTIONS: u32 = 64;
/// The most buckets of a hash table that are searched.
const MOST_BUCKETS: u64 = 1024;

/// Names of types and methods of a runtime. Modules and names are read once and kept.
pub struct Names<'m> {
    memory: &'m dyn Memory,
    runtime: &'m Runtime,
    modules: RefCell<HashMap<u64, Arc<Module>>>,
    types: RefCell<HashMap<u64, Option<Arc<str>>>>,
    metadata_left: Cell<usize>,
    /// The types of objects that have static fields, of a program that was compiled ahead of time.
    storage: OnceCell<HashMap<u64, &'static str>>,
}

impl std::fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").field("modules", &self.modules.borrow().len()).finish_non_exhaustive()
    }
}

/// A method, as the runtime names it in its events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MethodName {
    /// The type with its namespace and type arguments.
    pub type_name: String,
    /// The method's own name.
    pub name: String,
    /// The signature, return type first; empty if it is damaged.
    pub signature: String,
}

/// A method of managed code. Parts that the memory lacks are `None`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Method {
    /// The module that defines it; `None` if the method was made in memory.
    pub module: Option<Arc<Module>>,
    /// Its metadata token; `None` if the method was made in memory, or was compiled ahead of time with the
    /// program.
    pub token: Option<u32>,
    /// Its names.
    pub name: Option<MethodName>,
}

impl<'m> Names<'m> {
    /// Starts without any names.
    pub fn new(memory: &'m dyn Memory, runtime: &'m Runtime) -> Self {
        Self {
            memory,
            runtime,
            modules: RefCell::default(),
            types: RefCell::default(),
            metadata_left: Cell::new(MOST_METADATA),
            storage: OnceCell::new(),
        }
    }

    pub(crate) fn memory(&self) -> &'m dyn Memory {
        self.memory
    }

    pub(crate) const fn runtime(&self) -> &'m Runtime {
        self.runtime
    }

    /// Returns the method of managed code; `None` if the memory lacks the way to it.
    pub fn method(&self, code: &Code) -> Option<Method> {
        let method_desc = match code.origin {
            CodeOrigin::Jit { method_desc } => method_desc,
            CodeOrigin::ReadyToRun { module, index } => {
                self.entry_point(module, code.function.image_base, index).ok().flatten()?
            }
            CodeOrigin::NativeAot { method } => return self.native_method(method),
        };
        self.method_of(method_desc).ok()
    }

    /// Returns a method by the address of its MethodDesc.
    pub(crate) fn method_of(&self, method_desc: u64) -> MemoryResult<Method> {
        const DYNAMIC: u16 = 7;
        let memory = self.memory;
        if memory.u16(offset(method_desc, 6))? & 7 == DYNAMIC {
            return Ok(Method { module: None, token: None, name: None });
        }
        let index = u64::from(memory.u8(offset(method_desc, 2))?);
        let chunk = method_desc.wrapping_sub(index.wrapping_mul(8).wrapping_add(24));
        let method_table = memory.u64(chunk)?;
        let low_bits = self.runtime.layout.method_row_bits;
        let part = |at: u64, bits: u32| memory.u16(at).map(|part| u32::from(part) & !(u32::MAX << bits));
        let high = part(offset(chunk, 18), 24_u32.saturating_sub(low_bits))?;
        let row = high << low_bits | part(method_desc, low_bits)?;
        let module = self.module(self.module_of(method_table)?);
        let name = self.method_name(&module, method_table, row);
        Ok(Method { module: Some(module), token: Some(0x0600_0000 | row), name })
    }

    /// Returns a method by an address that can be wrong: `None` if its type does not declare it.
    pub(crate) fn checked_method(&self, method_desc: u64) -> Option<Method> {
        let memory = self.memory;
        let method = self.method_of(method_desc).ok()?;
        let Some((module, token)) = method.module.as_ref().zip(method.token) else { return Some(method) };
        if module.size == 0 {
            return None;
        }
        if let Some(metadata) =
            module.metadata.as_deref().and_then(|bytes| ProgramMetadata::parse(bytes).ok())
        {
            let index = u64::from(memory.u8(offset(method_desc, 2)).ok()?);
            let chunk = method_desc.wrapping_sub(index.wrapping_mul(8).wrapping_add(24));
            let type_row = self.type_row(memory.u64(chunk).ok()?).ok()?;
            if metadata.method(token & 0x00ff_ffff).ok()?.type_row != type_row {
                return None;
            }
        }
        Some(method)
    }

    fn method_name(&self, module: &Module, method_table: u64, row: u32) -> Option<MethodName> {
        let metadata = ProgramMetadata::parse(module.metadata.as_deref()?).ok()?;
        let method = metadata.method(row).ok()?;
        let type_name = match self.type_name(method_table) {
            Some(name) => name.to_string(),
            None => metadata.type_name(method.type_row).ok()?,
        };
        let signature = signature::method(&metadata, method.signature).unwrap_or_default();
        Some(MethodName { type_name, name: method.name, signature })
    }

    /// Returns a module by its address.
    pub fn module(&self, address: u64) -> Arc<Module> {
        if let Some(module) = self.modules.borrow().get(&address) {
            return Arc::clone(module);
        }
        let mut module = Module::read(self.memory, &self.runtime.layout.module, address);
        let size = module.metadata.as_ref().map_or(0, |metadata| metadata.len());
        match self.metadata_left.get().checked_sub(size) {
            Some(left) => self.metadata_left.set(left),
            None => module.metadata = None,
        }
        let module = Arc::new(module);
        self.modules.borrow_mut().insert(address, Arc::clone(&module));
        module
    }

    /// Finds the MethodDesc of a function of an image in the runtime's table of prepared methods.
    ///
    /// A function that is not in it is a funclet, and belongs to the last method before it.
    fn entry_point(&self, module: u64, base: u64, index: u32) -> MemoryResult<Option<u64>> {
        let Some(field) = self.runtime.layout.module.ready_to_run else { return Ok(None) };
        let info = self.memory.u64(offset(module, field.info))?;
        let table = self.memory.u64(offset(info, field.entry_points))?;
        let image = self.runtime.code().image(self.memory, base)?;
        for back in 0..MOST_FUNCTIONS {
            let Some(index) = index.checked_sub(back) else { break };
            let begin = image.begin(self.memory, index)?;
            if let Some(method_desc) = look_up(self.memory, table, begin)? {
                return Ok(Some(method_desc));
            }
        }
        Ok(None)
    }

    /// Returns the name of the type of an object.
    pub fn object_type(&self, object: u64) -> Option<Arc<str>> {
        // The lowest bits are marks of a collection.
        self.type_name(self.memory.u64(object).ok()? & !7)
    }

    /// Returns the modules that have been read so far, and those that have code of their own, by path.
    pub fn known_modules(&self) -> Vec<Arc<Module>> {
        for address in self.runtime.code().modules(self.memory) {
            self.module(address);
        }
        let mut modules: Vec<_> = self.modules.borrow().values().cloned().collect();
        modules.retain(|module| module.base != 0 || !module.path.is_empty());
        modules.sort_by(|a, b| a.path.cmp(&b.path).then_with(|| a.base.cmp(&b.base)));
        modules
    }

    /// Returns the name of a type by the address of its MethodTable or by its type handle, as the runtime
    /// writes it: ``System.Collections.Generic.List`1[System.Int32]``. `None` if the memory lacks it.
    pub fn type_name(&self, type_handle: u64) -> Option<Arc<str>> {
        if let Some(name) = self.types.borrow().get(&type_handle) {
            return name.clone();
        }
        let mut left = MOST_TYPES;
        let name = match self.runtime.native_aot() {
            Some(_) => self.read_native_type(type_handle, DEEPEST, &mut left),
            None => self.read_type(type_handle, DEEPEST, &mut left),
        };
        let name = name.map(Arc::from);
        self.types.borrow_mut().insert(type_handle, name.clone());
        name
    }

    /// Returns the name of a type as the runtime writes it in its events: a nested type without its enclosing
    /// types, though they are in type arguments. `None` if the memory lacks it.
    pub fn event_type_name(&self, type_handle: u64) -> Option<String> {
        let memory = self.memory;
        let (mut of, mut ranks) = (type_handle, Vec::new());
        let mut flags = memory.u32(of).ok()?;
        while self.is_of_array(flags) && ranks.len() < MOST_RANKS {
            ranks.push(self.rank(of, flags).ok()?);
            of = memory.u64(offset(of, self.element_type())).ok()?;
            flags = memory.u32(of).ok()?;
        }
        let name = self.type_name(of)?;
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

    /// Whether a type is that of arrays.
    pub fn is_array(&self, type_handle: u64) -> bool {
        self.memory.u32(type_handle).is_ok_and(|flags| self.is_of_array(flags))
    }

    /// Whether the flags of a type are those of arrays.
    pub(crate) const fn is_of_array(&self, flags: u32) -> bool {
        match self.runtime.native_aot() {
            Some(_) => native_names::is_array(flags),
            None => is_array(flags),
        }
    }

    /// The offset of the type of elements in that of an array.
    const fn element_type(&self) -> u64 {
        if self.runtime.is_native_aot() { 8 } else { 48 }
    }

    /// Returns the module of a type; `None` if the memory lacks the way to it.
    pub fn type_module(&self, type_handle: u64) -> Option<Arc<Module>> {
        if self.runtime.is_native_aot() {
            return self.native_module(type_handle).ok().flatten();
        }
        let module = self.module(self.module_of(type_handle).ok()?);
        Some(module).filter(|module| !module.file_name().is_empty())
    }

    /// Whether a type is of a module that was made in memory, whose names are not read.
    pub fn is_dynamic(&self, type_handle: u64) -> bool {
        let module = self.module_of(type_handle).ok().filter(|_| !self.runtime.is_native_aot());
        module.is_some_and(|module| self.module(module).is_dynamic)
    }

    /// Whether the memory has a type at an address: its class knows it.
    pub(crate) fn is_type(&self, type_handle: u64) -> bool {
        self.check_type(type_handle).unwrap_or_default()
    }

    /// The same; an error if the memory lacks the class.
    pub(crate) fn check_type(&self, type_handle: u64) -> MemoryResult<bool> {
        if self.runtime.is_native_aot() {
            return Ok(self.type_name(type_handle).is_some());
        }
        let canonical = self.canonical(type_handle)?;
        let class = self.memory.u64(offset(canonical, 40))?;
        Ok(self.memory.u64(offset(class, 16))? == canonical)
    }

    fn read_type(&self, handle: u64, depth: u32, left: &mut usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        *left = left.checked_sub(1)?;
        let memory = self.memory;
        if handle & 2 != 0 {
            // A TypeDesc: of a pointer or a reference, and of an array in .NET Core 3.1.
            let description = handle.wrapping_sub(2);
            let suffix = match memory.u8(description).ok()? {
                0x0f => "*",
                0x10 => "&",
                0x1d => "[]",
                0x14 => return self.read_type(memory.u64(offset(description, 8)).ok()?, depth, left),
                _ => return None,
            };
            let of = memory.u64(offset(description, 16)).ok()?;
            return Some([&*self.read_type(of, depth, left)?, suffix].concat());
        }
        let flags = memory.u32(handle).ok()?;
        if is_array(flags) {
            let rank = self.rank(handle, flags).ok()?;
            let of = self.read_type(memory.u64(offset(handle, 48)).ok()?, depth, left)?;
            return Some([&*of, "[", &",".repeat(usize::from(rank.saturating_sub(1))), "]"].concat());
        }
        let module = self.module(self.module_of(handle).ok()?);
        let metadata = ProgramMetadata::parse(module.metadata.as_deref()?).ok()?;
        let row = self.type_row(handle).ok()?;
        let name = metadata.type_name(row).ok()?;
        // Without a component size: the bits mean something else in strings.
        if flags & GENERIC == 0 || flags & HAS_COMPONENT_SIZE != 0 {
            return Some(name);
        }
        let arguments = self.arguments(handle).ok()?;
        let arguments: Option<Vec<String>> =
            arguments.into_iter().map(|argument| self.read_type(argument, depth, left)).collect();
        Some([&*name, "[", &arguments?.join(","), "]"].concat())
    }

    pub(crate) fn rank(&self, handle: u64, flags: u32) -> MemoryResult<u8> {
        const SINGLE_DIMENSION: u32 = 0x2_0000;
        if self.runtime.is_native_aot() {
            return native_names::rank(self.memory, handle);
        }
        if flags & SINGLE_DIMENSION != 0 {
            return Ok(1);
        }
        let class = self.class(handle)?;
        self.memory.u8(offset(class, self.runtime.layout.types.rank)).map(|rank| rank.min(32))
    }

    /// The EEClass of a type, which the canonical MethodTable has.
    pub(crate) fn class(&self, handle: u64) -> MemoryResult<u64> {
        self.memory.u64(offset(self.canonical(handle)?, 40))
    }

    /// The canonical MethodTable of a type: of a type with arguments that are references it is another one.
    fn canonical(&self, handle: u64) -> MemoryResult<u64> {
        let mark = self.runtime.layout.types.canonical_mark;
        let class = self.memory.u64(offset(handle, 40))?;
        Ok(if class & mark == 0 { handle } else { class & !mark })
    }

    /// The row of a type in its module's metadata.
    pub(crate) fn type_row(&self, handle: u64) -> MemoryResult<u32> {
        match self.runtime.layout.types.form {
            TypeForm::RowInFlags => self.memory.u32(offset(handle, 8)).map(|flags| flags >> 8),
            TypeForm::ShortRow => match self.memory.u16(offset(handle, 10))? {
                // The row has more bits, and is elsewhere.
                u16::MAX => Err(Missing { address: offset(handle, 10) }),
                row => Ok(row.into()),
            },
            TypeForm::NativeAot => Err(Missing { address: handle }),
        }
    }

    /// The address of the module that defines a type.
    pub(crate) fn module_of(&self, handle: u64) -> MemoryResult<u64> {
        let memory = self.memory;
        let plain = offset(handle, MODULE);
        match self.runtime.layout.types.form {
            TypeForm::RowInFlags => return memory.u64(plain),
            TypeForm::ShortRow => {}
            TypeForm::NativeAot => return Err(Missing { address: handle }),
        }
        let flags = memory.u32(handle)?;
        if flags & (HAS_COMPONENT_SIZE | GENERIC) == 0 {
            return memory.u64(plain);
        }
        let handle = if is_array(flags) { handle } else { self.canonical(handle)? };
        let optional = memory.u16(offset(handle, 8))?;
        if optional & HAS_MODULE_OVERRIDE == 0 {
            return memory.u64(offset(handle, MODULE));
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
                let methods = u64::from(memory.u16(offset(handle, 12))?);
                more.wrapping_mul(8).wrapping_add(FIRST_OPTIONAL).wrapping_add(methods.next_multiple_of(8))
            }
        };
        memory.u64(offset(handle, place))
    }

    pub(crate) fn arguments(&self, handle: u64) -> MemoryResult<Vec<u64>> {
        let memory = self.memory;
        let dictionaries = memory.u64(offset(handle, 48))?;
        let count = memory.u16(dictionaries.wrapping_sub(4))?;
        let arguments = memory.u16(dictionaries.wrapping_sub(2))?.min(MOST_ARGUMENTS);
        // The last dictionary is the type's own.
        let last = u64::from(count.saturating_sub(1)).wrapping_mul(8);
        let dictionary = memory.u64(offset(dictionaries, last))?;
        (0..u64::from(arguments)).map(|index| memory.u64(offset(dictionary, index.wrapping_mul(8)))).collect()
    }
}

/// The flag of types whose objects have a length.
pub(crate) const HAS_COMPONENT_SIZE: u32 = 0x8000_0000;
/// The flags of generic types.
const GENERIC: u32 = 0x30;
/// The offset of the module in a MethodTable.
pub(crate) const MODULE: u64 = 24;
/// The flag of types of .NET Core 3.1 that another module loaded than the one that defines them.
const HAS_MODULE_OVERRIDE: u16 = 0x10;
/// The offset of the first optional field in a MethodTable of .NET Core 3.1.
const FIRST_OPTIONAL: u64 = 48;

const fn is_array(flags: u32) -> bool {
    flags & 0xc_0000 == 0x8_0000
}

/// Looks up a key in a hash table of the runtime: buckets of four keys and four values, the first of which
/// has the number of buckets.
fn look_up(memory: &dyn Memory, table: u64, key: u64) -> MemoryResult<Option<u64>> {
    const BUCKET: u64 = 64;
    let low = |value: u64| u32::from_le_bytes(value.to_le_bytes().first_chunk().copied().unwrap_or_default());
    let count = low(memory.u64(table)?);
    // The runtime computes in 32 bits.
    let mut place = low(key >> 2);
    let Some(step) = low(key >> 5).wrapping_add(1).checked_rem(count.wrapping_sub(1)) else {
        return Ok(None);
    };
    let step = step.wrapping_add(1);
    for _ in 0..u64::from(count).min(MOST_BUCKETS) {
        let Some(bucket) = place.checked_rem(count) else { break };
        let at = offset(table, u64::from(bucket).wrapping_add(1).wrapping_mul(BUCKET));
        let (keys, values) = (memory.words::<4>(at)?, memory.words::<4>(offset(at, 32))?);
        if let Some((_, value)) = keys.iter().zip(values).find(|(found, _)| **found == key) {
            // The highest bit is a flag of the bucket, and the value is halved.
            return Ok(Some(value << 1));
        }
        let has_collided = values.first().is_some_and(|value| value >> 63 != 0);
        if !has_collided {
            break;
        }
        place = place.wrapping_add(step);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    /// The module of a type of .NET Core 3.1, all of whose words have their offset as value.
    fn module_of(words: &[(usize, u64)]) -> Option<u64> {
        let mut table: Vec<u64> = (0..32).map(|index| index * 8).collect();
        for (index, word) in words {
            table[*index] = *word;
        }
        let mut memory = TestMemory::default();
        memory.put_words(0x1000, &table);
        let runtime = Runtime::of_slots(&crate::layout::NET_3_1, &[]);
        Names::new(&memory, &runtime).module_of(0x1000).ok()
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
        // It comes after the pointers to parts of the vtable.
        assert_eq!([generic(0x13, 0), generic(0x13, 1), generic(0x1f, 17)], [Some(64), Some(72), Some(104)]);
        // An instance leads to the canonical type, which the memory lacks.
        assert_eq!(module_of(&[(0, 0x30), (5, 0x9002)]), None);
    }

    #[test]
    fn a_key_is_found_in_the_bucket_it_collided_into() {
        let mut memory = TestMemory::default();
        // Three buckets. Both keys belong into the second, which is full, so that the last one is a step
        // further.
        let key = |number: u64| (number * 3 + 1) << 2;
        let mut words = vec![0; 8 * 4];
        words[0] = 3;
        words[16..20].copy_from_slice(&[key(1), key(2), key(3), key(4)]);
        words[20..24].copy_from_slice(&[0x101 | 1 << 63, 0x102, 0x103, 0x104]);
        // Its step is 1 or 2 buckets.
        let third = usize::try_from((2 + ((key(40) >> 5) + 1) % 2) % 3).unwrap();
        words[8 + third * 8] = key(40);
        words[8 + third * 8 + 4] = 0x140;
        memory.put_words(0x1000, &words);
        let found = [1, 4, 40, 41].map(|number| look_up(&memory, 0x1000, key(number)).unwrap());
        assert_eq!(found, [Some(0x202), Some(0x208), Some(0x280), None]);
        // A table without buckets, and one that is not there.
        memory.put_words(0x1000, &[0; 8]);
        assert_eq!(look_up(&memory, 0x1000, key(1)), Ok(None));
        memory.put_words(0x1000, &[1; 8]);
        assert_eq!(look_up(&memory, 0x1000, key(1)), Ok(None));
        assert!(look_up(&memory, 0x9000, key(1)).is_err());
    }
}
