//! Metrics: the weights of events, a module each.

mod allocation;
#[cfg(feature = "report")]
pub(in crate::profile) mod call;
mod exception;
mod live_allocation;
mod native_allocation;
mod pause;
mod rounds;
mod thread_time;
mod wait;

use std::borrow::Cow;

use clr_events::{ClrEvent, KernelSampleKind, StackId};
use nettrace::{Event, RelativeTime, Ticks};

use crate::bounds::MAX_NAME_LENGTH;
use crate::profile::address_stacks::AddressStacks;
use crate::profile::causality::ContextId;
use crate::profile::frame::{FrameId, Frames};
use crate::profile::liveness::{Liveness, NativeLiveness};
use crate::profile::metric::Metric;
use crate::profile::pseudo_frames;
use allocation::Allocations;
#[cfg(feature = "report")]
use call::Calls;
use exception::Exceptions;
use live_allocation::LiveAllocations;
use native_allocation::NativeAllocations;
use pause::Pauses;
pub(in crate::profile) use thread_time::BY_KERNEL;
pub use thread_time::Samples;
use thread_time::{ThreadTime, TimeKind};
use wait::Waits;

/// A weighted sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// The number of its thread.
    pub(crate) thread: u32,
    /// The time, or the start of the interval.
    pub(crate) start: RelativeTime,
    pub(crate) weight: u64,
    /// The number of samples in it.
    pub(crate) samples: u64,
    /// The stack, of addresses.
    pub(crate) stack: StackId,
    /// The frame below the stack: see [`Sampler::leaf_name`].
    pub(crate) leaf: Option<FrameId>,
    /// The time at which the stack was taken.
    pub(crate) time: Ticks,
    /// The generation of its addresses: addresses mean the same in all samples of one.
    pub(crate) generation: u32,
    /// The cause and request of the work.
    pub(crate) context: ContextId,
    /// Priority among duplicate sources: only the highest counts.
    pub(crate) rank: u8,
    /// The time that decides whether all of it is in a part of the recording; `None` if the part has its
    /// share.
    pub(crate) taken_at: Option<RelativeTime>,
}

impl Sample {
    /// The end, where weights are time.
    pub(crate) const fn end(&self) -> RelativeTime {
        RelativeTime::from_nanos(self.start.as_nanos().saturating_add_unsigned(self.weight))
    }

    /// Splits off the part before `end`; `None` if it is empty. The number of samples goes with the first
    /// part.
    pub(crate) fn split_off_until(&mut self, end: RelativeTime) -> Option<Self> {
        let end = end.min(self.end());
        if end <= self.start {
            return None;
        }
        let part = Self { weight: end.as_nanos().abs_diff(self.start.as_nanos()), ..*self };
        *self = Self { start: end, weight: self.weight.saturating_sub(part.weight), samples: 0, ..*self };
        Some(part)
    }
}

/// The leaves of thread time in pauses of the garbage collector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PauseLeaves {
    absent: FrameId,
    unmanaged: FrameId,
    collects: FrameId,
    stopped: FrameId,
    stopped_unmanaged: FrameId,
}

impl PauseLeaves {
    /// Returns true if a thread with a sample with this leaf had managed frames: a pause interrupts only such
    /// threads.
    pub(crate) fn is_in_code(self, leaf: Option<FrameId>) -> bool {
        leaf != Some(self.absent)
    }

    /// The leaf of a pause in the time of a sample with the leaf `leaf`, of the collecting thread or a
    /// stopped one.
    pub(crate) fn of(self, leaf: Option<FrameId>, collects: bool) -> FrameId {
        match leaf {
            _ if collects => self.collects,
            leaf if leaf == Some(self.unmanaged) => self.stopped_unmanaged,
            _ => self.stopped,
        }
    }
}

/// A sample with a weight that is still unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingSample {
    pub(crate) start: RelativeTime,
    pub(crate) stack: StackId,
    pub(crate) leaf: Option<FrameId>,
    pub(crate) time: Ticks,
    pub(crate) generation: u32,
    pub(crate) context: ContextId,
}

