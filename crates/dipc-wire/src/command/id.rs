//! Ids of commands and replies.

use core::fmt;

/// A group of commands; unknown groups are kept as numbers.
///
/// # Source
/// Diagnostic IPC Protocol, "Commands".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandSet(pub u8);

impl CommandSet {
    /// Writing core dumps.
    pub const DUMP: Self = Self(0x01);
    /// EventPipe sessions.
    pub const EVENT_PIPE: Self = Self(0x02);
    /// Attaching profilers.
    pub const PROFILER: Self = Self(0x03);
    /// Information about the process, and settings of its runtime.
    pub const PROCESS: Self = Self(0x04);
    /// Replies.
    pub const SERVER: Self = Self(0xff);

    /// Returns the set's name in the protocol's text, if it is a known one.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::DUMP => "Dump",
            Self::EVENT_PIPE => "EventPipe",
            Self::PROFILER => "Profiler",
            Self::PROCESS => "Process",
            Self::SERVER => "Server",
            _ => return None,
        })
    }
}

/// Prints the set's name, or the number of an unnamed set.
impl fmt::Display for CommandSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:02x}", self.0),
        }
    }
}

/// The two bytes of a header that identify the command or reply; unknown ids are kept as numbers.
///
/// The protocol's text writes both together: its command code `0x0402` is set 4, id 2, in this order on the
/// wire.
///
/// ```
/// use dipc_wire::{CommandId, CommandSet};
///
/// assert_eq!(CommandId::RESUME_RUNTIME.name(), Some("ResumeRuntime"));
/// // Unknown commands are values, too.
/// let future = CommandId { set: CommandSet::PROCESS, id: 0x20 };
/// assert_eq!(future.name(), None);
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "Commands"; CollectTracing3 is 0x0204 and DisablePerfMap 0x0406, unlike in the
/// "Header" lines of these commands, which repeat their neighbours' codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs, reason = "a part of a message of the protocol")]
pub struct CommandId {
    /// The command set.
    pub set: CommandSet,
    /// The command within the set.
    pub id: u8,
}

/// Defines the associated constants and the table that `name` looks up.
macro_rules! command_ids {
    ($($(#[doc = $doc:literal])+ $constant:ident = $set:ident $id:literal $name:literal;)+) => {
        impl CommandId {
            $(
                $(#[doc = $doc])+
                pub const $constant: Self = Self { set: CommandSet::$set, id: $id };
            )+

            /// All commands and replies that have a name.
            pub const NAMED: &'static [Self] = &[$(Self::$constant),+];

            /// Returns the command's name in the protocol's text, if it is a known one.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$constant => Some($name),)+
                    _ => None,
                }
            }
        }
    };
}

command_ids! {
    /// Writes a core dump.
    GENERATE_CORE_DUMP_1 = DUMP 0x01 "GenerateCoreDump";
    /// Writes a core dump, with flags.
    GENERATE_CORE_DUMP_2 = DUMP 0x02 "GenerateCoreDump2";
    /// Writes a core dump, with flags and an error text.
    GENERATE_CORE_DUMP_3 = DUMP 0x03 "GenerateCoreDump3";
    /// Ends a session.
    STOP_TRACING = EVENT_PIPE 0x01 "StopTracing";
    /// Starts a session.
    COLLECT_TRACING_1 = EVENT_PIPE 0x02 "CollectTracing";
    /// Starts a session with or without rundown.
    COLLECT_TRACING_2 = EVENT_PIPE 0x03 "CollectTracing2";
    /// Starts a session with or without stacks.
    COLLECT_TRACING_3 = EVENT_PIPE 0x04 "CollectTracing3";
    /// Starts a session with the given rundown keyword.
    COLLECT_TRACING_4 = EVENT_PIPE 0x05 "CollectTracing4";
    /// Starts a session with event filters, streaming or into user_events.
    COLLECT_TRACING_5 = EVENT_PIPE 0x06 "CollectTracing5";
    /// Starts a session that can block producers when its buffer is full.
    COLLECT_TRACING_6 = EVENT_PIPE 0x07 "CollectTracing6";
    /// Attaches a profiler to a running process.
    ATTACH_PROFILER = PROFILER 0x01 "AttachProfiler";
    /// Names the profiler of a process that is still suspended.
    STARTUP_PROFILER = PROFILER 0x02 "StartupProfiler";
    /// Asks for information about the process.
    PROCESS_INFO_1 = PROCESS 0x00 "ProcessInfo";
    /// Resumes a suspended runtime.
    RESUME_RUNTIME = PROCESS 0x01 "ResumeRuntime";
    /// Asks for the environment block.
    PROCESS_ENVIRONMENT = PROCESS 0x02 "ProcessEnvironment";
    /// Sets an environment variable.
    SET_ENVIRONMENT_VARIABLE = PROCESS 0x03 "SetEnvironmentVariable";
    /// Asks for information about the process, with entry assembly and runtime version.
    PROCESS_INFO_2 = PROCESS 0x04 "ProcessInfo2";
    /// Begins writing a perf map.
    ENABLE_PERF_MAP = PROCESS 0x05 "EnablePerfMap";
    /// Ends writing the perf map.
    DISABLE_PERF_MAP = PROCESS 0x06 "DisablePerfMap";
    /// Loads a startup hook.
    APPLY_STARTUP_HOOK = PROCESS 0x07 "ApplyStartupHook";
    /// Asks for information about the process, in a versioned form.
    PROCESS_INFO_3 = PROCESS 0x08 "ProcessInfo3";
    /// The reply to a command that succeeded.
    OK = SERVER 0x00 "OK";
    /// The reply to a command that failed.
    ERROR = SERVER 0xff "Error";
}

/// Prints the command's name, or `command 0x0b0c` for an unnamed command.
impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "command 0x{:02x}{:02x}", self.set.0, self.id),
        }
    }
}
