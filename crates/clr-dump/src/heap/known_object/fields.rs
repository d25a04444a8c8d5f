//! Fields of objects by name.

use crate::heap::Heap;
use crate::heap::object::{FieldValue, ObjectContent, Value};
use crate::memory::address::Address;

/// The fields of an object or a structure.
pub(super) struct Fields(Vec<FieldValue>);

impl Fields {
    pub(super) fn read(heap: Heap<'_>, object: Address) -> Option<Self> {
        match heap.content(&heap.object_at(object)?, 0).ok()? {
            ObjectContent::Fields(fields) => Some(Self(fields)),
            _ => None,
        }
    }

    pub(super) fn of_structure(value: Value) -> Option<Self> {
        match value {
            Value::Structure { fields, .. } => Some(Self(fields)),
            _ => None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|of| of.field.name == name).map(|of| &of.value)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|of| of.field.name == name)?;
        Some(self.0.swap_remove(at).value)
    }

    pub(super) fn reference(&self, name: &str) -> Option<Address> {
        match self.get(name)? {
            Value::Reference { address, .. } => Some(*address),
            _ => None,
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Signed(number) => Some(*number),
            Value::Unsigned(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A number of elements.
    pub(super) fn count(&self, name: &str) -> Option<u32> {
        u32::try_from(self.number(name)?).ok()
    }
}
