//! `cargo xtask cost`: the instructions of commands on recordings of testdata, against a committed table.
//!
//! Cachegrind counts them, so that other work on the machine does not matter. The counts apply to one
//! compiler, one way to build and one kind of processor: elsewhere they are printed, and not compared.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::arguments::CostOptions;
use crate::task::packages::text;
use crate::task::steps::Steps;
use crate::task::workspace::{self, cargo, command_line, execute, is_installed, on_all_processors};

/// The table.
const TABLE: &str = "xtask/cost.txt";
/// The tolerated change, as a fraction of the count: one in this many.
const TOLERANCE: u64 = 50;

/// The environment variable by which cargo compiles crates as a whole.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// The recordings, which the commands name without folder and compression.
const RECORDINGS: [&str; 8] = [
    "reference/net9-web.nettrace.xz",
    "traces/net10-all.nettrace.xz",
    "traces/net10-counters.nettrace.xz",
    "traces/net10-tick.nettrace.xz",
    "traces/net10-tinybuf.nettrace.xz",
    "traces/net9-everything.nettrace.xz",
    "traces/net9-kernel.nettrace.xz",
    "traces/v6-record-trace.nettrace.xz",
];

/// Makes a recording of 191,489 events. Reports do not need 140,000 of them.
const MERGE: &str =
    "merge --quiet net9-web.nettrace net10-tick.nettrace net10-tinybuf.nettrace -o mixed.nettrace";

/// The commands.
const COMMANDS: [&str; 15] = [
    "stat mixed.nettrace",
    "events net9-everything.nettrace --format jsonl",
    "report mixed.nettrace",
    "report mixed.nettrace topN",
    "report mixed.nettrace threadpool",
    "report net9-everything.nettrace gc",
    "report mixed.nettrace requests",
    "report net9-kernel.nettrace topN",
    "counters read net10-counters.nettrace",
    "convert mixed.nettrace -f speedscope -o -",
    "convert mixed.nettrace -f pprof -o -",
    "convert net9-web.nettrace -f html -o -",
    "convert net10-all.nettrace -f folded --by alloc -o -",
    "edit net10-all.nettrace --provider System.Runtime -o -",
    "diff net9-web.nettrace v6-record-trace.nettrace",
];

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    command: String,
    instructions: u64,
}

/// The task.
pub(crate) fn run(options: &CostOptions) -> Result<()> {
    // As `.ci/run` builds.
    let is_incremental = false;
    if options.update {
        let conditions = conditions(is_incremental)?;
        let rows = count(&build(is_incremental)?)?;
        let path = workspace::root().join(TABLE);
        fs::write(&path, table(&conditions, &rows)).context(TABLE)?;
        println!("{TABLE} is written");
        return Ok(());
    }
    compare(is_incremental)
}

/// The step of `cargo xtask test`.
pub(crate) fn check(steps: &mut Steps) {
    const STEP: &str = "instructions of commands";
    if cfg!(not(target_os = "linux")) || !is_installed("valgrind", "--version") {
        return steps.not_run(STEP, "valgrind is not installed: cargo xtask setup test");
    }
    let is_incremental = std::env::var_os(INCREMENTAL).is_none_or(|value| value != "0");
    steps.run(STEP, || compare(is_incremental));
}

/// Compares the counts with the table, if that is of the same conditions.
fn compare(is_incremental: bool) -> Result<()> {
    let committed = fs::read_to_string(workspace::root().join(TABLE)).context(TABLE)?;
    let (of, before) = parse(&committed)?;
    let now = conditions(is_incremental)?;
    if of != now {
        println!("Not compared: {TABLE} is of {of}, and this is {now}.");
        println!(
            "To see what a change costs here: cargo xtask cost --update without it, cargo xtask cost with it."
        );
        return Ok(());
    }
    let rows = count(&build(is_incremental)?)?;
    let changes = changes(&before, &rows);
    print!("{}", listed(&changes));
    let beyond = changes.iter().filter(|change| change.is_beyond_tolerance()).count();
    ensure!(
        beyond == 0,
        "{beyond} commands take more or less than {TABLE} says: mend the cause, or accept it with \
         `cargo xtask cost --update`, and say in the commit why"
    );
    Ok(())
}

