//! The versions of .NET that can be simulated.

mod table;

pub(crate) use table::Quirk;

use dipc_wire::{CommandId, HResult};
use std::fmt;
use std::str::FromStr;

/// A version of .NET, as seen by a client of its diagnostic port.
///
/// The answers of 3.1.23, 9.0.1, 10.0.5 and NativeAOT 9.0.20 were observed under Linux, the answers of 8 on
/// 8.0.28, NativeAOT 8.0 and in recorded conversations with 8.0.33. 6 and 11 were unavailable: their commands
/// are from the protocol's text and the runtime's history, and otherwise they answer like the nearest
/// version.
///
/// | | 3.1 | 6 | 8 | 9 | 10 | 11 | nativeaot-9 |
/// |---|---|---|---|---|---|---|---|
/// | CollectTracing 1, 2, StopTracing | yes | yes | yes | yes | yes | yes | yes |
/// | CollectTracing 3, 4 | no | no | no | yes | yes | yes | yes |
/// | CollectTracing 5 | no | no | no | no | yes | yes | no |
/// | CollectTracing 6 | no | no | no | no | no | yes | no |
/// | GenerateCoreDump | yes | yes | yes | yes | yes | yes | fails |
/// | GenerateCoreDump2 | no | yes | yes | yes | yes | yes | fails |
/// | GenerateCoreDump3 | no | no | yes | yes | yes | yes | fails |
/// | AttachProfiler | yes | yes | yes | yes | yes | yes | unsupported |
/// | StartupProfiler | bad encoding | yes | yes | yes | yes | yes | unsupported |
/// | ProcessInfo 1, 2, ProcessEnvironment, SetEnvironmentVariable, ResumeRuntime | no | yes | yes | yes | yes | yes | yes |
/// | ProcessInfo3 | no | no | yes | yes | yes | yes | yes |
/// | EnablePerfMap, DisablePerfMap, ApplyStartupHook | no | no | yes | yes | yes | yes | unsupported |
/// | after the error for a bad CollectTracing | closes | closes | closes | open | open | open | open |
/// | buffer size 0, or an unknown format | error | dies | dies | dies | error | error | dies |
/// | a startup hook for a running process that does not exist | no | no | error | dies | ok | ok | unsupported |
/// | bad payload of a Dump or Process command | error | dies | dies | dies | dies | dies | dies |
///
/// "no" is [`HResult::UNKNOWN_COMMAND`], "bad encoding" [`HResult::BAD_ENCODING`], "unsupported"
/// [`HResult::NOT_SUPPORTED`].
///
/// ```
/// use dipc_sim::{CommandId, Version};
///
/// let old: Version = "3.1".parse()?;
/// assert!(!old.supports(CommandId::PROCESS_INFO_3) && Version::NET9.supports(CommandId::PROCESS_INFO_3));
/// assert_eq!(Version::ALL.len(), 7);
/// # Ok::<(), dipc_sim::ParseVersionError>(())
/// ```
///
/// # Source
/// In addition to observation: Diagnostic IPC Protocol, "Available since" of each command; GenerateCoreDump2
/// in .NET 6 as of dotnet/diagnostics pull request 2715, CollectTracing3 in .NET 9 as of dotnet/runtime pull
/// request 84077, CollectTracing6 in .NET 11 as of dotnet/runtime pull request 129457;
/// `src/native/eventpipe/ds-*-protocol.c` of dotnet/runtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    /// The column of the tables.
    column: usize,
}

impl Version {
    /// .NET Core 3.1: sessions, one form of dump, and attached profilers.
    pub const NET3_1: Self = Self { column: 0 };
    /// .NET 6.
    pub const NET6: Self = Self { column: 1 };
    /// .NET 8.
    pub const NET8: Self = Self { column: 2 };
    /// .NET 9.
    pub const NET9: Self = Self { column: 3 };
    /// .NET 10.
    pub const NET10: Self = Self { column: 4 };
    /// .NET 11.
    pub const NET11: Self = Self { column: 5 };
    /// .NET 9 compiled ahead of time: no profilers, perf maps, startup hooks or dumps.
    pub const NATIVE_AOT_9: Self = Self { column: 6 };

