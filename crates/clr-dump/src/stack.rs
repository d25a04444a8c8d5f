//! The managed frames of a thread.
//!
//! Managed frames are unwound by their unwind codes. Where managed code has called native code, the runtime has
//! linked an explicit frame on the stack that has the caller's registers, and the walk continues from there.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/frames.h`.

use crate::code_map::Code;
use crate::layout::FrameKinds;
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::registers::{Register, Registers};
use crate::runtime::Runtime;
use crate::thread::Thread;
use crate::unwind::{FramePosition, UnwindError, unwind};

/// The most frames of a thread.
const MOST_FRAMES: usize = 8096;
/// The most bytes between an explicit frame and the registers that it has.
const FRAME_REACH: u64 = 0x1_0000;
/// The most native frames between a helper method's frame and its managed caller.
const MOST_HELPER_FRAMES: usize = 16;

/// A managed frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The instruction pointer of the innermost frame, or a return address.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The code at the instruction pointer.
    pub code: Code,
}

/// The managed frames of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stack {
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
    /// The index of the first frame after each place where frames may be missing, and the cause.
    pub gaps: Vec<(usize, Gap)>,
}

/// A reason why frames may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Gap {
    /// A frame could not be unwound.
    #[error("a frame could not be unwound: {0}")]
    Unwind(#[from] UnwindError),
    /// The list of explicit frames is incomplete.
    #[error("the list of explicit frames is incomplete: {0}")]
    Frames(Missing),
    /// The limit of frames was reached.
    #[error("there are more frames than are read")]
    TooMany,
}

impl Runtime {
    /// Walks the managed frames of a thread. `registers` are the thread's own; without them the walk starts at
    /// the innermost explicit frame, which is right for a thread in native code.
    pub fn stack(&self, memory: &dyn Memory, thread: &Thread, registers: Option<&Registers>) -> Stack {
        let mut stack = Stack::default();
        let mut explicit = ExplicitFrames { next: thread.frame };
        let mut current = None;
        let mut position = FramePosition::Innermost;
        if let Some(registers) = registers
            && self.managed(memory, registers.ip).is_some()
        {
            current = Some(*registers);
        }
        // The highest stack pointer so far: explicit frames below it belong to frames that were walked.
        let mut sp = current.map(|registers| registers.sp);
        for _ in 0..MOST_FRAMES {
            let managed = current.and_then(|registers: Registers| {
                Some((registers, self.managed(memory, position.lookup_address(registers.ip))?))
            });
            let (registers, code) = match managed {
                Some(managed) => managed,
                None => match explicit.next(memory, self, sp) {
                    Ok(Some(managed)) => {
                        position = FramePosition::Caller;
                        managed
                    }
                    Ok(None) => return stack,
                    Err(missing) => {
                        stack.gaps.push((stack.frames.len(), Gap::Frames(missing)));
                        return stack;
                    }
                },
            };
            stack.frames.push(Frame { ip: registers.ip, sp: registers.sp, code });
            sp = Some(registers.sp);
            current = match unwind(memory, code.function, &registers, position) {
                Ok(caller) => {
                    sp = Some(caller.sp);
                    Some(caller)
                }
                Err(error) => {
                    stack.gaps.push((stack.frames.len(), error.into()));
                    None
                }
            };
            position = FramePosition::Caller;
        }
        stack.gaps.push((stack.frames.len(), Gap::TooMany));
        stack
    }

    fn managed(&self, memory: &dyn Memory, address: u64) -> Option<Code> {
        self.code().find(memory, address).ok().flatten()
    }

    /// The managed code at a return address.
    fn managed_caller(&self, memory: &dyn Memory, ip: u64) -> Option<Code> {
        self.managed(memory, FramePosition::Caller.lookup_address(ip))
    }
}

/// The list of a thread's explicit frames.
struct ExplicitFrames {
    next: u64,
}

impl ExplicitFrames {
    /// Returns the managed frame of the next explicit frame that is above `sp` and active.
    fn next(
        &mut self,
        memory: &dyn Memory,
        runtime: &Runtime,
        sp: Option<u64>,
    ) -> MemoryResult<Option<(Registers, Code)>> {
        // Addresses rise, so that the list ends.
        for _ in 0..MOST_FRAMES {
            let at = self.next;
            if at == 0 || at == u64::MAX {
                return Ok(None);
            }
            let next = memory.u64(offset(at, 8))?;
            self.next = if next > at { next } else { 0 };
            if sp.is_some_and(|sp| at < sp) {
                continue;
            }
            if let Some(registers) = managed_registers(memory, runtime, at)?
                && sp.is_none_or(|sp| registers.sp > sp)
                && let Some(code) = runtime.managed_caller(memory, registers.ip)
            {
                return Ok(Some((registers, code)));
            }
        }
        Ok(None)
    }
}

/// The registers in the managed caller of an explicit frame; `None` if the frame is not active or of another kind.
fn managed_registers(memory: &dyn Memory, runtime: &Runtime, at: u64) -> MemoryResult<Option<Registers>> {
    let near = |address: u64| address.abs_diff(at) < FRAME_REACH;
    let kind = memory.u64(at)?;
    let (inlined_call, has_helpers) = match runtime.layout.frames {
        FrameKinds::WithHelpers { inlined_call } => (runtime.slot(inlined_call), true),
        FrameKinds::Identified { inlined_call } => (inlined_call, false),
    };
    if kind == inlined_call {
        let [sp, ip, bp] = memory.words(offset(at, 24))?;
        return Ok((ip != 0 && near(sp)).then(|| Registers::new(ip, sp, bp)));
    }
    if has_helpers && let Some(registers) = helper_registers(memory, runtime, at) {
        return Ok(Some(registers));
    }
    let block = memory.u64(offset(at, 16))?;
    if !near(block) {
        return Ok(None);
    }
    // Another kind of frame has something else there.
    let Ok([r12, r13, r14, r15, rbx, rbp, ip]) = memory.words(block) else { return Ok(None) };
    let registers = Registers::new(ip, offset(block, 56), rbp)
        .with(Register::R12, r12)
        .with(Register::R13, r13)
        .with(Register::R14, r14)
        .with(Register::R15, r15)
        .with(Register::RBX, rbx);
    Ok(runtime.managed_caller(memory, ip).map(|_| registers))
}

/// The registers of the managed caller of a helper method: those that its frame has captured, or those that the
/// frame pointers of its native frames lead to.
fn helper_registers(memory: &dyn Memory, runtime: &Runtime, at: u64) -> Option<Registers> {
    let [ip, sp] = memory.words(offset(at, 0x30)).ok()?;
    let captured = memory.u64(offset(at, 0x68)).ok()?;
    if ip != 0 && runtime.managed_caller(memory, ip).is_some() {
        let saved = memory.u64(offset(at, 0x98)).ok().filter(|saved| *saved != 0);
        let bp = saved.and_then(|saved| memory.u64(saved).ok()).unwrap_or(captured);
        return Some(Registers::new(ip, sp, bp));
    }
    let mut frame = captured;
    for _ in 0..MOST_HELPER_FRAMES {
        if frame <= at || frame.wrapping_sub(at) >= FRAME_REACH || !frame.is_multiple_of(8) {
            return None;
        }
        let [bp, ip] = memory.words(frame).ok()?;
        if runtime.managed_caller(memory, ip).is_some() {
            return Some(Registers::new(ip, offset(frame, 16), bp));
        }
        frame = bp;
    }
    None
}
