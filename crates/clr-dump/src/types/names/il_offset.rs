//! The IL of code.

use crate::code::debug_info::DebugInfoPlace;
use crate::code::map::{Code, CodeOrigin};
use crate::memory::MemoryResult;
use crate::memory::address::Address;
use crate::types::Types;

impl Types<'_> {
    /// Returns the offset in its method's IL of code at an address, by the map that the runtime keeps for
    /// debuggers. `None` if the memory lacks it, and for code of NativeAOT programs.
    ///
    /// A return address follows the call: look up the address before it, as
    /// [`FramePosition::lookup_address`](crate::FramePosition::lookup_address) does.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for thread in dump.threads().list()? {
    ///     let stack = dump.threads().stack(&thread, core.registers(thread.os_id));
    ///     for (frame, code) in stack.managed() {
    ///         let address = frame.position.lookup_address(frame.ip);
    ///         println!("{:#x}: IL {:?}", frame.ip, dump.types().il_offset(code, address));
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn il_offset(self, code: &Code, address: Address) -> Option<u32> {
        self.debug_info(code, address).ok().flatten()?.il_offset(self.memory()).ok().flatten()
    }

    /// Returns the debug info of the method of code at an address.
    pub(crate) fn debug_info(self, code: &Code, address: Address) -> MemoryResult<Option<DebugInfoPlace>> {
        let map = self.runtime().code();
        match code.origin {
            CodeOrigin::Jit { .. } => map.jit_debug_info(self.memory(), address.get()),
            CodeOrigin::ReadyToRun { module, index } => {
                let base = code.function.image_base;
                let Some((_, first)) = self.entry_point(module, base, index)? else { return Ok(None) };
                map.image(self.memory(), base)?.debug_info(self.memory(), first, address.get())
            }
            CodeOrigin::NativeAot { .. } => Ok(None),
        }
    }
}