/// Returns what counts depend on: compiler and way to build, processor, C library, valgrind.
fn conditions(is_incremental: bool) -> Result<String> {
    let rustc = printed("rustc", &["-vV"])?;
    let line = |name: &str| rustc.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?").trim();
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    // The standard library, memchr and the C library choose by these.
    let vectors = ["avx2", "bmi2", "avx512bw"].map(|flag| {
        if flags.split(' ').any(|it| it == flag) { flag.to_owned() } else { format!("no {flag}") }
    });
    Ok(format!(
        "rustc {} {}{}, LLVM {}, {}, {}, {}",
        line("release:"),
        line("host:"),
        if is_incremental { " (incremental)" } else { "" },
        line("LLVM version:"),
        vectors.join(", "),
        printed("getconf", &["GNU_LIBC_VERSION"])?.trim(),
        printed("valgrind", &["--version"])?.trim(),
    ))
}

/// Returns the output of a program.
fn printed(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output().context(program.to_owned())?;
    ensure!(output.status.success(), "{program}: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the program that the tests start, as they build it.
fn build(is_incremental: bool) -> Result<PathBuf> {
    let mut build = cargo(["test", "--workspace", "--all-features", "--no-run", "--test", "rewrite"]);
    if !is_incremental {
        build.env(INCREMENTAL, "0");
    }
    build.arg("--message-format=json-render-diagnostics");
    let output = build.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{}: {}", command_line(&build), output.status);
    for message in serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>() {
        let message = message.context("a message of cargo")?;
        let is_program = text(&message["target"]["name"]) == "dipc" && message["profile"]["test"] == false;
        if let Some(path) = message["executable"].as_str().filter(|_| is_program) {
            return Ok(path.into());
        }
    }
    bail!("{}: no program dipc was built", command_line(&build))
}

/// Counts the instructions of each command.
fn count(program: &Path) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    for recording in RECORDINGS {
        let path = workspace::root().join("testdata").join(recording);
        let name = path.file_stem().context("a recording without a name")?;
        let mut file = File::create(folder.path().join(name))?;
        io::copy(&mut workspace::open_unpacked(&path)?, &mut file).context(recording)?;
    }
    execute(clean(Command::new(program).args(MERGE.split(' ')), folder.path()))?;
    let counts: [OnceLock<u64>; COMMANDS.len()] = Default::default();
    on_all_processors(&counts.iter().zip(COMMANDS).collect::<Vec<_>>(), |(count, command)| {
        let instructions = instructions(program, command, folder.path());
        let instructions = instructions.with_context(|| format!("dipc {command}"))?;
        let _ = count.set(instructions);
        Ok(())
    })?;
    let row = |(command, count): (&str, OnceLock<u64>)| {
        Some(Row { command: command.to_owned(), instructions: count.into_inner()? })
    };
    let rows = COMMANDS.into_iter().zip(counts).map(row).collect::<Option<_>>();
    rows.context("a command was not counted")
}

/// Sets the folder of a command, one thread, and a fixed environment.
fn clean<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    let environment =
        [("DIPC_THREADS", "1"), ("TZ", "UTC"), ("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")];
    command.current_dir(folder).env_clear().envs(environment).stdin(Stdio::null())
}

/// Counts the instructions of a command.
fn instructions(program: &Path, command: &str, folder: &Path) -> Result<u64> {
    let counts = tempfile::NamedTempFile::new_in(folder)?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=cachegrind", "--cache-sim=no", "--quiet"])
        .arg(format!("--cachegrind-out-file={}", counts.path().display()))
        .arg(program)
        .args(command.split(' '));
    clean(&mut valgrind, folder);
    let output = valgrind.output().context("valgrind")?;
    // Recordings may be cut, and comparisons find differences: other codes are failures.
    ensure!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(counts.path()).context("cachegrind's file")?;
    let sum = text.lines().find_map(|line| line.strip_prefix("summary:"));
    sum.and_then(|sum| sum.split_whitespace().next()?.parse().ok()).context("cachegrind's file has no sum")
}

