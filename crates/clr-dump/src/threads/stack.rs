//! The frames of a thread.
//!
//! Managed frames are unwound with unwind codes, native frames with the unwind information of their images.
//! Where that is missing, the walk continues from the explicit frame that the runtime has linked on the stack
//! where managed code called native code: it has the caller's registers.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/frames.h`.

use std::sync::atomic::Ordering;

use hashbrown::HashSet;

use crate::code::map::Code;
use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::processor::Processor;
use crate::runtime::Runtime;
use crate::runtime::layout::{FrameKind, SavedRegisters};
use crate::threads::thread::{self, Thread};
use crate::unwind::native::NativeImages;
use crate::unwind::registers::{Register, Registers};
use crate::unwind::{FramePosition, UnwindError, unwind};

/// Maximum number of innermost frames of a thread to keep.
const MAX_FRAMES: usize = 8096;
/// Number of outermost frames to keep of a deeper stack, too: they show where a recursion began.
const OUTERMOST: usize = 64;
/// Maximum distance in bytes between an explicit frame and its registers.
const FRAME_REACH: u64 = 0x1_0000;
/// Maximum number of walks of a thread that keeps running.
const MAX_WALKS: usize = 8;
/// Maximum number of native frames between a helper method's frame and its managed caller.
const MAX_HELPER_FRAMES: usize = 16;

/// A frame of managed or native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The instruction pointer.
    pub ip: Address,
    /// The stack pointer.
    pub sp: Address,
    /// The managed code at the instruction pointer; `None` of native code.
    pub code: Option<Code>,
    /// States if the instruction pointer is a return address.
    pub position: FramePosition,
}

/// The frames of a thread.
///
/// ```no_run
/// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
/// # let dump = clr_dump::Dump::open(&core)?;
/// # let thread = dump.threads().list()?.remove(0);
/// let stack = dump.threads().stack(&thread, core.registers(thread.os_id));
/// for (frame, code) in stack.managed() {
///     println!("{:#x} {:?}", frame.ip, dump.types().method(code).and_then(|method| method.name));
/// }
/// for (at, gap) in &stack.gaps {
///     eprintln!("before frame {at}: {gap}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stack {
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
    /// The index of the first frame after each place where frames may be missing, and the cause.
    pub gaps: Vec<(usize, Gap)>,
}

impl Stack {
    /// The managed frames with their code, innermost first.
    pub fn managed(&self) -> impl Iterator<Item = (&Frame, &Code)> {
        self.frames.iter().filter_map(|frame| Some((frame, frame.code.as_ref()?)))
    }

    /// Removes frames of a deep stack; returns their number.
    fn leave_out(&mut self) -> usize {
        let end = MAX_FRAMES.saturating_add(OUTERMOST);
        if self.frames.len() < end.saturating_add(OUTERMOST) {
            return 0;
        }
        self.frames.drain(MAX_FRAMES..end);
        for (at, _) in self.gaps.iter_mut().filter(|(at, _)| *at > MAX_FRAMES) {
            *at = at.saturating_sub(OUTERMOST).max(MAX_FRAMES);
        }
        OUTERMOST
    }

    /// States that the native frames that are missing at the end may have had managed callers. Native code of
    /// an image that managed code returns to has no managed callers, because explicit frames would lead to
    /// them.
    fn mark_missing_root(&mut self) {
        let end = self.frames.len();
        let has_managed = self.managed().next().is_some();
        if let Some((at, gap)) = self.gaps.last_mut()
            && let Gap::Native(error) = *gap
            && *at == end
            && (!has_managed || error == UnwindError::NotInImage)
        {
            *gap = Gap::NoRoot(error);
        }
    }

    fn add_gap(&mut self, gap: Gap) {
        self.gaps.push((self.frames.len(), gap));
    }
}

