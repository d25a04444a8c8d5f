//! One whole frame: header and raw payload.

use crate::codec::{Decoder, Encoder, Payload};
use crate::{CommandId, EncodeError, HEADER_LEN, Header, MAX_PAYLOAD_LEN};
use alloc::vec::Vec;

/// A message as it was received, or as it is to be sent, with its payload not yet decoded.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 20 | [`Header`] | size, command |
/// | 20 | size − 20 | bytes | payload, whose shape depends on the command |
///
/// # Source
/// Diagnostic IPC Protocol, "Messages".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// The header.
    pub header: Header,
    /// The bytes after the header.
    pub payload: Vec<u8>,
}

impl Message {
    /// A message of any command, known to this crate or not, with a payload of at most [`MAX_PAYLOAD_LEN`] bytes.
    pub fn new(command: CommandId, payload: Vec<u8>) -> Result<Self, EncodeError> {
        Ok(Self { header: Header { size: message_size(payload.len())?, command, reserved: 0 }, payload })
    }

    /// The message's bytes. The header's size is computed from the payload, whatever `header.size` says.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let size = message_size(self.payload.len())?;
        let mut encoder = Encoder::new();
        Header { size, ..self.header }.encode(&mut encoder);
        encoder.bytes(&self.payload);
        Ok(encoder.into_bytes())
    }

    /// A decoder over the payload. Its offsets count from the beginning of the message.
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder::with_offset(&self.payload, HEADER_LEN)
    }
}

/// The bytes of the message that carries `payload` under `command`.
pub(crate) fn to_bytes(command: CommandId, payload: &impl Payload) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::new();
    payload.encode(&mut encoder)?;
    Message::new(command, encoder.into_bytes())?.to_bytes()
}

/// The header's size field for a payload of `len` bytes.
fn message_size(len: usize) -> Result<u16, EncodeError> {
    len.checked_add(HEADER_LEN)
        .filter(|_| len <= MAX_PAYLOAD_LEN)
        .and_then(|size| u16::try_from(size).ok())
        .ok_or(EncodeError::PayloadTooLarge { len })
}