fn table(conditions: &str, rows: &[Row]) -> String {
    let mut table = format!(
        "# Instructions of commands, counted by cargo xtask cost --update in the profile of tests, of:\n# {conditions}\n"
    );
    for Row { command, instructions } in rows {
        let _ = writeln!(table, "{instructions:>12}  {command}");
    }
    table
}

/// Returns the dependencies of a table, and its rows.
fn parse(table: &str) -> Result<(&str, Vec<Row>)> {
    let mut lines = table.lines();
    let mut head = || lines.next().and_then(|line| line.strip_prefix("# "));
    let conditions = head().and(head()).with_context(|| format!("{TABLE} has no head"))?;
    let row = |line: &str| {
        let (instructions, command) = line.trim().split_once("  ")?;
        Some(Row { command: command.to_owned(), instructions: instructions.parse().ok()? })
    };
    let rows =
        lines.map(|line| row(line).with_context(|| format!("{TABLE}: {line}"))).collect::<Result<_>>()?;
    Ok((conditions, rows))
}

/// The count of a command in the table, and now.
struct Change<'a> {
    command: &'a str,
    before: Option<u64>,
    now: Option<u64>,
}

impl Change<'_> {
    /// Returns true if the count differs too much, or is missing on one side.
    fn is_beyond_tolerance(&self) -> bool {
        let (Some(before), Some(now)) = (self.before, self.now) else { return true };
        before.abs_diff(now) > before / TOLERANCE
    }
}

fn changes<'a>(before: &'a [Row], now: &'a [Row]) -> Vec<Change<'a>> {
    let of = |rows: &[Row], command: &str| {
        rows.iter().find(|row| row.command == command).map(|row| row.instructions)
    };
    let removed = before.iter().filter(|row| of(now, &row.command).is_none());
    let commands = now.iter().chain(removed).map(|row| row.command.as_str());
    commands.map(|command| Change { command, before: of(before, command), now: of(now, command) }).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a ratio")]
fn listed(changes: &[Change<'_>]) -> String {
    let mut list = String::new();
    for change in changes {
        let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let ratio = match (change.before, change.now) {
            (Some(before), Some(now)) if before > 0 => format!("{:.3}", now as f64 / before as f64),
            _ => "-".to_owned(),
        };
        let mark = if change.is_beyond_tolerance() { '!' } else { ' ' };
        let (before, now) = (count(change.before), count(change.now));
        let _ = writeln!(list, "{mark} {before:>12} -> {now:>12}  {ratio:>6}  {}", change.command);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(command: &str, instructions: u64) -> Row {
        Row { command: command.to_owned(), instructions }
    }

    #[test]
    fn a_written_table_is_read_back() {
        let rows = vec![row("stat a", 12), row("report a topN", 3_000_000_000)];
        let table = table("rustc 1 x", &rows);
        assert_eq!(parse(&table).unwrap(), ("rustc 1 x", rows));
        assert!(parse("12  stat a\n").is_err());
    }

    #[test]
    fn the_committed_table_has_a_row_for_each_command() {
        let text = fs::read_to_string(workspace::root().join(TABLE)).unwrap();
        let (_, rows) = parse(&text).unwrap();
        assert_eq!(rows.iter().map(|row| &*row.command).collect::<Vec<_>>(), COMMANDS);
    }

    #[test]
    fn changes_of_over_two_percent_and_missing_rows_are_failures() {
        let before = [row("a", 1000), row("b", 1000), row("c", 1000), row("gone", 1)];
        let now = [row("a", 1020), row("b", 1021), row("c", 979), row("new", 1)];
        let beyond: Vec<_> = changes(&before, &now)
            .iter()
            .filter(|change| change.is_beyond_tolerance())
            .map(|change| change.command.to_owned())
            .collect();
        assert_eq!(beyond, ["b", "c", "new", "gone"]);
    }
}
