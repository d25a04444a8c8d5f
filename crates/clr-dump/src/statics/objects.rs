//! The objects that hold static fields.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/threadstatics.h` (`ThreadLocalData`).

use crate::aot::sections::section;
use crate::memory::address::Address;
use crate::memory::{MemoryResult, offset};
use crate::statics::Statics;
use crate::threads::thread::Thread;

impl Statics<'_> {
    /// Returns the objects that hold the static fields of a NativeAOT program's types. Empty for other
    /// programs: their fields have [places](Self::fields).
    ///
    /// # Errors
    /// If the memory lacks the list.
    pub fn objects(self) -> MemoryResult<Vec<Address>> {
        let Some(program) = self.runtime().native_aot() else { return Ok(Vec::new()) };
        let memory = self.memory();
        let (start, list) = program.sections.bytes(memory, section::STATIC_FIELDS)?;
        let mut objects = Vec::new();
        for (index, by) in (0_u64..).zip(list.as_chunks().0) {
            let at = offset(start, index.wrapping_mul(4));
            let place = at.wrapping_add_signed(i32::from_le_bytes(*by).into());
            match memory.u64(place)? {
                // Bits mark fields that have not been used yet.
                object if object != 0 && object.is_multiple_of(8) => objects.push(Address::new(object)),
                _ => {}
            }
        }
        Ok(objects)
    }

    /// Returns the array that has the static fields of a thread (`[ThreadStatic]`) that are references, or
    /// the object that has all of them (NativeAOT); `None` if the thread lacks it.
    ///
    /// # Errors
    /// If the memory lacks the way to it.
    pub fn thread_object(self, thread: &Thread) -> MemoryResult<Option<Address>> {
        // In other versions, handles hold these arrays.
        let Some(place) = self.runtime().layout.thread.static_fields else { return Ok(None) };
        if let Some(program) = self.runtime().native_aot() {
            let object = program.thread_statics(self.memory(), thread.address.at(place))?;
            return Ok(object.map(Address::new));
        }
        let data = self.memory().u64(thread.address.at(place))?;
        if data == 0 {
            return Ok(None);
        }
        let [_, array, _, of] = self.memory().words(data)?;
        Ok((of == thread.address.get() && array != 0).then_some(Address::new(array)))
    }
}
