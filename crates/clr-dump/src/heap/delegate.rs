//! Delegates, and the methods that they call.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/object.h` (`DelegateObject`), `vm/amd64/thunktemplates.S` (stubs of methods
//! that are not compiled yet); for 3.1 dotnet/coreclr `src/vm/amd64/cgencpu.h` (`FixupPrecode`).

use crate::heap::Heap;
use crate::memory::MemoryResult;
use crate::memory::address::{Address, MethodDesc};
use crate::types::method::Method;

/// Offsets in a delegate.
const TARGET: u64 = 8;
const METHOD: u64 = 24;
const STATIC_METHOD: u64 = 32;

impl Heap<'_> {
    /// Returns the method that a delegate calls; `None` if the memory lacks the way to it.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let delegate = clr_dump::Address::new(0x7f00_1000_2000);
    /// let method = dump.heap().delegate_method(delegate).and_then(|method| method.name);
    /// println!("it calls {:?}", method.map(|name| format!("{}.{}", name.type_name, name.name)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delegate_method(self, delegate: Address) -> Option<Method> {
        self.method_at_entry(self.delegate_entry(delegate)?)
    }

    /// The address of the code that a delegate calls: of its method, or of a stub.
    pub(crate) fn delegate_entry(self, delegate: Address) -> Option<Address> {
        // For a static method, the first pointer leads to a thunk that moves the arguments.
        let entry = match self.memory().pointer(delegate.at(STATIC_METHOD)).ok()? {
            entry if entry.is_null() => self.memory().pointer(delegate.at(METHOD)).ok()?,
            entry => entry,
        };
        Some(entry).filter(|entry| !entry.is_null())
    }

    /// The object that a delegate calls its method on; null for a static method.
    pub(crate) fn delegate_target(self, delegate: Address) -> MemoryResult<Address> {
        self.memory().pointer(delegate.at(TARGET))
    }

    fn method_at_entry(self, entry: Address) -> Option<Method> {
        if let Some(code) = self.runtime().code().find(self.memory(), entry).ok().flatten() {
            return self.dump.types().method(&code);
        }
        let method_desc = self.method_desc_of_stub(entry)?;
        let chunk = self.dump.types().chunk(method_desc).ok()?;
        // A stub of another kind leads to no type.
        let is_method =
            self.memory().type_handle(chunk).is_ok_and(|type_handle| self.dump.types().is_type(type_handle));
        is_method.then(|| self.dump.types().method_of(method_desc).ok()).flatten()
    }

    /// The MethodDesc that a stub is of.
    fn method_desc_of_stub(self, entry: Address) -> Option<MethodDesc> {
        self.method_desc_of_precode(entry).or_else(|| self.loaded_method_desc(entry))
    }

    /// The MethodDesc of a stub of .NET Core 3.1: a call or a jump, a mark, and two indexes. One counts the
    /// stubs up to the address of the first MethodDesc, the other leads from there to the MethodDesc.
    fn method_desc_of_precode(self, entry: Address) -> Option<MethodDesc> {
        if self.runtime().layout.major != 3 {
            return None;
        }
        let [0xe8 | 0xe9, _, _, _, _, 0x5e | 0x5f, method, stub] = self.memory().array(entry.get()).ok()?
        else {
            return None;
        };
        let stubs = u64::from(stub).wrapping_add(1).wrapping_mul(8);
        let first = self.memory().u64(entry.at(stubs)).ok()?;
        Some(MethodDesc::new(first.wrapping_add(u64::from(method).wrapping_mul(8))))
    }

    /// The MethodDesc that a stub loads before it jumps on: `mov r10, [rip+disp]`, after an indirect jump in
    /// one of the two stub kinds.
    fn loaded_method_desc(self, entry: Address) -> Option<MethodDesc> {
        const LOAD: [u8; 3] = [0x4c, 0x8b, 0x15];
        const JUMP: [u8; 2] = [0xff, 0x25];
        let bytes: [u8; 13] = self.memory().array(entry.get()).ok()?;
        let at = if bytes.starts_with(&JUMP) { 6 } else { 0 };
        let (load, rest) = bytes.get(at..)?.split_at_checked(LOAD.len())?;
        if load != LOAD {
            return None;
        }
        let displacement = i64::from(i32::from_le_bytes(*rest.first_chunk()?));
        // The displacement counts from the end of the instruction.
        let end = entry.at(u64::try_from(at).ok()?.wrapping_add(7));
        self.memory().u64(end.wrapping_add_signed(displacement)).ok().map(MethodDesc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Dump;
    use crate::memory::tests::TestMemory;
    use crate::runtime::Runtime;
    use crate::runtime::layout::{NET_3_1, NET_9};

    #[test]
    fn a_stub_of_net_core_3_1_leads_to_its_method() {
        let mut memory = TestMemory::default();
        // Two stubs, and the address of the first MethodDesc; the second was compiled.
        memory.put(0x1000, &[0xe8, 1, 2, 3, 4, 0x5e, 5, 1]).put(0x1008, &[0xe9, 1, 2, 3, 4, 0x5f, 0, 0]);
        memory.put_words(0x1010, &[0x8000]);
        let runtime = Runtime::of_slots(&NET_3_1, &[]);
        let dump = Dump::new(&memory, &runtime);
        let method_desc = |at| dump.heap().method_desc_of_stub(Address::new(at)).map(MethodDesc::get);
        assert_eq!([0x1000, 0x1008].map(method_desc), [Some(0x8028), Some(0x8000)]);
        let newer = Runtime::of_slots(&NET_9, &[]);
        assert_eq!(Dump::new(&memory, &newer).heap().method_desc_of_stub(Address::new(0x1000)), None);
    }
}
