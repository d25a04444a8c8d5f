//! The command set Process: information about the process, its environment, and settings of its runtime.

mod environment;
mod info;
mod perf_map;

pub use environment::{Environment, EnvironmentReply, ProcessEnvironment, SetEnvironmentVariable};
pub use info::{
    ProcessInfo1, ProcessInfo1Reply, ProcessInfo2, ProcessInfo2Reply, ProcessInfo3, ProcessInfo3Reply,
};
pub use perf_map::{DisablePerfMap, EnablePerfMap, PerfMapType};

use crate::HResult;
use crate::payload::payload;
use alloc::string::String;

payload! {
    /// ResumeRuntime (0x0401): resumes a runtime that was started suspended, on the port that received the
    /// command; does nothing to a running runtime. The request has no payload.
    ///
    /// The text specifies a reply without payload; runtimes send an [`HResult`], 0.
    ///
    /// ```
    /// use dipc_wire::{Command as _, HEADER_LEN, ResumeRuntime};
    ///
    /// // For a runtime that was started with DOTNET_DiagnosticPorts=…,suspend.
    /// let message = ResumeRuntime.to_bytes()?;
    /// assert_eq!(message.len(), HEADER_LEN);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ResumeRuntime"; the reply as seen on .NET 8 to 10; unknown to 3.1.
    command RESUME_RUNTIME -> HResult =>
    pub struct ResumeRuntime;
}

payload! {
    /// ApplyStartupHook (0x0407): loads an assembly and runs its `StartupHook.Initialize`: before `Main` if
    /// the runtime is still suspended, at once in a running one.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | … | string | path of the assembly, on the *target's* filesystem |
    ///
    /// A running .NET 9 that cannot load the hook **ends** with an unhandled exception.
    ///
    /// ```
    /// use dipc_wire::{ApplyStartupHook, Command as _};
    ///
    /// let message = ApplyStartupHook { path: "/app/hook.dll" }.to_bytes()?;
    /// assert_eq!(message[16..18], [0x04, 0x07]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ApplyStartupHook"; the danger as seen on .NET 9; unknown to 3.1.
    command APPLY_STARTUP_HOOK -> HResult =>
    pub struct ApplyStartupHook<S = String> {
        /// The assembly, as the target sees its files.
        pub path: S = "startup hook path",
    }
}
