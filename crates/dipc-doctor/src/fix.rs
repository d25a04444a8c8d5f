use std::path::PathBuf;

use crate::{Check, TracingObstacle};

/// The action that fixes a finding.
///
/// ```
/// use dipc_doctor::Fix;
///
/// /// The words of a program for a fix.
/// fn advice(fix: &Fix) -> String {
///     match fix {
///         Fix::RunAsRoot => "run it as root".to_owned(),
///         Fix::UnsetVariable(name) => format!("start the program without {name}"),
///         other => format!("{other:?}"),
///     }
/// }
/// let fix = Fix::UnsetVariable("DOTNET_EnableDiagnostics".into());
/// assert_eq!(advice(&fix), "start the program without DOTNET_EnableDiagnostics");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fix {
    /// Run the tool as the user of the process, or as root.
    RunAsUser {
        /// The user, if it is known.
        uid: Option<u32>,
    },
    /// Run the tool as root.
    RunAsRoot,
    /// Run the tool on the host or with the capability `SYS_PTRACE`, or name the socket. For root.
    GrantPtrace,
    /// Use one of these pids.
    UsePid(Vec<u32>),
    /// Look for the pid among all processes that look like .NET.
    ListProcesses,
    /// Look for the pid among all visible processes, or share the pid namespace or the socket with the tool.
    SharePidNamespace,
    /// Build the program with `<EventSourceSupport>true</EventSourceSupport>`.
    EnableEventSource,
    /// Run the program on .NET instead of Mono.
    RunOnDotNet,
    /// Run the program on a newer runtime.
    UpgradeRuntime,
    /// Start the program without this environment variable.
    UnsetVariable(String),
    /// Resume the runtime.
    Resume {
        /// The process.
        pid: u32,
        /// True if the runtime is seen to wait.
        is_suspended: bool,
    },
    /// Resume the runtime from the tool that listens on its ports.
    ResumeFromPort,
    /// Start a tool that listens on these addresses and resumes the runtime, or start the program without
    /// waiting for one.
    ListenOn {
        /// The process.
        pid: u32,
        /// The addresses.
        addresses: Vec<String>,
    },
    /// Set `TMPDIR` to this folder for tools that look in their own.
    SetTmpdirForTools(PathBuf),
    /// Set `TMPDIR` to the value of the processes.
    SetTmpdir,
    /// Fix the finding of another check.
    SeeCheck(Check),
    /// Remove the file that blocks the socket, and start the process again.
    RemoveFile {
        /// True if it belongs to another user.
        is_foreign: bool,
    },
    /// Start the process again.
    Restart,
    /// Start the process again, and keep its folder from being cleared.
    RestartAndKeepFolder,
    /// Start the process with a shorter `TMPDIR`.
    ShortenTmpdir,
    /// Name the socket instead of the pid.
    UseEndpoint {
        /// The socket, as reached from here.
        path: PathBuf,
        /// True if its name was cut, so that a shorter `TMPDIR` would also help.
        is_cut: bool,
    },
    /// Make the folder or set `TMPDIR` to an existing one, and start the process again.
    MakeTmpdir,
    /// Make the folder writable or set `TMPDIR` to a writable one, and start the process again.
    MakeWritable(PathBuf),
    /// Try again; otherwise check the permissions of the folder.
    RetryOrCheckFolder,
    /// Remove sockets that ended processes left.
    RemoveStaleSockets,
    /// Continue the stopped process.
    Continue {
        /// The process.
        pid: u32,
    },
    /// End the process that listens instead, and start this one again.
    EndOtherListener,
    /// End the other client, or wait for it.
    EndOtherClient,
    /// Give the tool `CAP_PERFMON`, or lower `kernel.perf_event_paranoid` to this value.
    PermitSampling {
        /// The highest level that permits it.
        paranoid: i32,
    },
    /// Give the tool the right that it lacks to look into the process.
    PermitTracing(TracingObstacle),
    /// Lower `kernel.perf_event_paranoid` to this value, or give the tool `CAP_SYS_ADMIN`: `CAP_PERFMON` is
    /// not enough at levels above 2.
    LowerParanoid {
        /// The highest value that permits the samples.
        paranoid: i32,
    },
    /// Run the tool as the user of the process, or with `CAP_PERFMON` and `CAP_SYS_PTRACE`.
    SampleAsUser {
        /// The user, if it is known.
        uid: Option<u32>,
    },
    /// Run the container with `CAP_PERFMON` (at levels of `kernel.perf_event_paranoid` above 2,
    /// `CAP_SYS_ADMIN`), with which the usual seccomp profiles permit the call.
    PermitInContainer,
    /// Try again with a longer time-out.
    RetryLonger,
    /// Follow the advice of the error, process state or hazard that is the evidence.
    Advice(&'static str),
}
