//! The command set Dump: writing core dumps.

use crate::HResult;
use crate::codec::open_enum;
use crate::payload::payload;
use alloc::string::String;

open_enum! {
    /// The contents of a core dump. On the wire a u32.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "GenerateCoreDump"; 0 and 5 are refused by .NET 9 and 10.
    pub struct DumpType(u32) = "dump type" {
        /// Stacks, modules, threads and handles.
        NORMAL = 1 "Normal";
        /// The same plus the GC heaps.
        WITH_HEAP = 2 "WithHeap";
        /// As normal, without recognised paths and passwords.
        TRIAGE = 3 "Triage";
        /// All memory of the process.
        FULL = 4 "Full";
    }
}

/// All memory, the default of `dotnet-dump collect`.
impl Default for DumpType {
    fn default() -> Self {
        Self::FULL
    }
}

/// The options of a core dump, as bits; unknown bits are kept. On the wire a u32.
///
/// # Source
/// Diagnostic IPC Protocol, "GenerateCoreDump2".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DumpFlags(pub u32);

impl DumpFlags {
    /// No options.
    pub const NONE: Self = Self(0);
    /// `createdump` logs to the console of the *target*.
    pub const LOGGING: Self = Self(1);
    /// `createdump` logs more.
    pub const VERBOSE_LOGGING: Self = Self(2);
    /// A crash report, in JSON, is written next to the dump. Not on Windows.
    pub const CRASH_REPORT: Self = Self(4);

    /// Returns whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl core::ops::BitOr for DumpFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

crate::codec::transparent!(DumpFlags(u32));

/// Defines a dump command. All three have the same payload.
macro_rules! generate_core_dump {
    ($(#[$meta:meta])* $command:ident = $id:ident) => {
        payload! {
            $(#[$meta])*
            ///
            /// | offset | size | type | meaning |
            /// |---|---|---|---|
            /// | 0 | … | string | path of the dump, on the *target's* filesystem |
            /// | … | 4 | u32 | [`DumpType`], 1 to 4 |
            /// | … | 4 | u32 | [`DumpFlags`] |
            ///
            /// The reply is sent when the dump is complete; until then the runtime serves no other client. If
            /// `createdump` cannot be run, .NET 9 deletes its own socket and is unreachable from then on.
            command $id -> HResult =>
            pub struct $command<S = String> {
                /// The path of the dump, as the target sees its files; written by the target's user. `%p` and
                /// the like are replaced as in `DOTNET_DbgMiniDumpName`.
                pub path: S = "dump path",
                /// The contents.
                pub dump_type: DumpType = "dump type",
                /// The options.
                pub flags: DumpFlags = "dump flags",
            }
        }
    };
}

generate_core_dump! {
    /// GenerateCoreDump (0x0101): writes a core dump. [`DumpFlags::LOGGING`] is the only flag that it
    /// supports.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "GenerateCoreDump"; seen on .NET 3.1 to 10.
    GenerateCoreDump1 = GENERATE_CORE_DUMP_1
}

generate_core_dump! {
    /// GenerateCoreDump2 (0x0102): writes a core dump, with flags.
    ///
    /// # Source
    /// As in Microsoft's client; not in the text. Seen on .NET 9 and 10, unknown to 3.1.
    GenerateCoreDump2 = GENERATE_CORE_DUMP_2
}

generate_core_dump! {
    /// GenerateCoreDump3 (0x0103): writes a core dump, with flags; an error has the reason as text
    /// ([`ServerError::detail`](crate::ServerError)).
    ///
    /// ```
    /// use dipc_wire::{Command as _, DumpFlags, DumpType, GenerateCoreDump3};
    ///
    /// let dump = GenerateCoreDump3 {
    ///     path: "/tmp/core.%p",
    ///     dump_type: DumpType::WITH_HEAP,
    ///     flags: DumpFlags::LOGGING | DumpFlags::CRASH_REPORT,
    /// };
    /// assert!(dump.flags.contains(DumpFlags::CRASH_REPORT));
    /// assert_eq!(dump.to_bytes()?[16..18], [0x01, 0x03]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// As in Microsoft's client; not in the text. Seen on .NET 9 and 10, unknown to 3.1.
    GenerateCoreDump3 = GENERATE_CORE_DUMP_3
}
