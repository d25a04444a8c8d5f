//! The process that is judged, and its end.

use std::path::PathBuf;

use serde::Serialize;

/// The identity of a process. Unknown facts are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProcessIdentity {
    /// The process id.
    pub process_id: Option<u64>,
    /// The name of its program.
    pub name: Option<String>,
    /// The command line.
    pub command_line: Option<String>,
    /// The version of the runtime: `9.0.1`.
    pub runtime: Option<String>,
}

impl ProcessIdentity {
    /// With a process id.
    #[must_use]
    pub fn with_process_id(self, process_id: Option<u64>) -> Self {
        Self { process_id, ..self }
    }

    /// With the name of the program.
    #[must_use]
    pub fn with_name(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    /// With a command line.
    #[must_use]
    pub fn with_command_line(self, command_line: Option<String>) -> Self {
        Self { command_line, ..self }
    }

    /// With the version of the runtime.
    #[must_use]
    pub fn with_runtime(self, runtime: Option<String>) -> Self {
        Self { runtime, ..self }
    }

    /// Returns the identity, with facts of another source where this one has none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            process_id: self.process_id.or(other.process_id),
            name: self.name.or(other.name),
            command_line: self.command_line.or(other.command_line),
            runtime: self.runtime.or(other.runtime),
        }
    }
}

/// The end of a process that was watched or recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProcessEnd {
    /// The cause in one line: `the process crashed with SIGABRT, because of an unhandled exception`.
    pub cause: String,
    /// The exception with its frames, or what else belongs to the cause, a line each.
    pub details: Vec<String>,
    /// The exit code, if the process exited of itself and the code is known.
    pub exit_code: Option<i32>,
    /// The core dump, if it is there.
    pub core: Option<PathBuf>,
}

impl ProcessEnd {
    /// An end by a cause, in one line.
    pub fn new(cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..Self::default() }
    }

    /// The exit of a process of itself. Its parent alone has the code.
    pub fn exit(exit_code: Option<i32>) -> Self {
        let cause = match exit_code {
            Some(code) => format!("the process exited with code {code}"),
            None => "the process exited, with a code that its parent has".to_owned(),
        };
        Self { exit_code, ..Self::new(cause) }
    }

    /// With lines that belong to the cause, an exception with its message first.
    #[must_use]
    pub fn with_details(self, details: Vec<String>) -> Self {
        Self { details, ..self }
    }

    /// With a core dump.
    #[must_use]
    pub fn with_core(self, core: Option<PathBuf>) -> Self {
        Self { core, ..self }
    }
}
