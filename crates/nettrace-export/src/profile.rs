//! Weighted stacks of the threads of a recording: the source of every format.

mod address_stacks;
mod async_callers;
pub(crate) mod await_stack;
pub(crate) mod builder;
pub(crate) mod causality;
pub(crate) mod frame;
pub(crate) mod frame_kind;
pub(crate) mod index;
pub(crate) mod kernel_times;
pub(crate) mod kernel_wait;
pub(crate) mod lines;
pub(crate) mod liveness;
pub(crate) mod measure;
pub(crate) mod metric;
pub(crate) mod metrics;
pub(crate) mod options;
pub(crate) mod pattern;
pub mod pseudo_frames;
pub(crate) mod read;
#[cfg(feature = "report")]
pub(crate) mod request_stacks;
mod scheduler_frame;
pub(crate) mod selection;
pub(crate) mod stack_filter;
pub(crate) mod stack_profile_builder;
mod stack_totals;
mod sum;
mod symbolize;
pub(crate) mod track;

use std::time::Duration;

use clr_events::{StackId, StackTree, ThreadRole, ThreadState};

use crate::profile::frame::{FrameId, Frames};
use crate::profile::index::{ProcessIndex, ThreadIndex, TotalIndex};
use crate::profile::measure::Measure;
use crate::profile::metric::Metric;
use crate::profile::track::Track;

pub use sum::ProfileSum;

/// A process of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Process id.
    pub id: u64,
    /// Name of the program, if the recording has it.
    pub name: Option<String>,
    /// The path of its control group, in recordings of many processes.
    pub control_group: Option<String>,
    /// The id of its container, if it is in one.
    pub container: Option<String>,
    /// The frame of the process, as dotnet-trace writes it: `Process64 NAME (ID) Args: ARGUMENTS`.
    pub frame: String,
}

/// A thread of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Thread {
    /// The thread's process.
    pub process: ProcessIndex,
    /// Thread id.
    pub id: u64,
    /// Thread name, if the recording or the kernel's account of threads has it.
    pub name: Option<String>,
    /// Role in the runtime, if events report it.
    pub role: Option<ThreadRole>,
    /// The pseudo-frame of the thread: `Thread (ID)`, followed by its name or by its role in the runtime.
    pub frame: String,
    /// The thread's samples in the order of time; `None` where only [`Profile::stack_totals`] were wanted.
    pub track: Option<Track>,
}

/// A stack that some thread had, and the total weight of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackTotal {
    /// The thread.
    pub thread: ThreadIndex,
    /// The stack; `None` if it is not to be shown.
    pub stack: Option<StackId>,
    /// The state of the thread; [`ThreadState::Working`] where that was not [asked](crate::Options::idle), or
    /// is unknown.
    pub state: ThreadState,
    /// The sum of its samples' weights.
    pub weight: u64,
    /// The number of its samples.
    pub samples: u64,
}

impl StackTotal {
    /// The total of a stack of a thread that worked.
    pub const fn new(thread: ThreadIndex, stack: Option<StackId>, weight: u64, samples: u64) -> Self {
        Self { thread, stack, state: ThreadState::Working, weight, samples }
    }
}

/// Weighted stacks: [`ProfileBuilder`](crate::ProfileBuilder) builds them from a recording,
/// [`StackProfileBuilder`](crate::StackProfileBuilder) from a program's own samples.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// for total in &profile.stack_totals {
///     if let Some(stack) = total.stack {
///         println!("{} {:?}", total.weight, profile.names(stack));
///     }
/// }
/// assert_eq!((profile.total(), profile.samples(), profile.threads.len()), (7_500_000, 2, 1));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Profile {
    /// The metric.
    pub metric: Metric,
    /// The name and unit of the weights.
    pub measure: Measure,
    /// The beginning of the recording, in milliseconds since 1970-01-01T00:00:00Z; `None` if it does not say.
    pub start_unix_ms: Option<i64>,
    /// The duration of the recording up to its last event, of the selected range of it, or of the interval of
    /// a live session.
    pub duration: Duration,
    /// The names of frames.
    pub frames: Frames,
    /// The stacks. They have the frames of methods and of the subjects of samples, not of processes and
    /// threads.
    pub stacks: StackTree<FrameId>,
    /// The processes.
    pub processes: Vec<Process>,
    /// The threads, in the order of their first sample.
    pub threads: Vec<Thread>,
    /// The stacks of each thread, with their weights.
    pub stack_totals: Vec<StackTotal>,
    /// A lower bound of the bytes of the recording: it bounds [the output](crate::most_output).
    pub recorded_bytes: u64,
}

impl Profile {
    /// The process of a thread.
    pub fn process_of(&self, thread: &Thread) -> Option<&Process> {
        self.processes.get(thread.process.index())
    }

    /// Returns a total and its shown stack; `None` if the stack is hidden.
    pub fn shown(&self, total: TotalIndex) -> Option<(&StackTotal, StackId)> {
        let total = self.stack_totals.get(total.index())?;
        Some((total, total.stack?))
    }

