//! Code with unwind information known only to its runtime.

use std::fmt::Debug;

use crate::record::Registers;

/// The place of a frame in its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the innermost frame, or another")]
pub enum FramePosition {
    /// The innermost frame: the thread is at the instruction, perhaps before the frame is set up.
    Innermost,
    /// A frame with a return address as its instruction pointer.
    Caller,
}

/// A frame of a sample.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "made by callers that unwind")]
pub struct SampledFrame<'a> {
    /// The registers in this frame.
    pub registers: Registers,
    /// The place of the frame.
    pub position: FramePosition,
    /// The address of the first copied byte of the stack.
    pub stack_start: u64,
    /// The copied bytes of the stack. Its memory must not be read instead: the thread has run on.
    pub stack: &'a [u8],
}

/// Unwinds code that no image describes: that of a JIT compiler, or of images in a format of a runtime's own.
///
/// [`Unwinder`](crate::Unwinder) asks it for each frame outside of images with unwind information. Without
/// it, such code is expected to keep frame pointers.
///
/// ```
/// use linux_sampler::{Registers, RuntimeUnwinder, SampledFrame, Unwinder};
///
/// /// Code of a JIT compiler that keeps nothing on the stack except its return address.
/// #[derive(Debug)]
/// struct Leaves;
///
/// impl RuntimeUnwinder for Leaves {
///     fn caller(&mut self, _: i32, frame: &SampledFrame<'_>) -> Option<Registers> {
///         let at = usize::try_from(frame.registers.sp.checked_sub(frame.stack_start)?).ok()?;
///         let ip = u64::from_le_bytes(*frame.stack.get(at..)?.first_chunk()?);
///         Some(Registers { ip, sp: frame.registers.sp + 8, ..frame.registers })
///     }
///     fn forget(&mut self, _: i32) {}
/// }
///
/// let unwinder = Unwinder::new().with_runtime_unwinder(Box::new(Leaves));
/// ```
pub trait RuntimeUnwinder: Debug + Send {
    /// Returns the registers in the caller of a frame; `None` if the code or the needed bytes of the stack
    /// are not known. A result is ignored if its stack pointer does not rise, or its instruction pointer is
    /// not in executable memory.
    fn caller(&mut self, pid: i32, frame: &SampledFrame<'_>) -> Option<Registers>;

    /// Removes a process: it has ended, or runs another program.
    fn forget(&mut self, pid: i32);
}
