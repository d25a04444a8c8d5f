//! The command set EventPipe: starting and stopping sessions.

mod collect;
mod filtered;
mod provider;

pub use collect::{CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4, Format};
pub use filtered::{
    BufferMode, CollectTracing5, CollectTracing6, StreamingSession, StreamingSession6, UserEventsSession,
};
pub use provider::{
    EventFilter, FilteredProviderConfig, ProviderConfig, TracepointConfig, TracepointSet,
    UserEventsProviderConfig,
};

use crate::codec::transparent;
use crate::payload::payload;
use core::fmt;

/// The id of a session within its runtime. It looks like an address and is reused once the session has ended.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 8 | u64 | the id |
///
/// ```
/// use dipc_wire::{CollectTracing2, Feed, MessageReader, SessionId, decode_reply, encode_ok};
///
/// # let received = encode_ok(&SessionId(7))?;
/// let Feed::Message { message, .. } = MessageReader::new().feed(&received)? else { return Ok(()) };
/// // Keep it: StopTracing needs it.
/// let session = decode_reply::<CollectTracing2>(&message)??;
/// assert_eq!(session, SessionId(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "CollectTracing".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

transparent!(SessionId(u64));

/// Prints the id in hexadecimal.
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

payload! {
    /// StopTracing (0x0201): ends a session. It goes over a second connection while the session's own is
    /// still being read: the reply is sent only after the runtime has written the rundown.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 8 | u64 | [`SessionId`] |
    ///
    /// The reply is the same id, also for a session that does not exist.
    ///
    /// ```
    /// use dipc_wire::{Command as _, SessionId, StopTracing};
    ///
    /// // On a connection of its own; the stream's connection ends after the rundown.
    /// let message = StopTracing { session: SessionId(7) }.to_bytes()?;
    /// assert_eq!(message.len(), 28);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "StopTracing"; the unknown id as seen on .NET 3.1 to 10.
    command STOP_TRACING -> SessionId =>
    pub struct StopTracing {
        /// The session.
        pub session: SessionId = "session id",
    }
}
