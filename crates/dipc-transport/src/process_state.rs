use std::fmt;

/// The state of a process, as far as it prevents an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessState {
    /// No visible obstacle to an answer.
    Running,
    /// A signal (SIGSTOP, Ctrl-Z) has stopped it.
    Stopped,
    /// An attached debugger, or a similar tool, has stopped it.
    Traced {
        /// The process that traces it, if it is visible.
        tracer: Option<u32>,
        /// The name of that process.
        name: Option<String>,
    },
    /// A `createdump` child writes its memory to a file; it is stopped meanwhile.
    Dumping {
        /// The pid of `createdump`.
        createdump: u32,
    },
    /// The process has ended, and its parent has not waited for it.
    Zombie,
    /// No such process exists.
    Gone,
}

impl ProcessState {
    /// Returns whether it cannot answer in this state.
    pub fn is_unresponsive(&self) -> bool {
        !matches!(self, Self::Running)
    }

    /// Returns advice for the user, if there is any.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::Running | Self::Gone => return None,
            Self::Stopped => "continue it (kill -CONT PID) and try again",
            Self::Traced { .. } => "let it run on in the debugger, or detach the debugger, and try again",
            Self::Dumping { .. } => "try again when the dump is written",
            Self::Zombie => "its parent has not noticed yet that it has ended",
        })
    }
}

/// A predicate: "is stopped by a signal".
impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("is running"),
            Self::Stopped => f.write_str("is stopped by a signal"),
            Self::Traced { tracer: Some(pid), name: Some(name) } => {
                write!(f, "is stopped in a debugger, {name} (process {pid})")
            }
            Self::Traced { tracer: Some(pid), name: None } => {
                write!(f, "is stopped in a debugger, process {pid}")
            }
            Self::Traced { tracer: None, .. } => f.write_str("is stopped in a debugger"),
            Self::Dumping { createdump } => write!(f, "is being dumped by createdump (process {createdump})"),
            Self::Zombie => f.write_str("has ended and not been waited for"),
            Self::Gone => f.write_str("has ended"),
        }
    }
}
