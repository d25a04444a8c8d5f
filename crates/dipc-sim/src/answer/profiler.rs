//! The command set Profiler.

use crate::client::{Client, Step};
use crate::state::keep;
use dipc_wire::{AttachProfiler, HResult, StartupProfiler};
use std::path::Path;

/// `HRESULT_FROM_WIN32(ERROR_MOD_NOT_FOUND)`: the library is not there, or cannot be loaded.
const LIBRARY_NOT_FOUND: HResult = HResult::from_bits(0x8007_007e);

impl Client<'_> {
    /// AttachProfiler: any file will do as a profiler, a running process has to be there.
    pub(crate) fn attach_profiler(&mut self, profiler: &AttachProfiler) -> Step {
        let result = if self.state().suspended {
            HResult::NOT_YET_AVAILABLE
        } else if Path::new(&profiler.path).is_file() {
            keep(&mut self.state().attached_profilers, profiler.clone())
        } else {
            LIBRARY_NOT_FOUND
        };
        self.reply_result(result)
    }

    /// StartupProfiler: runtimes take it at any time, although only a suspended one will load it.
    pub(crate) fn startup_profiler(&mut self, profiler: &StartupProfiler) -> Step {
        let result = keep(&mut self.state().startup_profilers, profiler.clone());
        self.reply_result(result)
    }
}
