//! Exceptions, each with its type at the leaf.

use clr_events::ClrEvent;

use crate::weigh::{Scene, Seen};

#[derive(Debug)]
pub(super) struct Exceptions;

impl Exceptions {
    #[allow(clippy::unused_self, reason = "one of several that do the same")]
    pub(super) fn add(&self, scene: &mut Scene<'_, '_>) -> Option<Seen> {
        let Ok(Some(ClrEvent::ExceptionStart(thrown))) = ClrEvent::of(scene.event) else { return None };
        let leaf = scene.leaves.intern(&thrown.exception_type.to_string());
        Some(scene.point(1, Some(leaf)))
    }
}
