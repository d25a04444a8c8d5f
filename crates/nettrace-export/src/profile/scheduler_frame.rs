//! Methods between a thread's start and the task that it runs: the scheduler's frames.

/// The role of a method in the scheduling of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::profile) enum SchedulerFrame {
    /// The method calls the work.
    Runs,
    /// The method calls the work, and is called by a method that [`Runs`](Self::Runs).
    Invokes,
    /// A thread of the pool begins with it.
    Waits,
    /// The method takes work from the pool's queue: threads of the pool without it are idle.
    Dispatches,
    /// The method schedules work.
    Schedules,
    /// The method is part of the machinery of `await`, or says so in an event.
    Plumbing,
    Ordinary,
}

const PLUMBING: [&str; 7] = [
    "Diagnostics.Tracing.",
    "Runtime.CompilerServices.Async",
    "Runtime.CompilerServices.PoolingAsync",
    "Runtime.CompilerServices.TaskAwaiter",
    "Runtime.CompilerServices.ValueTaskAwaiter",
    "Runtime.CompilerServices.Configured",
    "Runtime.CompilerServices.YieldAwaitable",
];

/// Methods of tasks in which a thread waits for others.
const WAITS: [&str; 3] = [".Wait", ".InternalWait", ".SpinThenBlockingWait"];

impl SchedulerFrame {
    /// Returns true if it lies between the code that requests work and the work.
    pub(in crate::profile) const fn is_between(self) -> bool {
        matches!(self, Self::Schedules | Self::Plumbing)
    }

    /// Returns true if a frame is part of how tasks and `await` work, and waits for none.
    pub(in crate::profile) fn is_async_plumbing(module: &str, method: &str) -> bool {
        let is_of_events = method.starts_with("System.Diagnostics.Tracing.");
        Self::of(module, method) != Self::Ordinary
            && !is_of_events
            && !WAITS.iter().any(|wait| method.contains(wait))
    }

    /// Returns true if a module is the class library's core, which has tasks and the thread pool.
    pub(in crate::profile) fn is_core_library(module: &str) -> bool {
        matches!(module, "System.Private.CoreLib" | "mscorlib" | "system.private.corelib")
    }

    /// The role of a method of this module.
    ///
    /// # Source
    /// The prefixes are TraceEvent's (ActivityComputer); the pool's prefixes are
    /// `PortableThreadPool.WorkerThread.cs` and `ThreadPoolWorkQueue.cs` of dotnet/runtime.
    pub(in crate::profile) fn of(module: &str, method: &str) -> Self {
        if !Self::is_core_library(module) {
            return Self::Ordinary;
        }
        let Some(rest) = method.strip_prefix("System.") else { return Self::Ordinary };
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| rest.starts_with(prefix));
        if begins(&[
            "Threading.ExecutionContext.Run",
            "Threading.Tasks.AwaitTaskContinuation.Run",
            "Threading.Tasks.Task.Execute",
        ]) {
            Self::Runs
        } else if begins(&["Threading.Tasks.Task"]) && rest.contains(".InnerInvoke") {
            Self::Invokes
        } else if begins(&["Threading.PortableThreadPool+WorkerThread.WorkerThreadStart"]) {
            Self::Waits
        } else if begins(&["Threading.ThreadPoolWorkQueue.Dispatch"]) {
            Self::Dispatches
        } else if begins(&["Threading.Tasks.", "Threading.ThreadPool"]) {
            Self::Schedules
        } else if begins(&PLUMBING) {
            Self::Plumbing
        } else {
            Self::Ordinary
        }
    }
}

/// Returns true if a thread of the pool waits for work.
pub(in crate::profile) fn is_idle<T>(frames: &[(T, SchedulerFrame)]) -> bool {
    let has = |role| frames.iter().any(|(_, of)| *of == role);
    has(SchedulerFrame::Waits) && !has(SchedulerFrame::Dispatches)
}

/// The part of a stack, leaf first, that is the work of a task; `None` if it runs none.
pub(in crate::profile) fn work<T>(frames: &[(T, SchedulerFrame)]) -> Option<&[(T, SchedulerFrame)]> {
    let runs = frames.iter().position(|(_, role)| *role == SchedulerFrame::Runs)?;
    let above = frames.get(..runs)?;
    let invokes = above.iter().rposition(|(_, role)| *role == SchedulerFrame::Invokes);
    let work = frames.get(..invokes.unwrap_or(runs))?;
    let own = work.iter().rposition(|(_, role)| !role.is_between());
    Some(own.and_then(|own| work.get(..=own)).unwrap_or(work))
}
