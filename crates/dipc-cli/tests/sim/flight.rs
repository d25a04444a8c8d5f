//! The flight recorder against simulated runtimes: connections that are lost, and rings in files.

use std::fs;
use std::process::Output;

use super::{Sim, dipc, files};

const PROVIDERS: &str = "Dipc-Simulated:FFFFFFFFFFFFFFFF:5";

/// Records a simulated runtime into a ring; the names of the files are below `folder`. Its messages and exit
/// code.
fn keep(sim: &Sim, folder: &std::path::Path, arguments: &[&str]) -> (Option<i32>, String) {
    let (pid, output) = (sim.child.id().to_string(), folder.join("ring.nettrace"));
    let fixed = ["trace", "-p", &pid, "--no-names", "--providers", PROVIDERS, "-o"];
    let mut command = dipc(&fixed);
    command.arg(&output).args(arguments).env("TMPDIR", sim.folder.path());
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_lost_connection_is_not_a_crash() {
    for (fault, condition, reason) in [
        ("close-in-stream:300000", "disconnect", ": the connection was lost"),
        ("close-in-stream:300000", "crash", ": the connection was lost"),
        ("die-in-the-middle:300000", "crash", ": the process crashed or was killed"),
        ("die-in-the-middle:300000", "disconnect", ": the process crashed or was killed"),
    ] {
        let sim = Sim::start(1, &["--rate", "100000", "--fault", fault]);
        let folder = tempfile::tempdir().unwrap();
        let (code, messages) =
            keep(&sim, folder.path(), &["--keep", "8MB", "--snapshot-on", condition, "--duration", "60s"]);
        // An awaited crash is not an error of the recording.
        let is_asked_for = reason.ends_with("killed") && condition == "crash";
        assert_eq!(code, Some(if is_asked_for { 0 } else { 6 }), "{fault}: {messages}");
        let lines: Vec<_> = messages.lines().filter(|line| line.starts_with("Snapshot ")).collect();
        assert!(matches!(&lines[..], [line] if line.ends_with(reason)), "{fault}, {condition}: {messages}");
        // Beside the snapshot of a crash stands what else is known of it.
        let has_crashed = reason.ends_with("killed");
        assert_eq!(files(folder.path()).len(), if has_crashed { 2 } else { 1 }, "{fault}");
        assert_eq!(
            messages.contains("Missing        : the events of its last 100 ms"),
            has_crashed,
            "{messages}"
        );
    }
}

#[test]
fn a_ring_in_files_leaves_nothing_but_snapshots() {
    let sim = Sim::start(1, &["--rate", "200000"]);
    let (folder, ring) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let keep_in = ring.path().to_str().unwrap();
    let (code, messages) =
        keep(&sim, folder.path(), &["--keep", "2MB", "--keep-in", keep_in, "--duration", "3s"]);
    assert_eq!(code, Some(0), "{messages}");
    assert_eq!(files(ring.path()), <[std::path::PathBuf; 0]>::default());
    let [snapshot] = &files(folder.path())[..] else { panic!("{messages}") };
    let mut reader = nettrace::Reader::new(fs::File::open(snapshot).unwrap()).unwrap();
    let mut events = 0_u64;
    reader.for_each(|_| events += 1).unwrap();
    assert!(reader.damage().is_empty() && reader.truncated_at().is_none() && reader.loss().total() == 0);
    // More has come than the ring holds.
    let bytes = fs::metadata(snapshot).unwrap().len();
    assert!(events > 20_000 && (1_000_000..2_500_000).contains(&bytes), "{events} events, {bytes} bytes");
    let test = |condition: &str, more: &[&str]| {
        let fixed = ["rules", "test", snapshot.to_str().unwrap(), "--snapshot-on", condition];
        let output = dipc(&fixed).args(more).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(test("exit", &[]).0, Some(1), "why a whole recording ended, it does not say");
    for (condition, end) in [("exit", "exit"), ("exit and crash", "crash"), ("disconnect", "disconnect")] {
        let (code, json) = test(condition, &["--end", end, "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((code, &json["met"], &json["snapshots"]), (Some(0), &1.into(), &1.into()), "{json}");
        let firing = &json["firings"][0];
        assert!(firing["snapshot"] == true && firing["time_ns"].as_i64() > Some(1_000_000), "{json}");
        assert!(firing["met_by"].is_string(), "{json}");
    }
    assert_eq!(test("disconnect", &["--end", "crash"]).0, Some(1));
}

/// In a mount namespace of its own the ring is on a small file system, which something else fills. The
/// snapshot is elsewhere.
#[test]
fn a_ring_on_a_full_disk_is_written_elsewhere() {
    const SCRIPT: &str = r#"mount -t tmpfs -o size=24m none "$1" || exit 99
ring="$1"; log="$2"; shift 2
"$@" 2>"$log" & child=$!
until grep -q Keeping "$log"; do kill -0 "$child" || break; done
head -c 40000000 /dev/zero > "$ring/filler"
wait "$child"; code=$?
ls -A "$ring"; exit $code"#;
    let sim = Sim::start(1, &["--rate", "100000"]);
    let (folder, ring) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (log, output) = (ring.path().with_extension("log"), folder.path().join("ring.nettrace"));
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]).arg(ring.path());
    command.arg(&log).args([env!("CARGO_BIN_EXE_dipc"), "trace", "-p", &sim.child.id().to_string()]);
    command.args(["--no-names", "--providers", PROVIDERS, "--keep", "2MB", "--duration", "60s", "--keep-in"]);
    command.arg(ring.path()).arg("-o").arg(&output).env("TMPDIR", sim.folder.path());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let messages = fs::read_to_string(&log).unwrap_or_default();
    let _ = fs::remove_file(&log);
    if status.code() == Some(99) || String::from_utf8_lossy(&stderr).contains("unshare failed") {
        eprintln!("NOT RUN: this user may not mount a small file system");
        return;
    }
    assert_eq!(status.code(), Some(1), "{messages}");
    assert!(messages.contains("keep events: No space left"), "{messages}");
    assert!(
        messages.contains("Snapshot ") && messages.contains(": nothing more could be kept"),
        "{messages}"
    );
    assert_eq!(String::from_utf8_lossy(&stdout), "filler\n");
    let [snapshot] = &files(folder.path())[..] else { panic!("{messages}") };
    let mut reader = nettrace::Reader::new(fs::File::open(snapshot).unwrap()).unwrap();
    let mut events = 0_u64;
    reader.for_each(|_| events += 1).unwrap();
    assert!(reader.damage().is_empty() && reader.truncated_at().is_none() && reader.loss().total() == 0);
    assert!(events > 100, "{events} events: {messages}");
}

/// One wild time stamp does not make all other events old.
#[test]
fn a_wild_time_does_not_empty_a_ring() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("wild.nettrace");
    fs::write(&recording, wild_times()).unwrap();
    let sim = Sim::start(1, &["--replay", recording.to_str().unwrap(), "--speed", "max"]);
    let output = tempfile::tempdir().unwrap();
    let (code, messages) = keep(&sim, output.path(), &["--keep", "60s", "--duration", "3s"]);
    assert_eq!(code, Some(0), "{messages}");
    let [snapshot] = &files(output.path())[..] else { panic!("{messages}") };
    let mut reader = nettrace::Reader::new(fs::File::open(snapshot).unwrap()).unwrap();
    let mut events = 0;
    reader.for_each(|_| events += 1).unwrap();
    assert_eq!(events, 20_002, "{messages}");
}

/// 20,000 events of two seconds, and two that are years ahead.
fn wild_times() -> Vec<u8> {
    use nettrace_synth::nettrace::Trace;
    use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader};

    let header = TraceHeader { frequency: 1_000_000_000, ..TraceHeader::default() };
    let start = u64::try_from(header.sync_ticks).unwrap();
    let mut trace = Trace::new(&header);
    let provider = "Dipc-Simulated".into();
    trace.metadata_block(&[Metadata {
        id: 1,
        provider,
        event_id: 1,
        name: "Tick".into(),
        ..Metadata::default()
    }]);
    let mut sequence = 0;
    for block_number in 0..200_u64 {
        let mut block = EventBlock::v4();
        let times = (0..100).map(|n| start + (block_number * 100 + n) * 100_000);
        let wild =
            [start + 1_000_000_000_000_000_000].into_iter().filter(|_| matches!(block_number, 50 | 150));
        for timestamp in times.chain(wild) {
            sequence += 1;
            block.event(&Event {
                metadata_id: 1,
                sequence,
                thread: 1,
                capture_thread: 1,
                sorted: true,
                timestamp,
                payload: vec![0; 20],
                ..Event::default()
            });
        }
        trace.event_block(&block);
    }
    trace.finish()
}

