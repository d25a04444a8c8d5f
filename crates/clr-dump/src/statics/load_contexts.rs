//! The load contexts of assemblies.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Runtime/Loader/AssemblyLoadContext.cs` (`s_allContexts`,
//! `s_nextId`); the same in dotnet/coreclr.

use crate::statics::Statics;
use crate::statics::collections::Counts;

const TYPE: &str = "System.Runtime.Loader.AssemblyLoadContext";

impl Statics<'_> {
    /// Returns the number of load contexts of assemblies that the program has made and not begun to unload;
    /// `None` if the memory lacks it.
    pub fn load_contexts(self) -> Option<u64> {
        let (contexts, of) = self.core_library_field(TYPE, "s_allContexts")?;
        Counts::new(self, &|_| false).of(contexts, of).ok()
    }

    /// Returns the number of load contexts that have ever been made, with those that are gone; `None` if the
    /// memory lacks it. The default context may be among them.
    pub fn made_load_contexts(self) -> Option<u64> {
        let place = self.core_library_place(TYPE, "s_nextId")?;
        self.memory().u64(place.address.get()).ok()
    }
}
