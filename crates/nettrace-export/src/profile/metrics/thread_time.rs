//! Time of threads, by the sampler's samples alone.

use clr_events::ClrEvent;
use clr_events::enums::ThreadSampleType;
use clr_events::view::ThreadSample;
use nettrace::{Event, RelativeTime};

use crate::profile::frame::FrameId;
use crate::profile::metrics::rounds::Rounds;
use crate::profile::metrics::{Leaves, PendingSample, Sample, SampleContext};
use crate::profile::pseudo_frames;

/// From a thread's sample to its next. The last sample of a thread weighs nothing: how long it held is not known.
///
/// Where [idle time](crate::Options::idle) is told apart, a sample holds until the first round of the sampler that lacks the thread, and
/// the thread is absent from there to its next sample.
#[derive(Debug)]
pub(super) struct ThreadTime {
    /// By thread.
    open: Vec<Option<(PendingSample, bool)>>,
    /// The leaves of managed and of other time; `None` if only managed time counts.
    kinds: Option<(FrameId, FrameId)>,
    /// The rounds, and the leaf of time in which a thread was absent; `None` if absence is not told apart.
    absence: Option<(Rounds, FrameId)>,
    samples: Samples,
}

/// Samples of threads, by what the runtime says of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Samples {
    /// Those in managed code.
    pub managed: u64,
    /// All others: waiting, in native code, or unknown.
    pub other: u64,
}

impl ThreadTime {
    /// All of it; a leaf tells managed code from the rest.
    pub(super) fn all(idle: bool, leaves: &mut Leaves) -> Self {
        let kinds = Some((leaves.intern(pseudo_frames::MANAGED), leaves.intern(pseudo_frames::UNMANAGED)));
        Self { kinds, ..Self::managed(idle, leaves) }
    }

    /// That of managed code.
    pub(super) fn managed(idle: bool, leaves: &mut Leaves) -> Self {
        let absence = (!idle).then(|| (Rounds::default(), leaves.intern(pseudo_frames::ABSENT)));
        Self { open: Vec::new(), kinds: None, absence, samples: Samples::default() }
    }

    /// Adds an event of any thread, wanted or not, to the rounds of the sampler.
    #[inline]
    pub(super) fn add_to_rounds(&mut self, event: &Event<'_>, view: Option<&ClrEvent<'_>>, thread: u32) {
        if let (Some((rounds, _)), Some(ClrEvent::ThreadSample(_))) = (&mut self.absence, view) {
            rounds.add(event.process_id(), thread, event.relative_time().max(RelativeTime::START));
        }
    }

    pub(super) const fn samples(&self) -> Samples {
        self.samples
    }

    #[inline]
    pub(super) fn add(&mut self, sample_context: &mut SampleContext<'_, '_>) -> [Option<Sample>; 2] {
        if sample_context.is_of_processor {
            return [Some(sample_context.point(1, None)), None];
        }
        let Some(ClrEvent::ThreadSample(ThreadSample { kind, .. })) = sample_context.view else {
            return [None, None];
        };
        let is_managed = *kind == ThreadSampleType::MANAGED;
        *(if is_managed { &mut self.samples.managed } else { &mut self.samples.other }) += 1;
        let leaf = self.kinds.map(|(managed, other)| if is_managed { managed } else { other });
        let mark = sample_context.pending(leaf);
        let thread = sample_context.thread;
        let index = thread as usize;
        if self.open.len() <= index {
            self.open.resize(index.saturating_add(1), None);
        }
        let before = self.open.get_mut(index).and_then(|open| open.replace((mark, is_managed)));
        let absence =
            self.absence.as_mut().and_then(|(rounds, leaf)| Some((rounds.take_absence(thread)?, *leaf)));
        let Some((before, was_managed)) = before else { return [None, None] };
        if !was_managed && self.kinds.is_none() {
            return [None, None];
        }
        let Some((from, leaf)) = absence else { return [Some(before.until(mark.start, thread)), None] };
        let absent = PendingSample { start: from, leaf: Some(leaf), ..before }.until(mark.start, thread);
        [Some(before.until(from, thread)), Some(Sample { samples: 0, ..absent })]
    }
}
