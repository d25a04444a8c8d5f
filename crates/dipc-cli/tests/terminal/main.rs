//! `dipc` as one sees it on a terminal: names from outside cannot steer it, and a reader that has seen enough
//! ends it quietly.

#![cfg(unix)]

mod prompt;
mod pty;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use clr_events::is_control;
use tempfile::TempDir;

/// What a name is replaced with: an escape, the C1 control that begins a sequence, a right-to-left override,
/// a line separator, a line end. As long as `Lines`.
const HOSTILE: &str = "\u{1b}\u{9b}\u{202e}\u{2028}\n";
const SHOWN: &str = r"\u001b\u009b\u202e\u2028\n";

/// Output is made as for a terminal, though it goes to a pipe.
fn dipc<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(arguments).env("CLICOLOR_FORCE", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A recording of a program with hostile names: module, path and command line.
fn recording() -> (TempDir, String) {
    let mut bytes = testdata::bytes("workload/lines/Lines.nettrace.xz");
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let (old, new) = (utf16("Lines"), utf16(HOSTILE));
    let mut count = 0;
    for at in 0..bytes.len() - old.len() {
        if bytes[at..].starts_with(&old) {
            bytes[at..at + old.len()].copy_from_slice(&new);
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.nettrace");
    fs::write(&file, bytes).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

/// Checks that nothing steers the terminal but line ends and the program's own colours; the text.
#[track_caller]
fn assert_harmless(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).unwrap();
    let without_styles = [0, 1, 4]
        .into_iter()
        .chain(30..=37)
        .chain(90..=97)
        .fold(text.to_owned(), |text, style| text.replace(&format!("\u{1b}[{style}m"), ""));
    let bad = without_styles.find(|c| is_control(c) && c != '\n');
    let around = bad.map(|at| without_styles.chars().skip(without_styles[..at].chars().count()).take(60));
    assert_eq!(around.map(Iterator::collect::<String>), None);
    text.to_owned()
}

/// Runs it; both its outputs, checked.
#[track_caller]
fn run<'a>(arguments: impl IntoIterator<Item = &'a str>) -> (String, String) {
    let Output { status, stdout, stderr } = dipc(arguments).output().unwrap();
    let texts = (assert_harmless(&stdout), assert_harmless(&stderr));
    assert!(status.code().is_some_and(|code| code < 64), "{status}: {}", texts.1);
    texts
}

#[test]
fn names_in_a_recording_are_shown_escaped() {
    let (_folder, file) = recording();
    for arguments in [
        &["events", &file, "--symbols"][..],
        &["events", &file, "--symbols", "--format", "jsonl"],
        &["report", &file, "stacks"],
        &["report", &file, "topN"],
        &["report", &file, "topN", "-v", "--format", "json"],
        &["convert", &file, "-f", "folded", "-o", "-"],
        &["convert", &file, "-f", "csv", "-o", "-"],
        &["convert", &file, "-f", "svg", "-o", "-"],
        &["convert", &file, "-f", "speedscope", "-o", "-"],
        &["convert", &file, "-f", "chromium", "-o", "-"],
        &["convert", &file, "-f", "firefox", "-o", "-"],
        &["convert", &file, "-f", "jsonl", "-o", "-"],
    ] {
        let (stdout, _) = run(arguments.iter().copied());
        assert!(stdout.contains(SHOWN), "{arguments:?}: {stdout:.2000}");
    }
    for report in ["alloc", "contention", "events", "exceptions", "gc", "jit", "startup", "threadpool"] {
        run(["report", &file, report]);
    }
    run(["stat", &file]);
}

#[test]
fn names_in_details_are_shown_escaped() {
    let (folder, file) = recording();
    let out = folder.path().join("x.folded");
    let (_, stderr) = run(["convert", &file, "-f", "folded", "-o", out.to_str().unwrap(), "--lines", "-v"]);
    assert!(stderr.contains(&format!("{SHOWN}: no source lines: ")), "{stderr}");
    // A message stays one line, whatever its parts are.
    assert!(!stderr.contains("\n: no source lines"), "{stderr}");
}

#[test]
fn names_in_errors_are_shown_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("no{HOSTILE}"));
    let (_, stderr) = run(["stat", file.to_str().unwrap()]);
    assert!(stderr.contains(&format!("no{SHOWN}: ")) && stderr.lines().count() == 1, "{stderr}");
    let (_, stderr) = run(["stat", "--x\u{9b}2J\u{202e}", "x"]);
    assert!(stderr.contains(r"--x\u009b2J\u202e"), "{stderr}");
}

