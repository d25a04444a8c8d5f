//! Kinds of waits in words.

use clr_dump::WaitedFor;

/// The name for programs.
pub(super) const fn name(kind: WaitedFor) -> &'static str {
    match kind {
        WaitedFor::Monitor => "monitor",
        WaitedFor::Lock => "lock",
        WaitedFor::ReaderWriterLock => "reader_writer_lock",
        WaitedFor::Mutex => "mutex",
        WaitedFor::Semaphore => "semaphore",
        WaitedFor::Event => "event",
        WaitedFor::Barrier => "barrier",
        WaitedFor::Countdown => "countdown",
        WaitedFor::Collection => "collection",
        WaitedFor::Thread => "thread",
        WaitedFor::Task => "task",
        WaitedFor::TaskInContext => "task_in_context",
        _ => "other",
    }
}

/// The reason why no memory that is read says which threads hold such an object; `None` for other kinds.
pub(super) const fn holder_unknown(kind: WaitedFor) -> Option<&'static str> {
    match kind {
        WaitedFor::Mutex => {
            Some("a Mutex's holder is in native memory, and for a named one perhaps in another process")
        }
        WaitedFor::Semaphore => Some("a semaphore does not record which threads have entered it"),
        _ => None,
    }
}
