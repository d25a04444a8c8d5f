//! Pauses: from when the collector began to stop all threads until they ran again.

use clr_events::ClrEvent;

use crate::suspension::Suspensions;
use crate::weigh::{Mark, Scene, Seen};

#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// By whom, and what for.
    suspensions: Suspensions<(u32, Mark)>,
}

impl Pauses {
    pub(super) fn add(&mut self, scene: &mut Scene<'_, '_>) -> Option<Seen> {
        let Ok(Some(view)) = ClrEvent::of(scene.event) else { return None };
        if let ClrEvent::GcStart(start) = &view {
            let leaf = format!("GC generation {} ({})", start.depth, start.reason);
            let leaf = scene.leaves.intern(&leaf);
            if let Some(suspension) = self.suspensions.now(scene.event.process_id()) {
                suspension.about.1.leaf.get_or_insert(leaf);
            }
            return None;
        }
        let (event, now, thread) = (scene.event, scene.now(), scene.thread);
        let ended = self.suspensions.add((event, &view), now, || (thread, scene.mark(None)))?;
        let (thread, mark) = ended.about;
        // Nothing begins in the last pause of a collection in the background.
        let leaf = mark.leaf.or_else(|| Some(scene.leaves.intern("GC in the background")));
        Some(Mark { start: ended.start, leaf, ..mark }.until(now, thread))
    }
}