impl PendingSample {
    /// Returns the sample that lasted until `end`.
    pub(crate) fn until(self, end: RelativeTime, thread: u32) -> Sample {
        let weight = if end > self.start { end.as_nanos().abs_diff(self.start.as_nanos()) } else { 0 };
        self.weighing(weight, thread)
    }

    /// Returns the sample with a weight.
    fn weighing(self, weight: u64, thread: u32) -> Sample {
        Sample {
            thread,
            start: self.start,
            weight,
            samples: 1,
            stack: self.stack,
            leaf: self.leaf,
            time: self.time,
            generation: self.generation,
            context: self.context,
            rank: 0,
            taken_at: None,
        }
    }
}

/// A wait that has not ended when the interval of a live session does.
#[derive(Debug)]
pub(crate) struct OpenWait {
    /// The number of its thread.
    pub(crate) thread: u32,
    pub(crate) stack: StackId,
    /// The name of the frame below the stack.
    leaf: Option<String>,
    sample: PendingSample,
}

/// An event with its thread and context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleEvent<'s, 'e> {
    pub(crate) event: &'s Event<'e>,
    /// The decoded event; `None` if it lacks a view, or is cut.
    pub(crate) view: Option<&'s ClrEvent<'e>>,
    pub(crate) thread: u32,
    /// The kind of the kernel's sample that the event is, if it is one.
    pub(crate) kernel_sample: Option<KernelSampleKind>,
    pub(crate) generation: u32,
    pub(crate) context: ContextId,
}

/// An event, with its thread, context and the tables of stacks.
pub(crate) struct SampleContext<'s, 'e> {
    pub(crate) event: &'s Event<'e>,
    /// The decoded event; `None` if it lacks a view, or is cut.
    pub(crate) view: Option<&'s ClrEvent<'e>>,
    pub(crate) thread: u32,
    pub(crate) generation: u32,
    pub(crate) context: ContextId,
    /// The kind of the kernel's sample that the event is, if it is one.
    pub(crate) kernel_sample: Option<KernelSampleKind>,
    pub(crate) addresses: &'s mut AddressStacks,
    pub(crate) leaves: &'s mut Leaves,
}

impl SampleContext<'_, '_> {
    /// Returns the event's time; one before the recording's start counts as the start.
    #[inline]
    pub(crate) fn now(&self) -> RelativeTime {
        self.event.relative_time().max(RelativeTime::START)
    }

    #[inline]
    pub(crate) fn pending(&mut self, leaf: Option<FrameId>) -> PendingSample {
        PendingSample {
            start: self.now(),
            stack: self.addresses.of(self.event),
            leaf,
            time: self.event.time(),
            generation: self.generation,
            context: self.context,
        }
    }

    /// Returns a sample of the nanoseconds before this event.
    pub(crate) fn before(&mut self, nanoseconds: u64, leaf: Option<FrameId>) -> Sample {
        let end = self.now();
        let start = RelativeTime::from_nanos(end.as_nanos().saturating_sub_unsigned(nanoseconds));
        let pending = PendingSample { start: start.max(RelativeTime::START), ..self.pending(leaf) };
        pending.weighing(nanoseconds, self.thread)
    }

    /// Returns a sample of this event, without a duration.
    pub(crate) fn point(&mut self, weight: u64, leaf: Option<FrameId>) -> Sample {
        self.pending(leaf).weighing(weight, self.thread)
    }
}

/// The names of leaf frames, mostly types. Those beyond [`MAX_NAMES`](Self::MAX_NAMES) share one.
#[derive(Debug, Default)]
pub(crate) struct Leaves(Frames);

impl Leaves {
    const MAX_NAMES: usize = 1 << 17;
    /// Maximum length of a name in bytes: with the mark of a cut name it is still short enough for a frame.
    const MAX_LEN: usize = MAX_NAME_LENGTH - '…'.len_utf8();

