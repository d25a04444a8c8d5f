//! Time of threads, by the sampler's samples alone.

use clr_events::ClrEvent;
use clr_events::enums::ThreadSampleType;

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
}

impl ThreadTime {
    /// All of it; `kinds` says whether a leaf tells managed code from the rest.
    pub(super) fn all(leaves: &mut Leaves, kinds: bool) -> Self {
        let kinds = kinds.then(|| (leaves.intern(kind::MANAGED), leaves.intern(kind::UNMANAGED)));
        Self { open: Vec::new(), kinds, only_managed: false }
    }

    /// That of managed code.
    pub(super) fn managed() -> Self {
        Self { open: Vec::new(), kinds: None, only_managed: true }
    }

    #[inline]
    pub(super) fn add(&mut self, scene: &mut Scene<'_, '_>) -> Option<Seen> {
        let is_managed = match ClrEvent::of(scene.event) {
            Ok(Some(ClrEvent::ThreadSample(sample))) => sample.kind == ThreadSampleType::MANAGED,
            // A sample of what ran on a processor.
            _ => return Some(scene.point(1, None)),
        };
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
