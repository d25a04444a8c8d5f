//! CollectTracing 1 to 4: sessions with a stream that follows the reply on the same connection.

use super::{ProviderConfig, SessionId};
use crate::Keywords;
use crate::codec::open_enum;
use crate::payload::payload;
use alloc::vec::Vec;

open_enum! {
    /// The format of a session's stream; unknown formats are kept as numbers. On the wire a u32.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing".
    pub struct Format(u32) = "format" {
        /// The old format: current runtimes write version 3 of it.
        NETPERF = 0 "netperf";
        /// The current format: every runtime so far writes version 4 of it.
        NETTRACE = 1 "nettrace";
    }
}

/// The current format.
impl Default for Format {
    fn default() -> Self {
        Self::NETTRACE
    }
}

payload! {
    /// CollectTracing (0x0202): starts a session. Its stream follows the reply on the same connection.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 4 | u32 | buffer size in MB, not 0 |
    /// | 4 | 4 | u32 | [`Format`] |
    /// | 8 | … | array | [`ProviderConfig`]s, 1 to 1000 |
    ///
    /// A request outside these limits is answered with
    /// [`HResult::BAD_ENCODING`](crate::HResult::BAD_ENCODING), but not always: a buffer size of 0, or any
    /// other format, makes .NET 8 and 9 end with a segmentation fault. This applies to all CollectTracing
    /// commands; a client checks both before it sends one. After the error .NET Core 3.1 and .NET 8 close the
    /// connection, and .NET 9 and 10 leave it open.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing"; limits and errors as seen on .NET 3.1, 8, 9 and 10.
    command COLLECT_TRACING_1 -> SessionId =>
    pub struct CollectTracing1<P = Vec<ProviderConfig>> {
        /// The size of the runtime's buffer in MB (2²⁰ bytes); events that do not fit are dropped.
        pub buffer_mb: u32 = "buffer size",
        /// The format of the stream.
        pub format: Format = "format",
        /// The providers of events.
        pub providers: P = "providers",
    }
}

payload! {
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
    command COLLECT_TRACING_2 -> SessionId =>
    pub struct CollectTracing2<P = Vec<ProviderConfig>> {
        /// The size of the runtime's buffer in MB (2²⁰ bytes); events that do not fit are dropped.
        pub buffer_mb: u32 = "buffer size",
        /// The format of the stream.
        pub format: Format = "format",
        /// True if the runtime sends events for all methods and modules loaded so far when the session stops.
        pub request_rundown: bool = "request rundown",
        /// The providers of events.
        pub providers: P = "providers",
    }
}

payload! {
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
    /// Diagnostic IPC Protocol, "CollectTracing3"; its "Header" line has the code of CollectTracing2, and is
    /// wrong. Seen on .NET 9 and 10, unknown to 3.1 and 8.
    command COLLECT_TRACING_3 -> SessionId =>
    pub struct CollectTracing3<P = Vec<ProviderConfig>> {
        /// The size of the runtime's buffer in MB (2²⁰ bytes); events that do not fit are dropped.
        pub buffer_mb: u32 = "buffer size",
        /// The format of the stream.
        pub format: Format = "format",
        /// True if the runtime sends events for all methods and modules loaded so far when the session stops.
        pub request_rundown: bool = "request rundown",
        /// True to record the stack of its thread with each event.
        pub request_stackwalk: bool = "request stackwalk",
        /// The providers of events.
        pub providers: P = "providers",
    }
}

payload! {
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
    /// ```
    /// use dipc_wire::{CollectTracing4, Command as _, Format, Keywords, Level, ProviderConfig};
    ///
    /// let (name, keywords, level) = ("My.Source", Keywords::ALL, Level::VERBOSE);
    /// let providers = [ProviderConfig { name, keywords, level, arguments: "" }];
    /// let message = CollectTracing4 {
    ///     buffer_mb: 256,
    ///     format: Format::NETTRACE,
    ///     rundown_keyword: Keywords::NONE,
    ///     request_stackwalk: false,
    ///     providers: providers.as_slice(),
    /// }
    /// .to_bytes()?;
    /// assert_eq!(message[16..18], [0x02, 0x05]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "CollectTracing4"; seen on .NET 9 and 10, unknown to 3.1 and 8.
    command COLLECT_TRACING_4 -> SessionId =>
    pub struct CollectTracing4<P = Vec<ProviderConfig>> {
        /// The size of the runtime's buffer in MB (2²⁰ bytes); events that do not fit are dropped.
        pub buffer_mb: u32 = "buffer size",
        /// The format of the stream.
        pub format: Format = "format",
        /// Keywords of the rundown provider;
        /// [`DEFAULT_RUNDOWN_KEYWORD`](CollectTracing4::DEFAULT_RUNDOWN_KEYWORD) has the effect of
        /// `request_rundown` in the earlier commands.
        pub rundown_keyword: Keywords = "rundown keyword",
        /// True to record the stack of its thread with each event.
        pub request_stackwalk: bool = "request stackwalk",
        /// The providers of events.
        pub providers: P = "providers",
    }
}

impl CollectTracing4 {
    /// The rundown keyword with the same effect as `request_rundown: true` of [`CollectTracing2`].
    pub const DEFAULT_RUNDOWN_KEYWORD: Keywords = Keywords(0x8002_0139);
}
