//! The command set EventPipe: starting and stopping sessions.

use super::{Command, CommandId};
use crate::codec::{Decoder, Encoder, Payload};
use crate::{DecodeError, EncodeError};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The format of a session's stream; an unknown one is kept as its number. On the wire a u32.
///
/// # Source
/// Diagnostic IPC Protocol, "CollectTracing".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Format(pub u32);

impl Format {
    /// The old format, `netperf`: version 3 of it comes from current runtimes.
    pub const NETPERF: Self = Self(0);
    /// The current format, `nettrace`: version 4 from every runtime so far.
    pub const NETTRACE: Self = Self(1);

    /// The format's name, if it is a known one.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::NETPERF => Some("netperf"),
            Self::NETTRACE => Some("nettrace"),
            _ => None,
        }
    }
}

/// The current format.
impl Default for Format {
    fn default() -> Self {
        Self::NETTRACE
    }
}

/// Prints the format's name, or its number if it has none.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "format {}", self.0),
        }
    }
}

impl Payload for Format {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u32(self.0);
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.u32("format").map(Self)
    }
}

/// A provider of events and what is wanted from it.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 8 | u64 | keywords |
/// | 8 | 4 | u32 | level, 0 to 5 |
/// | 12 | … | string | name, not empty |
/// | … | … | string | arguments, `Name=value;…` |
///
/// # Source
/// Diagnostic IPC Protocol, "CollectTracing".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProviderConfig {
    /// Bit mask of the event groups that are wanted.
    pub keywords: u64,
    /// How verbose: 0 log always, 1 critical, 2 error, 3 warning, 4 informational, 5 verbose.
    pub level: u32,
    /// The provider's name.
    pub name: String,
    /// Arguments for the provider, empty for none.
    pub arguments: String,
}

impl ProviderConfig {
    /// The fewest bytes a provider takes: keywords, level and two empty strings.
    const MIN_LEN: usize = 20;
}

impl Payload for ProviderConfig {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u64(self.keywords);
        encoder.u32(self.level);
        encoder.string(&self.name, "provider name")?;
        encoder.string(&self.arguments, "provider arguments")
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            keywords: decoder.u64("keywords")?,
            level: decoder.u32("level")?,
            name: decoder.string("provider name")?,
            arguments: decoder.string("provider arguments")?,
        })
    }
}

/// Names a session within its runtime. It looks like an address and is reused once the session has ended.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 8 | u64 | the id |
///
/// # Source
/// Diagnostic IPC Protocol, "CollectTracing".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Prints the id in hexadecimal.
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Payload for SessionId {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u64(self.0);
        Ok(())
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.u64("session id").map(Self)
    }
}

/// CollectTracing (0x0202): starts a session whose stream follows the reply on the same connection.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | u32 | buffer size in MB, not 0 |
/// | 4 | 4 | u32 | [`Format`] |
/// | 8 | … | array | [`ProviderConfig`]s, 1 to 1000 |
///
/// A request outside these limits is answered with [`HResult::BAD_ENCODING`](crate::HResult::BAD_ENCODING), but not always: a buffer
/// size of 0, or a format other than the two, makes .NET 8 and 9 end with a segmentation fault. All CollectTracing commands are alike in this;
/// a client checks both before it sends one. After the error the connection is closed by .NET Core 3.1 and .NET 8, and left open by .NET 9 and 10.
///
/// # Source
/// Diagnostic IPC Protocol, "CollectTracing"; limits and errors as seen on .NET 3.1, 8, 9 and 10.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CollectTracing1 {
    /// How much the runtime buffers before it drops events, in MB (2²⁰ bytes).
    pub buffer_mb: u32,
    /// The format of the stream.
    pub format: Format,
    /// Whose events are wanted.
    pub providers: Vec<ProviderConfig>,
}

impl Payload for CollectTracing1 {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u32(self.buffer_mb);
        self.format.encode(encoder)?;
        encoder.array(&self.providers, "providers")
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            buffer_mb: decoder.u32("buffer size")?,
            format: Format::decode(decoder)?,
            providers: decoder.array(ProviderConfig::MIN_LEN, "providers")?,
        })
    }
}

impl Command for CollectTracing1 {
    const ID: CommandId = CommandId::COLLECT_TRACING_1;
    const NAME: &'static str = "CollectTracing";
    type Reply = SessionId;
}

/// CollectTracing2 (0x0203): [`CollectTracing1`], with or without rundown.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | u32 | buffer size in MB, not 0 |
/// | 4 | 4 | u32 | [`Format`] |
/// | 8 | 1 | bool | request rundown |
/// | 9 | … | array | [`ProviderConfig`]s, 1 to 1000 |
///
/// # Source
/// Diagnostic IPC Protocol, "CollectTracing2"; seen on .NET 3.1 to 10.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CollectTracing2 {
    /// How much the runtime buffers before it drops events, in MB (2²⁰ bytes).
    pub buffer_mb: u32,
    /// The format of the stream.
    pub format: Format,
    /// Whether the runtime sends, when the session stops, the events that name the methods and modules of its life so far.
    pub request_rundown: bool,
    /// Whose events are wanted.
    pub providers: Vec<ProviderConfig>,
}

