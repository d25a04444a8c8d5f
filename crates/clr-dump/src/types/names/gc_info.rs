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

    /// Returns true if code is a filter of exceptions (`when`), by the handlers of its method.
    pub(crate) fn is_filter(self, code: &Code) -> bool {
        self.is_filter_by_handlers(code).unwrap_or_default()
    }

    fn is_filter_by_handlers(self, code: &Code) -> MemoryResult<bool> {
        let (map, begin) = (self.runtime().code(), code.function.begin);
        match code.origin {
            CodeOrigin::Jit { .. } => map.jit_is_filter(self.memory(), begin),
            CodeOrigin::ReadyToRun { module, index } => {
                let base = code.function.image_base;
                let Some((_, first)) = self.entry_point(module, base, index)? else { return Ok(false) };
                map.image(self.memory(), base)?.is_filter(self.memory(), first, begin)
            }
            CodeOrigin::NativeAot { .. } => Ok(false),
        }
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
        // The types of its local variables.
        let method = self.method(code);
        if let Some((module, token)) = method.and_then(|method| method.module.zip(method.token)) {
            self.locals_row(&module, token & 0x00ff_ffff);
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
