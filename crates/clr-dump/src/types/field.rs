//! Fields of types: their names, places and types.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/class.h` (`EEClass`), `vm/field.h` (`FieldDesc`), `vm/ceeload.h`
//! (`LookupMap`); ECMA-335 II.23.1.16 for kinds of values.

use hashbrown::HashSet;
use portable_pdb::ProgramMetadata;

use crate::aot::names;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, offset};
use crate::runtime::module::Module;
use crate::types::Types;
use crate::types::names::is_instance;
use crate::types::signature;

/// Maximum number of fields of a type.
const MAX_FIELDS: usize = 1 << 16;
/// Maximum number of base types of a type.
const MAX_BASES: usize = 256;
/// Maximum number of parts of a map.
const MAX_PARTS: usize = 1024;

/// The offset of the base type in a MethodTable.
const BASE_TYPE: u64 = 16;
/// Maximum offset of a field: higher values mark fields without a location.
const MAX_OFFSET: u32 = 0x07ff_fff0;

/// A field of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The field's name, as the compiler writes it.
    pub name: String,
    /// The type that declares it.
    pub declaring_type: TypeHandle,
    /// The kind of its values.
    pub kind: ValueKind,
    /// The type of its values, where it is a structure and the memory has the way to it.
    pub value_type: Option<TypeHandle>,
    /// The type of a structure or an enumeration in signature notation, used in place of a missing
    /// `value_type`.
    pub type_text: Option<String>,
    /// The offset: from the first field of an object, or in the static fields of its kind.
    pub(crate) offset: u32,
    pub(crate) storage: Storage,
}

/// The place of the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Object,
    Static,
    /// Static in a thread.
    Thread,
    /// In the image.
    Elsewhere,
}

/// The kind of a value, by the number of its element type (ECMA-335 II.23.1.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueKind(pub u8);

impl ValueKind {
    /// A structure.
    pub const STRUCTURE: Self = Self(0x11);
    /// A reference.
    pub const REFERENCE: Self = Self(0x12);

    /// The bytes of a primitive type; `None` for other kinds.
    pub(crate) const fn size(self) -> Option<u32> {
        Some(match self.0 {
            0x02 | 0x04 | 0x05 => 1,
            0x03 | 0x06 | 0x07 => 2,
            0x08 | 0x09 | 0x0c => 4,
            0x0a | 0x0b | 0x0d | 0x18 | 0x19 => 8,
            _ => return None,
        })
    }

    /// The name of a primitive type in C#; `None` for other kinds.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x02 => "bool",
            0x03 => "char",
            0x04 => "sbyte",
            0x05 => "byte",
            0x06 => "short",
            0x07 => "ushort",
            0x08 => "int",
            0x09 => "uint",
            0x0a => "long",
            0x0b => "ulong",
            0x0c => "float",
            0x0d => "double",
            0x18 => "nint",
            0x19 => "nuint",
            _ => return None,
        })
    }
}

/// A static field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaticField {
    /// The field.
    pub field: Field,
    /// The type that has it: an instance of a generic type has its own.
    pub type_handle: TypeHandle,
    /// The address of the value; for a structure, the address of the reference to its box.
    pub address: Address,
    /// The id in the system of the thread that has this value (`[ThreadStatic]`); `None` if all threads have
    /// it.
    pub thread: Option<u64>,
}

