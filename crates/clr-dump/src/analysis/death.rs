//! The end of a process: its cause, and the thread that died.

use crate::analysis::ThreadSnapshot;
use crate::dump::Dump;
use crate::memory::Memory;
use crate::memory::core_file::CoreFile;
use crate::threads::stack::Gap;
use crate::unwind::FramePosition;

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
/// The method that ends a program.
const FAIL_FAST: &str = "System.Environment.FailFast";

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Death {
    /// The cause.
    pub cause: DeathCause,
    /// The id in the system of the thread that died.
    pub tid: u64,
}

/// The cause of a process's end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeathCause {
    /// An unhandled exception.
    UnhandledException,
    /// The core dump does not say which thread died, and this one alone throws or handles an exception.
    OnlyException,
    /// A call of `Environment.FailFast`. The message is the only string that the frames refer to, or that
    /// they pass to native code; `None` if there are others.
    FailFast(Option<String>),
    /// A stack overflow, with the number of frames.
    StackOverflow(usize),
    /// A signal, by its number.
    Signal(i32),
}

impl Death {
    /// Returns the end of the process that a core dump was written of; `None` if it lived, or if the core
    /// dump does not say how it died. `threads` are all managed threads.
    pub fn find(core: &CoreFile, dump: &Dump<'_>, threads: &[&ThreadSnapshot]) -> Option<Self> {
        if let (Some(signal), Some(tid)) = (core.signal(), core.signalled_thread()) {
            let thread = threads.iter().find(|thread| thread.thread.os_id == tid);
            let is_own = signal.number == SIGABRT && is_sent_by_itself(core);
            let known = thread.and_then(|thread| known_cause(dump, thread, is_own));
            return Some(Self { cause: known.unwrap_or(DeathCause::Signal(signal.number)), tid });
        }
        core.common_signal()?;
        // The thread that died is the thread with a reason to.
        let known = |thread: &&ThreadSnapshot| Some((known_cause(dump, thread, false)?, thread.thread.os_id));
        if let Some((cause, tid)) = threads.iter().find_map(known) {
            return Some(Self { cause, tid });
        }
        let mut throwing = threads.iter().filter(|thread| thread.throws());
        let thread = throwing.next().filter(|_| throwing.next().is_none())?;
        Some(Self { cause: DeathCause::OnlyException, tid: thread.thread.os_id })
    }
}

/// The cause that the thread's own state shows. `is_own` states that the process is known to have ended
/// itself.
fn known_cause(dump: &Dump<'_>, thread: &ThreadSnapshot, is_own: bool) -> Option<DeathCause> {
    if let Some(cause) = fail_fast(dump, thread) {
        return Some(cause);
    }
    if let Some(frames) = overflow(dump.memory(), thread) {
        return Some(DeathCause::StackOverflow(frames));
    }
    (is_own && thread.throws() && runtime_aborted(dump, thread)).then_some(DeathCause::UnhandledException)
}

/// Returns true if the process sent itself the signal of a core dump. createdump records neither a cause nor
/// a sender for a signal that the runtime has raised.
fn is_sent_by_itself(core: &CoreFile) -> bool {
    core.signal().is_some_and(|signal| {
        let sender = signal.address.get() & u64::from(u32::MAX);
        let own = core.process().map(|process| u64::from(process.pid));
        match signal.code {
            0 => sender == 0,
            SENT_TO_THREAD => own.is_none_or(|own| own == sender),
            _ => false,
        }
    })
}

/// Returns true if the first file of a thread's native frames after the system's libraries is the runtime.
fn runtime_aborted(dump: &Dump<'_>, thread: &ThreadSnapshot) -> bool {
    let is_system = |file: &str| {
        ["libc.", "libc-", "libpthread", "ld-", "libstdc++", "libgcc_s"]
            .iter()
            .any(|name| file.starts_with(name))
    };
    let frames = thread.stack.frames.iter().zip(&thread.frames);
    let mut native = frames.take_while(|(frame, _)| frame.code.is_none());
    let file = native.find_map(|(_, named)| {
        named.image.as_ref().map(|image| image.file_name()).filter(|file| !is_system(file))
    });
    let runtime = dump.runtime().path().rsplit('/').next();
    // The runtime's own frames can be missing.
    file.is_none_or(|file| Some(file) == runtime)
}

/// The end by `Environment.FailFast`, with the message if it is the only string that the frames refer to,
/// or the only one of them that they pass to native code.
fn fail_fast(dump: &Dump<'_>, thread: &ThreadSnapshot) -> Option<DeathCause> {
    let is_fail_fast: Vec<_> =
        thread.frames.iter().map(|frame| frame.full_name().as_deref() == Some(FAIL_FAST)).collect();
    let first = is_fail_fast.iter().position(|is_it| *is_it)?;
    let last = is_fail_fast.iter().rposition(|is_it| *is_it)?;
    let frames = &thread.stack.frames;
    let start = frames.get(first)?.sp;
    let end = frames.get(last.checked_add(1)?).map_or(start, |frame| frame.sp);
    let mut strings = dump.heap().strings_between(start, end);
    if strings.len() > 1 {
        // Registers of the callers are saved there, too. .NET 9 passes the characters to its native part.
        strings = dump.heap().native_arguments_between(start, end);
    }
    let message = strings.pop().filter(|_| strings.is_empty());
    Some(DeathCause::FailFast(message))
}

/// The number of frames of an overflowed stack: a deep stack that the runtime reported, or that ends at the
/// end of its memory.
fn overflow(memory: &dyn Memory, thread: &ThreadSnapshot) -> Option<usize> {
    let left_out = thread.stack.gaps.iter().map(|(_, gap)| match gap {
        Gap::LeftOut(count) => *count,
        _ => 0,
    });
    let frames = left_out.fold(thread.frames.len(), usize::saturating_add);
    if frames < DEEP {
        return None;
    }
    let mut exceptions = thread.exceptions.exceptions.iter().flat_map(|(_, list)| list);
    if exceptions.any(|exception| exception.hresult == Some(STACK_OVERFLOW)) {
        return Some(frames);
    }
    // The handler of the fault can have a stack of its own.
    let stack = &thread.stack.frames;
    let interrupted = stack.iter().rfind(|frame| frame.position == FramePosition::Innermost);
    let sp = interrupted.or(stack.first())?.sp;
    memory_ends_below(memory, sp.get()).then_some(frames)
}

/// Returns true if memory lacks a page near a stack pointer. A call that did not fit has its stack pointer in
/// the guard page itself, and the page below can be the stack of another thread.
fn memory_ends_below(memory: &dyn Memory, sp: u64) -> bool {
    const PAGE: u64 = 4096;
    let page = sp & !(PAGE - 1);
    (0..=LEFT / PAGE)
        .any(|below| memory.read(page.saturating_sub(below.saturating_mul(PAGE)), &mut [0; 8]).is_err())
}

#[cfg(test)]
mod tests {
    use crate::memory::{Memory, MemoryResult, Missing};

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
