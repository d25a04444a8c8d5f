use std::path::PathBuf;

/// Why a command was held back: what real runtimes were seen to do when it was sent to them.
///
/// [`Target::without_safeguards`](crate::Target::without_safeguards) sends it all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Hazard {
    /// A startup hook for a runtime that runs: .NET 9 ends with an unhandled exception where the hook cannot be loaded.
    #[error("the runtime runs already, and ends if the startup hook cannot be loaded")]
    HookWhileRunning,
    /// A startup hook for a runtime of which it cannot be seen whether it is suspended.
    #[error(
        "it cannot be seen from here whether the runtime is still suspended; one that runs ends if the startup hook \
         cannot be loaded"
    )]
    StartupUnknown,
    /// A startup hook that the runtime would not find, and end of, at once or when it is resumed.
    #[error("the runtime would not find the startup hook {path:?}, and end: {why}")]
    HookNotFound {
        /// The path, as it was to be sent.
        path: String,
        /// What is wrong with it, as far as can be seen from here.
        why: String,
    },
    /// A perf map for a runtime that is still suspended: .NET 9 ends with a segmentation fault, .NET 10 does not.
    #[error(
        "the runtime ({version}) is still suspended, where those before .NET 10 end with a segmentation fault"
    )]
    PerfMapWhileSuspended {
        /// Its version, as it says itself.
        version: String,
    },
    /// Removing an environment variable from a NativeAOT program: those of .NET 8 and 9 end with a segmentation fault.
    #[error(
        "the process is a NativeAOT program, and ends with a segmentation fault when a variable is removed"
    )]
    UnsetInNativeAot,
    /// A dump where the runtime cannot start `createdump`: .NET 9 then deletes its socket and cannot be reached any more.
    #[error("{path}: {problem}: the runtime would delete its diagnostic socket and not be reachable any more", path = .path.display())]
    NoCreateDump {
        /// Where the runtime has it, as the target sees its files.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl Hazard {
    /// Returns the way around it, where there is one.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::HookWhileRunning | Self::StartupUnknown => Some(
                "start the program suspended (DOTNET_DefaultDiagnosticPortSuspend=1), apply the hook, resume",
            ),
            Self::PerfMapWhileSuspended { .. } => Some("resume the runtime first"),
            Self::NoCreateDump { .. } => {
                Some("restore the runtime's createdump, or make it executable (chmod +x)")
            }
            Self::HookNotFound { .. } | Self::UnsetInNativeAot => None,
        }
    }
}
