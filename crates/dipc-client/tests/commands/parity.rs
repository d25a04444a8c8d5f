//! The table of the README: the commands that each runtime knows, and the methods of both clients.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::report::{Outcomes, updates};
use crate::runtime::Runtime;

const BEGIN: &str =
    "<!-- made from testdata/commands/real-runtimes.txt by cargo xtask commands --update -->\n";
const END: &str = "<!-- end -->\n";

/// A command, the case of it that shows whether a runtime knows it, Microsoft's method and ours.
const ROWS: [(&str, &str, &str, &str); 21] = [
    ("ProcessInfo 1", "ProcessInfo", "`GetProcessInfo` (internal)", "`Target::info`"),
    ("ProcessInfo 2", "ProcessInfo2", "`GetProcessInfo` (internal)", "`Target::info`"),
    ("ProcessInfo 3", "ProcessInfo3", "`GetProcessInfo` (internal)", "`Target::info`"),
    ("ProcessEnvironment", "ProcessEnvironment", "`GetProcessEnvironment`", "`Target::environment`"),
    (
        "SetEnvironmentVariable",
        "SetEnvironmentVariable",
        "`SetEnvironmentVariable`",
        "`Target::set_environment_variable`",
    ),
    ("ResumeRuntime", "ResumeRuntime of one that runs", "`ResumeRuntime`", "`Target::resume`"),
    ("EnablePerfMap", "EnablePerfMap all", "`EnablePerfMap`", "`Target::enable_perf_map`"),
    (
        "DisablePerfMap",
        "DisablePerfMap where there is none",
        "`DisablePerfMap`",
        "`Target::disable_perf_map`",
    ),
    (
        "ApplyStartupHook",
        "ApplyStartupHook of one that runs",
        "`ApplyStartupHook`",
        "`Target::apply_startup_hook`",
    ),
    ("GenerateCoreDump 1", "GenerateCoreDump", "`WriteDump`", "`Target::dump`"),
    ("GenerateCoreDump 2", "GenerateCoreDump2", "`WriteDump`", "`Target::dump`"),
    ("GenerateCoreDump 3", "GenerateCoreDump3", "`WriteDump`", "`Target::dump`"),
    (
        "AttachProfiler",
        "AttachProfiler of a file that does not exist",
        "`AttachProfiler`",
        "`Target::attach_profiler`",
    ),
    (
        "StartupProfiler",
        "StartupProfiler of one that runs",
        "`SetStartupProfiler`",
        "`Target::startup_profiler`",
    ),
    ("CollectTracing 1", "CollectTracing", "no", "`Target::start_session`"),
    ("CollectTracing 2", "CollectTracing2", "`StartEventPipeSession`", "`Target::start_session`"),
    ("CollectTracing 3: no stacks", "CollectTracing3", "`StartEventPipeSession`", "`Target::start_session`"),
    (
        "CollectTracing 4: rundown by keyword",
        "CollectTracing4",
        "`StartEventPipeSession`",
        "`Target::start_session`",
    ),
    ("CollectTracing 5: event filters", "CollectTracing5", "no", "`Target::start_session`"),
    ("CollectTracing 6: blocking", "CollectTracing6", "no", "`Target::start_session`"),
    (
        "StopTracing",
        "StopTracing of a session that does not exist",
        "`EventPipeSession.Stop`",
        "`Stopper::stop`, `Target::stop`",
    ),
];

/// The support that an outcome shows: only a runtime that knows the command looks for a missing library.
fn cell(outcome: &str) -> String {
    const NO_LIBRARY: &str = "0x8007007e";
    const UNKNOWN: &str = "0x80131385";
    match outcome.split([' ', ':', ';']).next() {
        Some("ok" | NO_LIBRARY) => "yes".into(),
        Some(UNKNOWN) => "no".into(),
        Some(code) => format!("no ({code})"),
        None => String::new(),
    }
}

fn table(outcomes: &Outcomes) -> String {
    let mut table = String::from("| command |");
    for runtime in Runtime::ALL {
        write!(table, " {} |", runtime.name()).unwrap();
    }
    table += " NETCore.Client | here |\n|---|---|---|---|---|---|---|---|\n";
    for (command, case, theirs, ours) in ROWS {
        write!(table, "| {command} |").unwrap();
        for runtime in Runtime::ALL {
            write!(table, " {} |", cell(&outcomes[case][runtime.name()])).unwrap();
        }
        writeln!(table, " {theirs} | {ours} |").unwrap();
    }
    table
}

/// Fails unless the README has the table of these outcomes; or rewrites it.
pub(crate) fn check(outcomes: &Outcomes) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("the README has the table's beginning");
    let (found, after) = rest.split_once(END).expect("the README has the table's end");
    let expected = table(outcomes);
    if updates() {
        fs::write(&path, [before, BEGIN, &expected, END, after].concat()).unwrap();
    } else {
        assert_eq!(found, expected, "{}", path.display());
    }
}
