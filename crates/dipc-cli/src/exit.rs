//! The program's exit codes, and the error that carries one to the end of `main`.

use std::fmt;
use std::process::ExitCode;

use dipc_client::OptionalFeature;

use crate::process::tracing_rights;

/// The exit code of the program. Scripts rely on the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and nothing is missing.
    Done,
    /// A failure without a code of its own.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// No such process or endpoint, or it cannot be reached.
    NotReachable,
    /// The runtime refused.
    Refused,
    /// A deadline passed.
    TimedOut,
    /// Done, but the input was cut or damaged; its intact parts were used.
    Incomplete,
    /// Events were lost, and `--fail-on-loss` was given.
    EventsLost,
    /// Done, and a condition of `--fail-if` is met, or a finding of `--fail-on` is found.
    ConditionMet,
    /// Done; the code is the exit code of the program that was started for it.
    Program(u8),
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotReachable => 3,
            Self::Refused => 4,
            Self::TimedOut => 5,
            Self::Incomplete => 6,
            Self::EventsLost => 7,
            Self::ConditionMet => 8,
            Self::Program(code) => code,
        }
    }

    /// Returns the exit code of two parts of a command: the first other than [`Done`](Self::Done), but a
    /// failure, or a condition that is met, outranks missing input.
    pub(crate) const fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, other) => other,
            (Self::Incomplete | Self::EventsLost, Self::Failed) => Self::Failed,
            (Self::Incomplete | Self::EventsLost, Self::ConditionMet) => Self::ConditionMet,
            (one, _) => one,
        }
    }

    /// Returns the exit code of a command that started a program which ended with `code`: the program's,
    /// unless the command has its own.
    pub(crate) fn or_program(self, code: Option<u8>) -> Self {
        match (self, code) {
            (Self::Done, Some(code)) => Self::Program(code),
            (exit, _) => exit,
        }
    }

    /// Returns the exit code of the program that was started.
    pub(crate) const fn program(self) -> Option<u8> {
        match self {
            Self::Program(code) => Some(code),
            _ => None,
        }
    }

    /// Returns the exit code of a command that found nothing to show: `Done` becomes `Failed`.
    pub(crate) fn or_failed(self) -> Self {
        if self == Self::Done { Self::Failed } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The failure of a command: one line for people, lines below it, a help line if there is a remedy, and the
/// exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// `what: where: why`.
    pub(crate) message: String,
    /// The alternatives that the user may have meant, one per line.
    pub(crate) candidates: Vec<String>,
    pub(crate) help: Option<String>,
}

/// The result of every command.
pub(crate) type Outcome = Result<Exit, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), candidates: Vec::new(), help: None }
    }

    /// Returns the failure for a closed standard output: it prints no message, since nothing went wrong.
    pub(crate) fn closed_output() -> Self {
        Self::new(Exit::Done, "")
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    #[must_use]
    pub(crate) fn with_candidates(mut self, candidates: Vec<String>) -> Self {
        self.candidates = candidates;
        self
    }

    #[must_use]
    pub(crate) fn with_help(mut self, help: impl fmt::Display) -> Self {
        self.help = Some(help.to_string());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<dipc_client::Error> for Failure {
    fn from(error: dipc_client::Error) -> Self {
        use dipc_client::ErrorKind;
        let exit = match error.kind() {
            ErrorKind::Unreachable => Exit::NotReachable,
            ErrorKind::Refused | ErrorKind::Unsupported => Exit::Refused,
            ErrorKind::TimedOut => Exit::TimedOut,
            _ => Exit::Failed,
        };
        let message = match &error {
            // The runtime's code, which users search for.
            dipc_client::Error::UnknownCommand { .. } => {
                format!("{error} ({})", dipc_client::HResult::UNKNOWN_COMMAND)
            }
            _ => error.to_string(),
        };
        let help = match (error.help(), unexplained_pid(&error)) {
            (Some(help), Some(pid)) => Some(format!("{help}; dipc doctor -p {pid} looks for the reason")),
            (help, _) => help.map(str::to_owned),
        };
        let help = match &error {
            dipc_client::Error::Stopped { pid, .. } => help.map(|help| help.replace("PID", &pid.to_string())),
            dipc_client::Error::UnknownCommand { command, .. } => {
                oldest_runtime(command).map(|version| format!("it needs {version} or later"))
            }
            dipc_client::Error::UnsupportedOption { feature, .. } => option_help(*feature).map(str::to_owned),
            dipc_client::Error::Transport(dipc_transport::Error::NoSuchProcess { .. }) => {
                Some("dipc ps lists the processes that can be reached".to_owned())
            }
            dipc_client::Error::Transport(dipc_transport::Error::PermissionDenied { path, .. }) => {
                tracing_rights::to_read(path).or(help)
            }
            _ => help,
        };
        Self { exit, message, candidates: Vec::new(), help }
    }
}

/// Returns the first runtime that knows a command.
fn oldest_runtime(command: &str) -> Option<&'static str> {
    match command {
        "ProcessInfo" | "ProcessEnvironment" | "ResumeRuntime" => Some(".NET 5"),
        "SetEnvironmentVariable" => Some(".NET 6"),
        "EnablePerfMap" | "DisablePerfMap" | "ApplyStartupHook" => Some(".NET 8"),
        "CollectTracing5" => Some(".NET 10"),
        _ => None,
    }
}

/// Returns the help for working without an option that the runtime is too old for.
fn option_help(feature: OptionalFeature) -> Option<&'static str> {
    match feature {
        OptionalFeature::CrashReport => Some("leave out --crashreport, which needs .NET 6 or later"),
        OptionalFeature::BlockWhenFull => {
            Some("leave out --buffering-mode block, which needs .NET 11 or later")
        }
        _ => None,
    }
}

/// Returns the process that cannot be reached, if the error does not state the reason.
fn unexplained_pid(error: &dipc_client::Error) -> Option<u32> {
    match error {
        dipc_client::Error::Transport(dipc_transport::Error::NoEndpoint { pid, .. }) => Some(*pid),
        dipc_client::Error::Transport(dipc_transport::Error::TimedOut { peer, peer_state: None, .. }) => {
            *peer
        }
        _ => None,
    }
}

impl From<dipc_transport::Error> for Failure {
    fn from(error: dipc_transport::Error) -> Self {
        dipc_client::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use dipc_client::{Address, Error};

    use super::*;

    fn help(error: Error) -> String {
        let failure = Failure::from(error);
        assert_eq!(failure.exit, Exit::Refused);
        failure.help.unwrap()
    }

    #[test]
    fn a_runtime_that_is_too_old_is_answered_with_the_version_that_is_needed() {
        let address = Address::Unix("/tmp/x".into());
        for (command, version) in
            [("ProcessInfo", ".NET 5"), ("ProcessEnvironment", ".NET 5"), ("EnablePerfMap", ".NET 8")]
        {
            let error = Error::UnknownCommand { command, address: address.clone() };
            assert_eq!(help(error), format!("it needs {version} or later"));
        }
        let (command, feature) = ("GenerateCoreDump2", OptionalFeature::CrashReport);
        let error = Error::UnsupportedOption { command, address, feature };
        assert_eq!(help(error), "leave out --crashreport, which needs .NET 6 or later");
    }
}