    pub(crate) fn intern(&mut self, name: &str) -> FrameId {
        self.0.intern_within(Self::MAX_NAMES, Self::MAX_LEN, name)
    }
}

/// The calculation of events' weights, by metric.
#[derive(Debug)]
pub(crate) struct Sampler {
    state: MetricState,
    leaves: Leaves,
}

/// The state of the calculation for a metric.
#[derive(Debug)]
enum MetricState {
    ThreadTime(ThreadTime),
    Allocations(Allocations),
    LiveAllocations(LiveAllocations),
    NativeAllocations(NativeAllocations),
    Exceptions(Exceptions),
    #[cfg(feature = "report")]
    Calls(Calls),
    Waits(Waits),
    Pauses(Pauses),
    /// No event is a sample.
    None,
}

impl Sampler {
    pub(crate) fn new(metric: Metric, prefers_cpu: bool, idle: bool) -> Self {
        let mut leaves = Leaves::default();
        let mut time = |kind| MetricState::ThreadTime(ThreadTime::new(kind, idle, &mut leaves));
        let state = match metric {
            Metric::Wall if prefers_cpu => time(TimeKind::CpuFirst),
            Metric::Wall | Metric::OffCpu => time(TimeKind::All),
            Metric::Cpu => time(TimeKind::Managed),
            Metric::Alloc => MetricState::Allocations(Allocations::default()),
            Metric::LiveAlloc => MetricState::LiveAllocations(LiveAllocations::default()),
            Metric::NativeAlloc => MetricState::NativeAllocations(NativeAllocations::default()),
            Metric::Contention | Metric::Wait => MetricState::Waits(Waits::default()),
            Metric::Exception => MetricState::Exceptions(Exceptions),
            #[cfg(feature = "report")]
            Metric::Call => MetricState::Calls(Calls),
            Metric::Gc => MetricState::Pauses(Pauses::default()),
            Metric::Other => MetricState::None,
        };
        Self { state, leaves }
    }

    /// Lets waits for locks end in a frame for the lock.
    pub(crate) fn show_locks(&mut self) {
        if let MetricState::Waits(waits) = &mut self.state {
            waits.show_locks();
        }
    }

    /// Returns the leaves of pauses.
    pub(crate) fn pause_leaves(&mut self) -> PauseLeaves {
        let mut intern = |name| self.leaves.intern(name);
        PauseLeaves {
            absent: intern(pseudo_frames::ABSENT),
            unmanaged: intern(pseudo_frames::UNMANAGED),
            collects: intern(pseudo_frames::GC_PAUSE),
            stopped: intern(pseudo_frames::STOPPED),
            stopped_unmanaged: intern(pseudo_frames::STOPPED_UNMANAGED),
        }
    }

