use std::path::PathBuf;

/// The reason for blocking a command: its observed effect on real runtimes.
///
/// [`Target::without_safeguards`](crate::Target::without_safeguards) sends it anyway.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let simulated = dipc_sim::Runtime::builder().start_in(folder.path())?;
/// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
/// use dipc_client::{Error, Hazard};
///
/// // A running .NET 9 could end because of it.
/// match target.apply_startup_hook("/app/hook.dll") {
///     Err(Error::Blocked { hazard, .. }) => println!("blocked: {hazard}, {:?}", hazard.help()),
///     other => other?,
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Hazard {
    /// A startup hook for a running runtime: .NET 9 ends with an unhandled exception if the hook cannot be
    /// loaded.
    #[error("the runtime runs already, and ends if the startup hook cannot be loaded")]
    HookWhileRunning,
    /// A startup hook for a runtime that may be running: its state is not visible to this process.
    #[error(
        "it cannot be seen from here whether the runtime is still suspended; one that runs ends if the startup hook \
         cannot be loaded"
    )]
    StartupUnknown,
    /// A startup hook that the runtime would not find, which would end it, at once or when it is resumed.
    #[error("the runtime would not find the startup hook {path:?}, and end: {why}")]
    HookNotFound {
        /// The path as requested.
        path: String,
        /// The fault, as far as this process sees it.
        why: String,
    },
    /// A perf map for a runtime that is still suspended: .NET 9 ends with a segmentation fault, .NET 10 does
    /// not.
    #[error(
        "the runtime ({version}) is still suspended, where those before .NET 10 end with a segmentation fault"
    )]
    PerfMapWhileSuspended {
        /// The version reported by the runtime.
        version: String,
    },
    /// Removing an environment variable from a NativeAOT program: programs of .NET 8 and 9 end with a
    /// segmentation fault. On Linux the refusal of perf maps identifies such a program, and Mono refuses
    /// them, too.
    #[error(
        "the process is, or may be, a NativeAOT program, which ends with a segmentation fault when a variable is removed"
    )]
    UnsetInNativeAot,
    /// A dump if the runtime cannot start `createdump`: .NET 9 then deletes its socket and becomes
    /// unreachable.
    #[error("{path}: {problem}: the runtime would delete its diagnostic socket and not be reachable any more", path = .path.display())]
    NoCreateDump {
        /// The path of `createdump` on the target's filesystem.
        path: PathBuf,
        /// The fault.
        problem: &'static str,
    },
    /// A dump of a single-file program of .NET 8 or 9: the child process that writes it does not end, and
    /// answers the next requests in the place of the program, from its copy of the memory.
    #[error(
        "the program is a single file of .NET {version}: the child process that writes its dump does not end, and \
         answers the next requests instead of the program"
    )]
    DumpInSingleFile {
        /// The version reported by the runtime.
        version: String,
    },
}

impl Hazard {
    /// Returns the harm that a dump does to a single-file program of this version. Before .NET 8 such a
    /// program writes none.
    ///
    /// # Source
    /// Seen on 8.0.28 and 9.0.7; dotnet/runtime pull requests 84864 (.NET 8) and 117286 (.NET 10).
    pub fn of_dump_in_single_file(version: &str) -> Option<Self> {
        let is_harmed = matches!(version.split('.').next(), Some("8" | "9"));
        is_harmed.then(|| Self::DumpInSingleFile { version: version.to_owned() })
    }

    /// Returns the way around it, if there is one.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::HookWhileRunning | Self::StartupUnknown => Some(
                "start the program suspended (DOTNET_DefaultDiagnosticPortSuspend=1), apply the hook, resume",
            ),
            Self::PerfMapWhileSuspended { .. } => Some("resume the runtime first"),
            Self::NoCreateDump { .. } => {
                Some("restore the runtime's createdump, or make it executable (chmod +x)")
            }
            Self::DumpInSingleFile { .. } => Some(
                "read the memory without the runtime (dipc dump --stream), which every type of dump can do",
            ),
            Self::HookNotFound { .. } | Self::UnsetInNativeAot => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Hazard;

    #[test]
    fn dumps_harm_single_files_of_two_versions() {
        for (version, expected) in [
            ("8.0.28", true),
            ("9.0.1", true),
            ("10.0.5", false),
            ("7.0.2", false),
            ("80.1", false),
            ("", false),
        ] {
            assert_eq!(Hazard::of_dump_in_single_file(version).is_some(), expected, "{version}");
        }
    }
}
