//! Tables of the versions' commands and quirks.

use dipc_wire::{CommandId as Id, CommandSet, HResult};

/// The number of versions.
const VERSIONS: usize = 7;

/// The name and the product version of each version.
pub(super) const NAMES: [(&str, &str); VERSIONS] = [
    ("3.1", "3.1.23"),
    ("6", "6.0.36"),
    ("8", "8.0.33"),
    ("9", "9.0.1"),
    ("10", "10.0.5"),
    ("11", "11.0.0"),
    ("nativeaot-9", "9.0.20"),
];

/// Supported.
const Y: Option<HResult> = None;
/// Unknown.
const N: Option<HResult> = Some(HResult::UNKNOWN_COMMAND);
/// Unknown, answered like a bad payload.
const B: Option<HResult> = Some(HResult::BAD_ENCODING);
/// Known, but not supported by the build.
const S: Option<HResult> = Some(HResult::NOT_SUPPORTED);

/// The error of each version for each command; `None` if it supports the command.
const COMMANDS: &[(Id, [Option<HResult>; VERSIONS])] = &[
    //                             3.1 6  8  9 10 11 AOT
    (Id::GENERATE_CORE_DUMP_1, [Y, Y, Y, Y, Y, Y, Y]),
    (Id::GENERATE_CORE_DUMP_2, [N, Y, Y, Y, Y, Y, Y]),
    (Id::GENERATE_CORE_DUMP_3, [N, N, Y, Y, Y, Y, Y]),
    (Id::STOP_TRACING, [Y, Y, Y, Y, Y, Y, Y]),
    (Id::COLLECT_TRACING_1, [Y, Y, Y, Y, Y, Y, Y]),
    (Id::COLLECT_TRACING_2, [Y, Y, Y, Y, Y, Y, Y]),
    (Id::COLLECT_TRACING_3, [N, N, N, Y, Y, Y, Y]),
    (Id::COLLECT_TRACING_4, [N, N, N, Y, Y, Y, Y]),
    (Id::COLLECT_TRACING_5, [N, N, N, N, Y, Y, N]),
    (Id::COLLECT_TRACING_6, [N, N, N, N, N, Y, N]),
    (Id::ATTACH_PROFILER, [Y, Y, Y, Y, Y, Y, S]),
    (Id::STARTUP_PROFILER, [B, Y, Y, Y, Y, Y, S]),
    (Id::PROCESS_INFO_1, [N, Y, Y, Y, Y, Y, Y]),
    (Id::RESUME_RUNTIME, [N, Y, Y, Y, Y, Y, Y]),
    (Id::PROCESS_ENVIRONMENT, [N, Y, Y, Y, Y, Y, Y]),
    (Id::SET_ENVIRONMENT_VARIABLE, [N, Y, Y, Y, Y, Y, Y]),
    (Id::PROCESS_INFO_2, [N, Y, Y, Y, Y, Y, Y]),
    (Id::ENABLE_PERF_MAP, [N, N, Y, Y, Y, Y, S]),
    (Id::DISABLE_PERF_MAP, [N, N, Y, Y, Y, Y, S]),
    (Id::APPLY_STARTUP_HOOK, [N, N, Y, Y, Y, Y, S]),
    (Id::PROCESS_INFO_3, [N, N, Y, Y, Y, Y, Y]),
];

/// The error of each version for other commands of the set Profiler. Other commands of the other sets are
/// unknown to all.
const OTHER_PROFILER_COMMANDS: [Option<HResult>; VERSIONS] = [B, N, N, N, N, N, S];

/// A difference between versions, apart from their commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// Leaves the connection open after the error for a bad CollectTracing, and for an unknown command of the
    /// set Profiler.
    StaysOpenAfterError,
    /// A session with a buffer of size 0, or in an unknown format, ends the process.
    DiesOfBadBuffer,
    /// An unreadable payload ends the process, in the sets Dump and Process.
    DiesOfBadPayload,
    /// Removing an environment variable ends the process.
    DiesOfUnsetting,
    /// A startup hook that does not exist ends the process, if it is running.
    DiesOfMissingHook,
    /// A startup hook that does not exist is refused, if the process is running.
    RefusesMissingHook,
    /// EnablePerfMap ends the process while it is suspended at its start.
    DiesOfEarlyPerfMap,
    /// While suspended, a dump is reported as written, and is not.
    DumpsNothingEarly,
    /// No dump ever succeeds, and the error does not state a reason.
    CannotDump,
    /// A variable's name must not be empty or contain `=`.
    StrictVariableNames,
    /// The entry assembly is unnamed while the runtime is suspended.
    NoAssemblyNameWhileSuspended,
    /// The command line is only the program while the runtime is suspended.
    ProgramAloneWhileSuspended,
}

const QUIRKS: &[(Quirk, [bool; VERSIONS])] = {
    use Quirk::{
        CannotDump, DiesOfBadBuffer, DiesOfBadPayload, DiesOfEarlyPerfMap, DiesOfMissingHook,
        DiesOfUnsetting, DumpsNothingEarly, NoAssemblyNameWhileSuspended, ProgramAloneWhileSuspended,
        RefusesMissingHook, StaysOpenAfterError, StrictVariableNames,
    };
    const Y: bool = true;
    const N: bool = false;
    &[
        //                           3.1 6  8  9 10 11 AOT
        (StaysOpenAfterError, [N, N, N, Y, Y, Y, Y]),
        (DiesOfBadBuffer, [N, Y, Y, Y, N, N, Y]),
        (DiesOfBadPayload, [N, Y, Y, Y, Y, Y, Y]),
        (DiesOfUnsetting, [N, N, N, N, N, N, Y]),
        (DiesOfMissingHook, [N, N, N, Y, N, N, N]),
        (RefusesMissingHook, [N, N, Y, N, N, N, N]),
        (DiesOfEarlyPerfMap, [N, N, Y, Y, N, N, N]),
        (DumpsNothingEarly, [N, Y, Y, Y, N, N, N]),
        (CannotDump, [N, N, N, N, N, N, Y]),
        (StrictVariableNames, [N, N, N, N, N, N, Y]),
        (NoAssemblyNameWhileSuspended, [N, Y, N, N, N, N, N]),
        (ProgramAloneWhileSuspended, [N, Y, Y, Y, Y, Y, N]),
    ]
};

pub(super) fn refusal(command: Id, column: usize) -> Option<HResult> {
    let row = COMMANDS.iter().find(|(id, _)| *id == command).map(|(_, row)| row);
    let row = match row {
        None if command.set == CommandSet::PROFILER => Some(&OTHER_PROFILER_COMMANDS),
        row => row,
    };
    row.and_then(|row| row.get(column)).copied().unwrap_or(N)
}

pub(super) fn has(quirk: Quirk, column: usize) -> bool {
    let row = QUIRKS.iter().find(|(other, _)| *other == quirk);
    row.and_then(|(_, row)| row.get(column)).copied().unwrap_or(false)
}
