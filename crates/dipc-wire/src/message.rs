//! One whole frame: header and raw payload.

use crate::codec::{Decode, Decoder, Encode, Encoder};
use crate::header::SIZE_OFFSET;
use crate::{CommandId, DecodeError, EncodeError, HEADER_LEN, Header, MAX_PAYLOAD_LEN};
use alloc::vec::Vec;

/// A message with an undecoded payload.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 20 | [`Header`] | size, command |
/// | 20 | size − 20 | bytes | payload of the command |
///
/// ```
/// use dipc_wire::{CommandId, CommandSet, HEADER_LEN, Message};
///
/// // A command that this crate does not know.
/// let command = CommandId { set: CommandSet::PROCESS, id: 0x20 };
/// let message = Message::new(command, vec![7, 0, 0, 0])?;
/// assert_eq!(message.to_bytes()?.len(), HEADER_LEN + 4);
/// assert_eq!(message.decode::<u32>()?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "Messages".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a part of a message of the protocol")]
pub struct Message {
    /// The header.
    pub header: Header,
    /// The bytes after the header.
    pub payload: Vec<u8>,
}

impl Message {
    /// Returns a message of any command, known to this crate or not, with a payload of at most
    /// [`MAX_PAYLOAD_LEN`] bytes.
    pub fn new(command: CommandId, payload: Vec<u8>) -> Result<Self, EncodeError> {
        Ok(Self { header: Header { size: message_size(payload.len())?, command, reserved: 0 }, payload })
    }

    /// Returns the message's bytes. The size is computed from the payload; `header.size` is ignored.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let size = message_size(self.payload.len())?;
        let mut encoder = Encoder::new();
        Header { size, ..self.header }.encode(&mut encoder);
        encoder.bytes(&self.payload);
        Ok(encoder.into_bytes())
    }

    /// Decodes the payload, which the result may borrow from. Bytes after its last field are ignored: either
    /// side may add fields.
    pub fn decode<'a, T: Decode<'a>>(&'a self) -> Result<T, DecodeError> {
        self.decoder().take("payload")
    }

    /// Returns a decoder of the payload. Its offsets count from the beginning of the message.
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder::with_offset(&self.payload, HEADER_LEN)
    }
}

/// Room for nearly every request and reply, so that they are encoded without being moved.
const USUAL_LEN: usize = 512;

/// Returns the bytes of the message that carries `payload` under `command`.
pub(crate) fn to_bytes(command: CommandId, payload: &(impl Encode + ?Sized)) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::with_capacity(USUAL_LEN);
    Header { size: 0, command, reserved: 0 }.encode(&mut encoder);
    payload.encode(&mut encoder, "payload")?;
    debug_assert!(encoder.len() >= HEADER_LEN, "the header was encoded first");
    let size = message_size(encoder.len().saturating_sub(HEADER_LEN))?;
    encoder.set_u16(SIZE_OFFSET, size);
    Ok(encoder.into_bytes())
}

/// Returns the header's size field for a payload of `len` bytes.
fn message_size(len: usize) -> Result<u16, EncodeError> {
    len.checked_add(HEADER_LEN)
        .filter(|_| len <= MAX_PAYLOAD_LEN)
        .and_then(|size| u16::try_from(size).ok())
        .ok_or(EncodeError::PayloadTooLarge { len })
}
