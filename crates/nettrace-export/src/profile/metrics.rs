//! Metrics: the weights of events, a module each.

mod allocation;
mod exception;
mod pause;
mod thread_time;
mod wait;

use std::borrow::Cow;

use clr_events::{ClrEvent, StackId};
use nettrace::{Event, Ticks};

use crate::bounds::LONGEST_NAME;
use crate::profile::address_stacks::AddressStacks;
use crate::profile::causality::ContextId;
use crate::profile::frame::{FrameId, Frames};
use crate::profile::metric::Metric;
use allocation::Allocations;
pub(crate) use allocation::estimated_bytes;
use exception::Exceptions;
use pause::Pauses;
pub use thread_time::Samples;
use thread_time::ThreadTime;
use wait::Waits;

/// A weighted sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// The number of its thread.
    pub(crate) thread: u32,
    /// When, or from when on, in nanoseconds since the recording's start.
    pub(crate) start: i64,
    pub(crate) weight: u64,
    /// Of addresses.
    pub(crate) stack: StackId,
    /// The frame below the stack: see [`Sampler::leaf_name`].
    pub(crate) leaf: Option<FrameId>,
    /// When the stack was taken.
    pub(crate) time: Ticks,
    /// Of which time its addresses are.
    pub(crate) generation: u32,
    /// The cause and request of the work.
    pub(crate) context: ContextId,
    /// Priority among duplicate sources: only the highest counts.
    pub(crate) rank: u8,
}

/// A sample whose weight is not known yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingSample {
    pub(crate) start: i64,
    pub(crate) stack: StackId,
    pub(crate) leaf: Option<FrameId>,
    pub(crate) time: Ticks,
    pub(crate) generation: u32,
    pub(crate) context: ContextId,
}

impl PendingSample {
    /// Returns the sample that lasted until `end`.
    pub(crate) fn until(self, end: i64, thread: u32) -> Sample {
        let weight = if end > self.start { end.abs_diff(self.start) } else { 0 };
        Sample {
            thread,
            start: self.start,
            weight,
            stack: self.stack,
            leaf: self.leaf,
            time: self.time,
            generation: self.generation,
            context: self.context,
            rank: 0,
        }
    }
}

/// An event, with its thread, context and the tables of stacks.
pub(crate) struct SampleContext<'s, 'e> {
    pub(crate) event: &'s Event<'e>,
    /// The decoded event; `None` if it has no view, or is cut.
    pub(crate) view: Option<&'s ClrEvent<'e>>,
    pub(crate) thread: u32,
    pub(crate) generation: u32,
    pub(crate) context: ContextId,
    /// It is a sample of what ran on a processor, not of a thread.
    pub(crate) is_of_processor: bool,
    pub(crate) addresses: &'s mut AddressStacks,
    pub(crate) leaves: &'s mut Leaves,
}

impl SampleContext<'_, '_> {
    /// The event's time; what is told to have happened before the recording began counts as its beginning.
    #[inline]
    pub(crate) fn now(&self) -> i64 {
        self.event.time_ns().max(0)
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

    /// A point in time.
    pub(crate) fn point(&mut self, weight: u64, leaf: Option<FrameId>) -> Sample {
        let sample = self.pending(leaf).until(i64::MIN, self.thread);
        Sample { weight, ..sample }
    }
}

/// Names that stand at the leaf: types for the most part. As many as the limit are kept apart.
#[derive(Debug, Default)]
pub(crate) struct Leaves(Frames);

impl Leaves {
    const MOST: usize = 1 << 17;
    /// With what marks a name that was cut it is still short enough for a frame.
    const LONGEST: usize = LONGEST_NAME - '…'.len_utf8();

    pub(crate) fn intern(&mut self, name: &str) -> FrameId {
        self.0.intern_within(Self::MOST, Self::LONGEST, name)
    }
}

/// The calculation of events' weights, by metric.
#[derive(Debug)]
pub(crate) struct Sampler {
    kind: Kind,
    leaves: Leaves,
    /// When the last event was that was weighed.
    last: i64,
}

#[derive(Debug)]
enum Kind {
    ThreadTime(ThreadTime),
    Allocations(Allocations),
    Exceptions(Exceptions),
    Waits(Waits),
    Pauses(Pauses),
}

impl Sampler {
    pub(crate) fn new(metric: Metric, kinds: bool) -> Self {
        let mut leaves = Leaves::default();
        let kind = match metric {
            Metric::Wall => Kind::ThreadTime(ThreadTime::all(&mut leaves, kinds)),
            Metric::Cpu => Kind::ThreadTime(ThreadTime::managed()),
            Metric::Alloc => Kind::Allocations(Allocations::default()),
            Metric::Contention | Metric::Wait => Kind::Waits(Waits::default()),
            Metric::Exception => Kind::Exceptions(Exceptions),
            Metric::Gc => Kind::Pauses(Pauses::default()),
        };
        Self { kind, leaves, last: 0 }
    }

    /// Adds an event and passes samples that it completes to `emit`.
    #[inline]
    pub(crate) fn add(
        &mut self,
        (event, view): (&Event<'_>, Option<&ClrEvent<'_>>),
        (thread, is_of_processor): (u32, bool),
        (generation, context): (u32, ContextId),
        addresses: &mut AddressStacks,
        emit: impl FnMut(Sample),
    ) {
        let mut sample_context = SampleContext {
            event,
            view,
            thread,
            generation,
            context,
            is_of_processor,
            addresses,
            leaves: &mut self.leaves,
        };
        self.last = self.last.max(sample_context.now());
        match &mut self.kind {
            Kind::ThreadTime(time) => time.add(&mut sample_context).into_iter().for_each(emit),
            Kind::Allocations(allocations) => allocations.add(&mut sample_context).into_iter().for_each(emit),
            Kind::Exceptions(exceptions) => exceptions.add(&mut sample_context).into_iter().for_each(emit),
            Kind::Waits(waits) => waits.add(&mut sample_context).into_iter().for_each(emit),
            Kind::Pauses(pauses) => pauses.add(&mut sample_context).into_iter().for_each(emit),
        }
    }

    /// Passes samples that the end of the recording completes to `emit`.
    pub(crate) fn finish(&mut self, emit: impl FnMut(Sample)) {
        if let Kind::Waits(waits) = &mut self.kind {
            waits.finish(self.last).for_each(emit);
        }
    }

    /// Returns the counts of thread samples.
    pub(crate) fn samples(&self) -> Samples {
        if let Kind::ThreadTime(time) = &self.kind { time.samples() } else { Samples::default() }
    }

    /// The name of a leaf.
    pub(crate) fn leaf_name(&self, leaf: FrameId) -> Cow<'_, str> {
        let name = self.leaves.0.name(leaf);
        if let Kind::Allocations(allocations) = &self.kind
            && let Some(late) = allocations.late_name(leaf)
        {
            return Cow::Borrowed(late);
        }
        Cow::Borrowed(name)
    }
}
