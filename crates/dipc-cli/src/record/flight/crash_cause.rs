//! The cause of a crash: by the core dump, by what the runtime wrote to standard error, or by the way in
//! which the process ended.

use std::fmt;

use crate::record::source::EndStatus;
use crate::render::units;

/// Maximum number of lines that follow the cause.
const DETAILS: usize = 8;
/// The beginnings of the runtime's messages about its end.
const MESSAGES: [(&str, &str); 5] = [
    ("Unhandled exception.", "an unhandled exception"),
    ("Stack overflow.", "a stack overflow"),
    ("Process terminated.", "Environment.FailFast"),
    ("Fatal error.", "a fatal error"),
    ("Out of memory.", "memory that ran out"),
];
/// The signals of faults.
const FAULTS: [i32; 6] = [4, 5, 6, 7, 8, 11];
const SIGKILL: i32 = 9;

/// The cause of a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) text: String,
    /// The exceptions with their frames, or the first frames of the stack.
    pub(super) details: Vec<String>,
}

impl Cause {
    /// Returns the cause that the overview of a core dump names: its part on the thread that died.
    pub(super) fn of_overview(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip_while(|line| !is_of_dead_thread(line));
        let (thread, cause) = lines.next()?.split_once(": ")?;
        let thread = format!("t{}", thread.get(1..)?);
        let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        let stack = lines.iter().position(|line| *line == "Its stack:").unwrap_or(lines.len());
        // Others may have thrown before.
        let range = if cause.contains("unhandled exception") { 0..stack } else { stack + 1..lines.len() };
        let details = lines.get(range).unwrap_or_default().iter().take(DETAILS);
        let details = details.map(|line| (*line).to_owned()).collect();
        Some(Self { text: format!("{thread} {cause}"), details })
    }

    /// Returns the cause that the runtime has written to standard error. `end` is the end of the process.
    pub(super) fn of_errors(errors: &str, end: &str) -> Option<Self> {
        let lines: Vec<&str> = errors.lines().collect();
        let message = |line: &&str| MESSAGES.iter().find(|(start, _)| line.starts_with(start));
        let first = lines.iter().rposition(|line| message(line).is_some())?;
        let (start, cause) = lines.get(first).and_then(message)?;
        let rest = lines.get(first)?.strip_prefix(start)?.trim();
        let rest = Some(rest).filter(|rest| !rest.is_empty());
        let details = rest.into_iter().chain(lines.get(first + 1..)?.iter().copied());
        let details = details.filter(|line| !line.trim().is_empty()).take(DETAILS).map(str::to_owned);
        Some(Self { text: format!("{end}, because of {cause}"), details: details.collect() })
    }
}

/// Returns true if a line is the heading of the thread that died, not of a thread that handles an exception.
fn is_of_dead_thread(line: &str) -> bool {
    line.starts_with("Thread ") && line.contains(": ") && !line.ends_with(": throws or handles an exception")
}

/// Returns the end of a process in words. `oom_kills` is the number of processes of its control group that
/// the kernel has killed meanwhile because memory ran out.
pub(super) fn end_in_words(status: Option<EndStatus>, oom_kills: u64) -> String {
    match status {
        Some(EndStatus::Signal(SIGKILL)) | None if oom_kills > 0 => {
            "the process was killed by the kernel, SIGKILL: memory ran out".to_owned()
        }
        Some(EndStatus::Signal(signal)) => {
            let verb = if FAULTS.contains(&signal) { "crashed with" } else { "was killed by" };
            match units::signal_name(signal) {
                Some(name) => format!("the process {verb} {name}"),
                None => format!("the process {verb} signal {signal}"),
            }
        }
        Some(EndStatus::Code(code)) => format!("the process ended with exit code {code}"),
        Some(EndStatus::Unknown) | None => "the process crashed or was killed".to_owned(),
    }
}

/// Returns true if another process, or the kernel, has ended the process: then no exception did.
pub(super) fn is_kill(status: Option<EndStatus>) -> bool {
    matches!(status, Some(EndStatus::Signal(signal)) if !FAULTS.contains(&signal))
}

