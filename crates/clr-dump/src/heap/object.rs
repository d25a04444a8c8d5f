//! The contents of objects: fields with values, elements of arrays, strings.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/object.h` (`Object`, `ArrayBase`, `StringObject`).

use std::sync::Arc;

use crate::heap::utf16;
use crate::heap::{Heap, HeapObject};
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, offset};
use crate::statics::Statics;
use crate::types::enumeration;
use crate::types::field::{Field, StaticField, ValueKind};

/// Maximum nesting depth of structures.
const MAX_DEPTH: u32 = 8;
/// Maximum number of values of an object, including those in structures.
pub(super) const MAX_VALUES: usize = 1 << 16;
/// Maximum size of a structure with unknown fields, in bytes.
const MAX_BYTES: usize = 64;
/// Maximum number of elements of a fixed-size buffer.
const MAX_ELEMENTS: u32 = 256;
/// Maximum number of characters to read of a string that a value refers to.
const PREVIEW: u32 = 256;

/// A value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A unit of UTF-16.
    Char(u16),
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A number of single precision.
    Single(f32),
    /// A number of double precision.
    Double(f64),
    /// A pointer that does not refer to an object of its own.
    Pointer(Address),
    /// No object.
    Null,
    /// A reference.
    Reference {
        /// The address of the object.
        address: Address,
        /// The type; `None` if the memory lacks it.
        type_name: Option<Arc<str>>,
        /// The first 256 characters of a string; true if it is longer.
        text: Option<(String, bool)>,
    },
    /// A structure with its fields.
    Structure {
        /// The type of the structure; `None` if the memory lacks it.
        type_name: Option<Arc<str>>,
        /// The fields of the structure.
        fields: Vec<FieldValue>,
    },
    /// A value of an enumeration.
    Enumeration {
        /// The underlying number.
        number: i64,
        /// The name of the constant, or of the flags separated by commas; `None` if unnamed.
        name: Option<String>,
    },
    /// The elements of a buffer of a fixed size in a structure (`fixed`, `[InlineArray]`).
    Buffer {
        /// The first elements.
        elements: Vec<Value>,
        /// The number of all elements.
        length: u32,
    },
    /// The first bytes of a structure with unknown or too many fields.
    Bytes(Vec<u8>),
    /// The memory lacks it.
    Missing,
}

/// A field with its value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FieldValue {
    /// The field.
    pub field: Field,
    /// The value of the field.
    pub value: Value,
}

/// The content of an object.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ObjectContent {
    /// A string.
    Text {
        /// The first characters.
        text: String,
        /// The number of all its UTF-16 units.
        length: u32,
    },
    /// An array.
    Array {
        /// The lengths of its dimensions.
        lengths: Vec<u32>,
        /// The first elements, the last dimension fastest.
        elements: Vec<Value>,
    },
    /// Any other object.
    Fields(Vec<FieldValue>),
}

