//! Task and request events, as steps of their threads' work.

use clr_events::ids::{event_pipe, framework, runtime, tasks};
use clr_events::{Provider, kind_opcode};
use nettrace::{Event, Metadata, MetadataMap};

/// The EventSource of log records, which has the statuses and routes of requests.
pub const LOGGING_PROVIDER: &str = "Microsoft-Extensions-Logging";

/// The id of a piece of pending work, in the numbering of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkId {
    /// A task, or the continuation after an `await`.
    Task(u32),
    /// An `await` of a task.
    Wait(u32),
    /// An item of the thread pool's queue.
    Item(u64),
    /// A transfer between threads, or a timer.
    Transfer(u64),
}

/// The step that an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The thread schedules work.
    Create(WorkId),
    /// The thread begins that work.
    Start(WorkId),
    /// The thread has taken that work from a queue, while otherwise idle.
    Dequeue(WorkId),
    /// The thread has completed that work.
    Stop(WorkId),
    /// The thread continues after a wait that it, or another thread, began.
    Resume(WorkId),
    /// The thread begins work that ends at the matching [`Step::Leave`].
    Enter,
    /// The thread has completed the work that began at [`Step::Enter`] or [`Step::EnterOperation`].
    Leave,
    /// The thread begins an asynchronous operation.
    OperationStart(u32),
    /// The thread continues that operation, up to the matching [`Step::Leave`].
    EnterOperation(u32),
    /// The operation has ended.
    OperationStop(u32),
    /// The thread is idle.
    Rest,
    /// An EventSource starts an activity.
    RequestStart,
    /// An EventSource stops an activity.
    RequestStop,
    /// No step.
    Nothing,
}

impl Step {
    /// Returns true if the event is about the scheduler itself, not about work that it runs.
    pub const fn is_of_scheduler(self) -> bool {
        matches!(
            self,
            Self::Start(_)
                | Self::Dequeue(_)
                | Self::Stop(_)
                | Self::Resume(_)
                | Self::Enter
                | Self::Leave
                | Self::EnterOperation(_)
                | Self::OperationStop(_)
                | Self::Rest
        )
    }
}

/// The step that a kind of event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An event of the class library's tasks, by event id.
    Tasks(u32),
    /// Events with an item's or a transfer's number: a pointer, or always 8 bytes.
    Number(Numbered, bool),
    Plain(Step),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbered {
    Enqueue,
    Dequeue,
    Send,
    Receive,
}

/// Returns true if a provider's events are about the scheduler and other infrastructure, and never about
/// requests.
#[cfg(feature = "spans")]
pub(crate) fn is_scheduler_provider(provider: &str) -> bool {
    matches!(provider, tasks::PROVIDER | event_pipe::PROVIDER) || FRAMEWORK.contains(&provider)
}

/// Returns true if a kind of event begins or ends an operation that surrounds requests, or is within all of
/// them, and is not a request itself: the host, a connection, the wait for one, a scope of the logging
/// library.
pub(crate) fn is_surrounding(metadata: &Metadata) -> bool {
    match metadata.provider() {
        "Microsoft.AspNetCore.Hosting" | "Microsoft-AspNetCore-Server-Kestrel" => {
            matches!(metadata.event_id(), 1 | 2)
        }
        "System.Net.Sockets" => matches!(metadata.event_id(), 4 | 5),
        LOGGING_PROVIDER => true,
        _ => false,
    }
}

/// Returns true if a kind of event shows when a thread begins or ends a piece of work.
pub fn is_of_work(metadata: &Metadata) -> bool {
    !matches!(Kind::new(metadata), Kind::Plain(Step::Nothing | Step::RequestStart | Step::RequestStop))
}

/// Returns true if a kind of event may report a step.
#[cfg(feature = "spans")]
pub(crate) fn has_step(metadata: &Metadata) -> bool {
    !matches!(Kind::new(metadata), Kind::Plain(Step::Nothing))
}

/// Returns true if a kind of event shows the current activity of its thread.
pub fn has_activity(metadata: &Metadata) -> bool {
    match Provider::of(metadata) {
        Some(provider) => provider == Provider::Runtime,
        // The other events of tasks are written outside of the task that they are about.
        None => !matches!(metadata.provider(), tasks::PROVIDER | event_pipe::PROVIDER | "Universal.Events"),
    }
}

/// Providers of [`framework`]'s events: recordings may have the short name.
const FRAMEWORK: [&str; 2] = [framework::PROVIDER, "FrameworkEventSource"];

