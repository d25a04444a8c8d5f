//! Settings of a profile.

use crate::profile::metric::Metric;
use crate::profile::pattern::Pattern;
use crate::profile::selection::Selection;
use crate::profile::stack_filter::StackFilter;

/// Settings of a profile.
///
/// ```
/// use nettrace_export::{Metric, Options};
///
/// let mut options = Options::new(Metric::Alloc).with_tracks(false);
/// options.selection.threads = vec![4711];
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The metric; `None` for what a recording shows best: [`Metric::Cpu`] if it has the kernel's samples of
    /// running threads, else [`Metric::Wall`]. Every view of a recording follows this rule.
    pub metric: Option<Metric>,
    /// True if it is wanted when things happened: [`Thread::track`](crate::Thread::track).
    pub tracks: bool,
    /// True if samples of [`Metric::Wall`] end in a frame that names the [kind](crate::pseudo_frames) of
    /// time.
    pub kinds: bool,
    /// True if [`Metric::Wall`] has the time in which threads waited for work, as dotnet-trace has it.
    /// Without it, the rest distinguishes blocked threads from working ones:
    /// [`ThreadState`](clr_events::ThreadState). Time in which the sampler did not find a thread is idle,
    /// too, with [`Metric::Cpu`] as well: the thread was without managed frames.
    pub idle: bool,
    /// True if stacks of threads that waited for work are kept where [idle](Self::idle) time is left out.
    /// Only their [state](crate::StackTotal::state) distinguishes them then, and
    /// [`Profile::total`](crate::Profile::total) has their time.
    pub idle_stacks: bool,
    /// True if [`Metric::Wall`] has the time in which threads were blocked in the midst of work, where
    /// [idle](Self::idle) time is left out.
    pub blocked: bool,
    /// True if pauses of the garbage collector are a [frame of their own](crate::pseudo_frames::GC_PAUSE) in
    /// thread time, where [idle](Self::idle) time is left out. The thread that stops all others works in it,
    /// the others are blocked. Without, a pause is charged to the methods that it interrupted.
    pub gc_pauses: bool,
    /// Methods that wait for work, in addition to the [known ones](clr_events::WaitFrame).
    pub waits_for_work: Vec<Pattern>,
    /// True if waits of [`Metric::Contention`] end in a frame for the lock: `lock 0x1234`, with the number
    /// or, before .NET 8, with 0.
    pub locks: bool,
    /// Methods that are the [user's code](crate::Frames::is_user_code); empty for all but the
    /// [framework's](clr_events::code::is_framework).
    pub user_code: Vec<Pattern>,
    /// The part of the recording that is looked at.
    pub selection: Selection,
    /// The filter of stacks.
    pub filter: StackFilter,
    /// The causes and requests that stacks are shown below.
    pub grouping: CausalGrouping,
    /// True if frames are lines of methods, where these are known:
    /// [`ProfileBuilder::finish_with_lines`](crate::ProfileBuilder::finish_with_lines).
    pub lines: bool,
    /// The form of the names of methods and types.
    pub names: NameForm,
    /// In which order the events will be shown.
    pub order: Order,
}

/// Grouping of stacks under their causes, as frames above them. Requires [`Order::Time`].
///
/// ```
/// use nettrace_export::{CausalGrouping, Metric, Options};
///
/// // Below the request that work was done for, with the callers of async methods.
/// let grouping = CausalGrouping::NONE.with_requests(true).with_awaits(true);
/// let options = Options::new(Metric::Wall).with_grouping(grouping);
/// assert!(options.grouping.any());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CausalGrouping {
    /// Work of a task is below the stack that created the task, and that stack below the creator of its own
    /// task. Loops of tasks that create each other are shown once, and no more than 32 creators above each
    /// other.
    ///
    /// The frame [`STARTING_TASK`](crate::pseudo_frames::STARTING_TASK) lies between them. Frames of the
    /// scheduler are left out.
    pub tasks: bool,
    /// Everything is below the request that it was done for: the activity that an EventSource had started,
    /// with the text of its event, below the enclosing activity; or below
    /// [`NO_REQUEST`](crate::pseudo_frames::NO_REQUEST).
    pub requests: bool,
    /// Stacks show the calls as written, as `await` joins them.
    ///
    /// - A stack begins with the last `async` method on it that continues after an `await`: its callers there
    ///   only completed the awaited operation. Below it are the methods that await it, if events of tasks
    ///   were recorded (`TplEventSource`, keywords 0x28 or 0x3): methods on the stack when it first awaited,
    ///   or when it last did. From .NET 11 on the runtime's asynchronous profiler has them
    ///   (`AsyncProfilerEventSource`): its events are used where a recording is opened twice, as
    ///   [`ProfileReader::read_file`](crate::ProfileReader::read_file) and [`profile`](fn@crate::profile) do,
    ///   unless work is grouped by tasks or requests as well.
    /// - An `async` method is one frame with the method that starts it. Frames of the builders, the tasks and
    ///   the thread pool are left out before the last frame of the program. The leaf of a stack stays.
    /// - Work of a task is below the stack that created it, as with [`tasks`](Self::tasks).
    pub awaits: bool,
}

impl CausalGrouping {
    /// No grouping.
    pub const NONE: Self = Self { tasks: false, requests: false, awaits: false };

    /// With or without grouping by [`tasks`](Self::tasks).
    #[must_use]
    pub const fn with_tasks(self, tasks: bool) -> Self {
        Self { tasks, ..self }
    }

    /// With or without grouping by [`requests`](Self::requests).
    #[must_use]
    pub const fn with_requests(self, requests: bool) -> Self {
        Self { requests, ..self }
    }