    /// Returns the waits that have not ended, in the order of their threads.
    pub(crate) fn open_waits(&self) -> Vec<OpenWait> {
        let MetricState::Waits(waits) = &self.state else { return Vec::new() };
        let leaf = |sample: &PendingSample| Some(self.leaf_name(sample.leaf?).into_owned());
        let open = waits.open().map(|(thread, sample)| OpenWait {
            thread,
            stack: sample.stack,
            leaf: leaf(&sample),
            sample,
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable_by_key(|wait| wait.thread);
        open
    }

    /// Begins the next interval of a live session, in which `open` waits go on: with their threads and stacks
    /// as they are now.
    pub(crate) fn begin_interval(&mut self, start: RelativeTime, open: Vec<OpenWait>) {
        let MetricState::Waits(waits) = &mut self.state else { return };
        waits.begin(start);
        for OpenWait { thread, stack, leaf, sample } in open {
            let leaf = leaf.map(|leaf| self.leaves.intern(&leaf));
            let context = ContextId::default();
            waits.resume(thread, PendingSample { stack, leaf, context, ..sample });
        }
    }

    /// Adds an event of any thread that decides which allocations are in use; false for other events.
    #[inline]
    pub(crate) fn add_to_liveness(&mut self, event: &Event<'_>, view: Option<&ClrEvent<'_>>) -> bool {
        match (&mut self.state, view) {
            (MetricState::LiveAllocations(live), Some(view)) => live.add_collection(event, view),
            (MetricState::NativeAllocations(native), _) => native.add_end(event),
            _ => false,
        }
    }

    /// Adds an event of any thread, wanted or not, to the metrics that need all threads.
    #[inline]
    pub(crate) fn add_of_any_thread(&mut self, event: &Event<'_>, view: Option<&ClrEvent<'_>>, thread: u32) {
        if let MetricState::ThreadTime(time) = &mut self.state {
            time.add_to_rounds(event, view, thread);
        }
    }

    /// Adds an event and passes samples that it completes to `emit`.
    #[inline]
    pub(crate) fn add(
        &mut self,
        input: SampleEvent<'_, '_>,
        addresses: &mut AddressStacks,
        emit: impl FnMut(Sample),
    ) {
        let mut sample_context = SampleContext {
            event: input.event,
            view: input.view,
            thread: input.thread,
            generation: input.generation,
            context: input.context,
            kernel_sample: input.kernel_sample,
            addresses,
            leaves: &mut self.leaves,
        };
        match &mut self.state {
            MetricState::ThreadTime(time) => {
                time.add(&mut sample_context, emit);
            }
            MetricState::Allocations(allocations) => {
                allocations.add(&mut sample_context).into_iter().for_each(emit);
            }
            MetricState::LiveAllocations(live) => live.add(&mut sample_context),
            MetricState::NativeAllocations(native) => native.add(&mut sample_context),
            MetricState::Exceptions(exceptions) => {
                exceptions.add(&mut sample_context).into_iter().for_each(emit);
            }
            #[cfg(feature = "report")]
            MetricState::Calls(calls) => calls.add(&mut sample_context).into_iter().for_each(emit),
            MetricState::Waits(waits) => waits.add(&mut sample_context).into_iter().for_each(emit),
            MetricState::Pauses(pauses) => pauses.add(&mut sample_context).into_iter().for_each(emit),
            MetricState::None => {}
        }
    }

    /// Counts all samples of threads, including samples outside managed code.
    pub(crate) fn count_all_samples(&mut self) {
        if let MetricState::ThreadTime(time) = &mut self.state {
            time.count_all_samples();
        }
    }

    /// Returns true if time of threads is measured.
    pub(crate) const fn is_thread_time(&self) -> bool {
        matches!(self.state, MetricState::ThreadTime(_))
    }

    /// Passes samples that the end of the recording completes to `emit`.
    pub(crate) fn finish(&mut self, end: RelativeTime, emit: impl FnMut(Sample)) {
        match &mut self.state {
            MetricState::Waits(waits) => waits.finish(end).for_each(emit),
            MetricState::LiveAllocations(live) => live.finish().for_each(emit),
            MetricState::NativeAllocations(native) => native.finish().for_each(emit),
            _ => {}
        }
    }

    /// Returns facts about allocations that may be in use.
    pub(crate) fn liveness(&self) -> Option<Liveness> {
        if let MetricState::LiveAllocations(live) = &self.state { Some(live.liveness()) } else { None }
    }

    /// Returns facts about native allocations that are in use.
    pub(crate) fn native_liveness(&self) -> Option<NativeLiveness> {
        if let MetricState::NativeAllocations(native) = &self.state { Some(native.liveness()) } else { None }
    }

    /// Returns the counts of thread samples.
    pub(crate) fn samples(&self) -> Samples {
        if let MetricState::ThreadTime(time) = &self.state { time.samples() } else { Samples::default() }
    }

    /// Returns the name of a leaf.
    pub(crate) fn leaf_name(&self, leaf: FrameId) -> Cow<'_, str> {
        if let MetricState::Allocations(allocations) = &self.state
            && let Some(late) = allocations.late_name(leaf)
        {
            return Cow::Borrowed(late);
        }
        Cow::Borrowed(self.leaves.0.name(leaf))
    }
}
