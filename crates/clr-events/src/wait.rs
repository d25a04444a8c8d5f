//! Threads that wait, by the names on their stacks.
//!
//! A sample of a thread does not show whether the thread ran. Waits are samples of the type [`EXTERNAL`], and
//! most of these are waits, but native code and some managed code have it too. So the method at the leaf
//! shows a wait, and its caller shows the purpose: waiting for work, or in the middle of work.
//!
//! The methods are in `facts/waits.tsv`. The rule has errors: a thread that waits for its own queue of work
//! counts as blocked; a wait that was compiled into its caller, locks on .NET 8 and 9 and waits in native
//! code count as work. If the kernel reports that a thread sleeps, [`ThreadState::of_asleep`] is right about
//! all of them.
//!
//! [`EXTERNAL`]: crate::enums::ThreadSampleType::EXTERNAL

use crate::generated::waits::FRAMES;
use crate::glob::Glob;
use crate::wait_role::{BETWEEN, BLOCKING_CALL, IDLE, OPAQUE, RUNTIME, SPIN, WAIT, WAIT_FOR_WORK};

/// The state of a thread when its stack was taken.
///
/// ```
/// use clr_events::{ThreadState, WaitFrame};
///
/// // A lock that the program waits for, in the midst of its work.
/// let stack = [
///     "System.Private.CoreLib!System.Threading.Monitor.Enter(class System.Object,bool&)",
///     "Shop!Shop.Cart.Pay()",
/// ];
/// let state = ThreadState::of(stack.into_iter().map(WaitFrame::of));
/// assert!(state.is_held_up(), "{state:?}");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(clippy::exhaustive_enums, reason = "a caller accounts for each: the states of schedulers")]
pub enum ThreadState {
    /// Not known to wait.
    #[default]
    Working,
    /// Waited in the midst of work: for a lock, a task, a file.
    Blocked,
    /// Waited for work: a request, a timer, an input.
    Idle,
    /// Ready to run, but without a processor. Only the kernel's samples distinguish it from blocked threads.
    Ready,
}

impl ThreadState {
    /// Returns true if the thread did not get on with its work: it waited in the midst of it, or for a
    /// processor.
    pub const fn is_held_up(self) -> bool {
        matches!(self, Self::Blocked | Self::Ready)
    }

    /// The state of a thread in a sample of type [`MANAGED`](crate::enums::ThreadSampleType::MANAGED), from
    /// its stack, leaf first: idle if it spins while it waits for work, before it sleeps.
    pub fn of_managed(stack: impl IntoIterator<Item = WaitFrame>) -> Self {
        let mut frames = stack.into_iter();
        match frames.next() {
            Some(leaf) if leaf.has(SPIN) && Self::of(core::iter::once(leaf).chain(frames)) == Self::Idle => {
                Self::Idle
            }
            _ => Self::Working,
        }
    }

    /// The state of a thread in a sample of type [`EXTERNAL`](crate::enums::ThreadSampleType::EXTERNAL), from
    /// its stack, leaf first.
    ///
    /// ```
    /// use clr_events::{ThreadState, WaitFrame};
    ///
    /// let stack = [
    ///     "System.Private.CoreLib!System.Threading.WaitHandle.WaitOneNoCheck(int32)",
    ///     "System.Private.CoreLib!System.Threading.TimerQueue.TimerThread()",
    ///     "System.Private.CoreLib!System.Threading.Thread.StartCallback()",
    /// ];
    /// assert_eq!(ThreadState::of(stack.into_iter().map(WaitFrame::of)), ThreadState::Idle);
    /// ```
    pub fn of(stack: impl IntoIterator<Item = WaitFrame>) -> Self {
        let mut frames = stack.into_iter().skip_while(|frame| frame.is_opaque());
        let Some(leaf) = frames.next() else { return Self::Working };
        // A wait for work that was inlined into the waiting method does not have a frame of its own.
        if leaf.has(IDLE | WAIT_FOR_WORK) {
            return Self::Idle;
        }
        if leaf.has(BLOCKING_CALL) {
            return Self::Blocked;
        }
        if !leaf.has(WAIT) {
            return Self::Working;
        }
        let owner = frames.find(|frame| !frame.has(WAIT | BETWEEN));
        if owner.is_some_and(|owner| owner.has(WAIT_FOR_WORK)) { Self::Idle } else { Self::Blocked }
    }