    /// Returns the weight of everything shown. Saturates, as all sums of weights do: recordings may claim any
    /// weight.
    pub fn total(&self) -> u64 {
        let shown = self.stack_totals.iter().filter(|total| total.stack.is_some());
        shown.map(|total| total.weight).fold(0, u64::saturating_add)
    }

    /// Returns the number of samples shown.
    pub fn samples(&self) -> u64 {
        let shown = self.stack_totals.iter().filter(|total| total.stack.is_some());
        shown.map(|total| total.samples).fold(0, u64::saturating_add)
    }

    /// Leaves out the stacks of threads that waited for work: the profile is then as without [their
    /// stacks](crate::Options::idle_stacks).
    pub fn leave_out_idle(&mut self) {
        for total in &mut self.stack_totals {
            total.stack = total.stack.filter(|_| total.state != ThreadState::Idle);
        }
    }

    /// Returns the weight of threads that waited for work, where it is [left out](crate::Options::idle).
    pub fn idle(&self) -> u64 {
        self.weight_where(|total| total.state == ThreadState::Idle)
    }

    /// Returns the shown weight of threads that waited in the midst of work, or for a processor, where [idle
    /// time](crate::Options::idle) is left out.
    pub fn blocked(&self) -> u64 {
        self.weight_where(|total| total.state.is_held_up() && total.stack.is_some())
    }

    /// Returns the part of [`blocked`](Self::blocked) in which threads were ready to run, but not on a
    /// processor, by the kernel's samples.
    pub fn ready(&self) -> u64 {
        self.weight_where(|total| total.state == ThreadState::Ready && total.stack.is_some())
    }

    /// Returns the weight of threads that waited in the midst of work, where it is [left
    /// out](crate::Options::blocked).
    pub fn blocked_left_out(&self) -> u64 {
        self.weight_where(|total| total.state.is_held_up() && total.stack.is_none())
    }

    fn weight_where(&self, is_counted: impl Fn(&StackTotal) -> bool) -> u64 {
        let totals = self.stack_totals.iter().filter(|total| is_counted(total));
        totals.map(|total| total.weight).fold(0, u64::saturating_add)
    }

    /// Returns the exclusive weight of each stack over all threads, by [`StackId::index`].
    ///
    /// ```
    /// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
    /// # let measure = Measure::new("query time", "queries", Unit::Nanoseconds);
    /// # let mut builder = StackProfileBuilder::new(measure);
    /// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
    /// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
    /// # }
    /// # let profile = builder.finish();
    /// let weights = profile.exclusive();
    /// for total in &profile.stack_totals {
    ///     let stack = total.stack.ok_or("a stack that is shown")?;
    ///     assert_eq!(weights[stack.index()], total.weight);
    /// }
    /// # Ok::<(), &str>(())
    /// ```
    pub fn exclusive(&self) -> Vec<u64> {
        self.exclusive_where(|_| true)
    }

    /// The same of some of the totals.
    pub(crate) fn exclusive_where(&self, is_counted: impl Fn(&StackTotal) -> bool) -> Vec<u64> {
        let mut weights = vec![0u64; self.stacks.len() + 1];
        for total in self.stack_totals.iter().filter(|total| is_counted(total)) {
            if let Some(weight) = total.stack.and_then(|stack| weights.get_mut(stack.index())) {
                *weight = weight.saturating_add(total.weight);
            }
        }
        weights
    }

    /// A stack and all that called it, leaf first, each with its leaf; without the empty one.
    pub fn path(&self, stack: StackId) -> impl Iterator<Item = (StackId, FrameId)> {
        let mut at = stack;
        std::iter::from_fn(move || {
            let frame = self.stacks.leaf(at)?;
            let caller = self.stacks.caller(at)?;
            Some((std::mem::replace(&mut at, caller), frame))
        })
    }

    /// The name of a stack's leaf; empty for the empty stack.
    pub fn leaf_name(&self, stack: StackId) -> &str {
        self.stacks.leaf(stack).map_or("", |frame| self.frames.name(frame))
    }

    /// The frames of a stack, root first, as text.
    ///
    /// ```
    /// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
    /// # let measure = Measure::new("query time", "queries", Unit::Nanoseconds);
    /// # let mut builder = StackProfileBuilder::new(measure);
    /// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
    /// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
    /// # }
    /// # let profile = builder.finish();
    /// let stack = profile.stack_totals[1].stack.ok_or("a stack that is shown")?;
    /// assert_eq!(profile.names(stack), ["Shop!Program.Main()", "Shop!Cart.Pay()"]);
    /// assert_eq!(profile.leaf_name(stack), "Shop!Cart.Pay()");
    /// # Ok::<(), &str>(())
    /// ```
    pub fn names(&self, stack: StackId) -> Vec<&str> {
        let mut names: Vec<_> = self.stacks.frames(stack).map(|frame| self.frames.name(frame)).collect();
        names.reverse();
        names
    }

    /// The frames of a stack, root first.
    pub(crate) fn frames_of(&self, stack: StackId, into: &mut Vec<FrameId>) {
        into.clear();
        into.extend(self.stacks.frames(stack));
        into.reverse();
    }
}
