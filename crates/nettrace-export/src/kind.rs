//! Pseudo-frames at the leaf that say what kind of time a thread's sample stands for. The names are dotnet-trace's.

/// The thread ran managed code, or was about to: whether it had a processor is not known.
pub const MANAGED: &str = "CPU_TIME";
/// The thread was in native code: waiting, in a system call, or at work there.
pub const UNMANAGED: &str = "UNMANAGED_CODE_TIME";