impl Payload for CollectTracing2 {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u32(self.buffer_mb);
        self.format.encode(encoder)?;
        encoder.bool(self.request_rundown);
        encoder.array(&self.providers, "providers")
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            buffer_mb: decoder.u32("buffer size")?,
            format: Format::decode(decoder)?,
            request_rundown: decoder.bool("request rundown")?,
            providers: decoder.array(ProviderConfig::MIN_LEN, "providers")?,
        })
    }
}

impl Command for CollectTracing2 {
    const ID: CommandId = CommandId::COLLECT_TRACING_2;
    const NAME: &'static str = "CollectTracing2";
    type Reply = SessionId;
}

/// CollectTracing3 (0x0204): [`CollectTracing2`], with or without a stack for each event.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | u32 | buffer size in MB, not 0 |
/// | 4 | 4 | u32 | [`Format`] |
/// | 8 | 1 | bool | request rundown |
/// | 9 | 1 | bool | request stacks |
/// | 10 | … | array | [`ProviderConfig`]s, 1 to 1000 |
///
/// # Source
/// Diagnostic IPC Protocol, "CollectTracing3"; its "Header" line has the code of CollectTracing2, and is wrong. Seen on .NET 9 and 10,
/// unknown to 3.1 and 8.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CollectTracing3 {
    /// How much the runtime buffers before it drops events, in MB (2²⁰ bytes).
    pub buffer_mb: u32,
    /// The format of the stream.
    pub format: Format,
    /// Whether the runtime sends, when the session stops, the events that name the methods and modules of its life so far.
    pub request_rundown: bool,
    /// Whether each event comes with the stack of its thread.
    pub request_stackwalk: bool,
    /// Whose events are wanted.
    pub providers: Vec<ProviderConfig>,
}

impl Payload for CollectTracing3 {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u32(self.buffer_mb);
        self.format.encode(encoder)?;
        encoder.bool(self.request_rundown);
        encoder.bool(self.request_stackwalk);
        encoder.array(&self.providers, "providers")
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            buffer_mb: decoder.u32("buffer size")?,
            format: Format::decode(decoder)?,
            request_rundown: decoder.bool("request rundown")?,
            request_stackwalk: decoder.bool("request stackwalk")?,
            providers: decoder.array(ProviderConfig::MIN_LEN, "providers")?,
        })
    }
}

impl Command for CollectTracing3 {
    const ID: CommandId = CommandId::COLLECT_TRACING_3;
    const NAME: &'static str = "CollectTracing3";
    type Reply = SessionId;
}

/// CollectTracing4 (0x0205): [`CollectTracing3`], with the rundown events chosen by keyword.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | u32 | buffer size in MB, not 0 |
/// | 4 | 4 | u32 | [`Format`] |
/// | 8 | 8 | u64 | rundown keyword, 0 for no rundown |
/// | 16 | 1 | bool | request stacks |
/// | 17 | … | array | [`ProviderConfig`]s, 1 to 1000 |
///
/// # Source
/// Diagnostic IPC Protocol, "CollectTracing4"; seen on .NET 9 and 10, unknown to 3.1 and 8.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CollectTracing4 {
    /// How much the runtime buffers before it drops events, in MB (2²⁰ bytes).
    pub buffer_mb: u32,
    /// The format of the stream.
    pub format: Format,
    /// Keywords of the rundown provider; [`DEFAULT_RUNDOWN_KEYWORD`](Self::DEFAULT_RUNDOWN_KEYWORD) is what
    /// `request_rundown` of the earlier commands asks for.
    pub rundown_keyword: u64,
    /// Whether each event comes with the stack of its thread.
    pub request_stackwalk: bool,
    /// Whose events are wanted.
    pub providers: Vec<ProviderConfig>,
}

impl CollectTracing4 {
    /// The rundown keyword with the same effect as `request_rundown: true` of [`CollectTracing2`].
    pub const DEFAULT_RUNDOWN_KEYWORD: u64 = 0x8002_0139;
}

impl Payload for CollectTracing4 {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.u32(self.buffer_mb);
        self.format.encode(encoder)?;
        encoder.u64(self.rundown_keyword);
        encoder.bool(self.request_stackwalk);
        encoder.array(&self.providers, "providers")
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            buffer_mb: decoder.u32("buffer size")?,
            format: Format::decode(decoder)?,
            rundown_keyword: decoder.u64("rundown keyword")?,
            request_stackwalk: decoder.bool("request stackwalk")?,
            providers: decoder.array(ProviderConfig::MIN_LEN, "providers")?,
        })
    }
}

impl Command for CollectTracing4 {
    const ID: CommandId = CommandId::COLLECT_TRACING_4;
    const NAME: &'static str = "CollectTracing4";
    type Reply = SessionId;
}

/// StopTracing (0x0201): ends a session. It goes over a second connection while the session's own is still being read:
/// its reply comes only after the runtime has written the rundown.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 8 | u64 | [`SessionId`] |
///
/// The reply is the same id, also for a session that does not exist.
///
/// # Source
/// Diagnostic IPC Protocol, "StopTracing"; the unknown id as seen on .NET 3.1 to 10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StopTracing(pub SessionId);

impl Payload for StopTracing {
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        self.0.encode(encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        SessionId::decode(decoder).map(Self)
    }
}

impl Command for StopTracing {
    const ID: CommandId = CommandId::STOP_TRACING;
    const NAME: &'static str = "StopTracing";
    type Reply = SessionId;
}
