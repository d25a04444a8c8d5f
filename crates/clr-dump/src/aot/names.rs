//! Names of types and methods from the metadata of a NativeAOT program. The program has them for reflection
//! and for printing stacks, even if its symbols were removed.
//!
//! # Source
//! dotnet/runtime `src/coreclr/nativeaot/System.Private.StackTraceMetadata` (methods),
//! `System.Private.TypeLoader` (`TypeLoaderEnvironment.Metadata.cs`: types),
//! `Common/src/Internal/Runtime/MethodTable.cs`.

use hashbrown::HashMap;

use crate::aot::format::{Bytes, Handle, KindBits, Metadata, each_entry};
use crate::aot::sections::{Sections, section};
use crate::memory::address::TypeHandle;
use crate::memory::{Memory, MemoryResult, Missing, offset};

/// Maximum number of types and methods.
const MAX_TYPES: usize = 1 << 20;
const MAX_METHODS: usize = 1 << 22;
/// Maximum number of arguments of a type.
const MAX_ARGUMENTS: u32 = 64;

/// Flags of a MethodTable.
const HAS_DISPATCH_MAP: u32 = 0x0004_0000;
const IS_DYNAMIC: u32 = 0x0008_0000;
const HAS_FINALIZER: u32 = 0x0010_0000;
const HAS_SEALED_SLOTS: u32 = 0x0040_0000;
const IS_GENERIC: u32 = 0x0200_0000;

/// The names of a program.
#[derive(Debug)]
pub(crate) struct AotNames {
    metadata: Vec<u8>,
    bits: KindBits,
    /// The address of the metadata.
    metadata_at: u64,
    /// Definitions of types by the addresses of their MethodTables.
    types: HashMap<TypeHandle, Handle>,
    /// Methods by the address of their first instruction, in its order.
    methods: Vec<MethodRecord>,
    /// The MethodTables of `System.String` and `System.Exception`.
    string_type: Option<TypeHandle>,
    exception_type: Option<TypeHandle>,
}

/// A method with the places of its names.
#[derive(Debug, Clone, Copy)]
struct MethodRecord {
    start: u64,
    owner: Owner,
    name: u32,
    signature: u32,
}

/// The type that declares a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The type's record in the metadata.
    Definition(Handle),
    /// The type's MethodTable.
    Type(TypeHandle),
}

/// The names of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AotMethod<'n> {
    pub(crate) owner: Owner,
    pub(crate) name: &'n str,
    /// The signature; empty if it is damaged.
    pub(crate) signature: String,
}

/// Bits of the first byte of a method's entry: which parts differ from the previous entry.
mod change {
    pub(super) const OWNER: u8 = 1;
    pub(super) const NAME: u8 = 2;
    pub(super) const SIGNATURE: u8 = 4;
    /// A signature with the names of type parameters.
    pub(super) const GENERIC_SIGNATURE: u8 = 8;
}

impl AotNames {
    /// Reads the names; `None` if the memory lacks the metadata. A map that is missing or damaged has fewer.
    pub(crate) fn read(memory: &dyn Memory, sections: &Sections) -> Option<Self> {
        let (metadata_at, metadata) = sections.bytes(memory, section::METADATA).ok()?;
        Metadata::new(&metadata, sections.kind_bits)?;
        let mut names = Self {
            metadata,
            bits: sections.kind_bits,
            metadata_at,
            types: HashMap::new(),
            methods: Vec::new(),
            string_type: None,
            exception_type: None,
        };
        names.read_types(memory, sections);
        names.read_methods(memory, sections);
        names.read_reflected_methods(memory, sections);
        // The first of two for one address counts.
        names.methods.sort_by_key(|method| method.start);
        names.methods.dedup_by_key(|method| method.start);
        Some(names)
    }

    fn read_types(&mut self, memory: &dyn Memory, sections: &Sections) -> Option<()> {
        let (_, map) = sections.bytes(memory, section::TYPE_MAP).ok()?;
        let fixups = Fixups::read(memory, sections).ok()?;
        each_entry(&map, |mut entry| {
            let address = fixups.address(entry.unsigned()?)?;
            let handle = Handle::of_token(entry.unsigned()?, self.bits);
            if self.types.len() < MAX_TYPES {
                self.types.insert(TypeHandle::new(address), handle);
            }
            Some(())
        })?;
        let metadata = Metadata::new(&self.metadata, self.bits)?;
        for (address, handle) in &self.types {
            match metadata.type_name(*handle).as_deref() {
                Some("System.String") => self.string_type = Some(*address),
                Some("System.Exception") => self.exception_type = Some(*address),
                _ => {}
            }
        }
        Some(())
    }