/// The kernel's count of processes of a control group that it has killed because memory ran out.
#[derive(Debug, Default)]
pub(super) struct OomKills {
    #[cfg(unix)]
    group: Option<(linux_proc_stat::ControlGroup, u64)>,
}

impl OomKills {
    /// Reads the count of a process's group.
    pub(super) fn of(pid: Option<u32>) -> Self {
        #[cfg(unix)]
        {
            let group = pid.and_then(|pid| linux_proc_stat::ControlGroup::of_process(pid).ok());
            Self { group: group.and_then(|group| group.oom_kills().map(|count| (group, count))) }
        }
        #[cfg(not(unix))]
        {
            let _ = pid;
            Self::default()
        }
    }

    /// Returns the kills since then.
    pub(super) fn new_kills(&self) -> u64 {
        self.counts().map_or(0, |(before, now)| now.saturating_sub(before))
    }

    fn counts(&self) -> Option<(u64, u64)> {
        #[cfg(unix)]
        return self.group.as_ref().and_then(|(group, before)| Some((*before, group.oom_kills()?)));
        #[cfg(not(unix))]
        return None;
    }
}

impl fmt::Display for OomKills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.counts() {
            None => f.write_str("not known: the kernel does not count kills of its control group (oom_kill)"),
            Some((before, now)) if now <= before => {
                write!(f, "no: oom_kill of its control group stayed at {now}")
            }
            Some((before, now)) => {
                write!(f, "yes: oom_kill of its control group rose from {before} to {now}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overview_names_the_thread_that_died() {
        let text = "Core    : a.core\nSignal  : SIGABRT\n\nThread 12 billing: died of an unhandled exception\nShop.OrderException: no: 4711 (0x80131500)\n    Billing.Charge(string)\n  caused by System.FormatException: x\nIts stack:\n  Billing.Charge(string)\n\nThread 13 noise: throws or handles an exception\nSystem.TimeoutException\n";
        let cause = Cause::of_overview(text).unwrap();
        assert_eq!(cause.text, "thread 12 billing died of an unhandled exception");
        assert_eq!(
            cause.details,
            [
                "Shop.OrderException: no: 4711 (0x80131500)",
                "    Billing.Charge(string)",
                "  caused by System.FormatException: x"
            ]
        );
        let overflow =
            "Core\n\nThread 12 walker: its stack overflowed: 9 frames\nIts stack:\n  Tree.Depth(int)\n";
        assert_eq!(Cause::of_overview(overflow).unwrap().details, ["  Tree.Depth(int)"]);
        let alive = text.replace("died of an unhandled exception", "throws or handles an exception");
        assert_eq!(Cause::of_overview(&alive), None);
    }

    #[test]
    fn the_runtimes_last_message_is_the_cause() {
        let errors = "Stack overflow. in a log\nUnhandled exception. OrderException: cannot\n ---> System.FormatException: x\n";
        let cause = Cause::of_errors(errors, "the process crashed with SIGABRT").unwrap();
        assert_eq!(cause.text, "the process crashed with SIGABRT, because of an unhandled exception");
        assert_eq!(cause.details, ["OrderException: cannot", " ---> System.FormatException: x"]);
        let fail_fast = Cause::of_errors("Process terminated.\nenough\n", "e").unwrap();
        assert_eq!(
            (&*fail_fast.text, fail_fast.details),
            ("e, because of Environment.FailFast", vec!["enough".to_owned()])
        );
        assert_eq!(Cause::of_errors("a\nb\n", "e"), None);
    }

    #[test]
    fn a_kill_is_called_a_kill() {
        let words = |status, kills| end_in_words(status, kills);
        assert_eq!(words(Some(EndStatus::Signal(9)), 0), "the process was killed by SIGKILL");
        for status in [Some(EndStatus::Signal(9)), None] {
            assert_eq!(words(status, 1), "the process was killed by the kernel, SIGKILL: memory ran out");
        }
        assert_eq!(words(Some(EndStatus::Signal(11)), 1), "the process crashed with SIGSEGV");
        assert_eq!(words(Some(EndStatus::Signal(15)), 0), "the process was killed by SIGTERM");
        assert_eq!(words(Some(EndStatus::Code(3)), 0), "the process ended with exit code 3");
        assert_eq!(words(None, 0), "the process crashed or was killed");
    }
}