    /// The state of a thread that sleeps according to the kernel, from its stack, leaf first: it does not
    /// work, whatever the sample's type.
    pub fn of_asleep(stack: impl IntoIterator<Item = WaitFrame>) -> Self {
        let waits = |frame: &WaitFrame| frame.is_opaque() || frame.has(WAIT | BETWEEN | BLOCKING_CALL);
        match stack.into_iter().find(|frame| !waits(frame)) {
            Some(owner) if owner.has(WAIT_FOR_WORK | IDLE) => Self::Idle,
            _ => Self::Blocked,
        }
    }

    /// The state of a thread that left its processor to wait, from its whole stack, leaf first. Native frames
    /// are part of such stacks: a thread with frames of the runtime but without managed frames belongs to the
    /// runtime, and waits for work.
    pub fn of_off_cpu(stack: impl IntoIterator<Item = WaitFrame>) -> Self {
        let (mut is_managed, mut has_runtime) = (false, false);
        let stack = stack.into_iter().inspect(|frame| {
            is_managed |= !frame.is_opaque();
            has_runtime |= frame.has(RUNTIME);
        });
        match Self::of_asleep(stack) {
            Self::Blocked if has_runtime && !is_managed => Self::Idle,
            state => state,
        }
    }
}

/// The meaning of a frame for the [state of a thread](ThreadState::of).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitFrame(u8);

impl WaitFrame {
    /// Native code, or code without a name: the frames that called it decide.
    pub const fn opaque() -> Self {
        Self(OPAQUE)
    }

    /// Native code of the runtime, which is [opaque](Self::opaque): if a thread runs nothing else, it belongs
    /// to the runtime.
    pub const fn runtime() -> Self {
        Self(OPAQUE | RUNTIME)
    }

    /// The meaning of a managed frame, `Module!Namespace.Type.Method(parameters)`.
    pub fn of(frame: &str) -> Self {
        let method = frame.split('(').next().unwrap_or(frame);
        let roles = FRAMES.iter().filter(|(_, pattern)| Glob::is_match(pattern, method));
        Self(roles.fold(0, |all, (role, _)| all | role))
    }

    /// The same as an owner of waits for work: a thread that waits there is idle.
    #[must_use]
    pub const fn as_waiting_for_work(self) -> Self {
        Self(self.0 | WAIT_FOR_WORK)
    }

    /// Returns true if it is [opaque](Self::opaque).
    pub const fn is_opaque(self) -> bool {
        self.has(OPAQUE)
    }

