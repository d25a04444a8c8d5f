//! What the versions of .NET know, and how they fail.

use dipc_wire::CommandId;
use std::fmt;
use std::str::FromStr;

/// A version of .NET, as far as its diagnostic port is concerned.
///
/// What each knows was seen on 3.1.23, 8.0 and 9.0.20 (NativeAOT), 9.0.1 and 10.0.5.
///
/// | | 3.1 | 8 | 9 | 10 |
/// |---|---|---|---|---|
/// | CollectTracing 1, 2, StopTracing | yes | yes | yes | yes |
/// | CollectTracing 3, 4 | no | no | yes | yes |
/// | ProcessInfo 1–3, ProcessEnvironment, ResumeRuntime | no | yes | yes | yes |
/// | after the error for a bad CollectTracing | closes | closes | stays open | stays open |
/// | buffer size 0, or an unknown format | error | dies | dies | error |
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(&'static Traits);

#[derive(PartialEq, Eq, Hash)]
struct Traits {
    name: &'static str,
    clr_version: &'static str,
    commands: &'static [CommandId],
    keeps_open_after_bad_collect: bool,
    dies_of_bad_buffer: bool,
}

impl Version {
    /// .NET Core 3.1: sessions and nothing else.
    pub const NET3_1: Self = Self(&Traits {
        name: "3.1",
        clr_version: "3.1.23",
        commands: &[CommandId::COLLECT_TRACING_1, CommandId::COLLECT_TRACING_2, CommandId::STOP_TRACING],
        keeps_open_after_bad_collect: false,
        dies_of_bad_buffer: false,
    });
    /// .NET 8.
    pub const NET8: Self = Self(&Traits {
        name: "8",
        clr_version: "8.0.33",
        commands: &[
            CommandId::COLLECT_TRACING_1,
            CommandId::COLLECT_TRACING_2,
            CommandId::STOP_TRACING,
            CommandId::PROCESS_INFO_1,
            CommandId::PROCESS_INFO_2,
            CommandId::PROCESS_INFO_3,
            CommandId::PROCESS_ENVIRONMENT,
            CommandId::RESUME_RUNTIME,
        ],
        keeps_open_after_bad_collect: false,
        dies_of_bad_buffer: true,
    });
    /// .NET 9.
    pub const NET9: Self = Self(&Traits {
        name: "9",
        clr_version: "9.0.1",
        commands: EVERY_COMMAND,
        keeps_open_after_bad_collect: true,
        dies_of_bad_buffer: true,
    });
    /// .NET 10.
    pub const NET10: Self = Self(&Traits {
        name: "10",
        clr_version: "10.0.5",
        commands: EVERY_COMMAND,
        keeps_open_after_bad_collect: true,
        dies_of_bad_buffer: false,
    });

    /// All versions, oldest first.
    pub const ALL: &'static [Self] = &[Self::NET3_1, Self::NET8, Self::NET9, Self::NET10];

    /// The product version that the runtime says it has, unless the [`Identity`](crate::Identity) says another one.
    pub const fn clr_version(self) -> &'static str {
        self.0.clr_version
    }

    /// Whether the version has the command, and the simulation too.
    pub fn knows(self, command: CommandId) -> bool {
        self.0.commands.contains(&command)
    }

    /// Whether the connection stays open after the error that answers a bad CollectTracing.
    pub(crate) const fn keeps_open_after_bad_collect(self) -> bool {
        self.0.keeps_open_after_bad_collect
    }

    /// Whether a buffer size of 0 or an unknown format ends the process.
    pub(crate) const fn dies_of_bad_buffer(self) -> bool {
        self.0.dies_of_bad_buffer
    }
}

/// What the simulation can do at most.
const EVERY_COMMAND: &[CommandId] = &[
    CommandId::COLLECT_TRACING_1,
    CommandId::COLLECT_TRACING_2,
    CommandId::COLLECT_TRACING_3,
    CommandId::COLLECT_TRACING_4,
    CommandId::STOP_TRACING,
    CommandId::PROCESS_INFO_1,
    CommandId::PROCESS_INFO_2,
    CommandId::PROCESS_INFO_3,
    CommandId::PROCESS_ENVIRONMENT,
    CommandId::RESUME_RUNTIME,
];

/// Prints the version as `3.1` or `9`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// The text does not name a simulated version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a version that can be simulated (3.1, 8, 9 or 10)")]
pub struct ParseVersionError {
    text: String,
}

/// Reads `3.1`, `8`, `9` or `10`; also with `.0` behind the latter.
impl FromStr for Version {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_suffix(".0").unwrap_or(text);
        let found = Self::ALL.iter().find(|version| version.0.name == name);
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
        }
        assert_eq!("9.0".parse(), Ok(Version::NET9));
        let error = "7".parse::<Version>().unwrap_err();
        assert_eq!(error.to_string(), "\"7\" is not a version that can be simulated (3.1, 8, 9 or 10)");
    }

    #[test]
    fn only_3_1_has_no_process_commands() {
        for version in Version::ALL {
            assert_eq!(version.knows(CommandId::PROCESS_INFO_1), *version != Version::NET3_1, "{version}");
            assert!(version.knows(CommandId::COLLECT_TRACING_2) && version.knows(CommandId::STOP_TRACING));
            assert!(!version.knows(CommandId::COLLECT_TRACING_6) && !version.knows(CommandId::ERROR));
        }
    }
}
