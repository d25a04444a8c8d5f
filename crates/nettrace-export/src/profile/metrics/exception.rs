//! Exceptions, each with its type at the leaf.

use clr_events::ClrEvent;

use crate::profile::metrics::{Sample, SampleContext};

#[derive(Debug)]
pub(super) struct Exceptions;

impl Exceptions {
    #[allow(clippy::unused_self, reason = "one of several that do the same")]
    pub(super) fn add(&self, sample_context: &mut SampleContext<'_, '_>) -> Option<Sample> {
        let ClrEvent::ExceptionStart(thrown) = sample_context.view? else { return None };
        let leaf = sample_context.leaves.intern(&thrown.exception_type.to_string());
        Some(sample_context.point(1, Some(leaf)))
    }
}
