use std::sync::Arc;
use std::time::Duration;

use dipc_client::Error;

/// The outcome of a ProcessInfo request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnswerEvidence {
    /// The runtime answered.
    Answered {
        /// The form of the command that it supports; `None` if it supports none.
        command: Option<&'static str>,
        /// The time that it took.
        after: Duration,
    },
    /// The runtime answered with an error: a command line of more than about 32,700 characters does not fit a
    /// message. It takes other commands.
    Refused {
        /// The error.
        error: Arc<Error>,
        /// The time that it took.
        after: Duration,
    },
    /// The deadline passed first.
    TimedOut {
        /// The error.
        error: Arc<Error>,
        /// The likely reason.
        reason: TimeoutReason,
    },
    /// Another process listens on the socket.
    OtherProcess(Arc<Error>),
    /// No process listens on the socket.
    NoListener(Arc<Error>),
    /// The request failed otherwise.
    Failed(Arc<Error>),
}

/// The likely reason of a silent runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutReason {
    /// The state of the process, reported by [`Check::State`](crate::Check::State).
    State,
    /// Other clients: a runtime serves one at a time.
    OtherClients {
        /// The number of their connections.
        connections: usize,
    },
    /// A load under which the runtime does not get to its port.
    Overload,
}
