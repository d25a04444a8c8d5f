//! Errors of buffers.

/// An error in a buffer: events before it are valid, later events are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AsyncBufferError {
    /// The buffer has another version.
    #[error("the buffer has version {0}, and only version 1 is known")]
    Version(u8),
    /// The buffer ends within a field.
    #[error("the buffer ends within the field at byte {offset}")]
    Truncated {
        /// The offset of the field in the buffer.
        offset: usize,
    },
    /// A number is larger than its field allows.
    #[error("the number at byte {offset} of the buffer is too large")]
    Number {
        /// The offset of the number in the buffer.
        offset: usize,
    },
    /// An event of unknown length: neither this library nor the runtime's own list has its id.
    #[error("event {id} at byte {offset} of the buffer is not in the runtime's list of events")]
    UnknownEvent {
        /// The id of the event.
        id: u8,
        /// The offset of the event in the buffer.
        offset: usize,
    },
}
