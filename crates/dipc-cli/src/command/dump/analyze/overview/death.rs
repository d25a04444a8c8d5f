//! The thread that died, and the cause, in words.

use clr_dump::DeathCause;

use crate::inspect::core_dump::{Analysis, ManagedThread, NativeThread};
use crate::render::escape::escape_controls;
use crate::render::units;

/// The end of a process.
pub(super) struct Death<'a> {
    pub(super) cause: DeathCause,
    /// The thread that died, if it is a managed one.
    pub(super) thread: Option<&'a ManagedThread>,
    /// The thread, if the runtime does not know it.
    pub(super) native: Option<&'a NativeThread>,
}

/// The name of a cause for programs.
pub(super) const fn name(cause: &DeathCause) -> &'static str {
    match cause {
        DeathCause::UnhandledException => "unhandled-exception",
        DeathCause::OnlyException => "probably-unhandled-exception",
        DeathCause::FailFast(_) => "fail-fast",
        DeathCause::StackOverflow(_) => "stack-overflow",
        DeathCause::Signal(_) => "signal",
        _ => "other",
    }
}

/// A cause in words, which follow the thread.
pub(super) fn text(cause: &DeathCause) -> String {
    match cause {
        DeathCause::UnhandledException => "died of an unhandled exception".to_owned(),
        DeathCause::OnlyException => {
            "probably died of an unhandled exception: no other thread throws or handles one".to_owned()
        }
        DeathCause::FailFast(None) => "ended the program by Environment.FailFast".to_owned(),
        DeathCause::FailFast(Some(message)) => {
            format!("ended the program by Environment.FailFast: {}", escape_controls(message))
        }
        DeathCause::StackOverflow(frames) => {
            format!("its stack overflowed: {} frames", units::count(*frames as u64))
        }
        DeathCause::Signal(number) => match units::signal_name(*number) {
            Some(name) => format!("got {name}"),
            None => format!("got signal {number}"),
        },
        _ => "died".to_owned(),
    }
}

/// Returns the end of the process; `None` if it lived, or if the core dump does not say how it died.
pub(super) fn of<'a>(analysis: &'a Analysis<'_>) -> Option<Death<'a>> {
    let core = analysis.source.core()?;
    let clr_dump::Death { cause, tid, .. } =
        clr_dump::Death::find(core, &analysis.dump, &analysis.snapshots())?;
    Some(Death {
        cause,
        thread: analysis.threads.iter().find(|thread| thread.thread.os_id == tid),
        native: analysis.native_threads.iter().find(|thread| u64::from(thread.tid) == tid),
    })
}