/// A reason why frames may be missing.
///
/// ```
/// use clr_dump::{Gap, UnwindError};
///
/// // Native frames may be missing where the managed ones are whole.
/// assert!(Gap::Native(UnwindError::NotInImage).is_native());
/// assert!(!Gap::Running.is_native());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Gap {
    /// A frame of managed code could not be unwound.
    #[error("a frame could not be unwound: {0}")]
    Unwind(UnwindError),
    /// A frame of native code could not be unwound. The managed frames are whole: the runtime's list of
    /// explicit frames leads to them.
    #[error("native frames are missing: {0}")]
    Native(UnwindError),
    /// The walk ends before the root of the stack: a frame of native code could not be unwound, and no
    /// explicit frame is left.
    #[error("it ends before the root of the stack: {0}")]
    NoRoot(UnwindError),
    /// The address is in an image with managed code, but outside its functions.
    #[error("{0} is in none of the functions of its image")]
    NoFunction(Address),
    /// The thread's registers are unknown, and it lacks an explicit frame.
    #[error("without its registers, which stopping it shows, no frame leads to others")]
    NoStart,
    /// The thread has changed each time while its stack was walked: the frames can be of several moments.
    #[error(
        "it ran on while its stack was read: frames can be of other moments, and only stopping it shows its own"
    )]
    Changed,
    /// The thread runs managed code, and its registers are unknown.
    #[error("it runs managed code, and only stopping it shows its innermost frames")]
    Running,
    /// The list of explicit frames is incomplete.
    #[error("the list of explicit frames is incomplete: {0}")]
    Frames(Missing),
    /// Frames between the innermost and the outermost frames were left out.
    #[error("{0} frames of a deep stack are left out")]
    LeftOut(usize),
    /// The limit of frames was reached.
    #[error("there are more frames than are read")]
    TooMany,
}

impl From<UnwindError> for Gap {
    fn from(error: UnwindError) -> Self {
        Self::Unwind(error)
    }
}

impl Gap {
    /// Returns true if only native frames are missing.
    pub const fn is_native(&self) -> bool {
        matches!(self, Self::Native(_))
    }
}

/// The next step of a walk.
#[expect(clippy::large_enum_variant, reason = "one exists at a time, and each step has registers")]
enum Next {
    Frame(Registers, FramePosition),
    /// The managed caller of the next explicit frame.
    Explicit,
    /// The root of the native stack, unless an explicit frame is left: the stub to which a replaced return
    /// address leads has pushed any value in its place.
    Root,
    End,
}

/// Returns true if a frame of native code has a stack pointer below its caller's. The innermost function of
/// arm64 can leave its return address in a register.
fn pushes(registers: &Registers, position: FramePosition) -> bool {
    registers.processor() == Processor::X86_64 || position == FramePosition::Caller
}

fn managed_caller_of(
    memory: &dyn Memory,
    code: &Code,
    registers: &Registers,
    position: FramePosition,
) -> Result<Next, Gap> {
    let caller = unwind(memory, code.function, registers, position)?;
    Ok(Next::Frame(caller, FramePosition::Caller))
}

impl Runtime {
    /// Walks the frames of a thread. `registers` are the thread's own; without them the walk starts at the
    /// innermost explicit frame, which is right for a thread in native code.
    pub(crate) fn stack(&self, memory: &dyn Memory, thread: &Thread, registers: Option<&Registers>) -> Stack {
        self.visit_stack(memory, thread, registers, &mut |_, _| {})
    }

    /// Walks the frames of a thread, as [`stack`](Self::stack), and passes each managed frame with its
    /// registers to `visit`: also frames of a deep stack that the result leaves out.
    pub(crate) fn visit_stack(
        &self,
        memory: &dyn Memory,
        thread: &Thread,
        registers: Option<&Registers>,
        visit: &mut dyn FnMut(&Frame, &Registers),
    ) -> Stack {
        // The headers of a damaged core dump can be of another processor than its runtime.
        let registers = registers.filter(|registers| registers.processor() == self.processor());
        let explicit = ExplicitFrames { next: thread.frame.get(), thread: thread.address.get() };
        let mut stack = self.walk(memory, explicit, registers, visit);
        if registers.is_none() && thread.is_cooperative {
            stack.gaps.insert(0, (0, Gap::Running));
        } else if registers.is_none() && stack.frames.is_empty() && stack.gaps.is_empty() && thread.os_id != 0
        {
            stack.add_gap(Gap::NoStart);
        }
        stack
    }

