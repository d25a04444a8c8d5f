//! The command set Profiler: loading a profiler into the process.

use crate::HResult;
use crate::payload::payload;
use alloc::string::String;
use alloc::vec::Vec;
use uuid::Uuid;

payload! {
    /// AttachProfiler (0x0301): loads a profiler into a running process.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 4 | u32 | time-out in milliseconds |
    /// | 4 | 16 | GUID | class of the profiler |
    /// | 20 | … | string | path of its library, on the *target's* filesystem |
    /// | … | … | array | bytes for the profiler |
    ///
    /// The reply is sent when the profiler has been loaded or has failed to load.
    ///
    /// ```
    /// use dipc_wire::{AttachProfiler, Command as _, Uuid};
    ///
    /// let attach = AttachProfiler {
    ///     timeout_ms: 10_000,
    ///     profiler: Uuid::from_u128(0xcf0d_821e_299b_5307_a3d8_b283_c035_76ad),
    ///     path: "/opt/profiler.so",
    ///     client_data: Vec::<u8>::new(),
    /// };
    /// assert_eq!(attach.to_bytes()?[16..18], [0x03, 0x01]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "AttachProfiler"; the time-out's unit as in the text, its `clientDataSize` is
    /// the array's count. Microsoft's client writes the number of seconds as if it were milliseconds.
    command ATTACH_PROFILER -> HResult =>
    pub struct AttachProfiler<S = String, B = Vec<u8>> {
        /// The time that the runtime waits for the profiler, in milliseconds.
        pub timeout_ms: u32 = "attach timeout",
        /// The class (CLSID) that the library creates.
        pub profiler: Uuid = "profiler class",
        /// The library, as the target sees its files.
        pub path: S = "profiler path",
        /// The data that the profiler receives.
        pub client_data: B = "client data",
    }
}

payload! {
    /// StartupProfiler (0x0302): names the profiler of a process that is still suspended at its start.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 16 | GUID | class of the profiler |
    /// | 16 | … | string | path of its library, on the *target's* filesystem |
    ///
    /// A running .NET 9 answers OK, and does nothing.
    ///
    /// # Source
    /// As in Microsoft's client; the text only names it. Seen on .NET 9 and 10. .NET Core 3.1 answers
    /// [`HResult::BAD_ENCODING`] instead of reporting an unknown command.
    command STARTUP_PROFILER -> HResult =>
    pub struct StartupProfiler<S = String> {
        /// The class (CLSID) that the library creates.
        pub profiler: Uuid = "profiler class",
        /// The library, as the target sees its files.
        pub path: S = "profiler path",
    }
}