    /// With or without stacks as [`awaits`](Self::awaits) have them.
    #[must_use]
    pub const fn with_awaits(self, awaits: bool) -> Self {
        Self { awaits, ..self }
    }

    /// Returns true if anything is grouped.
    pub const fn any(self) -> bool {
        self.tasks || self.requests || self.awaits
    }
}

/// A form of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameForm {
    /// As the runtime and TraceEvent write them:
    /// ``System.Private.CoreLib!System.Collections.Generic.List`1[System.__Canon].AddWithResize(!0)``.
    #[default]
    Full,
    /// As [C# writes them](clr_events::csharp):
    /// `System.Private.CoreLib!System.Collections.Generic.List<__Canon>.AddWithResize(__Canon)`. Different
    /// methods have different names.
    CSharp,
}

/// An order of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// As they happened: [`Events::in_time_order`](nettrace::Events::in_time_order).
    Time,
    /// The order of the recording, which is read twice as fast. It is nearly always enough; otherwise
    /// [`ProfileBuilder::finish`](crate::ProfileBuilder::finish) returns an error.
    File,
}

/// The order of the file leaves something open: the recording has to be read in time order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsTimeOrder;

impl std::fmt::Display for NeedsTimeOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the order of the file leaves something open: the recording has to be read in time order")
    }
}

impl std::error::Error for NeedsTimeOrder {}

impl Options {
    /// All of a recording, with tracks.
    pub fn new(metric: Metric) -> Self {
        Self { metric: Some(metric), ..Self::default() }
    }

    /// With this [`tracks`](Self::tracks).
    #[must_use]
    pub fn with_tracks(self, tracks: bool) -> Self {
        Self { tracks, ..self }
    }

    /// With this [`kinds`](Self::kinds).
    #[must_use]
    pub fn with_kinds(self, kinds: bool) -> Self {
        Self { kinds, ..self }
    }

    /// With or without [`idle`](Self::idle) time.
    #[must_use]
    pub fn with_idle(self, idle: bool) -> Self {
        Self { idle, ..self }
    }

    /// Returns true if the metric is time of threads, which the kernel's account of them corrects.
    pub(super) fn is_of_time(&self) -> bool {
        self.metric.is_none_or(|metric| matches!(metric, Metric::Wall | Metric::Cpu))
    }

    /// With or without [`idle_stacks`](Self::idle_stacks).
    #[must_use]
    pub fn with_idle_stacks(self, idle_stacks: bool) -> Self {
        Self { idle_stacks, ..self }
    }

    /// With or without [`blocked`](Self::blocked) time.
    #[must_use]
    pub fn with_blocked(self, blocked: bool) -> Self {
        Self { blocked, ..self }
    }

    /// With or without frames for [`gc_pauses`](Self::gc_pauses).
    #[must_use]
    pub fn with_gc_pauses(self, gc_pauses: bool) -> Self {
        Self { gc_pauses, ..self }
    }

    /// With these [`waits_for_work`](Self::waits_for_work).
    #[must_use]
    pub fn with_waits_for_work(self, waits_for_work: Vec<Pattern>) -> Self {
        Self { waits_for_work, ..self }
    }

    /// With or without frames for [`locks`](Self::locks).
    #[must_use]
    pub fn with_locks(self, locks: bool) -> Self {
        Self { locks, ..self }
    }

    /// With this [`user_code`](Self::user_code).
    #[must_use]
    pub fn with_user_code(self, user_code: Vec<Pattern>) -> Self {
        Self { user_code, ..self }
    }

    /// With this [`selection`](Self::selection).
    #[must_use]
    pub fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// With this [`filter`](Self::filter).
    #[must_use]
    pub fn with_filter(self, filter: StackFilter) -> Self {
        Self { filter, ..self }
    }

    /// With this [`grouping`](Self::grouping).
    #[must_use]
    pub fn with_grouping(self, grouping: CausalGrouping) -> Self {
        Self { grouping, ..self }
    }

    /// With this [`lines`](Self::lines).
    #[must_use]
    pub fn with_lines(self, lines: bool) -> Self {
        Self { lines, ..self }
    }

    /// With this form of [`names`](Self::names).
    #[must_use]
    pub fn with_names(self, names: NameForm) -> Self {
        Self { names, ..self }
    }

    /// With this [`order`](Self::order).
    #[must_use]
    pub fn with_order(self, order: Order) -> Self {
        Self { order, ..self }
    }
}

impl Options {
    /// Returns true if pauses are cut out of samples.
    pub(crate) fn cuts_gc_pauses(&self) -> bool {
        self.gc_pauses && !self.idle && matches!(self.metric, Some(Metric::Wall | Metric::Cpu))
    }

    /// Returns true if events of the asynchronous profiler are collected: in a first reading, for the second
    /// one.
    pub(crate) fn collects_async_callers(&self) -> bool {
        self.grouping.awaits && self.order == Order::File
    }
}

impl Default for Options {
    /// CPU time or thread time of all of a recording, idle or not, with tracks and full names.
    fn default() -> Self {
        Self {
            metric: None,
            tracks: true,
            kinds: true,
            idle: true,
            idle_stacks: false,
            blocked: true,
            gc_pauses: true,
            waits_for_work: Vec::new(),
            locks: false,
            user_code: Vec::new(),
            selection: Selection::default(),
            filter: StackFilter::default(),
            grouping: CausalGrouping::default(),
            lines: false,
            names: NameForm::Full,
            order: Order::Time,
        }
    }
}