    /// All versions, oldest first, with ahead-of-time compiled versions last.
    pub const ALL: &'static [Self] =
        &[Self::NET3_1, Self::NET6, Self::NET8, Self::NET9, Self::NET10, Self::NET11, Self::NATIVE_AOT_9];

    /// Returns the name and the product version.
    fn names(self) -> (&'static str, &'static str) {
        table::NAMES.get(self.column).copied().unwrap_or_default()
    }

    /// Returns the product version that ProcessInfo reports unless an [`Identity`](crate::Identity) sets
    /// another.
    pub fn clr_version(self) -> &'static str {
        self.names().1
    }

    /// Returns true if the version supports the command.
    pub fn supports(self, command: CommandId) -> bool {
        self.refusal(command).is_none()
    }

    /// Returns the error with which the version answers an unsupported command; `None` if it supports the
    /// command.
    pub fn refusal(self, command: CommandId) -> Option<HResult> {
        table::refusal(command, self.column)
    }

    pub(crate) fn has(self, quirk: Quirk) -> bool {
        table::has(quirk, self.column)
    }
}

/// Prints the version as `3.1` or `9`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.names().0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// The text does not name a simulated version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a version that can be simulated (3.1, 6, 8, 9, 10, 11 or nativeaot-9)")]
pub struct ParseVersionError {
    text: String,
}

/// Parses `3.1`, `6`, `8`, `9`, `10`, `11` or `nativeaot-9`; also with `.0` after a whole number.
impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_suffix(".0").unwrap_or(text);
        let found = Self::ALL.iter().find(|version| version.names().0 == name);
        found.copied().ok_or_else(|| ParseVersionError { text: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        for version in Version::ALL {
            assert_eq!(version.to_string().parse(), Ok(*version));
            assert!(!version.clr_version().is_empty());
        }
        assert_eq!("9.0".parse(), Ok(Version::NET9));
        let error = "7".parse::<Version>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"7\" is not a version that can be simulated (3.1, 6, 8, 9, 10, 11 or nativeaot-9)"
        );
    }

    #[test]
    fn each_version_supports_the_commands_of_its_predecessor() {
        let released = Version::ALL.get(..6).unwrap();
        for pair in released.windows(2) {
            for command in CommandId::NAMED {
                assert!(
                    !pair[0].supports(*command) || pair[1].supports(*command),
                    "{command} in {}",
                    pair[1]
                );
            }
        }
        assert!(Version::NET11.supports(CommandId::COLLECT_TRACING_6));
        assert!(!Version::NET10.supports(CommandId::COLLECT_TRACING_6));
    }

    #[test]
    fn an_unsupported_command_is_refused_with_the_error_of_the_version() {
        let profiler = CommandId { id: 9, ..CommandId::ATTACH_PROFILER };
        for (version, command, refusal) in [
            (Version::NET3_1, CommandId::PROCESS_INFO_1, HResult::UNKNOWN_COMMAND),
            (Version::NET3_1, CommandId::STARTUP_PROFILER, HResult::BAD_ENCODING),
            (Version::NET3_1, profiler, HResult::BAD_ENCODING),
            (Version::NET10, profiler, HResult::UNKNOWN_COMMAND),
            (Version::NET10, CommandId::OK, HResult::UNKNOWN_COMMAND),
            (Version::NATIVE_AOT_9, CommandId::ENABLE_PERF_MAP, HResult::NOT_SUPPORTED),
            (Version::NATIVE_AOT_9, profiler, HResult::NOT_SUPPORTED),
            (Version::NATIVE_AOT_9, CommandId::COLLECT_TRACING_5, HResult::UNKNOWN_COMMAND),
        ] {
            assert_eq!(version.refusal(command), Some(refusal), "{command} in {version}");
        }
    }
}
