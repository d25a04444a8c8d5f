//! Threads with the names of their frames, and what follows from them: the waits of threads for one another,
//! and the cause of a process's end.

pub(crate) mod death;
pub(crate) mod named_frame;
pub(crate) mod native_frames;
pub(crate) mod waits;

use std::sync::Arc;

use crate::analysis::named_frame::NamedFrame;
use crate::dump::Dump;
use crate::memory::address::Address;
use crate::threads::Threads;
use crate::threads::exception::{ExceptionState, ThreadExceptions};
use crate::threads::lock::MonitorWait;
use crate::threads::stack::{Frame, Stack};
use crate::threads::thread::Thread;
use crate::unwind::FramePosition;
use crate::unwind::registers::Registers;

/// The bytes below a thread's innermost explicit frame that are searched for the variables of native methods.
const NATIVE_VARIABLES: u64 = 1024;

/// A managed thread with its stack.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadSnapshot {
    /// The runtime's thread.
    pub thread: Thread,
    /// The name that the program gave it.
    pub name: Option<String>,
    /// The stack.
    pub stack: Stack,
    /// The methods and files of the stack's frames, in the same order.
    pub frames: Vec<NamedFrame>,
    /// The exceptions that it handles, and the last one that it threw.
    pub exceptions: ThreadExceptions,
    /// The monitors that it waits for, the innermost first.
    pub monitor_waits: Vec<MonitorWait>,
    /// The stack pointer; `None` without registers.
    pub stack_pointer: Option<Address>,
}

impl ThreadSnapshot {
    /// Returns true if the thread throws or handles an exception.
    pub fn throws(&self) -> bool {
        self.exceptions.exceptions.iter().any(|(state, _)| *state == ExceptionState::Current)
    }

    /// The address at which the stack begins: the stack pointer, or a place below the innermost known frame,
    /// which the runtime's own methods have variables in.
    pub(crate) fn stack_start(&self) -> Option<Address> {
        let first = self.stack.frames.first()?.sp;
        let explicit = Some(self.thread.frame).filter(|frame| !frame.is_null() && *frame < first);
        let lowest = || explicit.unwrap_or(first).saturating_sub(NATIVE_VARIABLES);
        Some(self.stack_pointer.map_or_else(lowest, |sp| sp.min(first)))
    }
}

impl Threads<'_> {
    /// Adds the names of frames, the exceptions and the waits to a thread with its stack, which
    /// [`stack`](Self::stack) or [`running_stack`](Self::running_stack) has read. `registers` are the
    /// thread's own.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// let dump = clr_dump::Dump::open(&core)?;
    /// for thread in dump.threads().list()? {
    ///     let registers = core.registers(thread.os_id);
    ///     let stack = dump.threads().stack(&thread, registers);
    ///     let thread = dump.threads().snapshot(thread, stack, registers);
    ///     println!("{:?}", thread.frames.iter().filter_map(|frame| frame.full_name()).next());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(self, thread: Thread, stack: Stack, registers: Option<&Registers>) -> ThreadSnapshot {
        ThreadSnapshot {
            name: self.name(&thread).ok().flatten(),
            frames: stack.frames.iter().map(|frame| self.named(frame)).collect(),
            exceptions: self.dump.exceptions().of_thread(&thread),
            monitor_waits: self.dump.locks().waits(&thread).unwrap_or_default(),
            stack_pointer: registers.map(|registers| Address::new(registers.sp)),
            stack,
            thread,
        }
    }

    /// Returns the method or the file of a frame. Stacks share most frames, which are named once.
    pub fn named(self, frame: &Frame) -> NamedFrame {
        let key = (frame.ip, frame.position == FramePosition::Caller);
        if let Some(named) = self.dump.frames.borrow().get(&key) {
            return named.clone();
        }
        let named = read_frame(self.dump, frame);
        self.dump.frames.borrow_mut().insert(key, named.clone());
        named
    }
}

fn read_frame(dump: &Dump<'_>, frame: &Frame) -> NamedFrame {
    let method = frame.code.as_ref().and_then(|code| dump.types().method(code));
    let has_name = method.as_ref().is_some_and(|method| method.name.is_some());
    let is_known = frame.code.is_some() && (has_name || !dump.runtime().is_native_aot());
    // A return address can be past the end of the function.
    let image = || dump.native_image(frame.position.lookup_address(frame.ip));
    let address = frame.position.lookup_address(frame.ip);
    let il_offset = frame.code.as_ref().and_then(|code| dump.types().il_offset(code, address));
    NamedFrame {
        method: method.map(Arc::new),
        il_offset,
        image: if is_known { None } else { image() },
        file: None,
    }
}
