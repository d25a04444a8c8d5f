//! Time of threads, by the sampler's samples alone.

use clr_events::ClrEvent;
use clr_events::enums::ThreadSampleType;
use clr_events::view::ThreadSample;

use crate::profile::frame::FrameId;
use crate::profile::metrics::{Leaves, PendingSample, Sample, SampleContext};
use crate::profile::pseudo_frames;

/// From a thread's sample to its next. The last sample of a thread weighs nothing: how long it held is not known.
#[derive(Debug)]
pub(super) struct ThreadTime {
    /// By thread.
    open: Vec<Option<(PendingSample, bool)>>,
    /// The leaves of managed and of other time; `None` if only managed time counts.
    kinds: Option<(FrameId, FrameId)>,
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
    pub(super) fn all(leaves: &mut Leaves) -> Self {
        let kinds = Some((leaves.intern(pseudo_frames::MANAGED), leaves.intern(pseudo_frames::UNMANAGED)));
        Self { open: Vec::new(), kinds, samples: Samples::default() }
    }

    /// That of managed code.
    pub(super) fn managed() -> Self {
        Self { open: Vec::new(), kinds: None, samples: Samples::default() }
    }

    pub(super) const fn samples(&self) -> Samples {
        self.samples
    }

    #[inline]
    pub(super) fn add(&mut self, sample_context: &mut SampleContext<'_, '_>) -> Option<Sample> {
        if sample_context.is_of_processor {
            return Some(sample_context.point(1, None));
        }
        let ClrEvent::ThreadSample(ThreadSample { kind, .. }) = sample_context.view? else { return None };
        let is_managed = *kind == ThreadSampleType::MANAGED;
        *(if is_managed { &mut self.samples.managed } else { &mut self.samples.other }) += 1;
        let leaf = self.kinds.map(|(managed, other)| if is_managed { managed } else { other });
        let mark = sample_context.pending(leaf);
        let index = sample_context.thread as usize;
        if self.open.len() <= index {
            self.open.resize(index.saturating_add(1), None);
        }
        let (before, was_managed) = self.open.get_mut(index)?.replace((mark, is_managed))?;
        (was_managed || self.kinds.is_some()).then(|| before.until(mark.start, sample_context.thread))
    }
}
