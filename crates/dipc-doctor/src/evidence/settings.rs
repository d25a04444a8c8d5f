use std::path::PathBuf;

/// Evidence about settings in the environment that disable diagnostics.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsEvidence {
    /// The environment cannot be read.
    Unreadable,
    /// No setting disables diagnostics.
    Enabled,
    /// A setting disables the diagnostic port.
    Disabled {
        /// The variable and its value, `NAME=value`.
        setting: String,
    },
    /// A setting would disable the diagnostic port, but the runtime has the port anyway, or its version does
    /// not support the setting.
    Ignored {
        /// The variable and its value, `NAME=value`.
        setting: String,
    },
}

/// Evidence that a runtime waits, or may wait, to be resumed before its program begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartupEvidence {
    /// True if the runtime is seen to wait; otherwise it is only known that it was asked to.
    pub is_suspended: bool,
    /// The setting that makes it wait.
    pub reason: SuspendReason,
}

/// The setting that makes a runtime wait before its program begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuspendReason {
    /// `DefaultDiagnosticPortSuspend`.
    Setting {
        /// The variable and its value, `NAME=value`.
        setting: String,
    },
    /// Ports in `DiagnosticPorts` that the runtime connects to, and that have to resume it.
    Ports {
        /// Ports without a listener.
        unserved: Vec<String>,
        /// Ports with a listener.
        served: Vec<String>,
    },
}

impl StartupEvidence {
    /// Returns evidence that a runtime waits (`is_suspended`) or may wait, for `reason`.
    pub fn new(is_suspended: bool, reason: SuspendReason) -> Self {
        Self { is_suspended, reason }
    }
}

/// Evidence about folders for temporary files, where sockets are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TmpdirEvidence {
    /// The environment of the process cannot be read; `/tmp` is assumed.
    Unreadable,
    /// The process and this one use the same folder.
    Same {
        /// The folder.
        path: PathBuf,
    },
    /// The runtimes use different folders.
    Different {
        /// The folder of the examined process, as reached from here.
        process: PathBuf,
        /// The folder of this process.
        own: PathBuf,
    },
    /// The folder of this process.
    Own {
        /// The folder.
        path: PathBuf,
        /// True if it is a folder.
        is_folder: bool,
    },
}