    /// Walks the frames of a thread of a process that runs meanwhile, until two walks agree. Returns the
    /// thread as it was then, and a stack with [`Gap::Changed`] if none did.
    pub(crate) fn running_stack(&self, memory: &dyn Memory, thread: Thread) -> (Thread, Stack) {
        let mut last = (self.stack(memory, &thread, None), thread);
        for _ in 0..MAX_WALKS {
            let Ok(thread) = thread::read(memory, &self.layout, last.1.address) else { break };
            if thread.os_id != last.1.os_id {
                break;
            }
            let now = (self.stack(memory, &thread, None), thread);
            if now == last {
                return (now.1, now.0);
            }
            last = now;
        }
        let (mut stack, thread) = last;
        stack.gaps.insert(0, (0, Gap::Changed));
        (thread, stack)
    }

    /// Walks the frames of a thread that the runtime does not know.
    pub(crate) fn native_stack(&self, memory: &dyn Memory, registers: &Registers) -> Stack {
        self.walk(memory, ExplicitFrames { next: 0, thread: 0 }, Some(registers), &mut |_, _| {})
    }

    fn walk(
        &self,
        memory: &dyn Memory,
        mut explicit: ExplicitFrames,
        registers: Option<&Registers>,
        visit: &mut dyn FnMut(&Frame, &Registers),
    ) -> Stack {
        let mut stack = Stack::default();
        // The highest stack pointer of managed frames: explicit frames below it belong to frames that were
        // walked. A signal handler can have a stack of its own, anywhere.
        let mut managed_sp = None;
        // The stack pointer rises from managed frames to their callers, and a walk that repeats has others.
        let mut seen = HashSet::new();
        let mut left_out = 0_usize;
        let mut last: Option<(Address, Code)> = None;
        let mut next =
            registers.map_or(Next::Explicit, |registers| Next::Frame(*registers, FramePosition::Innermost));
        let mut is_rooted = false;
        loop {
            left_out = left_out.saturating_add(stack.leave_out());
            if stack.frames.len() > MAX_FRAMES && !self.take_deep_frame() {
                stack.add_gap(Gap::TooMany);
                break;
            }
            let step = match next {
                Next::End => break,
                Next::Root => {
                    is_rooted = true;
                    Ok(Next::Explicit)
                }
                Next::Explicit => match explicit.next(memory, self, managed_sp) {
                    Ok(Some((registers, position))) => Ok(Next::Frame(registers, position)),
                    Ok(None) => Ok(Next::End),
                    Err(missing) => {
                        stack.add_gap(Gap::Frames(missing));
                        Ok(Next::End)
                    }
                },
                Next::Frame(registers, position) => {
                    is_rooted = false;
                    let Registers { ip, sp, .. } = registers;
                    let address = position.lookup_address(Address::new(ip));
                    // A recursion returns to the same address each time.
                    let known = last.filter(|(at, _)| *at == address).map(|(_, code)| code);
                    let code = known.or_else(|| self.managed(memory, address));
                    last = code.map(|code| (address, code));
                    let is_native = code.is_none_or(|code| code.origin.has_native_unwinding());
                    if is_native && pushes(&registers, position) && !seen.insert(sp) {
                        stack.add_gap(UnwindError::NotRising.into());
                        break;
                    }
                    let frame = Frame { ip: Address::new(ip), sp: Address::new(sp), code, position };
                    if code.is_some() {
                        managed_sp = Some(sp);
                    }
                    if let Some(code) = code.filter(|_| !is_native) {
                        stack.frames.push(frame);
                        visit(&frame, &registers);
                        managed_caller_of(memory, &code, &registers, position)
                    } else {
                        self.native_caller(memory, &mut stack, explicit.next, (&registers, frame))
                    }
                }
            };
            next = step.unwrap_or_else(|gap| {
                stack.add_gap(gap);
                Next::Explicit
            });
        }
        if !is_rooted {
            stack.mark_missing_root();
        }
        if left_out > 0 {
            stack.gaps.push((MAX_FRAMES, Gap::LeftOut(left_out)));
        }
        stack
    }

