//! Errors of decoding and of encoding.

use crate::CommandId;
use crate::limits::{HEADER_LEN, MAX_PAYLOAD_LEN};
use alloc::string::String;

/// A reason why received bytes are not a message, or not the expected payload.
///
/// Offsets count from the first byte of the message's header, or of the bytes themselves outside of messages:
/// [`Environment`](crate::Environment) and [`Advertise`](crate::Advertise).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The first bytes are not `DOTNET_IPC_V1\0`, or not `ADVR_V1\0` in an advertise message: the peer speaks
    /// another protocol.
    #[error("the message does not begin with the magic {expected} but with \"{found}\"")]
    WrongMagic {
        /// The expected magic, without its NUL.
        expected: &'static str,
        /// The received part of the wrong magic, non-ASCII bytes escaped.
        found: String,
    },
    /// The size field is smaller than its header.
    #[error("the header says that the message has {size} bytes, fewer than the {HEADER_LEN} of the header")]
    WrongSize {
        /// The size field.
        size: u16,
    },
    /// The bytes end inside a field.
    #[error("{field} at offset {offset} needs {needed} bytes, but {left} are left")]
    UnexpectedEnd {
        /// The field's name.
        field: &'static str,
        /// The offset of the field.
        offset: usize,
        /// The length of the field in bytes.
        needed: usize,
        /// The number of bytes that are left.
        left: usize,
    },
    /// The count of an array or string exceeds the remaining bytes.
    #[error(
        "{field} at offset {offset} counts {count} items, more than the {left} bytes that are left can hold"
    )]
    CountTooLarge {
        /// The field's name.
        field: &'static str,
        /// The offset of the count.
        offset: usize,
        /// The count.
        count: u32,
        /// The number of bytes after it.
        left: usize,
    },
    /// A string that is not empty does not end with NUL.
    #[error("the string {field} at offset {offset} does not end with NUL")]
    MissingNul {
        /// The field's name.
        field: &'static str,
        /// The offset of the string's count.
        offset: usize,
    },
    /// The session of a CollectTracing5 or 6 is of an unknown kind.
    #[error(
        "the session type at offset {offset} is {found}, which is neither streaming (0) nor user_events (1)"
    )]
    UnknownSessionType {
        /// The offset of the session type.
        offset: usize,
        /// The session type.
        found: u32,
    },
    /// The message is neither an OK nor an Error reply.
    #[error("the message is {found}, which is not a reply")]
    NotAReply {
        /// The command of the message.
        found: CommandId,
    },
}

impl DecodeError {
    /// Returns whether the bytes are merely truncated: with more of them, decoding could succeed.
    ///
    /// ```
    /// use dipc_wire::Environment;
    ///
    /// let (_, bytes) = Environment(vec!["LANG=C".to_owned()]).to_bytes()?;
    /// let cut = Environment::<Vec<String>>::from_bytes(&bytes[..9]).expect_err("cut bytes");
    /// assert!(cut.is_incomplete());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn is_incomplete(&self) -> bool {
        matches!(self, Self::UnexpectedEnd { .. } | Self::CountTooLarge { .. })
    }
}

/// A reason why a value cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The payload does not fit: the header's size field has 16 bits.
    #[error("the payload has {len} bytes, more than the {MAX_PAYLOAD_LEN} a message can carry")]
    PayloadTooLarge {
        /// The payload's length in bytes.
        len: usize,
    },
    /// A string or array has more items than a 32-bit count can hold.
    #[error("{field} has {len} items, more than a 32-bit count can say")]
    TooManyItems {
        /// The field's name.
        field: &'static str,
        /// The length in items.
        len: usize,
    },
    /// A string contains NUL, which would end it for the receiver.
    #[error("the string {field} contains NUL at index {index}, where the receiver would cut it")]
    InteriorNul {
        /// The field's name.
        field: &'static str,
        /// The index of the NUL in UTF-16 code units.
        index: usize,
    },
}
