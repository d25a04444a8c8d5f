//! Elements of arrays, by index.

use crate::heap::Heap;
use crate::heap::object::Value;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, offset};
use crate::types::field::ValueKind;

/// An array on the heap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Array<'d> {
    heap: Heap<'d>,
    kind: ValueKind,
    element: TypeHandle,
    /// Bytes of an element.
    size: u64,
    /// The address of the first element.
    data: u64,
    /// The number of elements of all dimensions.
    pub(crate) length: u32,
}

impl<'d> Heap<'d> {
    /// The array at an address, which is one.
    pub(crate) fn array_of(self, address: Address, type_handle: TypeHandle) -> MemoryResult<Array<'d>> {
        let memory = self.memory();
        let flags = memory.u32(type_handle.get())?;
        let base = u64::from(memory.u32(type_handle.at(4))?);
        let element = memory.type_handle(type_handle.at(48))?;
        let kind = match element.description() {
            None => self.dump.types().value_kind(element)?,
            // Of a pointer, and of an array in .NET Core 3.1.
            Some(description) => match memory.u8(description)? {
                0x14 | 0x1d => ValueKind::REFERENCE,
                _ => ValueKind(0x0f),
            },
        };
        Ok(Array {
            heap: self,
            kind,
            element,
            size: u64::from(flags & 0xffff),
            data: address.at(base.saturating_sub(8)),
            length: memory.u32(address.at(8))?,
        })
    }

    /// The array at an address; `None` if another object is there, or the memory lacks it.
    pub(crate) fn array_at(self, address: Address) -> Option<Array<'d>> {
        let type_handle = self.type_of(address).filter(|of| !of.is_null())?;
        if !self.dump.types().is_array(type_handle) {
            return None;
        }
        self.array_of(address, type_handle).ok()
    }
}

impl Array<'_> {
    /// Reads an element. `left` is the number of values that may still be read.
    pub(crate) fn element(&self, index: u32, left: &mut usize) -> Value {
        let at = offset(self.data, u64::from(index).wrapping_mul(self.size));
        self.heap.value_at(self.kind, Some(self.element), at, self.size, left)
    }
}
