//! The program's exit codes, and the error that carries one to the end of `main`.

use std::fmt;
use std::process::ExitCode;

/// The exit code of the program. Scripts rely on the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and nothing is missing.
    Done,
    /// A failure that no other code names.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// No such process or endpoint, or it cannot be reached.
    NotReachable,
    /// The runtime refused.
    Refused,
    /// A deadline passed.
    TimedOut,
    /// Done, but the input was cut or damaged; what is whole was used.
    Incomplete,
    /// Events were lost, and `--fail-on-loss` was given.
    EventsLost,
    /// Done; the code is that of the program that was started for it.
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
            Self::Program(code) => code,
        }
    }

    /// Returns this exit code, or `other` where this one is [`Done`](Self::Done): the first of two that has something to say.
    pub(crate) fn or(self, other: Self) -> Self {
        if self == Self::Done { other } else { self }
    }

    /// Returns the exit code of a command that has started a program, which ended with `code`: the program's, unless the command has one
    /// of its own.
    pub(crate) fn or_program(self, code: Option<u8>) -> Self {
        match (self, code) {
            (Self::Done, Some(code)) => Self::Program(code),
            (exit, _) => exit,
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

/// The failure of a command: one line for people, a help line if there is a remedy, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// `what: where: why`.
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// The result of every command.
pub(crate) type Outcome = Result<Exit, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), help: None }
    }

    /// Returns the failure for a closed standard output: it prints no message, since nothing went wrong.
    pub(crate) fn closed_output() -> Self {
        Self::new(Exit::Done, "")
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
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
        let message = match error {
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
            _ => help,
        };
        Self { exit, message, help }
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