#[test]
fn a_ring_in_files_needs_a_folder_and_room() {
    let sim = Sim::start(1, &["--rate", "1000"]);
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let (code, messages) =
        keep(&sim, folder.path(), &["--keep", "2MB", "--keep-in", nowhere.to_str().unwrap()]);
    assert!(code == Some(2) && messages.contains("it is not a folder"), "{messages}");
    let (code, messages) =
        keep(&sim, folder.path(), &["--keep", "900000GB", "--keep-in", folder.path().to_str().unwrap()]);
    assert!(code == Some(1) && messages.contains("bytes are needed"), "{messages}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn files_need_a_folder_before_anything_is_recorded() {
    let sim = Sim::start(1, &["--rate", "1000"]);
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    for mode in ["--keep", "--rotate"] {
        let (code, messages) = keep(&sim, &nowhere, &[mode, "2MB", "--duration", "2s"]);
        assert!(code == Some(1) && messages.contains("nowhere does not exist"), "{mode}: {messages}");
        assert!(!messages.contains("Process"), "{mode}: {messages}");
        let (code, messages) = keep(&sim, folder.path(), &[mode, "2MB", "--duration", "1s"]);
        assert_eq!(code, Some(0), "{mode}: {messages}");
        let files = files(folder.path());
        let [file] = &files[..] else { panic!("{mode}: {files:?}") };
        assert!(file.extension().is_some_and(|it| it == "nettrace"), "{mode}: {files:?}");
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn warns_about_a_provider_that_cannot_be_requested() {
    let sim = Sim::start(1, &["--rate", "1000"]);
    let folder = tempfile::tempdir().unwrap();
    for (condition, is_warned) in [("event Nobody-*/X", true), ("event Dipc-*/X", false)] {
        let arguments = ["--keep", "2MB", "--snapshot-on", condition, "--duration", "100ms"];
        let (code, messages) = keep(&sim, folder.path(), &arguments);
        assert_eq!(code, Some(0), "{messages}");
        let warning = "provider Nobody-*: runtimes take full names";
        assert_eq!(messages.contains(warning), is_warned, "{condition}: {messages}");
        assert_eq!(messages.contains("not patterns"), is_warned, "{condition}: {messages}");
    }
}
