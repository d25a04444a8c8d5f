//! Heap dumps of a replayed session: by the block mode of .NET 11, and by what earlier runtimes take instead.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Sim, dipc, run};

/// A recording of a heap, for simulated runtimes.
fn heap_in(folder: &Path) -> String {
    let path = folder.join("heap.nettrace");
    testdata::write("gcdump/recordings/net10.nettrace.xz", &path);
    path.into_os_string().into_string().unwrap()
}

#[test]
fn a_dump_in_block_mode_is_the_same_as_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let replayed = heap_in(folder.path());
    let converted = path("converted.gcdump");
    assert_eq!(run(&["gcdump", "convert", &replayed, "-o", &converted]).0, Some(0));
    let expected = fs::read(converted).unwrap();
    for (version, command) in
        [("11", "CollectTracing6"), ("10", "CollectTracing5"), ("3.1", "CollectTracing2")]
    {
        let sim = Sim::start(1, &["--version", version, "--replay", &replayed, "--speed", "max"]);
        let collected = path(&format!("{version}.gcdump"));
        let arguments = ["gcdump", "collect", "-v", "--endpoint", sim.endpoint(), "-o", &collected];
        let (code, _, messages) = run(&arguments);
        assert_eq!(code, Some(0), "{version}: {messages}");
        assert!(messages.contains(&format!("by {command}\n")), "{version}: {messages}");
        assert!(fs::read(collected).unwrap() == expected, "{version}: another file");
    }
}

/// A runtime that is starting takes the session, and has no collector yet.
#[test]
fn asks_a_runtime_without_collections_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let collected = path("heap.gcdump");
    // The stream of the first session ends after its header.
    let (heap, fault) = (heap_in(folder.path()), "close-in-stream:600@CollectTracing5#1");
    let sim = Sim::start(1, &["--version", "10", "--replay", &heap, "--speed", "max", "--fault", fault]);
    let (code, _, messages) = run(&["gcdump", "collect", "--endpoint", sim.endpoint(), "-o", &collected]);
    assert_eq!(code, Some(0), "{messages}");
    assert!(messages.contains("the runtime collected nothing; if it is still starting"), "{messages}");

    let without = path("without.nettrace");
    testdata::write("traces/net10-exceptions.nettrace.xz", Path::new(&without));
    let sim = Sim::start(1, &["--version", "10", "--replay", &without, "--speed", "max"]);
    let (code, _, messages) = run(&["gcdump", "collect", "--endpoint", sim.endpoint(), "-o", &collected]);
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("it collected nothing in two sessions"), "{messages}");
    assert!(messages.contains("help: if it is still starting, collect again in a few seconds"), "{messages}");
}

#[test]
fn a_dump_that_fails_leaves_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heap.gcdump");
    let sim = Sim::start(1, &["--fault", "error:0x80131372"]);
    let collect = ["gcdump", "collect", "--endpoint", sim.endpoint(), "-o", file.to_str().unwrap()];
    let (code, _, messages) = run(&collect);
    assert!(code != Some(0) && !file.exists(), "{code:?}: {messages}");
    fs::write(&file, "before").unwrap();
    let (code, _, messages) = run(&collect);
    assert_ne!(code, Some(0), "{messages}");
    assert_eq!(fs::read(&file).unwrap(), b"before", "{messages}");
    assert!(!messages.contains("Overwriting"), "{messages}");
}

/// A program with a simulated runtime, and the arguments after `--` that start it. Its pid is in the file
/// `pid`.
fn program(folder: &Path) -> [String; 3] {
    let script = format!(
        "echo $$ > {0}/pid; exec {1} sim --connect \"$DOTNET_DiagnosticPorts\" --replay {2} --speed max",
        folder.display(),
        env!("CARGO_BIN_EXE_dipc"),
        heap_in(folder)
    );
    ["sh".into(), "-c".into(), script]
}

/// Returns true if the program that was started in the folder has ended. It ends now at the latest.
fn has_ended(folder: &Path) -> bool {
    let pid = fs::read_to_string(folder.join("pid")).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).is_err()
}

#[test]
fn a_program_that_was_started_ends_with_a_failure() {
    for (arguments, message) in [
        (&["paths", "--type", "Nosuch"][..], "no object of a matching type"),
        (&["collect", "-o", "/nosuch/x"], "open output"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path());
        let program = program.each_ref().map(String::as_str);
        let (code, _, messages) =
            run(&[&["gcdump"], arguments, &["--after", "0s", "--"], &program[..]].concat());
        assert_eq!(code, Some(1), "{messages}");
        assert!(messages.contains(message), "{messages}");
        assert!(has_ended(folder.path()), "{arguments:?}: {messages}");
    }
}

/// The user has seen enough: the program is killed, and its exit code is none of its own.
#[test]
fn an_interrupted_watch_is_not_an_exit_code_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let program = program.each_ref().map(String::as_str);
    let watch =
        ["gcdump", "report", "--watch", "1s", "--count", "1000", "--after", "0s", "--format", "json", "--"];
    let mut watching = dipc(&[&watch, &program[..]].concat()).spawn().unwrap();
    let mut messages = BufReader::new(watching.stderr.take().unwrap()).lines().map(Result::unwrap);
    messages.find(|line| line.starts_with("Dump 2 of")).expect("two dumps");
    kill_process(Pid::from_child(&watching), Signal::INT).unwrap();
    let rest: Vec<_> = messages.collect();
    let Output { status, stdout, .. } = watching.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(0), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("ended after")), "{rest:?}");
    assert!(String::from_utf8(stdout).unwrap().contains("\"dumps\""));
    assert!(has_ended(folder.path()), "{rest:?}");
}

/// The session is over, and the program that was started for it ends with `dipc`.
#[test]
fn an_interrupt_after_the_dump_ends_the_command_at_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path());
        let program = program.each_ref().map(String::as_str);
        let show =
            ["gcdump", "paths", "--type", "*", "--head", "10000", "--format", "json", "--after", "0s", "--"];
        let mut showing = dipc(&[&show, &program[..]].concat()).spawn().unwrap();
        let mut stdout = showing.stdout.take().unwrap();
        // The rest is more than a pipe holds, and stays unread.
        stdout.read_exact(&mut [0]).unwrap();
        kill_process(Pid::from_child(&showing), signal).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            if let Some(status) = showing.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                showing.kill().unwrap();
                panic!("{signal:?} ended nothing");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(1), "{signal:?}");
        assert!(has_ended(folder.path()), "{signal:?}");
    }
}
