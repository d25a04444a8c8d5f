//! Advertise: the first bytes of a runtime that connects to the port of a tool.

use crate::header::check_magic;
use crate::payload::payload;
use crate::{DecodeError, Decoder, Encode as _, EncodeError, Encoder};
use alloc::vec::Vec;
use uuid::Uuid;

payload! {
    /// The 34 bytes that a runtime sends first on each connection to the port of a tool. No answer is
    /// expected; the owner of the port sends one command on the connection at any time, and the runtime
    /// connects again for the next one.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 8 | bytes | magic, `ADVR_V1` and NUL |
    /// | 8 | 16 | GUID | runtime cookie |
    /// | 24 | 8 | u64 | process id, in the process's own pid namespace |
    /// | 32 | 2 | u16 | 0, for the future |
    ///
    /// ```
    /// use dipc_wire::{Advertise, Uuid};
    ///
    /// // The first bytes that a runtime sends to a port.
    /// let bytes = Advertise::new(Uuid::from_u128(1), 4711).to_bytes()?;
    /// assert!(bytes.starts_with(b"ADVR_V1\0"));
    /// assert_eq!(Advertise::from_bytes(&bytes)?.process_id, 4711);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "Diagnostic Ports".
    #[non_exhaustive]
    pub struct Advertise {
        /// The id of this runtime instance; the same as in its
        /// [`ProcessInfo3Reply`](crate::ProcessInfo3Reply).
        pub runtime_cookie: Uuid = "runtime cookie",
        /// The process id as the process itself sees it.
        pub process_id: u64 = "process id",
        /// 0 so far.
        pub future: u16 = "future",
    }
}

impl Advertise {
    /// The bytes it begins with: `ADVR_V1` and NUL.
    pub const MAGIC: [u8; 8] = *b"ADVR_V1\0";
    /// The length of the message in bytes.
    pub const LEN: usize = 34;

    /// Returns the Advertise message of a runtime.
    pub const fn new(runtime_cookie: Uuid, process_id: u64) -> Self {
        Self { runtime_cookie, process_id, future: 0 }
    }

    /// Decodes the beginning of `bytes` and ignores the rest. If the bytes are merely truncated, the error's
    /// [`is_incomplete`](DecodeError::is_incomplete) is true.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        check_magic(bytes, &Self::MAGIC, "ADVR_V1")?;
        let mut decoder = Decoder::new(bytes);
        decoder.bytes::<8>("magic")?;
        decoder.take("advertise")
    }

    /// Returns the 34 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut encoder = Encoder::with_capacity(Self::LEN);
        encoder.bytes(&Self::MAGIC);
        self.encode(&mut encoder, "advertise")?;
        Ok(encoder.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::uuid;

    /// The example of the protocol's text.
    const BYTES: &[u8; 34] =
        b"ADVR_V1\0\x67\x45\x3e\x12\x9b\xe8\xd3\x12\xa4\x56\x42\x66\x14\x17\x40\x00\x39\x30\0\0\0\0\0\0\0\0";

    #[test]
    fn the_example_of_the_text_is_read_and_written() {
        let advertise = Advertise {
            runtime_cookie: uuid!("123e4567-e89b-12d3-a456-426614174000"),
            process_id: 12345,
            future: 0,
        };
        assert_eq!(Advertise::from_bytes(BYTES), Ok(advertise.clone()));
        assert_eq!(advertise.to_bytes().unwrap(), BYTES);
    }

    #[test]
    fn a_piece_is_incomplete_and_another_protocol_is_an_error() {
        for len in 0..BYTES.len() {
            let error = Advertise::from_bytes(BYTES.get(..len).unwrap()).unwrap_err();
            assert!(error.is_incomplete(), "{len}: {error}");
        }
        let error = Advertise::from_bytes(b"ADVR_V2").unwrap_err();
        assert_eq!(error, DecodeError::WrongMagic { expected: "ADVR_V1", found: "ADVR_V2".into() });
    }
}