impl Heap<'_> {
    /// Returns the content of an object: at most `most` characters of a string, or `most` elements of an
    /// array.
    ///
    /// ```no_run
    /// use clr_dump::ObjectContent;
    ///
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let object = dump.heap().object_at(clr_dump::Address::new(0x7f00_1000_2000)).ok_or("no object")?;
    /// match dump.heap().content(&object, 100)? {
    ///     ObjectContent::Text { text, length } => println!("{text:?}, {length} units"),
    ///     ObjectContent::Array { lengths, elements } => println!("{lengths:?} {elements:?}"),
    ///     ObjectContent::Fields(fields) => {
    ///         for field in fields {
    ///             println!("{} = {:?}", field.field.name, field.value);
    ///         }
    ///     }
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the object's type.
    pub fn content(self, object: &HeapObject, most: u32) -> MemoryResult<ObjectContent> {
        let flags = self.memory().u32(object.type_handle.get())?;
        if self.dump.types().is_string(object.type_handle) {
            let text = self.text(object.address, object.length.min(most))?;
            return Ok(ObjectContent::Text { text, length: object.length });
        }
        let mut left = MAX_VALUES;
        if self.dump.types().is_of_array(flags) {
            return self.array(object, flags, most, &mut left);
        }
        let fields = self.dump.types().fields(object.type_handle);
        Ok(ObjectContent::Fields(self.values(fields, object.address.at(8), MAX_DEPTH, &mut left)))
    }

    /// Returns the first characters of a string.
    pub fn string(self, object: &HeapObject, most: u32) -> MemoryResult<String> {
        self.text(object.address, object.length.min(most))
    }

    /// Returns the reference at an address, and the type of its object; `None` if it is null, or the memory
    /// lacks it.
    pub fn reference_at(self, address: Address) -> Option<(Address, TypeHandle)> {
        let target = self.memory().pointer(address.get()).ok().filter(|target| !target.is_null())?;
        Some((target, self.memory().object_type(target).ok()?))
    }

    /// Returns the value of an object's field with the given name; `None` if it has no such field, or the
    /// memory lacks it.
    ///
    /// ```no_run
    /// use clr_dump::Value;
    ///
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let object = clr_dump::Address::new(0x7f00_1000_2000);
    /// if let Some(Value::Signed(size)) = dump.heap().field_value(object, "_size") {
    ///     println!("a list of {size} elements");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn field_value(self, object: Address, name: &str) -> Option<Value> {
        let type_handle = self.type_of(object)?;
        let field = self.dump.types().fields(type_handle).into_iter().find(|field| field.name == name)?;
        let at = offset(object.at(8), field.offset.into());
        Some(self.value(field.kind, field.value_type, at, 16, MAX_DEPTH, &mut MAX_VALUES.clone()))
    }

    /// Returns the object that a field of an object refers to; `None` for null, and as
    /// [`field_value`](Self::field_value).
    pub(crate) fn reference_field(self, object: Address, name: &str) -> Option<Address> {
        match self.field_value(object, name)? {
            Value::Reference { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Returns the number in a field of an object; `None` if it is negative, and as
    /// [`field_value`](Self::field_value).
    pub(crate) fn number_field(self, object: Address, name: &str) -> Option<u64> {
        match self.field_value(object, name)? {
            Value::Signed(number) => u64::try_from(number).ok(),
            Value::Unsigned(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the type of an object; `None` if the memory lacks it.
    pub fn type_of(self, object: Address) -> Option<TypeHandle> {
        self.memory().object_type(object).ok()
    }

    /// Returns the name of the type of an object.
    pub fn type_name(self, object: Address) -> Option<Arc<str>> {
        self.dump.types().name(self.memory().object_type(object).ok()?)
    }

    fn text(self, address: Address, length: u32) -> MemoryResult<String> {
        let bytes = usize::try_from(length).unwrap_or_default().saturating_mul(2);
        let bytes = self.memory().bytes(address.at(12), bytes)?;
        Ok(utf16::decode(&bytes))
    }

    fn array(
        self,
        object: &HeapObject,
        flags: u32,
        most: u32,
        left: &mut usize,
    ) -> MemoryResult<ObjectContent> {
        let memory = self.memory();
        let base = u64::from(memory.u32(object.type_handle.at(4))?);
        let rank = self.dump.types().rank(object.type_handle, flags)?;
        let has_bounds = base > 24;
        let lengths = if has_bounds {
            let length =
                |index: u8| memory.u32(object.address.at(u64::from(index).wrapping_mul(4).wrapping_add(16)));
            (0..rank).map(length).collect::<MemoryResult<_>>()?
        } else {
            vec![object.length]
        };
        let array = self.array_of(object.address, object.type_handle)?;
        let mut elements = Vec::new();
        for index in 0..object.length.min(most) {
            if *left == 0 {
                break;
            }
            elements.push(array.element(index, left));
        }
        Ok(ObjectContent::Array { lengths, elements })
    }

    fn values(self, fields: Vec<Field>, base: u64, depth: u32, left: &mut usize) -> Vec<FieldValue> {
        let mut values = Vec::new();
        for field in fields {
            if *left == 0 {
                break;
            }
            let at = offset(base, field.offset.into());
            let value = self.value(field.kind, field.value_type, at, 16, depth, left);
            values.push(FieldValue { field, value });
        }
        values
    }

    /// Reads the value at an address. `size` is the size of a structure with unknown fields.
    pub(crate) fn value_at(
        self,
        kind: ValueKind,
        value_type: Option<TypeHandle>,
        at: u64,
        size: u64,
        left: &mut usize,
    ) -> Value {
        self.value(kind, value_type, at, size, MAX_DEPTH, left)
    }

    /// Reads a value. `size` is the size of a structure with unknown fields.
    fn value(
        self,
        kind: ValueKind,
        value_type: Option<TypeHandle>,
        at: u64,
        size: u64,
        depth: u32,
        left: &mut usize,
    ) -> Value {
        *left = left.saturating_sub(1);
        let value = self.read_value(kind, value_type, at, size, depth, left).unwrap_or(Value::Missing);
        let number = match value {
            Value::Signed(number) => number,
            Value::Unsigned(number) => number.cast_signed(),
            value => return value,
        };
        match value_type.and_then(|of| self.dump.types().enumeration(of)) {
            Some(constants) => Value::Enumeration { number, name: enumeration::name(&constants, number) },
            None => value,
        }
    }

    fn read_value(
        self,
        kind: ValueKind,
        value_type: Option<TypeHandle>,
        at: u64,
        size: u64,
        depth: u32,
        left: &mut usize,
    ) -> MemoryResult<Value> {
        let memory = self.memory();
        Ok(match kind.0 {
            0x02 => Value::Bool(memory.u8(at)? != 0),
            0x03 => Value::Char(memory.u16(at)?),
            0x04 => Value::Signed(i8::from_le_bytes(memory.array(at)?).into()),
            0x05 => Value::Unsigned(memory.u8(at)?.into()),
            0x06 => Value::Signed(i16::from_le_bytes(memory.array(at)?).into()),
            0x07 => Value::Unsigned(memory.u16(at)?.into()),
            0x08 => Value::Signed(memory.i32(at)?.into()),
            0x09 => Value::Unsigned(memory.u32(at)?.into()),
            0x0a | 0x18 => Value::Signed(memory.i64(at)?),
            0x0b | 0x19 => Value::Unsigned(memory.u64(at)?),
            0x0c => Value::Single(f32::from_le_bytes(memory.array(at)?)),
            0x0d => Value::Double(f64::from_le_bytes(memory.array(at)?)),
            0x0f | 0x10 | 0x1b => Value::Pointer(memory.pointer(at)?),
            0x0e | 0x12 | 0x14 | 0x1c | 0x1d => self.reference(memory.pointer(at)?),
            _ => self.structure(value_type, at, size, depth, left)?,
        })
    }

    /// The value of a reference.
    pub(crate) fn reference(self, address: Address) -> Value {
        if address.is_null() {
            return Value::Null;
        }
        let type_handle = self.memory().object_type(address).unwrap_or_default();
        let is_text = self.dump.types().is_string(type_handle) && self.dump.types().is_type(type_handle);
        let text = is_text.then(|| {
            let length = self.memory().u32(address.at(8))?;
            Ok((self.text(address, length.min(PREVIEW))?, length > PREVIEW))
        });
        Value::Reference {
            address,
            type_name: self.dump.types().name(type_handle),
            text: text.and_then(MemoryResult::ok),
        }
    }

    /// The number of elements of a buffer of a fixed size, of which the runtime has one field: `fixed`, or
    /// `[InlineArray]`; `None` of other structures.
    fn buffer_length(self, type_handle: TypeHandle, field: &Field) -> Option<u32> {
        if field.name != "FixedElementField" {
            return self.inline_array_length(type_handle).filter(|_| field.kind.size().is_some());
        }
        let module = self.dump.types().module_at(self.dump.types().module_of(type_handle).ok()?);
        let metadata = self.dump.types().metadata(&module)?;
        metadata
            .stated_size(self.dump.types().type_row(type_handle).ok()?)
            .ok()??
            .checked_div(field.kind.size()?)
    }

    /// The number of elements of a structure with the attribute `[InlineArray]`; `None` of other types.
    pub(crate) fn inline_array_length(self, type_handle: TypeHandle) -> Option<u32> {
        const ATTRIBUTE: &str = "System.Runtime.CompilerServices.InlineArrayAttribute";
        let module = self.dump.types().module_at(self.dump.types().module_of(type_handle).ok()?);
        let metadata = self.dump.types().metadata(&module)?;
        let value =
            metadata.type_attribute(self.dump.types().type_row(type_handle).ok()?, ATTRIBUTE).ok()??;
        // The length follows a prolog of two bytes.
        let length = value.get(2..).and_then(<[u8]>::first_chunk)?;
        Some(u32::from_le_bytes(*length))
    }

    fn buffer(self, kind: ValueKind, length: u32, at: u64, depth: u32, left: &mut usize) -> Value {
        let size = u64::from(kind.size().unwrap_or_default());
        let mut elements = Vec::new();
        for index in 0..length.min(MAX_ELEMENTS) {
            if *left == 0 {
                break;
            }
            let at = offset(at, u64::from(index).wrapping_mul(size));
            elements.push(self.value(kind, None, at, size, depth, left));
        }
        Value::Buffer { elements, length }
    }

    fn structure(
        self,
        value_type: Option<TypeHandle>,
        at: u64,
        size: u64,
        depth: u32,
        left: &mut usize,
    ) -> MemoryResult<Value> {
        if let (Some(of), Some(depth)) = (value_type, depth.checked_sub(1)) {
            let fields = self.dump.types().fields(of);
            if let [field] = &fields[..]
                && let Some(length) = self.buffer_length(of, field)
            {
                return Ok(self.buffer(field.kind, length, at, depth, left));
            }
            if !fields.is_empty() {
                let fields = self.values(fields, at, depth, left);
                return Ok(Value::Structure { type_name: self.dump.types().name(of), fields });
            }
        }
        let size = usize::try_from(size).unwrap_or_default().min(MAX_BYTES);
        Ok(Value::Bytes(self.memory().bytes(at, size)?))
    }
}

impl Statics<'_> {
    /// Returns the value of a static field.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for field in dump.statics().fields([], &dump.threads().list()?) {
    ///     let value = dump.statics().value(&field);
    ///     println!("{:?}.{} = {value:?}", dump.types().name(field.type_handle), field.field.name);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn value(self, field: &StaticField) -> Value {
        let left = &mut MAX_VALUES.clone();
        let (kind, value_type) = (field.field.kind, field.field.value_type);
        if kind != ValueKind::STRUCTURE {
            return self.dump.heap().value(kind, value_type, field.address.get(), 0, MAX_DEPTH, left);
        }
        // A structure is in a box, which has its type.
        match self.memory().pointer(field.address.get()) {
            Ok(object) if object.is_null() => Value::Null,
            Ok(object) => {
                let value_type = self.dump.heap().type_of(object);
                self.dump.heap().value(kind, value_type, object.at(8), 16, MAX_DEPTH, left)
            }
            Err(_) => Value::Missing,
        }
    }
}