impl Kind {
    /// # Source
    /// `TplEventSource.cs` and `FrameworkEventSource.cs` of dotnet/runtime; ThreadPool events of the
    /// runtime's manifest.
    fn new(metadata: &Metadata) -> Self {
        let id = metadata.event_id();
        match Provider::of(metadata) {
            Some(Provider::Runtime) => match id {
                runtime::THREAD_POOL_WORKER_THREAD_START | runtime::THREAD_POOL_WORKER_THREAD_WAIT => {
                    Self::Plain(Step::Rest)
                }
                runtime::THREAD_POOL_ENQUEUE => Self::Number(Numbered::Enqueue, false),
                runtime::THREAD_POOL_DEQUEUE => Self::Number(Numbered::Dequeue, false),
                runtime::THREAD_POOL_IO_ENQUEUE | runtime::THREAD_POOL_IO_PACK => {
                    Self::Number(Numbered::Send, false)
                }
                runtime::THREAD_POOL_IO_DEQUEUE => Self::Number(Numbered::Receive, false),
                _ => Self::Plain(Step::Nothing),
            },
            Some(_) => Self::Plain(Step::Nothing),
            None => match (metadata.provider(), id, kind_opcode(metadata)) {
                (tasks::PROVIDER, tasks::TRACE_SYNCHRONOUS_WORK_STOP, _) => Self::Plain(Step::Leave),
                (
                    tasks::PROVIDER,
                    tasks::TRACE_OPERATION_START
                    | tasks::TRACE_OPERATION_STOP
                    | tasks::TRACE_SYNCHRONOUS_WORK_START
                    | tasks::TASK_SCHEDULED
                    | tasks::TASK_STARTED
                    | tasks::TASK_COMPLETED
                    | tasks::TASK_WAIT_BEGIN
                    | tasks::TASK_WAIT_END
                    | tasks::AWAIT_TASK_CONTINUATION_SCHEDULED
                    | tasks::TASK_WAIT_CONTINUATION_COMPLETE
                    | tasks::TASK_WAIT_CONTINUATION_STARTED,
                    _,
                ) => Self::Tasks(id),
                (tasks::PROVIDER, ..) => Self::Plain(Step::Nothing),
                (provider, _, opcode) if FRAMEWORK.contains(&provider) => match id {
                    framework::THREAD_POOL_ENQUEUE_WORK => Self::Number(Numbered::Enqueue, true),
                    framework::THREAD_POOL_DEQUEUE_WORK => Self::Number(Numbered::Dequeue, true),
                    framework::THREAD_TRANSFER_SEND => Self::Number(Numbered::Send, true),
                    framework::THREAD_TRANSFER_RECEIVE => Self::Number(Numbered::Receive, true),
                    _ => Self::activity(opcode),
                },
                _ if is_surrounding(metadata) => Self::Plain(Step::Nothing),
                (_, _, opcode) => Self::activity(opcode),
            },
        }
    }

    /// The step of an event that may begin or end an activity, by opcode.
    const fn activity(opcode: Option<u8>) -> Self {
        Self::Plain(match opcode {
            Some(1) => Step::RequestStart,
            Some(2) => Step::RequestStop,
            _ => Step::Nothing,
        })
    }

    fn step(self, event: &Event<'_>) -> Option<Step> {
        Some(match self {
            Self::Plain(step) => step,
            Self::Tasks(id) => match id {
                tasks::TASK_SCHEDULED | tasks::AWAIT_TASK_CONTINUATION_SCHEDULED => {
                    Step::Create(WorkId::Task(word(event, 2)?))
                }
                tasks::TASK_STARTED => Step::Start(WorkId::Task(word(event, 2)?)),
                tasks::TASK_COMPLETED => Step::Stop(WorkId::Task(word(event, 2)?)),
                // A wait that blocks the thread is not a step.
                tasks::TASK_WAIT_BEGIN if word(event, 3)? == 1 => Step::Nothing,
                tasks::TASK_WAIT_BEGIN => Step::Create(WorkId::Wait(word(event, 2)?)),
                tasks::TASK_WAIT_END => Step::Resume(WorkId::Wait(word(event, 2)?)),
                tasks::TASK_WAIT_CONTINUATION_COMPLETE => Step::Stop(WorkId::Task(word(event, 0)?)),
                tasks::TASK_WAIT_CONTINUATION_STARTED => Step::Start(WorkId::Task(word(event, 0)?)),
                tasks::TRACE_OPERATION_START => Step::OperationStart(word(event, 0)?),
                tasks::TRACE_OPERATION_STOP => Step::OperationStop(word(event, 0)?),
                // The other kinds of work only notify that the operation has ended.
                tasks::TRACE_SYNCHRONOUS_WORK_START if word(event, 1) == Some(EXECUTION) => {
                    Step::EnterOperation(word(event, 0)?)
                }
                tasks::TRACE_SYNCHRONOUS_WORK_START => Step::Enter,
                _ => Step::Nothing,
            },
            Self::Number(numbered, is_wide) => {
                let number = number(event, is_wide || event.pointer_size() == 8)?;
                match numbered {
                    Numbered::Enqueue => Step::Create(WorkId::Item(number)),
                    Numbered::Dequeue => Step::Dequeue(WorkId::Item(number)),
                    Numbered::Send => Step::Create(WorkId::Transfer(number)),
                    Numbered::Receive => Step::Dequeue(WorkId::Transfer(number)),
                }
            }
        })
    }
}

/// Synchronous work that continues its operation: `CausalitySynchronousWork.Execution`.
const EXECUTION: u32 = 2;

fn word(event: &Event<'_>, index: usize) -> Option<u32> {
    let bytes = event.payload().get(index.checked_mul(4)?..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn number(event: &Event<'_>, is_wide: bool) -> Option<u64> {
    if is_wide {
        event.payload().first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    } else {
        word(event, 0).map(u64::from)
    }
}

/// The steps of kinds of events.
///
/// ```no_run
/// use clr_activity::{Step, Steps};
///
/// let (mut steps, mut scheduled) = (Steps::default(), 0);
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// events.for_each(|event| scheduled += u64::from(matches!(steps.of(&event), Step::Create(_))))?;
/// println!("{scheduled} pieces of work");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Steps(MetadataMap<Kind>);

impl Steps {
    /// Returns the step that an event reports.
    pub fn of(&mut self, event: &Event<'_>) -> Step {
        let kind = self.0.get_or_insert_with(event.metadata_index(), || Kind::new(event.metadata()));
        kind.step(event).unwrap_or(Step::Nothing)
    }
}
