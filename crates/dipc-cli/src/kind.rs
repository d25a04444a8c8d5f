//! What is prepared once for all events of a kind.

use nettrace::{Event, Label};

/// Bytes that are the same for all events of a kind, written once for each.
#[derive(Debug, Default)]
pub(crate) struct KindBytes {
    /// By the index of the kind's metadata; empty for a kind that was not met.
    written: Vec<Box<[u8]>>,
}

impl KindBytes {
    /// Appends what `write` writes for the event's kind.
    #[inline]
    pub(crate) fn push(&mut self, out: &mut Vec<u8>, event: &Event<'_>, write: fn(&mut Vec<u8>, &Event<'_>)) {
        match self.written.get(event.metadata_index()) {
            Some(bytes) if !bytes.is_empty() && !is_relabelled(event) => out.extend_from_slice(bytes),
            _ => self.write(out, event, write),
        }
    }

    #[cold]
    fn write(&mut self, out: &mut Vec<u8>, event: &Event<'_>, write: fn(&mut Vec<u8>, &Event<'_>)) {
        let start = out.len();
        write(out, event);
        if is_relabelled(event) {
            return;
        }
        let index = event.metadata_index();
        if self.written.len() <= index {
            self.written.resize_with(index + 1, Box::default);
        }
        self.written[index] = out[start..].into();
    }
}

/// Whether labels (V6) go before something that the event's kind says.
#[inline]
pub(crate) fn is_relabelled(event: &Event<'_>) -> bool {
    event.labels().any(|label| {
        matches!(label, Label::Version(_) | Label::Level(_) | Label::Keywords(_) | Label::Opcode(_))
    })
}