    fn read_methods(&mut self, memory: &dyn Memory, sections: &Sections) -> Option<()> {
        let (place, map) = sections.bytes(memory, section::METHOD_NAMES).ok()?;
        let mut map = Bytes::new(&map, 0);
        // Their number.
        map.u32()?;
        let (mut owner, mut name, mut signature) = (Handle::of_token(0, self.bits), 0, 0);
        while !map.is_at_end() && self.methods.len() < MAX_METHODS {
            let changes = map.byte()?;
            if changes & change::OWNER != 0 {
                owner = Handle::of_token(map.u32()?, self.bits);
            }
            if changes & change::NAME != 0 {
                name = map.unsigned()?;
            }
            if changes & (change::SIGNATURE | change::GENERIC_SIGNATURE) != 0 {
                signature = map.unsigned()?;
            }
            if changes & change::GENERIC_SIGNATURE != 0 {
                map.unsigned()?;
            }
            let at = place.checked_add(u64::try_from(map.at).ok()?)?;
            let start = at.wrapping_add_signed(map.i32()?.into());
            let owner = Owner::Definition(owner);
            self.methods.push(MethodRecord { start, owner, name, signature });
        }
        Some(())
    }

    /// Reads the methods that reflection can call, which the other map does not have.
    fn read_reflected_methods(&mut self, memory: &dyn Memory, sections: &Sections) -> Option<()> {
        const HAS_METADATA: u32 = 0x04;
        const HAS_CODE: u32 = 0x20;
        let (_, map) = sections.bytes(memory, section::INVOKE_MAP).ok()?;
        let fixups = Fixups::read(memory, sections).ok()?;
        let metadata = Metadata::new(&self.metadata, self.bits)?;
        let methods = &mut self.methods;
        each_entry(&map, |mut entry| {
            let flags = entry.unsigned()?;
            let record = entry.unsigned()?;
            let owner = Owner::Type(TypeHandle::new(fixups.address(entry.unsigned()?)?));
            if flags & HAS_METADATA != 0 && flags & HAS_CODE != 0 && methods.len() < MAX_METHODS {
                let start = fixups.address(entry.unsigned()?)?;
                let (name, signature) = metadata.method(record)?;
                methods.push(MethodRecord { start, owner, name, signature });
            }
            Some(())
        })
    }

    /// Returns the method that begins at an address; `None` if it is unnamed.
    pub(crate) fn method(&self, start: u64) -> Option<AotMethod<'_>> {
        let index = self.methods.binary_search_by_key(&start, |method| method.start).ok()?;
        let method = self.methods.get(index)?;
        let metadata = Metadata::new(&self.metadata, self.bits)?;
        let signature = metadata.signature(method.signature).unwrap_or_default();
        Some(AotMethod { owner: method.owner, name: metadata.text(method.name)?, signature })
    }

    /// Returns the name of the type with this record.
    pub(crate) fn type_name(&self, handle: Handle) -> Option<String> {
        Metadata::new(&self.metadata, self.bits)?.type_name(handle)
    }

    /// Returns the address and name of the assembly that defines the type with this record.
    pub(crate) fn assembly_of(&self, handle: Handle) -> Option<(u64, &str)> {
        let (at, name) = Metadata::new(&self.metadata, self.bits)?.assembly(handle)?;
        Some((offset(self.metadata_at, at.into()), name))
    }

    /// Returns the name of a type that is neither an array nor an instance of a generic one.
    pub(crate) fn definition(&self, type_handle: TypeHandle) -> Option<String> {
        self.type_name(*self.types.get(&type_handle)?)
    }

    /// Returns the assembly that defines a type.
    pub(crate) fn assembly(&self, type_handle: TypeHandle) -> Option<(u64, &str)> {
        self.assembly_of(*self.types.get(&type_handle)?)
    }

    /// Returns the version of the base library, as `9.0`.
    pub(crate) fn version(&self) -> Option<String> {
        let metadata = Metadata::new(&self.metadata, self.bits)?;
        metadata.assembly_version(*self.types.get(&self.exception_type?)?)
    }

    pub(crate) const fn string_type(&self) -> Option<TypeHandle> {
        self.string_type
    }

    pub(crate) const fn exception_type(&self) -> Option<TypeHandle> {
        self.exception_type
    }
}

/// The addresses that maps refer to by index, each relative to its own place.
struct Fixups {
    place: u64,
    bytes: Vec<u8>,
}