#[test]
fn json_of_hostile_text_is_exact() {
    let (_folder, file) = recording();
    let holds = |text: &str| {
        let strings = text.split('"').filter(|part| part.contains(SHOWN));
        let strings: Vec<String> =
            strings.map(|part| serde_json::from_str(&format!("\"{part}\"")).unwrap()).collect();
        assert!(!strings.is_empty() && strings.iter().all(|text| text.contains(HOSTILE)));
    };
    // Fields are UTF-16, names of frames UTF-8.
    holds(&run(["events", &file, "--format", "jsonl"]).0);
    holds(&run(["events", &file, "--format", "jsonl", "--symbols"]).0);
    holds(&run(["report", &file, "topN", "--format", "json"]).0);
}

/// A simulated runtime with a program of a hostile name.
struct Sim {
    child: Child,
    /// Open, or its next word would be its last.
    _stdout: BufReader<ChildStdout>,
    _folder: TempDir,
    endpoint: String,
}

impl Sim {
    fn start(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dipc"), &program).unwrap();
        let mut command = Command::new(program);
        command.args(["sim", "--rate", "10000"]).env("TMPDIR", folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.starts_with("ready "), "{line}");
        let endpoint = line.trim_end().rsplit_once(' ').unwrap().1.to_owned();
        Self { child, _stdout: stdout, _folder: folder, endpoint }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn names_of_processes_are_shown_escaped() {
    let sim = Sim::start("d\u{1b}[2J\u{202e}x");
    let shown = r"d\u001b[2J\u202ex";
    let pid = sim.child.id().to_string();
    for arguments in [
        &["ps"][..],
        &["ps", "--format", "json"],
        &["info", "-p", &pid],
        &["info", "-p", &pid, "--format", "json"],
        &["doctor"],
        &["doctor", "-p", &pid],
        &["doctor", "-p", &pid, "--format", "json"],
        &["env", "-p", &pid],
    ] {
        let (stdout, stderr) = run(arguments.iter().copied());
        // The environment has no name.
        assert!(arguments[0] == "env" || stdout.contains(shown), "{arguments:?}: {stdout}{stderr}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.nettrace");
    let (_, stderr) = run(["trace", "-p", &pid, "--duration", "1s", "-o", file.to_str().unwrap()]);
    assert!(stderr.contains(&format!("Process        : {shown} ({pid})")), "{stderr}");
}

/// The kernel keeps 15 bytes of a name, and may cut inside a character.
#[test]
fn names_of_processes_are_not_cut_inside_a_character() {
    // The fifteenth byte is the first, the second and the third of a character, and the last.
    for name in ["abcdefghijklmnü-o", "ééééééééé", "a日本語日本語", "日本語日本語"] {
        let sim = Sim::start(name);
        let pid = sim.child.id().to_string();
        let (stdout, _) = run(["info", "-p", &pid, "--format", "json"]);
        let info: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(info["name"], name);
        assert!(run(["ps"]).0.contains(name));
    }
}

/// Reads one byte of the command's output, and closes it; how the command ends, and what it says.
#[track_caller]
fn read_one_byte(arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = dipc(arguments.iter().copied()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    drop(stdout);
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), assert_harmless(&stderr))
}

#[test]
fn a_reader_that_leaves_ends_the_program_quietly() {
    let (_folder, file) = recording();
    let sim = Sim::start("sim");
    let port = format!("{},connect", sim.endpoint);
    for arguments in [
        &["events", &file, "--format", "jsonl"][..],
        &["events", &file],
        &["convert", &file, "-f", "csv", "-o", "-"],
        &["convert", &file, "-f", "pprof", "-o", "-"],
        &["convert", &file, "-f", "jsonl", "-o", "-"],
        &["completions", "bash"],
        &["trace", "--help"],
        &["trace", "-p", &sim.child.id().to_string(), "-o", "-"],
        &["trace", "--diagnostic-port", &port, "-o", "-"],
    ] {
        let (code, stderr) = read_one_byte(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
        for word in ["error", "pipe", "panicked", "help:"] {
            assert!(!stderr.contains(word), "{arguments:?}: {stderr}");
        }
    }
}

#[test]
fn a_closed_standard_error_is_ignored() {
    let mut child = dipc([]).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn without_arguments_four_commands_are_named() {
    let output = dipc([]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    let commands = text.lines().map(|line| line.split("  ").next().unwrap());
    assert_eq!(
        commands.collect::<Vec<_>>(),
        ["dipc why -p PID", "dipc profile -p PID", "dipc top -p PID", "dipc help"]
    );
    for arguments in [&["help"][..], &["--help"]] {
        let output = dipc(arguments.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains("All commands"), "{arguments:?}");
    }
}
