//! Files that give `perf` the names of jitted code.

use crate::HResult;
use crate::codec::open_enum;
use crate::payload::payload;

open_enum! {
    /// The files that are written for `perf`: to `/tmp`, whatever `TMPDIR` is, or to
    /// `DOTNET_PerfMapJitDumpPath`. On the wire a u32.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "EnablePerfMap".
    pub struct PerfMapType(u32) = "perf map type" {
        /// No files.
        DISABLED = 0 "disabled";
        /// Both files.
        ALL = 1 "all";
        /// `jit-{pid}.dump`, with code bytes.
        JIT_DUMP = 2 "jitdump";
        /// `perf-{pid}.map`: address, size and name in each line.
        PERF_MAP = 3 "perfmap";
    }
}

/// Both files.
impl Default for PerfMapType {
    fn default() -> Self {
        Self::ALL
    }
}

payload! {
    /// EnablePerfMap (0x0405): begins writing the files that give `perf` the names of jitted code.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 4 | u32 | [`PerfMapType`] |
    ///
    /// ```
    /// use dipc_wire::{Command as _, EnablePerfMap, PerfMapType};
    ///
    /// // `perf report` then has names for jitted code.
    /// let message = EnablePerfMap { kind: PerfMapType::PERF_MAP }.to_bytes()?;
    /// assert_eq!(message[20..], [3, 0, 0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "EnablePerfMap"; seen on .NET 9 and 10, unknown to 3.1.
    command ENABLE_PERF_MAP -> HResult =>
    pub struct EnablePerfMap {
        /// The files.
        pub kind: PerfMapType = "perf map type",
    }
}

payload! {
    /// DisablePerfMap (0x0406): stops writing the files. The request is without payload.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "DisablePerfMap"; its "Header" line has the code of EnablePerfMap, and is
    /// wrong. Seen on .NET 9 and 10, unknown to 3.1.
    command DISABLE_PERF_MAP -> HResult =>
    pub struct DisablePerfMap;
}
