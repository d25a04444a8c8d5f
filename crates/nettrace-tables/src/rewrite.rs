//! Payloads that are changed before they become rows.

use nettrace::Event;

/// Changes the payloads of events before they become rows: redaction, for example.
pub trait PayloadRewriter {
    /// Fills `payload`, which is empty, with the payload of the event's row.
    fn rewrite(&mut self, event: &Event<'_>, payload: &mut Vec<u8>) -> Rewritten;
}

/// The result of a [rewriting](PayloadRewriter::rewrite).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller decides on each, or texts would be left")]
pub enum Rewritten {
    /// The payload is unchanged.
    Kept,
    /// The payload was replaced.
    Replaced,
    /// Not all of the payload could be read: the row has neither fields nor payload.
    Unreadable,
}
