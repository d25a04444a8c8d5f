//! The thread that died, and the cause.

use std::fmt;

use clr_dump::{CoreFile, FramePosition, Gap, Memory};

use crate::inspect::core_dump::{Analysis, ManagedThread, NativeThread};
use crate::inspect::core_source::{common_signal, signalled_thread};
use crate::inspect::core_text::FrameText;
use crate::render::escape::escape_controls;
use crate::render::units;

/// The signal that a runtime ends its process with.
const SIGABRT: i32 = 6;
/// The cause of a signal that a thread sends to itself (`SI_TKILL`).
const SENT_TO_THREAD: i32 = -6;
/// A stack with fewer frames has not overflowed by a recursion.
const DEEP: usize = 1000;
/// Maximum number of bytes left below the stack pointer of an overflowed stack.
const LEFT: u64 = 64 << 10;
/// The code of `StackOverflowException`.
const STACK_OVERFLOW: u32 = 0x8007_03e9;
/// The method that ends a program, as its frames have it.
const FAIL_FAST: &str = "System.Environment.FailFast(";

/// The end of a process.
pub(super) struct Death<'a> {
    pub(super) cause: Cause,
    /// The thread that died, if it is a managed one.
    pub(super) thread: Option<&'a ManagedThread>,
    /// The thread, if the runtime does not know it.
    pub(super) native: Option<&'a NativeThread>,
}

/// The cause of a process's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cause {
    /// An unhandled exception.
    Unhandled,
    /// The core dump does not say which thread died, and this one alone throws or handles an exception.
    OnlyException,
    /// The process called `Environment.FailFast`. The message is the only string that the frames refer to.
    FailFast(Option<String>),
    /// A stack overflow, with the number of frames.
    StackOverflow(usize),
    /// A signal.
    Signal(i32),
}

impl Cause {
    /// The name for programs.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Unhandled => "unhandled-exception",
            Self::OnlyException => "probably-unhandled-exception",
            Self::FailFast(_) => "fail-fast",
            Self::StackOverflow(_) => "stack-overflow",
            Self::Signal(_) => "signal",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unhandled => f.write_str("died of an unhandled exception"),
            Self::OnlyException => {
                f.write_str("probably died of an unhandled exception: no other thread throws or handles one")
            }
            Self::FailFast(None) => f.write_str("ended the program by Environment.FailFast"),
            Self::FailFast(Some(message)) => {
                write!(f, "ended the program by Environment.FailFast: {}", escape_controls(message))
            }
            Self::StackOverflow(frames) => {
                write!(f, "its stack overflowed: {} frames", units::count(*frames as u64))
            }
            Self::Signal(number) => match units::signal_name(*number) {
                Some(name) => write!(f, "got {name}"),
                None => write!(f, "got signal {number}"),
            },
        }
    }
}

/// Returns the end of the process; `None` if it lived, or if the core dump does not say how it died.
pub(super) fn of<'a>(analysis: &'a Analysis<'_>) -> Option<Death<'a>> {
    let core = analysis.source.core()?;
    if let (Some(signal), Some(tid)) = (core.signal(), signalled_thread(core)) {
        let thread = analysis.threads.iter().find(|thread| thread.thread.os_id == tid);
        let native = analysis.native_threads.iter().find(|thread| u64::from(thread.tid) == tid);
        let is_own = signal.number == SIGABRT && is_sent_by_itself(core);
        let known = thread.and_then(|thread| known_cause(analysis, thread, is_own));
        return Some(Death { cause: known.unwrap_or(Cause::Signal(signal.number)), thread, native });
    }
    common_signal(core)?;
    // The thread that died is the thread with a reason to.
    let known = |thread: &'a ManagedThread| Some((known_cause(analysis, thread, false)?, thread));
    if let Some((cause, thread)) = analysis.threads.iter().find_map(known) {
        return Some(Death { cause, thread: Some(thread), native: None });
    }
    let mut throwing = analysis.threads.iter().filter(|thread| thread.throws());
    let thread = throwing.next().filter(|_| throwing.next().is_none())?;
    Some(Death { cause: Cause::OnlyException, thread: Some(thread), native: None })
}

/// The cause that the thread's own state shows. `is_own` is whether it is known that the process ended itself.
fn known_cause(analysis: &Analysis<'_>, thread: &ManagedThread, is_own: bool) -> Option<Cause> {
    if let Some(cause) = fail_fast(analysis, thread) {
        return Some(cause);
    }
    if let Some(frames) = overflow(analysis, thread) {
        return Some(Cause::StackOverflow(frames));
    }
    (is_own && thread.throws() && runtime_aborted(analysis, thread)).then_some(Cause::Unhandled)
}

