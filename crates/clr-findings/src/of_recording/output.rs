//! Causes in the program's output.

use clr_events::ThreadState;
use nettrace_export::FrameId;
use nettrace_export::units::short_percent;

use super::OfRecording;
use crate::finding::{Confidence, Details, Finding, FindingKind, Number, in_method};
use crate::thresholds;

/// The assembly of the console.
const CONSOLE_MODULE: &str = "System.Console";
/// The framework's methods that write to the console.
const CONSOLE: &str = "System.ConsolePal.Write";
const CONSOLE_STREAM: &str = "System.ConsolePal+UnixConsoleStream.Write";
/// The kernel's functions that write to pipes and terminals, and wait for room there.
const WRITES: [&str; 4] = ["pipe_write", "anon_pipe_write", "n_tty_write", "tty_write"];

impl OfRecording<'_> {
    /// Writes that wait for the reader of a pipe or a terminal, as the console is one.
    pub(super) fn slow_output(&self) -> Option<Finding> {
        let frames = &self.overview.profile.frames;
        let is_console = |frame: FrameId| {
            let (_, name) = frames.full_parts(frame);
            name.starts_with(CONSOLE) || name.starts_with(CONSOLE_STREAM)
        };
        let is_write = |frame: FrameId| {
            let (module, name) = frames.full_parts(frame);
            let (function, _) = name.split_once('.').unwrap_or((name, ""));
            module == "vmlinux" && WRITES.contains(&function)
        };
        let part = self.part(|frame| is_write(frame) || is_console(frame));
        let waiters = self.average(part.weight(ThreadState::Blocked));
        if waiters < thresholds::OUTPUT_WAITERS {
            return None;
        }
        let is_of_console = |frame: FrameId| frames.full_parts(frame).0 == CONSOLE_MODULE;
        let of_console =
            self.part_called_by(|frame| is_write(frame) || is_console(frame), Some(&is_of_console));
        let of_console = self.average(of_console.weight(ThreadState::Blocked));
        let output = if of_console >= waiters / 2.0 { "standard output" } else { "a pipe" };
        let method = part.method(|state| state == ThreadState::Blocked);
        let percent = 100.0 * waiters;
        let wait = if waiters <= 1.0 {
            format!("a thread waits for it {} of the time", short_percent(percent))
        } else {
            format!("{waiters:.1} threads wait for it on average")
        };
        let cause = format!("The reader of {output} is slow: {wait}{}", in_method(method.as_deref()));
        Some(
            Finding::new(FindingKind::SlowOutput, waiters, cause, Details::Stacks)
                .with_method(method)
                .with_object(Some(output.to_owned()))
                .with_confidence(Confidence::Certain)
                .with_numbers([Number::new("threads", waiters)]),
        )
    }
}
