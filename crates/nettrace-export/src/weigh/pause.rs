//! Pauses: from when the collector began to stop all threads until they ran again.

use std::collections::HashMap;

use clr_events::ClrEvent;
use clr_events::enums::GcSuspendEeReason;

use crate::weigh::{Mark, Scene, Seen};

#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// By process.
    open: HashMap<Option<u64>, (u32, Mark)>,
}

impl Pauses {
    pub(super) fn add(&mut self, scene: &mut Scene<'_, '_>) -> Option<Seen> {
        let process = scene.event.process_id();
        match ClrEvent::of(scene.event) {
            Ok(Some(ClrEvent::GcSuspendStart(suspend))) => {
                if matches!(
                    suspend.reason,
                    GcSuspendEeReason::SUSPEND_FOR_GC | GcSuspendEeReason::SUSPEND_FOR_GC_PREP
                ) {
                    let mark = scene.mark(None);
                    self.open.insert(process, (scene.thread, mark));
                }
                None
            }
            Ok(Some(ClrEvent::GcStart(start))) => {
                let leaf = format!("GC generation {} ({})", start.depth, start.reason);
                let leaf = scene.leaves.intern(&leaf);
                if let Some((_, mark)) = self.open.get_mut(&process) {
                    mark.leaf = Some(leaf);
                }
                None
            }
            Ok(Some(ClrEvent::GcRestartStop(_))) => {
                let (thread, mark) = self.open.remove(&process)?;
                Some(mark.until(scene.now(), thread))
            }
            _ => None,
        }
    }
}
