//! Decoding of the events that somebody wants.

use clr_events::{ClrEvent, EventSet};
use nettrace::Event;

/// Returns the view of an event; `None` if it is outside the set, without a view, or cut.
#[inline]
pub(crate) fn decode<'a>(event: &Event<'a>, wanted: &EventSet) -> Option<ClrEvent<'a>> {
    if wanted.contains(event.metadata()) { ClrEvent::of(event).ok().flatten() } else { None }
}
