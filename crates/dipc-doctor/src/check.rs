//! The subjects of checks, and their names.

use std::fmt;

/// The subject of a check.
///
/// ```
/// use dipc_doctor::Check;
///
/// // Names in JSON, which scripts may rely on.
/// assert_eq!(Check::StaleSockets.name(), "stale-sockets");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The existence of the process.
    Process,
    /// The user of the process, and the permission to read about it.
    User,
    /// Namespaces of pids and files: a container.
    Container,
    /// The .NET runtime in the process.
    Runtime,
    /// The commands that this version of the runtime supports.
    Version,
    /// The C library that the runtime was built for.
    Platform,
    /// Environment variables that disable diagnostics.
    Settings,
    /// A runtime that waits to be resumed before its program begins.
    Startup,
    /// The folders for temporary files of the process and of this one.
    Tmpdir,
    /// The diagnostic socket.
    Socket,
    /// Sockets of ended processes.
    StaleSockets,
    /// A state of the process in which it cannot answer.
    State,
    /// The answer to a request.
    Answer,
    /// The program that writes dumps.
    Createdump,
    /// The kernel's permission to sample the threads.
    Sampling,
    /// The processor, if the memory of its programs cannot be read.
    Memory,
    /// The destination of the kernel's core dumps.
    CoreDumps,
}

impl Check {
    /// Returns the name of the check, which scripts may rely on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::User => "user",
            Self::Container => "container",
            Self::Runtime => "runtime",
            Self::Version => "version",
            Self::Platform => "platform",
            Self::Settings => "settings",
            Self::Startup => "startup",
            Self::Tmpdir => "tmpdir",
            Self::Socket => "socket",
            Self::StaleSockets => "stale-sockets",
            Self::State => "state",
            Self::Answer => "answer",
            Self::Createdump => "createdump",
            Self::Sampling => "sampling",
            Self::Memory => "memory",
            Self::CoreDumps => "core-dumps",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
