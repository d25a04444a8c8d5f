//! Stacks as `await` has them: one frame for an `async` method, and none for what runs it.

use clr_events::csharp::StateMachine;

use crate::profile::scheduler_frame::SchedulerFrame;

/// The role of a frame in the execution of `async` methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AwaitFrame {
    /// The body of an `async` method, or of an iterator.
    Body,
    /// The method starts a body on behalf of the called method.
    Starts,
    /// The method continues a body: its own callers completed the awaited operation.
    Continues,
    /// The method continues a method that the runtime suspended (runtime async).
    Resumes,
    /// Any other method of the machinery of tasks and `await`.
    Plumbing,
    /// The first method of a thread.
    ThreadStart,
    /// Code without a name, such as a stub.
    Unnamed,
    Ordinary,
}

/// Methods of the class library that call the body of an `async` method when the awaited operation has
/// completed, or into which such methods are compiled.
///
/// # Source
/// `AsyncTaskMethodBuilderT.cs`, `PoolingAsyncValueTaskMethodBuilderT.cs`, `AsyncMethodBuilderCore.cs`,
/// `TaskAwaiter.cs`, `TaskContinuation.cs`, `Task.cs` and `ThreadPoolWorkQueue.cs` of dotnet/runtime.
const CONTINUES: [&str; 13] = [
    "Runtime.CompilerServices.Async",
    "Runtime.CompilerServices.PoolingAsync",
    "Runtime.CompilerServices.TaskAwaiter",
    "Runtime.CompilerServices.YieldAwaitable",
    "Threading.ExecutionContext.Run",
    "Threading.ThreadPoolWorkQueue.Dispatch",
    "Threading.Tasks.AwaitTaskContinuation",
    "Threading.Tasks.SynchronizationContextAwaitTaskContinuation",
    "Threading.Tasks.TaskSchedulerAwaitTaskContinuation",
    "Threading.Tasks.Task.RunContinuations",
    "Threading.Tasks.Task.FinishContinuations",
    "Threading.Tasks.Task.TrySetResult",
    "Threading.Tasks.Sources.",
];

/// Methods that call an `async` method where it was suspended, if the runtime does that.
///
/// # Source
/// `AsyncHelpers.CoreCLR.cs` and `AsyncProfiler.CoreCLR.cs` of dotnet/runtime, for .NET 11.
const RESUMES: [&str; 2] = ["ContinuationWrapper.Continuation_Wrapper_", ".DispatchContinuations("];

/// The stub between these and the method.
const RESUME_STUB: &str = "IL_STUB_AsyncResume";

/// Prefixes of builder classes with a `Start` method that starts a body.
const BUILDERS: [&str; 2] = ["Runtime.CompilerServices.Async", "Runtime.CompilerServices.PoolingAsync"];

impl AwaitFrame {
    /// The role of a method of this module.
    pub(crate) fn of(module: &str, method: &str) -> Self {
        if matches!(method, "" | "?") || method.contains(RESUME_STUB) {
            return Self::Unnamed;
        }
        let rest = method.strip_prefix("System.");
        let rest = rest.filter(|_| SchedulerFrame::is_core_library(module));
        if let Some(rest) = rest {
            let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| rest.starts_with(prefix));
            // A box of a state machine has a `MoveNext`, too.
            let is_start = rest.contains(".Start(")
                || rest.starts_with("Runtime.CompilerServices.AsyncIteratorMethodBuilder.MoveNext");
            if begins(&BUILDERS) && is_start && !rest.contains("StateMachineBox") {
                return Self::Starts;
            }
            if RESUMES.iter().any(|part| rest.contains(part)) {
                return Self::Resumes;
            }
            if begins(&CONTINUES)
                || rest.starts_with("Threading.Tasks.Task`1") && rest.contains("].TrySetResult(")
            {
                return Self::Continues;
            }
            if rest.starts_with("Threading.Thread.StartCallback(") {
                return Self::ThreadStart;
            }
        }
        if StateMachine::of_method(method).is_some() {
            Self::Body
        } else if SchedulerFrame::is_async_plumbing(module, method) {
            Self::Plumbing
        } else {
            Self::Ordinary
        }
    }
}

/// A stack without the frames that run `async` methods.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AwaitStack<F> {
    /// The frames, root first.
    pub(crate) frames: Vec<F>,
    /// True if the root is a body that continues after an `await`: the methods that await it are its callers,
    /// and are not on the stack.
    pub(crate) is_continued: bool,
}

impl<F: Copy> AwaitStack<F> {
    /// Folds a stack, which is leaf first. `method` returns the name of a frame without module and line.
    ///
    /// - The stack begins with the last body that continues after an `await`: its callers only completed the
    ///   awaited operation, and ran it.
    /// - A method that starts its own body is one frame with it: the body.
    /// - Plumbing is left out up to the last frame of the program. What follows stays: the weight of a stack
    ///   stays that of the same method.
    pub(crate) fn fold<'n>(stack: &[(F, AwaitFrame)], method: impl Fn(F) -> &'n str) -> Self {
        let is_of_program = |role| matches!(role, AwaitFrame::Body | AwaitFrame::Ordinary);
        let continued = stack.iter().enumerate().position(|(at, (_, role))| match runner(stack, at) {
            Some(AwaitFrame::Continues) => *role == AwaitFrame::Body,
            Some(AwaitFrame::Resumes) => is_of_program(*role),
            _ => false,
        });
        let stack = continued.and_then(|at| stack.get(..=at)).unwrap_or(stack);
        let own = stack.iter().position(|(_, role)| is_of_program(*role));
        let own = own.unwrap_or(stack.len());
        let mut frames = Vec::new();
        // The body that the next caller may have started.
        let mut body = None;
        let mut callee = AwaitFrame::Ordinary;
        for (at, (frame, role)) in stack.iter().enumerate() {
            let is_kept = match role {
                _ if at < own => true,
                AwaitFrame::Starts | AwaitFrame::Continues | AwaitFrame::Resumes | AwaitFrame::Plumbing => {
                    false
                }
                AwaitFrame::ThreadStart => {
                    !matches!(callee, AwaitFrame::Plumbing | AwaitFrame::Continues | AwaitFrame::Resumes)
                }
                AwaitFrame::Unnamed => body.is_none(),
                AwaitFrame::Body | AwaitFrame::Ordinary => {
                    let enters = |body| StateMachine::of_method(method(body));
                    let is_entry =
                        body.and_then(enters).is_some_and(|body| body.is_entered_by(method(*frame)));
                    body = (*role == AwaitFrame::Body).then_some(*frame);
                    !is_entry
                }
            };
            callee = *role;
            if is_kept {
                frames.push(*frame);
            }
        }
        frames.reverse();
        Self { frames, is_continued: continued.is_some() }
    }
}

/// The role of the caller of a frame, apart from stubs.
fn runner<F>(stack: &[(F, AwaitFrame)], at: usize) -> Option<AwaitFrame> {
    let callers = stack.get(at.checked_add(1)?..)?;
    callers.iter().map(|(_, role)| *role).find(|role| *role != AwaitFrame::Unnamed)
}

#[cfg(test)]
mod tests;
