//! Pseudo-frames, with dotnet-trace's names where it has them.
//!
//! Pseudo-frames at the leaf show the kind of time of a thread's sample.

/// The thread ran managed code, or was about to: whether it had a processor is not known.
pub const MANAGED: &str = "CPU_TIME";
/// The thread was in native code: waiting, in a system call, or at work there.
pub const UNMANAGED: &str = "UNMANAGED_CODE_TIME";
/// The thread waited in the midst of work: [`ThreadState::Blocked`](clr_events::ThreadState::Blocked). Only
/// where [idle time](crate::Options::idle) is left out; dotnet-trace writes [`UNMANAGED`].
pub const BLOCKED: &str = "BLOCKED_TIME";
/// The thread was ready to run but not on a processor, by the kernel's samples:
/// [`ThreadState::Ready`](clr_events::ThreadState::Ready).
pub const READY: &str = "READY_TIME";

/// The garbage collector had stopped all threads. Only where [idle time](crate::Options::idle) is left out
/// and pauses [have a frame](crate::Options::gc_pauses); below it is the stack that the pause interrupted.
pub const GC_PAUSE: &str = "GC pause";

/// A pause for a thread that was sampled in managed code. Shown as [`GC_PAUSE`].
pub(crate) const STOPPED: &str = "(stopped)";
/// A pause for a thread that was sampled outside managed code: shown as [`GC_PAUSE`] if its stack does not
/// wait.
pub(crate) const STOPPED_UNMANAGED: &str = "(stopped, unmanaged)";

/// The thread was without managed frames, and so without samples: its stack is the previous sample's. Stacks
/// that are shown end in [`UNMANAGED`] instead.
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