impl Fixups {
    fn read(memory: &dyn Memory, sections: &Sections) -> MemoryResult<Self> {
        let (place, bytes) = sections.bytes(memory, section::COMMON_FIXUPS)?;
        Ok(Self { place, bytes })
    }

    fn address(&self, index: u32) -> Option<u64> {
        let at = usize::try_from(index).ok()?.checked_mul(4)?;
        let place = self.place.checked_add(u64::try_from(at).ok()?)?;
        Some(place.wrapping_add_signed(Bytes::new(&self.bytes, at).i32()?.into()))
    }
}

/// Returns true if the flags denote an array, of any number of dimensions.
pub(crate) const fn is_array(flags: u32) -> bool {
    matches!(element_type(flags), 0x17 | 0x18)
}

/// The kind of a type.
const fn element_type(flags: u32) -> u32 {
    flags >> 26 & 0x1f
}

/// The suffix of a type that is made of another one, such as `*`; `None` for others.
pub(crate) fn suffix(
    memory: &dyn Memory,
    type_handle: TypeHandle,
    flags: u32,
) -> MemoryResult<Option<String>> {
    Ok(Some(match element_type(flags) {
        0x17 => ["[", &",".repeat(usize::from(rank(memory, type_handle)?.saturating_sub(1))), "]"].concat(),
        0x18 => "[]".to_owned(),
        0x19 => "&".to_owned(),
        0x1a => "*".to_owned(),
        _ => return Ok(None),
    }))
}

/// The number of dimensions of an array: each has two numbers of four bytes in its objects.
pub(crate) fn rank(memory: &dyn Memory, type_handle: TypeHandle) -> MemoryResult<u8> {
    let base_size = memory.u32(type_handle.at(4))?;
    Ok(u8::try_from(base_size.saturating_sub(24) / 8).unwrap_or(u8::MAX).clamp(1, 32))
}

/// The definition of a generic type, and the arguments of an instance; `None` for other types.
/// `optional_fields` is the flag of types with another optional part.
pub(crate) fn instance(
    memory: &dyn Memory,
    type_handle: TypeHandle,
    flags: u32,
    optional_fields: u32,
) -> MemoryResult<Option<(TypeHandle, Vec<TypeHandle>)>> {
    if flags & IS_GENERIC == 0 {
        return Ok(None);
    }
    let slots = u64::from(memory.u16(type_handle.at(16))?);
    let interfaces = u64::from(memory.u16(type_handle.at(18))?);
    let is_dynamic = flags & IS_DYNAMIC != 0;
    let pointer_size = if is_dynamic { 8 } else { 4 };
    // The module and the type's own data precede the optional fields.
    let optional = flags & (HAS_DISPATCH_MAP | HAS_FINALIZER | HAS_SEALED_SLOTS | optional_fields);
    let before = u64::from(optional.count_ones()).wrapping_add(2).wrapping_mul(pointer_size);
    let table = slots.wrapping_add(interfaces).wrapping_mul(8).wrapping_add(24);
    let at = offset(type_handle.at(table), before);
    let follow = |at: u64| -> MemoryResult<u64> {
        if is_dynamic {
            return memory.u64(at);
        }
        match memory.i32(at)? {
            by if by & 1 == 0 => Ok(at.wrapping_add_signed(by.into())),
            by => memory.u64(at.wrapping_add_signed((by & !1).into())),
        }
    };
    let (definition, arguments) = (follow(at)?, follow(offset(at, pointer_size))?);
    // A definition is never instantiated, so it has the number in the place of their size, and before .NET 9
    // in place of the element size.
    let count = match memory.u32(offset(definition, 4))? {
        0 => memory.u16(definition)?.into(),
        count => count,
    };
    if count == 0 || count > MAX_ARGUMENTS {
        return Err(Missing { address: definition });
    }
    let arguments = match count {
        1 => vec![TypeHandle::new(arguments)],
        more => (0..u64::from(more))
            .map(|index| follow(offset(arguments, index.wrapping_mul(pointer_size))).map(TypeHandle::new))
            .collect::<MemoryResult<_>>()?,
    };
    Ok(Some((TypeHandle::new(definition), arguments)))
}

/// The base type; null of a type that is made of another one.
pub(crate) fn base_type(memory: &dyn Memory, type_handle: TypeHandle) -> MemoryResult<TypeHandle> {
    let flags = memory.u32(type_handle.get())?;
    let is_made_of_another = matches!(element_type(flags), 0x17..=0x1a);
    if is_made_of_another { Ok(TypeHandle::default()) } else { memory.type_handle(type_handle.at(8)) }
}
