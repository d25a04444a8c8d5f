//! Pauses: from when the collector began to stop all threads until they ran again.

use clr_events::ClrEvent;

use crate::profile::metrics::{PendingSample, Sample, SampleContext};
use clr_activity::Suspensions;

#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// The suspending thread of each, and the sample with its reason.
    suspensions: Suspensions<(u32, PendingSample)>,
}

impl Pauses {
    pub(super) fn add(&mut self, sample_context: &mut SampleContext<'_, '_>) -> Option<Sample> {
        let view = sample_context.view?;
        if let ClrEvent::GcStart(start) = view {
            let leaf = format!("GC generation {} ({})", start.depth, start.reason);
            let leaf = sample_context.leaves.intern(&leaf);
            if let Some(suspension) = self.suspensions.now(sample_context.event.process_id()) {
                suspension.about.1.leaf.get_or_insert(leaf);
            }
            return None;
        }
        let (event, now, thread) = (sample_context.event, sample_context.now(), sample_context.thread);
        let ended = self.suspensions.add((event, view), now, || (thread, sample_context.pending(None)))?;
        let (thread, mark) = ended.about;
        // Nothing begins in the last pause of a collection in the background.
        let leaf = mark.leaf.or_else(|| Some(sample_context.leaves.intern("GC in the background")));
        Some(PendingSample { start: ended.start, leaf, ..mark }.until(now, thread))
    }
}
