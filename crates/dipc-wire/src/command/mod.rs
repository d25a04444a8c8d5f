//! Commands, one file per command set.

pub(crate) mod dump;
pub(crate) mod event_pipe;
mod id;
pub(crate) mod process;
pub(crate) mod profiler;

pub use id::{CommandId, CommandSet};

use crate::codec::{DecodeOwned, Encode};
use crate::{EncodeError, message};
use alloc::vec::Vec;

/// A command and the type of its reply.
///
/// ```
/// use dipc_wire::{CollectTracing2, Command, Format, Keywords, Level, ProviderConfig};
///
/// let collect = CollectTracing2 {
///     buffer_mb: 256,
///     format: Format::NETTRACE,
///     request_rundown: true,
///     providers: vec![ProviderConfig {
///         keywords: Keywords::GC.union(Keywords::EXCEPTION),
///         level: Level::INFORMATIONAL,
///         name: "Microsoft-Windows-DotNETRuntime".to_owned(),
///         arguments: String::new(),
///     }],
/// };
/// let message = collect.to_bytes()?;
/// // The reply is the id of the session; its stream follows on the same connection.
/// assert!(message.starts_with(dipc_wire::MAGIC.as_slice()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Command: Encode {
    /// The two bytes that identify the command in a header.
    const ID: CommandId;
    /// The command's name in the protocol's text.
    const NAME: &'static str = match Self::ID.name() {
        Some(name) => name,
        None => "unnamed command",
    };
    /// The payload of the OK reply.
    type Reply: Encode + DecodeOwned;

    /// Returns the bytes of the whole message, header included.
    fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        message::to_bytes(Self::ID, self)
    }
}
