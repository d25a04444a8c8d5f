//! A cache of the strings that all events with the same metadata share.

use clr_events::is_named_by_kind;
use nettrace::{Event, Label, MetadataMap};

/// Bytes that are the same for all events of a kind, written once for each.
#[derive(Debug, Default)]
pub(super) struct MetadataCache {
    written: MetadataMap<Box<[u8]>>,
}

impl MetadataCache {
    /// Appends the output of `write` for the event's kind.
    #[inline]
    pub(super) fn push(&mut self, out: &mut Vec<u8>, event: &Event<'_>, write: fn(&mut Vec<u8>, &Event<'_>)) {
        match self.written.get(event.metadata_index()) {
            Some(bytes) if is_like_its_kind(event) => out.extend_from_slice(bytes),
            _ => self.write(out, event, write),
        }
    }

    #[cold]
    fn write(&mut self, out: &mut Vec<u8>, event: &Event<'_>, write: fn(&mut Vec<u8>, &Event<'_>)) {
        let start = out.len();
        write(out, event);
        if !is_like_its_kind(event) {
            return;
        }
        self.written.insert(event.metadata_index(), out[start..].into());
    }
}

/// Returns true if the event has the name, version, level, keywords and opcode of its kind.
#[inline]
fn is_like_its_kind(event: &Event<'_>) -> bool {
    is_named_by_kind(event)
        && !event.labels().any(|label| matches!(label, Label::Level(_) | Label::Keywords(_)))
}
