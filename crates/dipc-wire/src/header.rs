//! The 20 bytes that begin every message.

use crate::codec::{Decoder, Encoder};
use crate::limits::{HEADER_LEN, MAGIC};
use crate::{CommandId, CommandSet, DecodeError};
use alloc::vec::Vec;

/// The offset of the message's size in the header.
pub(crate) const SIZE_OFFSET: usize = 14;

/// The header of a message; all numbers are little-endian.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 14 | bytes | magic, [`MAGIC`] |
/// | 14 | 2 | u16 | size of the whole message in bytes, this header included |
/// | 16 | 1 | u8 | command set |
/// | 17 | 1 | u8 | command id within the set |
/// | 18 | 2 | u16 | reserved, 0 |
///
/// # Source
/// Diagnostic IPC Protocol, "Headers".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a part of a message of the protocol")]
pub struct Header {
    /// Size of the whole message in bytes, header included.
    pub size: u16,
    /// The command, or the kind of reply: OK or Error.
    pub command: CommandId,
    /// 0 in every message seen so far; kept so that a message survives a round trip.
    pub reserved: u16,
}

impl Header {
    /// Decodes a header from its 20 bytes.
    ///
    /// ```
    /// use dipc_wire::{Command as _, CommandId, HEADER_LEN, Header, ProcessInfo2};
    ///
    /// let message = ProcessInfo2.to_bytes()?;
    /// let header: &[u8; HEADER_LEN] = message.first_chunk().expect("a whole header");
    /// assert_eq!(Header::decode(header)?.command, CommandId::PROCESS_INFO_2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self, DecodeError> {
        check_magic(bytes, &MAGIC, "DOTNET_IPC_V1")?;
        let mut decoder = Decoder::new(bytes);
        decoder.bytes::<14>("magic")?;
        let size = decoder.u16("size")?;
        let command =
            CommandId { set: CommandSet(decoder.u8("command set")?), id: decoder.u8("command id")? };
        let reserved = decoder.u16("reserved")?;
        if usize::from(size) < HEADER_LEN {
            return Err(DecodeError::WrongSize { size });
        }
        Ok(Self { size, command, reserved })
    }

    /// Appends the header's 20 bytes.
    pub(crate) fn encode(self, encoder: &mut Encoder) {
        encoder.bytes(&MAGIC);
        encoder.u16(self.size);
        encoder.u8(self.command.set.0);
        encoder.u8(self.command.id);
        encoder.u16(self.reserved);
    }
}

/// Checks the magic as far as it has arrived, so that a peer that speaks another protocol is recognised by
/// its first bytes instead of by a time-out while waiting for the rest.
pub(crate) fn check_magic(beginning: &[u8], magic: &[u8], expected: &'static str) -> Result<(), DecodeError> {
    if beginning.iter().zip(magic).all(|(found, expected)| found == expected) {
        return Ok(());
    }
    let found: Vec<u8> = beginning.iter().take(magic.len()).copied().collect();
    Err(DecodeError::WrongMagic { expected, found: found.escape_ascii().map(char::from).collect() })
}
