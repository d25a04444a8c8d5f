//! The GCInfo of managed code.

use crate::code::map::{Code, CodeOrigin};
use crate::code::method_info::GcInfoPlace;
use crate::memory::MemoryResult;
use crate::types::Types;

impl Types<'_> {
    /// Returns the place of the GCInfo of the method of managed code; `None` if it has none that is read, as
    /// NativeAOT programs.
    pub(crate) fn gc_info(self, code: &Code) -> MemoryResult<Option<GcInfoPlace>> {
        let map = self.runtime().code();
        match code.origin {
            CodeOrigin::Jit { .. } => map.jit_gc_info(self.memory(), code.function.begin),
            CodeOrigin::ReadyToRun { module, index } => {
                let base = code.function.image_base;
                let Some((_, first)) = self.entry_point(module, base, index)? else { return Ok(None) };
                map.image(self.memory(), base)?.gc_info(self.memory(), first).map(Some)
            }
            CodeOrigin::NativeAot { .. } => Ok(None),
        }
    }
}
