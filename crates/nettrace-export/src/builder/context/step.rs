//! Task and request events, as steps of their threads' work.

use clr_events::{Provider, kind_opcode};
use nettrace::{Event, Metadata};

use crate::builder::CausalGrouping;

/// Something that waits to be done, by whose numbers it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A task, or what goes on after an `await`.
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
pub(super) enum Step {
    /// The thread has something done later.
    Create(Key),
    /// It begins with that.
    Start(Key),
    /// It has taken that from a queue, with nothing else at hand.
    Dequeue(Key),
    /// It has done that.
    Stop(Key),
    /// It goes on behind what it, or somebody, began to wait for.
    Resume(Key),
    /// It begins with something that ends at the [`Step::Leave`] that belongs to it.
    Enter,
    Leave,
    /// It has nothing to do.
    Rest,
    RequestStart,
    RequestStop,
    Nothing,
}

impl Step {
    /// Whether the scheduler tells of itself, not somebody's work of its own.
    pub(super) const fn is_of_scheduler(self) -> bool {
        matches!(
            self,
            Self::Start(_)
                | Self::Dequeue(_)
                | Self::Stop(_)
                | Self::Resume(_)
                | Self::Enter
                | Self::Leave
                | Self::Rest
        )
    }
}

/// The step that a kind of event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    /// An event of the class library's tasks, by its number.
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

/// Whether what its thread works on may be learned from a kind of event.
pub(in crate::builder) fn tells_of_context(metadata: &Metadata, grouping: CausalGrouping) -> bool {
    match Kind::new(metadata) {
        Kind::Plain(Step::Nothing | Step::RequestStart | Step::RequestStop) => {
            grouping.requests && has_activity(metadata)
        }
        _ => grouping.any(),
    }
}

/// Whether a kind of event says which activity its thread is in.
fn has_activity(metadata: &Metadata) -> bool {
    match Provider::of(metadata) {
        Some(provider) => provider == Provider::Runtime,
        // The other events of tasks are told outside of the task that they are about.
        None => !matches!(metadata.provider(), TASKS | "Microsoft-DotNETCore-EventPipe" | "Universal.Events"),
    }
}

/// The provider that tells of tasks.
const TASKS: &str = "System.Threading.Tasks.TplEventSource";
const TRANSFERS: [&str; 2] = ["System.Diagnostics.Eventing.FrameworkEventSource", "FrameworkEventSource"];

impl Kind {
    /// # Source
    /// `TplEventSource.cs` and `FrameworkEventSource.cs` of dotnet/runtime; ThreadPool events of the runtime's manifest.
    fn new(metadata: &Metadata) -> Self {
        let id = metadata.event_id();
        match Provider::of(metadata) {
            Some(Provider::Runtime) => match id {
                50 | 57 => Self::Plain(Step::Rest),
                61 => Self::Number(Numbered::Enqueue, false),
                62 => Self::Number(Numbered::Dequeue, false),
                63 | 65 => Self::Number(Numbered::Send, false),
                64 => Self::Number(Numbered::Receive, false),
                _ => Self::Plain(Step::Nothing),
            },
            Some(_) => Self::Plain(Step::Nothing),
            None => match (metadata.provider(), id, kind_opcode(metadata)) {
                (TASKS, 17, _) => Self::Plain(Step::Enter),
                (TASKS, 18, _) => Self::Plain(Step::Leave),
                (TASKS, 7..=13 | 19, _) => Self::Tasks(id),
                (TASKS, ..) => Self::Plain(Step::Nothing),
                (provider, 30 | 31 | 150 | 151, _) if TRANSFERS.contains(&provider) => {
                    let numbered = match id {
                        30 => Numbered::Enqueue,
                        31 => Numbered::Dequeue,
                        150 => Numbered::Send,
                        _ => Numbered::Receive,
                    };
                    Self::Number(numbered, true)
                }
                (_, _, Some(1)) => Self::Plain(Step::RequestStart),
                (_, _, Some(2)) => Self::Plain(Step::RequestStop),
                _ => Self::Plain(Step::Nothing),
            },
        }
    }

    fn step(self, event: &Event<'_>) -> Option<Step> {
        Some(match self {
            Self::Unknown => Step::Nothing,
            Self::Plain(step) => step,
            Self::Tasks(id) => match id {
                7 | 12 => Step::Create(Key::Task(word(event, 2)?)),
                8 => Step::Start(Key::Task(word(event, 2)?)),
                9 => Step::Stop(Key::Task(word(event, 2)?)),
                // A wait that blocks the thread changes nothing.
                10 if word(event, 3)? == 1 => Step::Nothing,
                10 => Step::Create(Key::Wait(word(event, 2)?)),
                11 => Step::Resume(Key::Wait(word(event, 2)?)),
                13 => Step::Stop(Key::Task(word(event, 0)?)),
                19 => Step::Start(Key::Task(word(event, 0)?)),
                _ => Step::Nothing,
            },
            Self::Number(numbered, is_wide) => {
                let number = number(event, is_wide || event.pointer_size() == 8)?;
                match numbered {
                    Numbered::Enqueue => Step::Create(Key::Item(number)),
                    Numbered::Dequeue => Step::Dequeue(Key::Item(number)),
                    Numbered::Send => Step::Create(Key::Transfer(number)),
                    Numbered::Receive => Step::Dequeue(Key::Transfer(number)),
                }
            }
        })
    }
}

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

/// The steps of kinds of events, by their index in the recording's metadata.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<Kind>);

impl Steps {
    pub(super) fn of(&mut self, event: &Event<'_>) -> Step {
        let index = event.metadata_index();
        if self.0.len() <= index {
            // As many as the recording's own table has.
            self.0.resize(index.saturating_add(1), Kind::Unknown);
        }
        let Some(kind) = self.0.get_mut(index) else { return Step::Nothing };
        if *kind == Kind::Unknown {
            *kind = Kind::new(event.metadata());
        }
        kind.step(event).unwrap_or(Step::Nothing)
    }
}
