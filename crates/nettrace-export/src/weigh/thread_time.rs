//! Time of threads, by the sampler's samples alone.

use clr_events::enums::ThreadSampleType;
use clr_events::view::ThreadSample;
use clr_events::{ClrEvent, Provider};

use crate::frame::FrameId;
use crate::kind;
use crate::weigh::{Leaves, Mark, Scene, Seen};

/// From a thread's sample to its next. The last sample of a thread weighs nothing: how long it held is not known.
#[derive(Debug)]
pub(super) struct ThreadTime {
    /// By thread.
    open: Vec<Option<(Mark, bool)>>,
    /// The leaves of managed and of other time, if those are wanted.
    kinds: Option<(FrameId, FrameId)>,
    only_managed: bool,
    samples: Samples,
}

/// Samples of threads, by what the runtime says of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Samples {
    /// Those in managed code.
    pub managed: u64,
    /// All others: waiting, in native code, or nobody knows.
    pub other: u64,
}

impl ThreadTime {
    /// All of it; `kinds` says whether a leaf tells managed code from the rest.
    pub(super) fn all(leaves: &mut Leaves, kinds: bool) -> Self {
        let kinds = kinds.then(|| (leaves.intern(kind::MANAGED), leaves.intern(kind::UNMANAGED)));
        Self { open: Vec::new(), kinds, only_managed: false, samples: Samples::default() }
    }

    /// That of managed code.
    pub(super) fn managed() -> Self {
        Self { open: Vec::new(), kinds: None, only_managed: true, samples: Samples::default() }
    }

    pub(super) const fn samples(&self) -> Samples {
        self.samples
    }

    #[inline]
    pub(super) fn add(&mut self, scene: &mut Scene<'_, '_>) -> Option<Seen> {
        if scene.is_of_processor {
            return Some(scene.point(1, None));
        }
        let event = scene.event;
        let (version, payload, pointer_size) = (event.version(), event.payload(), event.pointer_size());
        let sample = ClrEvent::decode(Provider::SampleProfiler, event.id(), version, payload, pointer_size);
        let Ok(Some(ClrEvent::ThreadSample(ThreadSample { kind }))) = sample else { return None };
        let is_managed = kind == ThreadSampleType::MANAGED;
        *(if is_managed { &mut self.samples.managed } else { &mut self.samples.other }) += 1;
        let leaf = self.kinds.map(|(managed, other)| if is_managed { managed } else { other });
        let mark = scene.mark(leaf);
        let index = scene.thread as usize;
        if self.open.len() <= index {
            self.open.resize(index.saturating_add(1), None);
        }
        let (before, was_managed) = self.open.get_mut(index)?.replace((mark, is_managed))?;
        (was_managed || !self.only_managed).then(|| before.until(mark.start, scene.thread))
    }
}