    /// Takes a frame from the limit for deep stacks; returns false if the limit is used up.
    fn take_deep_frame(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        self.deep_frames_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Adds a frame with the unwind information of native code, and returns the next step.
    fn native_caller(
        &self,
        memory: &dyn Memory,
        stack: &mut Stack,
        explicit: u64,
        (registers, frame): (&Registers, Frame),
    ) -> Result<Next, Gap> {
        let position = frame.position;
        let caller = self.native().unwind(memory, registers, position);
        // A return address outside code ends the walk of native frames. A thread can be anywhere.
        if caller != Err(UnwindError::NotInImage) || position == FramePosition::Innermost {
            stack.frames.push(frame);
        }
        match caller {
            Ok(Some((caller, position))) => {
                // The handler of a stack overflow has a stack of its own, and only the interrupted address.
                let interrupted = interrupted(memory, self, explicit).filter(|at| at.ip == caller.ip);
                Ok(match interrupted {
                    Some(interrupted) => Next::Frame(interrupted, FramePosition::Innermost),
                    None => Next::Frame(caller, position),
                })
            }
            Ok(None) => Ok(Next::Root),
            // Code that the runtime generates to lead to a method has pushed nothing.
            Err(UnwindError::NotInImage) if position == FramePosition::Innermost => {
                let caller = return_at_entry(memory, registers);
                match caller.filter(|caller| self.managed_caller(memory, caller.ip).is_some()) {
                    Some(caller) => Ok(Next::Frame(caller, FramePosition::Caller)),
                    None => Err(Gap::Native(UnwindError::NotInImage)),
                }
            }
            Err(UnwindError::NotInImage)
                if self.code().is_of_image(memory, position.lookup_address(frame.ip)) =>
            {
                Err(match self.code().find(memory, position.lookup_address(frame.ip)) {
                    Err(missing) => Gap::Unwind(missing.into()),
                    Ok(_) => Gap::NoFunction(frame.ip),
                })
            }
            Err(error) if frame.code.is_some() => Err(error.into()),
            Err(error) => Err(Gap::Native(error)),
        }
    }

    /// The first word of explicit frames of a kind.
    pub(crate) fn frame_kind(&self, kind: Option<FrameKind>) -> Option<u64> {
        match kind? {
            FrameKind::Vtable { slot } => Some(self.slot(slot)),
            FrameKind::Identifier(identifier) => Some(identifier),
            FrameKind::Transition => None,
        }
    }

    pub(crate) fn managed(&self, memory: &dyn Memory, address: Address) -> Option<Code> {
        match self.native_aot() {
            Some(program) => program.code_at(memory, self.native(), address.get()),
            None => self.code().find(memory, address).ok().flatten(),
        }
    }

    /// The managed code at a return address.
    fn managed_caller(&self, memory: &dyn Memory, ip: u64) -> Option<Code> {
        self.managed(memory, FramePosition::Caller.lookup_address(Address::new(ip)))
    }
}

impl NativeImages {
    /// Walks the frames of a thread by native unwind information alone, without a runtime or without its
    /// data. Managed frames end the walk.
    pub fn stack(&self, memory: &dyn Memory, registers: &Registers) -> Stack {
        let mut stack = Stack::default();
        let mut seen = HashSet::new();
        let (mut registers, mut position) = (*registers, FramePosition::Innermost);
        while stack.frames.len() < MAX_FRAMES && (!pushes(&registers, position) || seen.insert(registers.sp))
        {
            let Registers { ip, sp, .. } = registers;
            let caller = self.unwind(memory, &registers, position);
            if caller != Err(UnwindError::NotInImage) || position == FramePosition::Innermost {
                let (ip, sp) = (Address::new(ip), Address::new(sp));
                stack.frames.push(Frame { ip, sp, code: None, position });
            }
            match caller {
                Ok(Some(next)) => (registers, position) = next,
                Ok(None) => break,
                Err(error) => {
                    stack.add_gap(Gap::Native(error));
                    break;
                }
            }
        }
        stack
    }
}

/// The list of a thread's explicit frames.
struct ExplicitFrames {
    next: u64,
    /// The address of the runtime's Thread.
    thread: u64,
}

impl ExplicitFrames {
    /// Returns the registers of the managed caller of the next explicit frame that is above `sp` and active.
    fn next(
        &mut self,
        memory: &dyn Memory,
        runtime: &Runtime,
        sp: Option<u64>,
    ) -> MemoryResult<Option<(Registers, FramePosition)>> {
        if runtime.layout.frames.inlined_call == FrameKind::Transition {
            // A thread has one transition frame.
            let at = std::mem::take(&mut self.next);
            let registers = transition_registers(memory, runtime.processor(), at)?;
            let is_next = |of: &Registers| {
                sp.is_none_or(|sp| of.sp > sp) && runtime.managed_caller(memory, of.ip).is_some()
            };
            return Ok(registers.filter(is_next).map(|registers| (registers, FramePosition::Caller)));
        }
        // Addresses have to rise, so the list ends.
        for _ in 0..MAX_FRAMES {
            let at = self.next;
            if at == 0 || at == u64::MAX {
                return Ok(None);
            }
            let next = memory.u64(offset(at, 8))?;
            self.next = if next > at { next } else { 0 };
            if let Some(interrupted) = interrupted(memory, runtime, at) {
                let is_next = sp.is_none_or(|sp| interrupted.sp > sp);
                if is_next && runtime.managed(memory, Address::new(interrupted.ip)).is_some() {
                    return Ok(Some((interrupted, FramePosition::Innermost)));
                }
                continue;
            }
            if sp.is_some_and(|sp| at < sp) {
                continue;
            }
            let hijacked = hijacked_registers(memory, runtime, at, self.thread);
            let registers = match hijacked {
                Some(_) => hijacked,
                None => managed_registers(memory, runtime, at)?,
            };
            if let Some(registers) = registers
                && sp.is_none_or(|sp| registers.sp > sp)
                && runtime.managed_caller(memory, registers.ip).is_some()
            {
                return Ok(Some((registers, FramePosition::Caller)));
            }
        }
        Ok(None)
    }
}

/// The registers in the caller of code that has pushed nothing.
fn return_at_entry(memory: &dyn Memory, registers: &Registers) -> Option<Registers> {
    let mut caller = *registers;
    match registers.processor() {
        Processor::X86_64 => {
            (caller.ip, caller.sp) = (memory.u64(registers.sp).ok()?, offset(registers.sp, 8));
        }
        processor @ Processor::Aarch64 => {
            caller.ip = processor.return_address(registers.get(Register::LR)?);
        }
    }
    Some(caller)
}

/// The registers of managed code that a fault has interrupted, if the explicit frame is of a fault: it has a
/// copy of them. It can be on the stack of the signal handler.
fn interrupted(memory: &dyn Memory, runtime: &Runtime, at: u64) -> Option<Registers> {
    if at == 0 || at == u64::MAX || memory.u64(at).ok()? != runtime.frame_kind(runtime.layout.frames.fault)? {
        return None;
    }
    // `CONTEXT`: the registers in the order of their numbers, and the instruction pointer.
    let context = offset(at, FAULT_CONTEXT);
    let processor = runtime.processor();
    match processor {
        Processor::X86_64 => {
            let registers: [u64; 16] = memory.words(offset(context, 0x78)).ok()?;
            let ip = memory.u64(offset(context, 0xf8)).ok()?;
            let numbers = (0..).map(Register::of_number);
            Some(Registers::of(processor, ip, 0).with_all(numbers.zip(registers)))
        }
        Processor::Aarch64 => {
            // The 32nd is the stack pointer.
            let registers: [u64; 33] = memory.words(offset(context, 8)).ok()?;
            let [.., ip] = registers;
            let numbers = (0..32).map(Register::x);
            Some(Registers::of(processor, ip, 0).with_all(numbers.zip(registers)))
        }
    }
}

/// The offset of the interrupted registers in the explicit frame of a fault.
const FAULT_CONTEXT: u64 = 0x20;

/// The registers of the managed code that has left a frame of NativeAOT (PInvokeTransitionFrame): its
/// address, the frame pointer (on arm64 in the other order), the thread, flags, and the registers that the
/// flags name. `None` without such a frame, or if it lacks the stack pointer.
///
/// # Source
/// dotnet/runtime `src/coreclr/nativeaot/Runtime/inc/rhbinder.h`.
fn transition_registers(
    memory: &dyn Memory,
    processor: Processor,
    at: u64,
) -> MemoryResult<Option<Registers>> {
    /// The registers in the order of their flags. The stack pointer follows them.
    const X86_64: [(u32, Register); 6] = [
        (0x01, Register::RBX),
        (0x08, Register::R12),
        (0x10, Register::R13),
        (0x20, Register::R14),
        (0x40, Register::R15),
        (0x8000, Register::RSP),
    ];
    const AARCH64: [(u32, Register); 11] = [
        (0x01, Register::x(19)),
        (0x02, Register::x(20)),
        (0x04, Register::x(21)),
        (0x08, Register::x(22)),
        (0x10, Register::x(23)),
        (0x20, Register::x(24)),
        (0x40, Register::x(25)),
        (0x80, Register::x(26)),
        (0x100, Register::x(27)),
        (0x200, Register::x(28)),
        (0x400, Register::SP),
    ];
    // The outermost code, and code that a signal has interrupted, have marks.
    if at == 0 || at >= u64::MAX.wrapping_sub(1) {
        return Ok(None);
    }
    let [first, second] = memory.words(at)?;
    let (ip, fp, order): (_, _, &[_]) = match processor {
        Processor::X86_64 => (first, second, &X86_64),
        Processor::Aarch64 => (second, first, &AARCH64),
    };
    let flags = memory.u32(offset(at, 24))?;
    let registers = Registers::of(processor, processor.return_address(ip), 0);
    let mut registers = registers.with(Register::RBP, fp).with(Register::FP, fp);
    let saved = order.iter().filter(|(flag, _)| flags & flag != 0);
    for ((_, register), place) in saved.zip((32..).step_by(8)) {
        registers.set(*register, memory.u64(offset(at, place))?);
    }
    Ok(Some(registers).filter(|registers| registers.sp != 0))
}

/// The registers of the managed caller that a method was about to return to when its thread was stopped for a
/// collection: the runtime had replaced the return address (`HijackFrame`, `HijackArgs`). `None` if the frame
/// is of another kind: only this one has the address of its thread.
fn hijacked_registers(memory: &dyn Memory, runtime: &Runtime, at: u64, thread: u64) -> Option<Registers> {
    let [ip, of, saved] = memory.words(offset(at, 16)).ok()?;
    if of != thread || thread == 0 || saved.abs_diff(at) >= FRAME_REACH {
        return None;
    }
    let ip = runtime.processor().return_address(ip);
    runtime.managed_caller(memory, ip)?;
    let mut registers = saved_registers(memory, runtime, &runtime.layout.frames.hijack_args, saved).ok()?;
    registers.ip = ip;
    Some(registers)
}

/// The registers of a managed caller in a part of the stack next to its own.
fn saved_registers(
    memory: &dyn Memory,
    runtime: &Runtime,
    layout: &SavedRegisters,
    at: u64,
) -> MemoryResult<Registers> {
    let processor = runtime.processor();
    let ip = processor.return_address(memory.u64(offset(at, layout.return_address))?);
    let registers = Registers::of(processor, ip, offset(at, layout.size));
    let preserved = offset(at, layout.preserved);
    Ok(match processor {
        Processor::X86_64 => registers.with_preserved(&memory.words::<6>(preserved)?),
        Processor::Aarch64 => registers.with_preserved(&memory.words::<12>(preserved)?),
    })
}

/// The registers in the managed caller of an explicit frame; `None` if the frame is not active or of another
/// kind.
fn managed_registers(memory: &dyn Memory, runtime: &Runtime, at: u64) -> MemoryResult<Option<Registers>> {
    let near = |address: u64| address.abs_diff(at) < FRAME_REACH;
    let frames = &runtime.layout.frames;
    if Some(memory.u64(at)?) == runtime.frame_kind(Some(frames.inlined_call)) {
        let [sp, ip, fp] = memory.words(offset(at, frames.inlined_call_registers))?;
        let processor = runtime.processor();
        let registers = Registers::of(processor, processor.return_address(ip), sp);
        let registers = registers.with(Register::RBP, fp).with(Register::FP, fp);
        return Ok((ip != 0 && near(sp)).then_some(registers));
    }
    // They are of versions that are read on x86-64 alone.
    if frames.has_helpers
        && let Some(registers) = helper_registers(memory, runtime, at)
    {
        return Ok(Some(registers));
    }
    let block = memory.u64(offset(at, 16))?;
    if !near(block) {
        return Ok(None);
    }
    // Another kind of frame has something else there.
    let registers = saved_registers(memory, runtime, &frames.transition_block, block).ok();
    Ok(registers.filter(|registers| runtime.managed_caller(memory, registers.ip).is_some()))
}

/// Offsets of `HelperMethodFrame`: its `LazyMachState` with the registers r12, r13, r14, r15, rbx and rbp.
mod machine_state {
    /// The instruction pointer and the stack pointer of the managed caller, once it was looked for.
    pub(super) const UNWOUND: u64 = 0x30;
    /// The registers of the helper method, where it captured its state.
    pub(super) const CAPTURED_REGISTERS: u64 = 0x40;
    /// Pointers to the caller's registers.
    pub(super) const POINTERS: u64 = 0x70;
    /// A pointer to the caller's instruction pointer; zero until it was looked for.
    pub(super) const RETURN_ADDRESS: u64 = 0xa0;
    /// The caller's registers without a pointer.
    pub(super) const UNWOUND_REGISTERS: u64 = 0xa8;
    /// The instruction pointer and the stack pointer of the helper method, where it captured its state.
    pub(super) const CAPTURED: u64 = 0xd8;
}

/// The registers of a helper method's managed caller, either from its frame or from unwinding the native
/// frames of the helper method. The runtime itself looks for the caller only once it needs it; until then the
/// place of the caller's registers has stale stack contents.
///
/// # Source
/// dotnet/runtime `src/coreclr/vm/amd64/gmscpu.h` (`MachState`, `LazyMachState`).
fn helper_registers(memory: &dyn Memory, runtime: &Runtime, at: u64) -> Option<Registers> {
    let unwound = offset(at, machine_state::UNWOUND);
    if memory.u64(offset(at, machine_state::RETURN_ADDRESS)).ok()? == unwound {
        let [ip, sp] = memory.words(unwound).ok()?;
        runtime.managed_caller(memory, ip)?;
        let pointers: [u64; 6] = memory.words(offset(at, machine_state::POINTERS)).ok()?;
        let mut values: [u64; 6] = memory.words(offset(at, machine_state::UNWOUND_REGISTERS)).ok()?;
        for (pointer, value) in pointers.into_iter().zip(&mut values).filter(|(pointer, _)| *pointer != 0) {
            *value = memory.u64(pointer).ok()?;
        }
        return Some(Registers::of(Processor::X86_64, ip, sp).with_preserved(&values));
    }
    let [ip, sp] = memory.words(offset(at, machine_state::CAPTURED)).ok()?;
    // The frame is a variable of the helper method.
    if sp > at || at.wrapping_sub(sp) >= FRAME_REACH {
        return None;
    }
    let captured: [u64; 6] = memory.words(offset(at, machine_state::CAPTURED_REGISTERS)).ok()?;
    let helper = Registers::of(Processor::X86_64, ip, sp).with_preserved(&captured);
    unwound_helper(memory, runtime, &helper).or_else(|| climbed_helper(memory, runtime, at, &helper))
}

/// Follows the native frames of a helper method to its managed caller.
fn unwound_helper(memory: &dyn Memory, runtime: &Runtime, helper: &Registers) -> Option<Registers> {
    let mut registers = *helper;
    for _ in 0..MAX_HELPER_FRAMES {
        let (caller, _) = runtime.native().unwind(memory, &registers, FramePosition::Caller).ok()??;
        if caller.sp <= registers.sp {
            return None;
        }
        if runtime.managed_caller(memory, caller.ip).is_some() {
            return Some(caller);
        }
        registers = caller;
    }
    None
}

/// Follows the frame pointers of a helper method, where its unwind information is missing.
fn climbed_helper(memory: &dyn Memory, runtime: &Runtime, at: u64, helper: &Registers) -> Option<Registers> {
    let mut frame = helper.get(Register::RBP)?;
    for _ in 0..MAX_HELPER_FRAMES {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;
    use crate::runtime::layout::{NATIVE_AOT, NET_10_ARM64};

    const AT: u64 = 0x7fff_0000;
    const CODE: u64 = 0xffff_8123_4568;
    /// The same with a signature (pointer authentication).
    const SIGNED: u64 = 0x00a3_ffff_8123_4568;

    fn memory(words: &[u64]) -> TestMemory {
        let mut memory = TestMemory::default();
        memory.put_words(AT, words);
        memory
    }

    #[test]
    fn registers_of_arm64_are_those_that_the_runtime_saved() {
        let runtime = Runtime::of_slots(&NET_10_ARM64, &[]);
        let words: Vec<u64> = (0..24).map(|index| if index == 1 { SIGNED } else { index }).collect();
        for (of, size) in
            [(runtime.layout.frames.transition_block, 176), (runtime.layout.frames.hijack_args, 192)]
        {
            let registers = saved_registers(&memory(&words), &runtime, &of, AT).unwrap();
            assert_eq!((registers.ip, registers.sp), (CODE, AT + size));
            let numbers = [29, 19, 20, 28].map(|number| registers.get(Register::x(number)));
            assert_eq!(numbers, [Some(0), Some(2), Some(3), Some(11)]);
        }
    }

    #[test]
    fn a_call_of_native_code_of_arm64_has_a_signed_return_address() {
        let runtime = Runtime::of_slots(&NET_10_ARM64, &[]);
        // InlinedCallFrame: identifier, next, datum, stack pointer, return address, frame pointer.
        let frame = memory(&[1, u64::MAX, 0, AT + 0x100, SIGNED, AT + 0x120]);
        let registers = managed_registers(&frame, &runtime, AT).unwrap().unwrap();
        assert_eq!((registers.ip, registers.sp), (CODE, AT + 0x100));
        assert_eq!(registers.frame_pointer(), Some(AT + 0x120));
        // It is not active.
        assert_eq!(managed_registers(&memory(&[1, 0, 0, AT, 0, AT]), &runtime, AT), Ok(None));
    }

    #[test]
    fn a_fault_of_arm64_has_all_registers() {
        let runtime = Runtime::of_slots(&NET_10_ARM64, &[]);
        // The kind, the next frame, a function, a flag; flags, x0 to x30, the stack pointer, the address.
        let mut words = vec![4, u64::MAX, 0, 0, 0];
        words.extend(100..131);
        words.extend([AT + 0x2000, CODE]);
        let registers = interrupted(&memory(&words), &runtime, AT).unwrap();
        assert_eq!((registers.ip, registers.sp), (CODE, AT + 0x2000));
        let numbers = [0, 19, 29, 30].map(|number| registers.get(Register::x(number)));
        assert_eq!(numbers, [Some(100), Some(119), Some(129), Some(130)]);
        words[0] = 5;
        assert_eq!(interrupted(&memory(&words), &runtime, AT), None);
    }

    #[test]
    fn transition_frames_have_the_registers_that_their_flags_name() {
        let of = |processor, words: &[u64]| transition_registers(&memory(words), processor, AT).unwrap();
        let x86 = of(Processor::X86_64, &[CODE, 0x10, 0, 0x8009, 1, 2, AT + 0x100]).unwrap();
        assert_eq!((x86.ip, x86.sp, x86.frame_pointer()), (CODE, AT + 0x100, Some(0x10)));
        assert_eq!([Register::RBX, Register::R12].map(|of| x86.get(of)), [Some(1), Some(2)]);
        // The frame pointer precedes the address.
        let arm = of(Processor::Aarch64, &[0x10, SIGNED, 0, 0x605, 1, 2, 3, AT + 0x100]).unwrap();
        assert_eq!((arm.ip, arm.sp, arm.frame_pointer()), (CODE, AT + 0x100, Some(0x10)));
        assert_eq!([19, 21, 28, 20].map(|of| arm.get(Register::x(of))), [Some(1), Some(2), Some(3), None]);
        // Without the stack pointer, or without a frame.
        assert_eq!(of(Processor::Aarch64, &[0x10, CODE, 0, 0x1, 1]), None);
        assert_eq!(transition_registers(&memory(&[]), NATIVE_AOT.processor, u64::MAX), Ok(None));
    }
}
