//! CollectTracing 5 and 6: sessions with event filters, streaming or into user_events.

use super::{FilteredProviderConfig, Format, SessionId, UserEventsProviderConfig};
use crate::codec::{Decode, Decoder, Encode, Encoder, open_enum};
use crate::payload::payload;
use crate::{Command, CommandId, DecodeError, EncodeError, Keywords};
use alloc::vec::Vec;

/// `session_type` of a session with a stream that follows the reply.
const STREAMING: u32 = 0;
/// `session_type` of a session that writes to user_events.
const USER_EVENTS: u32 = 1;

payload! {
    /// A session with a stream that follows the reply on the same connection; the limits are the same as of
    /// [`CollectTracing1`](crate::CollectTracing1).
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 4 | u32 | buffer size in MB, not 0 |
    /// | 4 | 4 | u32 | [`Format`] |
    /// | 8 | 8 | u64 | rundown keyword, 0 for no rundown |
    /// | 16 | 1 | bool | request stacks |
    /// | 17 | … | array | [`FilteredProviderConfig`]s, 1 to 1000 |
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing5".
    pub struct StreamingSession<P = Vec<FilteredProviderConfig>> {
        /// The size of the runtime's buffer in MB (2²⁰ bytes); events that do not fit are dropped.
        pub buffer_mb: u32 = "buffer size",
        /// The format of the stream.
        pub format: Format = "format",
        /// Keywords of the rundown provider, as in [`CollectTracing4`](crate::CollectTracing4).
        pub rundown_keyword: Keywords = "rundown keyword",
        /// True to record the stack of its thread with each event.
        pub request_stackwalk: bool = "request stackwalk",
        /// The providers of events.
        pub providers: P = "providers",
    }
}

payload! {
    /// A session that writes to the kernel's user_events, on Linux only.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 8 | u64 | rundown keyword, 0 for no rundown |
    /// | 8 | … | array | [`UserEventsProviderConfig`]s, 1 to 1000 |
    ///
    /// After the request, and before its answer, the runtime expects one byte with the descriptor of
    /// `user_events_data` as its `SCM_RIGHTS`.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing5".
    pub struct UserEventsSession<P = Vec<UserEventsProviderConfig>> {
        /// Keywords of the rundown provider, as in [`CollectTracing4`](crate::CollectTracing4).
        pub rundown_keyword: Keywords = "rundown keyword",
        /// The providers of events and their tracepoints.
        pub providers: P = "providers",
    }
}

open_enum! {
    /// The behaviour of a session with a full buffer; unknown values are kept as numbers. On the wire a u32.
    ///
    /// # Source
    /// As in Microsoft's client, for .NET 11; unknown to .NET 10.
    pub struct BufferMode(u32) = "buffer mode" {
        /// Events are dropped, and counted.
        DROP = 0 "drop";
        /// The threads that write events block.
        BLOCK = 1 "block";
    }
}

/// Events are dropped.
impl Default for BufferMode {
    fn default() -> Self {
        Self::DROP
    }
}

payload! {
    /// A [`StreamingSession`] with a behaviour for a full buffer.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | … | | [`StreamingSession`] |
    /// | … | 4 | u32 | [`BufferMode`] |
    ///
    /// # Source
    /// As captured from Microsoft's client.
    pub struct StreamingSession6<P = Vec<FilteredProviderConfig>> {
        /// The session.
        pub session: StreamingSession<P> = "session",
        /// The behaviour when its buffer is full.
        pub buffer_mode: BufferMode = "buffer mode",
    }
}

/// Defines an enum of the two kinds of session, each under its number.
macro_rules! by_session_type {
    ($(#[$meta:meta])* pub enum $name:ident = $id:ident, $streaming:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name<S = $streaming, U = UserEventsSession> {
            /// The stream follows the reply.
            Streaming(S),
            /// Events are written to user_events.
            UserEvents(U),
        }

        impl<S: Encode, U: Encode> Encode for $name<S, U> {
            fn encode(&self, encoder: &mut Encoder, field: &'static str) -> Result<(), EncodeError> {
                match self {
                    Self::Streaming(session) => {
                        encoder.u32(STREAMING);
                        session.encode(encoder, field)
                    }
                    Self::UserEvents(session) => {
                        encoder.u32(USER_EVENTS);
                        session.encode(encoder, field)
                    }
                }
            }
        }

        impl<'a, S: Decode<'a>, U: Decode<'a>> Decode<'a> for $name<S, U> {
            const MIN_LEN: usize = 4;

            fn decode(decoder: &mut Decoder<'a>, field: &'static str) -> Result<Self, DecodeError> {
                let offset = decoder.offset();
                match decoder.u32("session type")? {
                    STREAMING => S::decode(decoder, field).map(Self::Streaming),
                    USER_EVENTS => U::decode(decoder, field).map(Self::UserEvents),
                    found => Err(DecodeError::UnknownSessionType { offset, found }),
                }
            }
        }

        impl<S: Encode, U: Encode> Command for $name<S, U> {
            const ID: CommandId = CommandId::$id;
            type Reply = SessionId;
        }
    };
}

by_session_type! {
    /// CollectTracing5 (0x0206): [`CollectTracing4`](crate::CollectTracing4) with event filters, or a session
    /// that writes to user_events.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 4 | u32 | session type: 0 streaming, 1 user_events |
    /// | 4 | … | | [`StreamingSession`] or [`UserEventsSession`] |
    ///
    /// ```
    /// use dipc_wire::{CollectTracing5, Command as _, StreamingSession};
    /// use dipc_wire::{FilteredProviderConfig, ProviderConfig};
    ///
    /// let provider = ProviderConfig { name: "My.Source".to_owned(), ..ProviderConfig::default() };
    /// let session = StreamingSession {
    ///     buffer_mb: 64,
    ///     providers: vec![FilteredProviderConfig::from(provider)],
    ///     ..StreamingSession::default()
    /// };
    /// let message = CollectTracing5::<_>::Streaming(session).to_bytes()?;
    /// assert_eq!(message[16..18], [0x02, 0x06]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing5"; seen on .NET 10, unknown to 9.
    pub enum CollectTracing5 = COLLECT_TRACING_5, StreamingSession
}

by_session_type! {
    /// CollectTracing6 (0x0207): [`CollectTracing5`] with a behaviour for a full buffer.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 4 | u32 | session type: 0 streaming, 1 user_events |
    /// | 4 | … | | [`StreamingSession6`] or [`UserEventsSession`] |
    ///
    /// # Source
    /// As captured from Microsoft's client, for .NET 11; unknown to .NET 10.
    pub enum CollectTracing6 = COLLECT_TRACING_6, StreamingSession6
}
