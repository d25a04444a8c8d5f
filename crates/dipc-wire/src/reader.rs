//! Framing: messages in a stream of bytes.

use crate::header::check_magic;
use crate::{DecodeError, HEADER_LEN, Header, MAGIC, Message};
use alloc::vec::Vec;

/// A buffer that collects fed bytes until they are a whole message.
///
/// Bytes after the message are left to the caller: the reply to a CollectTracing command and the first
/// bytes of the event stream may well arrive together.
///
/// ```
/// use dipc_wire::{Feed, HResult, MessageReader, encode_error};
///
/// let mut received = encode_error(HResult::FAIL);
/// received.extend(b"Nettrace");
/// let mut reader = MessageReader::new();
/// assert_eq!(reader.feed(&received[..3])?, Feed::NeedMore(17));
/// assert_eq!(reader.feed(&received[3..20])?, Feed::NeedMore(4));
/// let Feed::Message { message, used } = reader.feed(&received[20..])? else { unreachable!() };
/// assert_eq!(message.header.size, 24);
/// assert_eq!(&received[20 + used..], b"Nettrace");
/// # Ok::<(), dipc_wire::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MessageReader {
    /// The bytes of the incomplete message.
    buffered: Vec<u8>,
}

/// The result of [`MessageReader::feed`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "more bytes are needed, or not")]
pub enum Feed {
    /// All bytes were taken, and at least this many more are needed. A caller that reads no more than that
    /// from the connection never reads past the end of the message.
    NeedMore(usize),
    /// The message is complete.
    Message {
        /// The message.
        message: Message,
        /// The number of bytes of this call that belong to it.
        used: usize,
    },
}

impl MessageReader {
    /// Returns a reader at the beginning of a message.
    pub const fn new() -> Self {
        Self { buffered: Vec::new() }
    }

    /// Returns whether part of a message has been fed: the peer must not end the connection here.
    pub const fn is_within_message(&self) -> bool {
        !self.buffered.is_empty()
    }

    /// Feeds the next bytes of the connection. After a whole message the reader is at the beginning of the
    /// next one.
    ///
    /// An error is final: the bytes are not of this protocol, and the connection cannot be used any more.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Feed, DecodeError> {
        let mut used = self.take(bytes, HEADER_LEN);
        check_magic(&self.buffered, &MAGIC, "DOTNET_IPC_V1")?;
        let Some(header) = self.buffered.first_chunk::<HEADER_LEN>() else {
            return Ok(Feed::NeedMore(HEADER_LEN.saturating_sub(self.buffered.len())));
        };
        let header = Header::decode(header)?;
        let size = usize::from(header.size);
        debug_assert!(used <= bytes.len(), "more was taken than was fed");
        let rest = bytes.get(used..).unwrap_or_default();
        used = used.saturating_add(self.take(rest, size));
        debug_assert!(self.buffered.len() <= size, "more was buffered than the message has");
        match size.saturating_sub(self.buffered.len()) {
            0 => {
                let mut payload = core::mem::take(&mut self.buffered);
                payload.drain(..HEADER_LEN);
                Ok(Feed::Message { message: Message { header, payload }, used })
            }
            missing => Ok(Feed::NeedMore(missing)),
        }
    }

    /// Takes bytes until `len` are buffered, and returns the number of bytes taken.
    fn take(&mut self, bytes: &[u8], len: usize) -> usize {
        let missing = len.saturating_sub(self.buffered.len());
        let taken = bytes.get(..missing).unwrap_or(bytes);
        self.buffered.extend_from_slice(taken);
        taken.len()
    }
}

#[cfg(test)]
mod tests;
