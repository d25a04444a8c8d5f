//! The command set Profiler.

use crate::client::{Client, Step};
use crate::state::push_bounded;
use dipc_wire::{AttachProfiler, HResult, StartupProfiler};
use std::path::Path;

/// `HRESULT_FROM_WIN32(ERROR_MOD_NOT_FOUND)`: the library does not exist, or cannot be loaded.
const LIBRARY_NOT_FOUND: HResult = HResult::from_bits(0x8007_007e);

impl Client<'_> {
    /// Answers AttachProfiler: a running process accepts any file as a profiler.
    pub(super) fn attach_profiler(&mut self, profiler: &AttachProfiler) -> Step {
        let result = if self.state().suspended {
            HResult::NOT_YET_AVAILABLE
        } else if Path::new(&profiler.path).is_file() {
            push_bounded(&mut self.state().attached_profilers, profiler.clone())
        } else {
            LIBRARY_NOT_FOUND
        };
        self.reply_result(result)
    }

    /// Answers StartupProfiler: runtimes accept it at any time, although only a suspended one will load it.
    pub(super) fn startup_profiler(&mut self, profiler: &StartupProfiler) -> Step {
        let result = push_bounded(&mut self.state().startup_profilers, profiler.clone());
        self.reply_result(result)
    }
}