impl Types<'_> {
    /// Returns the instance fields of a type, base types first. Fields are missing where the memory lacks
    /// their description.
    pub fn fields(self, type_handle: TypeHandle) -> Vec<Field> {
        let mut fields = Vec::new();
        for of in self.type_and_bases(type_handle).into_iter().rev() {
            let own = self.own_fields(of).unwrap_or_default().into_iter();
            fields.extend(own.filter(|field| field.storage == Storage::Object));
        }
        fields.truncate(MAX_FIELDS);
        fields
    }

    /// Returns a type and its base types, up to the first that the memory lacks.
    pub(crate) fn type_and_bases(self, type_handle: TypeHandle) -> Vec<TypeHandle> {
        let mut types = Vec::new();
        let mut of = type_handle;
        while !of.is_null() && types.len() < MAX_BASES && !types.contains(&of) {
            types.push(of);
            of = self.base_type(of).unwrap_or_default();
        }
        types
    }

    /// The base type of a type; null for a root type.
    pub(crate) fn base_type(self, type_handle: TypeHandle) -> MemoryResult<TypeHandle> {
        match self.runtime().native_aot() {
            Some(_) => names::base_type(self.memory(), type_handle),
            None => self.memory().type_handle(type_handle.at(BASE_TYPE)),
        }
    }

    /// Returns the fields that a type declares, static ones as well.
    pub(crate) fn own_fields(self, type_handle: TypeHandle) -> MemoryResult<Vec<Field>> {
        Ok(self.described_fields(type_handle)?.0)
    }

    /// Returns true if the memory describes all fields that a type declares.
    pub(crate) fn describes_fields(self, type_handle: TypeHandle) -> bool {
        self.described_fields(type_handle).is_ok_and(|(_, is_whole)| is_whole)
    }

    /// Returns the fields that a type declares, and true if these are all.
    fn described_fields(self, type_handle: TypeHandle) -> MemoryResult<(Vec<Field>, bool)> {
        let memory = self.memory();
        let module = self.module_at(self.module_of(type_handle)?);
        let Some(metadata) = self.metadata(&module) else { return Ok((Vec::new(), false)) };
        let row = self.type_row(type_handle)?;
        let numbers = metadata.fields_of_type(row).unwrap_or_default().take(MAX_FIELDS);
        let rows: HashSet<u32> = numbers.filter_map(|number| metadata.field_row(number).ok()).collect();
        let list = memory.u64(offset(self.class(type_handle)?, 24))?;
        // The runtime does not describe constants, which occupy no memory.
        let has_place = |row: &u32| metadata.field(*row).is_ok_and(|field| !field.is_constant());
        let count = rows.iter().filter(|row| has_place(row)).count();
        if list == 0 {
            return Ok((Vec::new(), count == 0));
        }
        let mut fields = Vec::new();
        let mut described = 0_usize;
        for index in (0_u64..).take(count) {
            let at = offset(list, index.wrapping_mul(16));
            let (first, second) = (memory.u32(offset(at, 8))?, memory.u32(offset(at, 12))?);
            let row = first & 0x00ff_ffff;
            let (place, kind) = (second & 0x07ff_ffff, u8::try_from(second >> 27).unwrap_or_default());
            let Some(field) = metadata.field(row).ok().filter(|_| rows.contains(&row)) else { continue };
            let storage = match first >> 24 & 7 {
                0 => Storage::Object,
                1 => Storage::Static,
                3 => Storage::Thread,
                _ => Storage::Elsewhere,
            };
            let has_offset = place < MAX_OFFSET;
            described = described.saturating_add(usize::from(has_offset || storage != Storage::Object));
            if !has_offset {
                continue;
            }
            let kind = ValueKind(kind);
            let value_type = self.value_type(&module, &metadata, type_handle, field.signature);
            fields.push(Field {
                name: field.name,
                declaring_type: type_handle,
                kind,
                value_type,
                type_text: signature::field(&metadata, field.signature),
                offset: place,
                storage,
            });
        }
        Ok((fields, described == count))
    }

    /// Returns the type of a field that is a structure or an enumeration; `None` for other fields, and if the
    /// module does not lead to the type.
    pub(crate) fn value_type(
        self,
        module: &Module,
        metadata: &ProgramMetadata<'_>,
        type_handle: TypeHandle,
        signature: &[u8],
    ) -> Option<TypeHandle> {
        match signature::value_type(signature)? {
            signature::ValueType::Defined(row) => self.defined_type(module.address, row),
            signature::ValueType::Referenced(row) => {
                self.mapped_type(module.address.at(self.runtime().layout.module.referenced_types), row)
            }
            signature::ValueType::Argument(number) => {
                let arguments = self.arguments(type_handle).ok()?;
                let argument = arguments.get(usize::try_from(number).ok()?).copied()?;
                argument.description().is_none().then_some(argument)
            }
            signature::ValueType::Instance => {
                let arguments = self.argument_names(type_handle);
                let name = |is_shared| signature::instance_name(metadata, signature, &arguments, is_shared);
                self.dump
                    .statics()
                    .instance_named(&name(false)?)
                    .or_else(|| self.dump.statics().instance_named(&name(true)?))
            }
        }
    }

    /// The names of a type's arguments; empty if the memory lacks any of them.
    fn argument_names(self, type_handle: TypeHandle) -> Vec<signature::Argument> {
        let argument = |handle: &TypeHandle| {
            let name = self.name(*handle)?.to_string();
            let is_reference =
                handle.description().is_none() && self.value_kind(*handle).ok()? == ValueKind::REFERENCE;
            Some(signature::Argument { name, is_reference })
        };
        let is_generic = self.memory().u32(type_handle.get()).is_ok_and(is_instance);
        let arguments = if is_generic { self.arguments(type_handle).unwrap_or_default() } else { Vec::new() };
        arguments.iter().map(argument).collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns the MethodTable of a type that a module defines; `None` if it is not loaded.
    pub(crate) fn defined_type(self, module: Address, row: u32) -> Option<TypeHandle> {
        self.mapped_type(module.at(self.runtime().layout.module.defined_types), row)
    }

    /// Looks up a row in a map of a module, which has parts.
    fn mapped_type(self, mut map: u64, row: u32) -> Option<TypeHandle> {
        let memory = self.memory();
        let mut row = u64::from(row);
        for _ in 0..MAX_PARTS {
            let [next, table] = memory.words(map).ok()?;
            let count = u64::from(memory.u32(offset(map, 16)).ok()?);
            if row < count {
                // The lowest bits are flags.
                let of = memory.object_type(Address::new(offset(table, row.wrapping_mul(8)))).ok()?;
                return Some(of).filter(|of| !of.is_null());
            }
            row = row.saturating_sub(count);
            map = Some(next).filter(|next| *next != 0)?;
        }
        None
    }

    /// Returns the kind of the values of a type.
    pub(crate) fn value_kind(self, type_handle: TypeHandle) -> MemoryResult<ValueKind> {
        let flags = self.memory().u32(type_handle.get())?;
        Ok(match flags & 0xc_0000 {
            0x4_0000 if flags & 0x6_0000 == 0x6_0000 => {
                let kind = self.runtime().layout.types.kind;
                ValueKind(self.memory().u8(offset(self.class(type_handle)?, kind))?)
            }
            0x4_0000 => ValueKind::STRUCTURE,
            _ => ValueKind::REFERENCE,
        })
    }

    /// Returns true if a type is `System.Exception` or derives from it.
    pub(crate) fn derives_from_exception(self, type_handle: TypeHandle) -> MemoryResult<bool> {
        let (memory, runtime) = (self.memory(), self.runtime());
        let base = runtime.exception_type(memory)?;
        let mut of = type_handle;
        for _ in 0..MAX_BASES {
            if of == base || of.is_null() {
                return Ok(of == base);
            }
            of = self.base_type(of)?;
        }
        Ok(false)
    }
}

/// Returns true if a static field is among the references of its type: a structure is in a box.
pub(crate) const fn is_in_references(field: &Field) -> bool {
    matches!(field.kind, ValueKind::REFERENCE | ValueKind::STRUCTURE)
}
