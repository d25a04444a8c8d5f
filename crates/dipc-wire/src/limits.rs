//! Magic and sizes of messages.

/// The bytes every message begins with: `DOTNET_IPC_V1` and NUL.
pub const MAGIC: [u8; 14] = *b"DOTNET_IPC_V1\0";
/// The length of a [`Header`](crate::Header) in bytes.
pub const HEADER_LEN: usize = 20;
/// Maximum length of a message in bytes, including the header: the size field has 16 bits.
pub const MAX_MESSAGE_LEN: usize = 65_535;
/// Maximum length of a payload in bytes.
pub const MAX_PAYLOAD_LEN: usize = 65_515;
