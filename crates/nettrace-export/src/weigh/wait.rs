//! Waits: what a thread began to wait for until it had it.

use std::collections::HashMap;

use clr_events::ClrEvent;

use crate::weigh::{Mark, Scene, Seen};

/// Waits of threads, for locks or for handles. One that had not ended when the recording did lasted as long as that.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By thread.
    open: HashMap<u32, Mark>,
}

impl Waits {
    pub(super) fn add(&mut self, scene: &mut Scene<'_, '_>) -> Option<Seen> {
        let told_ns = match ClrEvent::of(scene.event) {
            Ok(Some(ClrEvent::ContentionStart(_))) => {
                let mark = scene.mark(None);
                self.open.insert(scene.thread, mark);
                return None;
            }
            Ok(Some(ClrEvent::WaitHandleWaitStart(wait))) => {
                let leaf = wait.wait_source.to_string();
                let leaf = scene.leaves.intern(&leaf);
                let mark = scene.mark(Some(leaf));
                self.open.insert(scene.thread, mark);
                return None;
            }
            Ok(Some(ClrEvent::ContentionStop(stop))) => stop.duration(),
            Ok(Some(ClrEvent::WaitHandleWaitStop(_))) => None,
            _ => return None,
        };
        let begin = self.open.remove(&scene.thread);
        let now = scene.now();
        let Some(lasted) = told_ns else { return begin.map(|mark| mark.until(now, scene.thread)) };
        // One that began before the recording has the stack of its end.
        let mark = match begin {
            Some(mark) => mark,
            None if lasted > 0 => scene.mark(None),
            None => return None,
        };
        let start = now.saturating_sub_unsigned(lasted).max(0);
        Some(Mark { start, ..mark }.until(now, scene.thread))
    }

    pub(super) fn finish(&mut self, end: i64) -> impl Iterator<Item = Seen> {
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(thread, _)| *thread);
        open.into_iter().map(move |(thread, mark)| mark.until(end, thread))
    }
}