/// Returns true if the process sent itself the signal of a core dump. createdump records neither a cause nor
/// a sender for a signal that the runtime has raised.
fn is_sent_by_itself(core: &CoreFile) -> bool {
    core.signal().is_some_and(|signal| {
        let sender = signal.address & u64::from(u32::MAX);
        let own = core.process().map(|process| u64::from(process.pid));
        match signal.code {
            0 => sender == 0,
            SENT_TO_THREAD => own.is_none_or(|own| own == sender),
            _ => false,
        }
    })
}

/// Returns true if the first file of a thread's native frames after the system's libraries is the runtime.
fn runtime_aborted(analysis: &Analysis<'_>, thread: &ManagedThread) -> bool {
    let is_system = |file: &str| {
        ["libc.", "libc-", "libpthread", "ld-", "libstdc++", "libgcc_s"]
            .iter()
            .any(|name| file.starts_with(name))
    };
    let native = thread.frames.iter().take_while(|frame| !frame.is_managed());
    let file = native.filter_map(|frame| frame.module.as_deref()).find(|file| !is_system(file));
    let runtime = analysis.dump.runtime().path().rsplit('/').next();
    // The runtime's own frames can be missing.
    file.is_none_or(|file| Some(file) == runtime)
}

/// The end by `Environment.FailFast`, with the message if it is the only string that the frames refer to.
fn fail_fast(analysis: &Analysis<'_>, thread: &ManagedThread) -> Option<Cause> {
    let is_fail_fast =
        |frame: &FrameText| frame.name.as_ref().is_some_and(|name| name.text.starts_with(FAIL_FAST));
    let first = thread.frames.iter().position(is_fail_fast)?;
    let last = thread.frames.iter().rposition(is_fail_fast)?;
    let frames = &thread.stack.frames;
    let start = frames.get(first)?.sp;
    let end = frames.get(last.checked_add(1)?).map_or(start, |frame| frame.sp);
    let mut texts = analysis.dump.heap().strings_between(start, end);
    let message = texts.pop().filter(|_| texts.is_empty());
    Some(Cause::FailFast(message))
}

/// The number of frames of an overflowed stack: a deep stack that the runtime reported, or that ends at the
/// end of its memory.
fn overflow(analysis: &Analysis<'_>, thread: &ManagedThread) -> Option<usize> {
    let left_out = thread.stack.gaps.iter().map(|(_, gap)| match gap {
        Gap::LeftOut(count) => *count,
        _ => 0,
    });
    let frames = thread.frames.len().saturating_add(left_out.sum());
    if frames < DEEP {
        return None;
    }
    let exceptions = thread.exceptions.iter().flat_map(|(_, list)| list);
    if exceptions.into_iter().any(|text| text.exception.hresult == Some(STACK_OVERFLOW)) {
        return Some(frames);
    }
    // The handler of the fault can have a stack of its own.
    let stack = &thread.stack.frames;
    let interrupted = stack.iter().rfind(|frame| frame.position == FramePosition::Innermost);
    let sp = interrupted.or(stack.first())?.sp;
    memory_ends_below(analysis.source.memory(), sp).then_some(frames)
}

/// Returns true if memory lacks a page near a stack pointer. A call that did not fit has its stack pointer in
/// the guard page itself, and the page below can be the stack of another thread.
fn memory_ends_below(memory: &dyn Memory, sp: u64) -> bool {
    const PAGE: u64 = 4096;
    let page = sp & !(PAGE - 1);
    (0..=LEFT / PAGE).any(|below| memory.read(page.saturating_sub(below * PAGE), &mut [0; 8]).is_err())
}

#[cfg(test)]
mod tests {
    use clr_dump::{Memory, MemoryResult, Missing};

    use super::memory_ends_below;

    /// The stack of a thread, its guard page, and below that the stack of another thread.
    struct Stacks;

    const GUARD: u64 = 0x7fa6_2b6b_e000;

    impl Memory for Stacks {
        fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
            buffer.fill(0);
            if address & !0xfff == GUARD { Err(Missing { address }) } else { Ok(()) }
        }
    }

    #[test]
    fn a_stack_pointer_in_the_guard_page_above_the_stack_of_another_thread_is_at_the_end() {
        assert!(memory_ends_below(&Stacks, GUARD + 0xff0));
    }

    #[test]
    fn a_stack_ends_within_64_kilobytes_of_the_guard_page() {
        assert!(memory_ends_below(&Stacks, GUARD + 0x1000));
        assert!(memory_ends_below(&Stacks, GUARD + 0x1_0fff));
        assert!(!memory_ends_below(&Stacks, GUARD + 0x1_1000));
        assert!(!memory_ends_below(&Stacks, GUARD - 1));
    }
}
