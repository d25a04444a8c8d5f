//! The cache of texts that all events with the same metadata share.

use clr_events::is_named_by_kind;
use nettrace::{Event, Label};

/// Bytes that are the same for all events of a kind, written once for each.
#[derive(Debug, Default)]
pub(super) struct MetadataCache {
    /// By the index of the kind's metadata; empty for a kind that was not met.
    written: Vec<Box<[u8]>>,
}

impl MetadataCache {
    /// Appends the output of `write` for the event's kind.
    #[inline]
    pub(super) fn push(&mut self, out: &mut Vec<u8>, event: &Event<'_>, write: fn(&mut Vec<u8>, &Event<'_>)) {
        match self.written.get(event.metadata_index()) {
            Some(bytes) if !bytes.is_empty() && is_like_its_kind(event) => out.extend_from_slice(bytes),
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
        let index = event.metadata_index();
        if self.written.len() <= index {
            self.written.resize_with(index + 1, Box::default);
        }
        self.written[index] = out[start..].into();
    }
}

/// Whether the event has the name, version, level, keywords and opcode of its kind.
#[inline]
fn is_like_its_kind(event: &Event<'_>) -> bool {
    is_named_by_kind(event)
        && !event.labels().any(|label| matches!(label, Label::Level(_) | Label::Keywords(_)))
}
