use std::path::PathBuf;

/// Evidence about the runtime in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeEvidence {
    /// A runtime is loaded.
    Found {
        /// The kind of runtime.
        kind: RuntimeKind,
        /// The version of the runtime, if known.
        version: Option<String>,
        /// The library of the runtime, or the program that contains it.
        path: PathBuf,
    },
    /// The process has a diagnostic socket, but no known runtime.
    SocketOnly {
        /// The version that it reports.
        version: Option<String>,
    },
    /// No runtime is loaded.
    NotFound,
    /// The mapped files of the process cannot be read.
    Unreadable {
        /// The file and the system's reason.
        reason: String,
    },
}

/// The form in which a runtime is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuntimeKind {
    /// The library `libcoreclr.so`.
    CoreClr,
    /// A program that contains CoreCLR.
    SingleFile,
    /// A program that was compiled ahead of time.
    NativeAot {
        /// True if it contains the code of the diagnostic port.
        has_port: bool,
    },
    /// The Mono of .NET Framework programs, which does not have a diagnostic port.
    Mono,
}

/// The part of the protocol that a version of .NET supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VersionSupport {
    /// No diagnostic port: before .NET Core 3.0.
    None,
    /// Sessions and dumps only: .NET Core 3.
    SessionsAndDumps,
    /// All but startup hooks, perf maps and rundown keywords: .NET 5 to 7.
    Partial,
    /// Every command: .NET 8 and later.
    Full,
}
