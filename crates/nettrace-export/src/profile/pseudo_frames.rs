//! Pseudo-frames. The names are dotnet-trace's where it has any.
//!
//! Those at the leaf show the kind of time of a thread's sample.

/// The thread ran managed code, or was about to: whether it had a processor is not known.
pub const MANAGED: &str = "CPU_TIME";
/// The thread was in native code: waiting, in a system call, or at work there.
pub const UNMANAGED: &str = "UNMANAGED_CODE_TIME";
/// The thread waited in the midst of work: [`ThreadState::Blocked`](clr_events::ThreadState::Blocked). Only
/// where [idle time](crate::Options::idle) is left out; dotnet-trace writes [`UNMANAGED`].
pub const BLOCKED: &str = "BLOCKED_TIME";
/// The thread could run and had no processor, by the kernel's samples:
/// [`ThreadState::Ready`](clr_events::ThreadState::Ready).
pub const READY: &str = "READY_TIME";

/// The garbage collector had stopped all threads. Only where [idle time](crate::Options::idle) is left out
/// and pauses [have a frame](crate::Options::gc_pauses); below it is the stack that the pause interrupted.
pub const GC_PAUSE: &str = "GC pause";

/// A pause for a thread whose sample was one of managed code. Shown as [`GC_PAUSE`].
pub(crate) const STOPPED: &str = "(stopped)";
/// A pause for a thread whose sample was of the other kind: shown as [`GC_PAUSE`] if its stack does not wait.
pub(crate) const STOPPED_UNMANAGED: &str = "(stopped, unmanaged)";

/// The thread had no managed frames, and so no samples: its stack is that of the sample before. Stacks that
/// are shown end in [`UNMANAGED`] instead.
pub(crate) const ABSENT: &str = "(no managed frames)";
/// The thread waited for a lock, by the events of contention. Stacks that are shown end in [`BLOCKED`]
/// instead.
pub(crate) const CONTENDED: &str = "(contended)";
/// The thread ran on a processor, by the kernel's samples. Shown as [`MANAGED`].
pub(crate) const ON_CPU: &str = "(on CPU)";
/// The thread waited, by the kernel's samples. Shown by the thread's state.
pub(crate) const OFF_CPU: &str = "(off CPU)";

/// Between the stack that created a task and the work of the task.
pub const STARTING_TASK: &str = "STARTING TASK";
/// Above work that belongs to no request.
pub const NO_REQUEST: &str = "(no request)";