    const fn has(self, any: u8) -> bool {
        self.0 & any != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(stack: &[&str]) -> ThreadState {
        ThreadState::of(stack.iter().map(|name| frame(name)))
    }

    /// The meaning of a frame, which is opaque for `?`.
    fn frame(name: &str) -> WaitFrame {
        if name == "?" { WaitFrame::opaque() } else { WaitFrame::of(name) }
    }

    const POOL: &str =
        "System.Private.CoreLib!System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart()";
    const TASK: &str = "System.Private.CoreLib!System.Threading.Tasks.Task.InternalWaitCore(int32,value class CancellationToken)";
    const MONITOR: &str = "System.Private.CoreLib!System.Threading.Monitor.Wait(class System.Object,int32)";

    #[test]
    fn the_owner_of_a_wait_determines_its_reason() {
        let semaphore = "System.Private.CoreLib!System.Threading.LowLevelLifoSemaphore.WaitNative(int,int32)";
        let signal =
            "System.Private.CoreLib!System.Threading.LowLevelLifoSemaphore.WaitForSignal(int32,bool)";
        assert_eq!(state(&[semaphore, signal, POOL]), ThreadState::Idle);
        // Sync over async: work of the pool that waits for a task.
        let awaiter = "System.Private.CoreLib!System.Runtime.CompilerServices.TaskAwaiter`1[System.__Canon].GetResult()";
        assert_eq!(state(&[MONITOR, TASK, awaiter, "App!App.Handle()", POOL]), ThreadState::Blocked);
        assert_eq!(state(&[MONITOR, TASK, awaiter, "App!App.<Main>()"]), ThreadState::Idle);
        assert_eq!(state(&[MONITOR, "App!App.Consume()", POOL]), ThreadState::Blocked);
        assert_eq!(state(&[MONITOR]), ThreadState::Blocked, "an owner that is not on the stack");
        let exporter = "OpenTelemetry!OpenTelemetry.BatchExportProcessor`1[System.__Canon].ExporterProc()";
        assert_eq!(state(&[MONITOR, exporter]), ThreadState::Idle);
        let mine = WaitFrame::of("App!App.Consume()").as_waiting_for_work();
        assert_eq!(ThreadState::of([WaitFrame::of(MONITOR), mine]), ThreadState::Idle);
    }

    #[test]
    fn threads_that_spin_for_work_are_idle_in_managed_code_too() {
        let managed =
            |stack: &[&str]| ThreadState::of_managed(stack.iter().map(|frame| WaitFrame::of(frame)));
        let spinner = "System.Private.CoreLib!System.Threading.LowLevelSpinWaiter.Wait(int32,int32,bool)";
        let semaphore = "System.Private.CoreLib!System.Threading.LowLevelLifoSemaphore.Wait(int32,bool)";
        assert_eq!(managed(&[spinner, semaphore, POOL]), ThreadState::Idle);
        assert_eq!(managed(&[semaphore, POOL]), ThreadState::Idle);
        assert_eq!(managed(&[MONITOR, POOL]), ThreadState::Working, "a thread that wakes up");
        assert_eq!(managed(&[semaphore, "App!App.Run()"]), ThreadState::Working);
        assert_eq!(managed(&[]), ThreadState::Working);
    }

    #[test]
    fn waits_that_were_compiled_into_their_callers_are_known_by_these() {
        let dequeue = "Microsoft.Extensions.Logging.Console!Microsoft.Extensions.Logging.Console.ConsoleLoggerProcessor.TryDequeue(value class LogMessageEntry&)";
        assert_eq!(state(&[dequeue, "A!B.C()"]), ThreadState::Idle);
        let asleep = |stack: &[&str]| ThreadState::of_asleep(stack.iter().map(|name| frame(name)));
        assert_eq!(asleep(&[dequeue]), ThreadState::Idle);
        assert_eq!(asleep(&["Bank!Bank.Transfer()", POOL]), ThreadState::Blocked);
        assert_eq!(asleep(&["?", MONITOR, POOL]), ThreadState::Idle);
        assert_eq!(asleep(&[]), ThreadState::Blocked);
    }

    #[test]
    fn threads_off_the_processors_are_known_by_managed_frames_below_native_ones() {
        let (libc, runtime) = (WaitFrame::opaque(), WaitFrame::runtime());
        let managed = |names: &[&str]| names.iter().map(|name| WaitFrame::of(name)).collect::<Vec<_>>();
        let state = |frames: &[WaitFrame]| ThreadState::of_off_cpu(frames.iter().copied());
        let below = |names: &[&str]| state(&[&[libc, runtime][..], &managed(names)].concat());
        assert_eq!(below(&[MONITOR, POOL]), ThreadState::Idle);
        assert_eq!(below(&[MONITOR, "App!App.Consume()", POOL]), ThreadState::Blocked);
        assert_eq!(below(&[]), ThreadState::Idle, "a thread of the runtime's own");
        assert_eq!(state(&[libc]), ThreadState::Blocked, "a native program");
        assert_eq!(state(&[]), ThreadState::Blocked);
    }

    #[test]
    fn folders_are_watched_by_idle_threads() {
        let read = "System.IO.FileSystem.Watcher!Interop+Sys.Read(class System.Runtime.InteropServices.SafeHandle,unsigned int8*,int32)";
        let next = "System.IO.FileSystem.Watcher!System.IO.FileSystemWatcher+RunningInstance.TryReadEvent(value class NotifyEvent&)";
        let watcher =
            "System.IO.FileSystem.Watcher!System.IO.FileSystemWatcher+RunningInstance.ProcessEvents()";
        assert_eq!(state(&[read, next, watcher]), ThreadState::Idle);
        assert_eq!(state(&["App!App.OnChanged()", watcher]), ThreadState::Working);
    }

    #[test]
    fn only_leaves_tell_of_a_wait() {
        let event_loop = "System.Net.Sockets!System.Net.Sockets.SocketAsyncEngine.EventLoop()";
        assert_eq!(state(&[event_loop]), ThreadState::Idle);
        assert_eq!(state(&["?", "?", event_loop]), ThreadState::Idle);
        assert_eq!(state(&["App!App.Completed()", event_loop]), ThreadState::Working);
        assert_eq!(state(&["App!App.Work()", MONITOR, POOL]), ThreadState::Working);
        assert_eq!(
            state(&["System.Private.CoreLib!Interop+Sys.PRead(int)", "A!B.C()"]),
            ThreadState::Blocked
        );
        assert_eq!(state(&[]), ThreadState::Working);
        assert_eq!(state(&["?"]), ThreadState::Working);
    }
}
