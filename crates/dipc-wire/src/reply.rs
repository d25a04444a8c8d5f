//! Replies: OK with the command's own payload, or Error with an HRESULT.

use crate::codec::{Decode, Decoder, Encode, Encoder};
use crate::message;
use crate::{Command, CommandId, DecodeError, EncodeError, HResult, Message};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The payload of an Error reply.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | i32 | [`HResult`] |
/// | 4 | … | string | only after GenerateCoreDump3: the reason of the failure |
/// | … | … | bytes | undecoded rest |
///
/// Every Error reply is a failure, even with [`HResult::OK`] in it: some builds of .NET 6 send that when a
/// dump failed. The document shows the reply with 28 bytes; runtimes send 24.
///
/// ```
/// use dipc_wire::{HResult, ServerError, encode_server_error};
///
/// // A server that refuses a dump, with a reason.
/// let error = ServerError::new(HResult::FAIL).with_detail("no space left");
/// assert!(error.to_string().ends_with("no space left"));
/// let bytes = encode_server_error(&error)?;
/// assert!(bytes.starts_with(&dipc_wire::MAGIC));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "Errors"; size and string as seen on .NET 3.1, 9 and 10.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ServerError {
    /// The code.
    pub hresult: HResult,
    /// The reason as text, never empty when decoded.
    pub detail: Option<String>,
    /// The remaining bytes, undecoded.
    pub extra: Vec<u8>,
}

impl ServerError {
    /// Returns an error without detail, as runtimes send it for nearly every command.
    pub const fn new(hresult: HResult) -> Self {
        Self { hresult, detail: None, extra: Vec::new() }
    }

    /// Returns the error with a message.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// Returns the error with further bytes.
    #[must_use]
    pub fn with_extra(self, extra: Vec<u8>) -> Self {
        Self { extra, ..self }
    }
}

/// Prints the HRESULT, its description if the code is known, and the detail, if any.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.hresult)?;
        if let Some(description) = self.hresult.description() {
            write!(f, ": {description}")?;
        }
        match &self.detail {
            Some(detail) => write!(f, ": {}", detail.trim_end()),
            None => Ok(()),
        }
    }
}

impl core::error::Error for ServerError {}

impl Encode for ServerError {
    fn encode(&self, encoder: &mut Encoder, _: &'static str) -> Result<(), EncodeError> {
        encoder.put(&self.hresult, "hresult")?;
        if let Some(detail) = self.detail.as_deref().filter(|detail| !detail.is_empty()) {
            encoder.put(detail, "detail")?;
        }
        encoder.bytes(&self.extra);
        Ok(())
    }
}

impl Decode<'_> for ServerError {
    const MIN_LEN: usize = HResult::MIN_LEN;

    fn decode(decoder: &mut Decoder<'_>, _: &'static str) -> Result<Self, DecodeError> {
        let hresult = decoder.take("hresult")?;
        let mut after = decoder.clone();
        // Only one command's errors carry a string: other bytes must not hide the HRESULT.
        let detail = after.take("detail").ok().filter(|detail: &String| !detail.is_empty());
        if detail.is_some() {
            *decoder = after;
        }
        let extra = decoder.slice(decoder.rest().len(), "extra")?.to_vec();
        Ok(Self { hresult, detail, extra })
    }
}

/// Decodes the reply to a `C`: its payload, or the runtime's error.
///
/// Bytes after the last field this crate knows are ignored: runtimes may add fields.
///
/// ```
/// use dipc_wire::{Feed, HResult, MessageReader, ProcessInfo2, decode_reply, encode_error};
///
/// # let received = encode_error(HResult::UNKNOWN_COMMAND);
/// let Feed::Message { message, .. } = MessageReader::new().feed(&received)? else { return Ok(()) };
/// match decode_reply::<ProcessInfo2>(&message)? {
///     Ok(info) => println!(".NET {}", info.clr_version),
///     // .NET Core 3.1 knows the first form of the command only.
///     Err(refusal) => assert_eq!(refusal.hresult, HResult::UNKNOWN_COMMAND),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decode_reply<C: Command>(message: &Message) -> Result<Result<C::Reply, ServerError>, DecodeError> {
    decode_reply_as(message)
}

/// Decodes a reply as an `R`, which may borrow from the message:
/// `decode_reply_as::<ProcessInfo2Reply<Utf16>>(&message)`.
pub fn decode_reply_as<'a, R: Decode<'a>>(
    message: &'a Message,
) -> Result<Result<R, ServerError>, DecodeError> {
    match message.header.command {
        CommandId::OK => message.decode().map(Ok),
        CommandId::ERROR => message.decode().map(Err),
        found => Err(DecodeError::NotAReply { found }),
    }
}

/// Returns the bytes of an OK reply that carries `payload`.
///
/// ```
/// use dipc_wire::{SessionId, encode_ok};
///
/// // The reply of a server that has started a session.
/// let bytes = encode_ok(&SessionId(7))?;
/// assert_eq!(bytes.len(), 28);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode_ok(payload: &(impl Encode + ?Sized)) -> Result<Vec<u8>, EncodeError> {
    message::to_bytes(CommandId::OK, payload)
}

/// Returns the 24 bytes of an Error reply, as runtimes send it.
pub fn encode_error(hresult: HResult) -> Vec<u8> {
    let mut encoder = Encoder::with_capacity(24);
    crate::Header { size: 24, command: CommandId::ERROR, reserved: 0 }.encode(&mut encoder);
    encoder.i32(hresult.0);
    encoder.into_bytes()
}

/// Returns the bytes of an Error reply with a detail, as for GenerateCoreDump3.
pub fn encode_server_error(error: &ServerError) -> Result<Vec<u8>, EncodeError> {
    message::to_bytes(CommandId::ERROR, error)
}
