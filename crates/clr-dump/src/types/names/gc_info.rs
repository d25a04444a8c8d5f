//! The GCInfo of managed code.

use crate::code::map::{Code, CodeOrigin};
use crate::code::method_info::{FrameSlots, GcInfoPlace};
use crate::memory::MemoryResult;
use crate::threads::stack::Frame;
use crate::types::Types;

impl Types<'_> {
    /// Returns the slots of a frame that have references; `None` if its GCInfo cannot be read.
    pub(crate) fn slots(self, frame: &Frame) -> Option<FrameSlots> {
        let info = self.gc_info(frame.code.as_ref()?).ok().flatten()?;
        info.slots(self.memory(), self.runtime().processor(), frame.ip.get(), frame.position).ok()
    }

    /// Returns true if code is a filter of exceptions (`when`); false of images, whose handlers are not read.
    pub(crate) fn is_filter(self, code: &Code) -> bool {
        let begin = code.function.begin;
        let is_jit = matches!(code.origin, CodeOrigin::Jit { .. });
        is_jit && self.runtime().code().jit_is_filter(self.memory(), begin).unwrap_or_default()
    }

    /// Reads what the references and the variables of a frame need beside its stack: a copy of the memory
    /// that was read has it.
    pub(crate) fn touch(self, frame: &Frame) {
        let Some(code) = &frame.code else { return };
        self.slots(frame);
        self.is_filter(code);
        if let Ok(Some(info)) = self.debug_info(code, frame.position.lookup_address(frame.ip)) {
            let _ = info.variables(self.memory());
        }
    }

    /// Returns the place of the GCInfo of the method of managed code; `None` if it has none that is read, as
    /// NativeAOT programs.
    fn gc_info(self, code: &Code) -> MemoryResult<Option<GcInfoPlace>> {
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
