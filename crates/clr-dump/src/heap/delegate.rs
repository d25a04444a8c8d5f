//! Delegates, and the methods that they call.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/object.h` (`DelegateObject`), `vm/amd64/thunktemplates.S` (stubs of methods
//! that are not compiled yet).

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

    /// The MethodDesc that a stub loads before it jumps on: `mov r10, [rip+disp]`, after an indirect jump in
    /// one of the two stub kinds.
    fn method_desc_of_stub(self, entry: Address) -> Option<MethodDesc> {
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
