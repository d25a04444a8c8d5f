//! Calls to something outside the program, each with its name at the leaf.

use clr_activity::{SpanEvent, SpanRole};
use nettrace::Metadata;

use crate::profile::metrics::{Sample, SampleContext};
use crate::report::span_name::call_name;

#[derive(Debug)]
pub(super) struct Calls;

/// Returns true if events of a kind begin calls.
pub(in crate::profile) fn begins_call(kind: &Metadata) -> bool {
    SpanEvent::of(kind).is_some_and(|span| span.is_start() && span.role() == SpanRole::Outgoing)
}

impl Calls {
    #[allow(clippy::unused_self, reason = "one of several that do the same")]
    pub(super) fn add(&self, sample_context: &mut SampleContext<'_, '_>) -> Option<Sample> {
        let name = call_name(sample_context.event)?;
        let leaf = sample_context.leaves.intern(&name);
        Some(sample_context.point(1, Some(leaf)))
    }
}
