//! `dipc edit`, `merge` and `repair`, as people call them: what the reports say of the new recordings.

mod counters;
mod heaps;
#[cfg(unix)]
mod outputs;
mod parts;
mod rules;

use std::fs::File;
use std::process::{Command, Output};

use nettrace_synth::{
    Event, EventBlock, Field, Metadata, TraceHeader, Type, Value as SynthValue, payload, v6,
};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a recording of testdata, unpacked: `in.nettrace`.
fn folder_with(name: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    testdata::write(&format!("traces/{name}.xz"), &folder.path().join("in.nettrace"));
    folder
}

fn dipc(folder: &TempDir, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dipc"))
        .current_dir(folder.path())
        .args(arguments.split_whitespace())
        .output()
        .expect("the program runs")
}

/// The same with `in.nettrace` as standard input.
fn dipc_with_input(folder: &TempDir, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dipc"))
        .current_dir(folder.path())
        .args(arguments.split_whitespace())
        .stdin(File::open(folder.path().join("in.nettrace")).expect("a file"))
        .output()
        .expect("the program runs")
}

/// The program's output; it must end with this code.
fn printed(folder: &TempDir, arguments: &str, code: i32) -> String {
    let output = dipc(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

fn stat(folder: &TempDir, file: &str) -> Value {
    let text = printed(folder, &format!("stat {file} --format json"), 0);
    serde_json::from_str(&text).expect("an object")
}

/// Compares a report of both recordings, row by row. Returns whether there was one.
fn compare(folder: &TempDir, report: &str) -> bool {
    let of = |file: &str| {
        let output = dipc(folder, &format!("report {file} {report} --format json"));
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let (one, other) = (of("in.nettrace"), of("out.nettrace"));
    assert!(one == other, "{report}: {one:?} and {other:?}");
    one.0 == Some(0)
}

#[test]
fn reports_of_a_part_match_the_whole() {
    for (name, range, at_least) in [
        ("net9-everything.nettrace", "--from 100ms --to 600ms", 4),
        ("net10-sample.nettrace", "--from 300ms --to 900ms", 4),
        ("net10-gcverbose.nettrace", "--from 10ms --to 60ms", 3),
        ("v6-record-trace.nettrace", "--from 1s --to 2s", 2),
        ("net10-netperf.netperf", "--from 10ms --to 60ms", 5),
    ] {
        let folder = folder_with(name);
        printed(&folder, &format!("edit in.nettrace -o out.nettrace {range}"), 0);
        let reports = "topN gc alloc exceptions contention threadpool startup jit events requests";
        let found =
            reports.split(' ').filter(|report| compare(&folder, &format!("{report} {range}"))).count();
        assert!(found >= at_least, "{name}: {found} reports");
        let size = |file: &str| folder.path().join(file).metadata().expect("a file").len();
        assert!(size("out.nettrace") < size("in.nettrace"), "{name}");
    }
}

/// A folder with several recordings of testdata, unpacked under their names.
fn folder_of(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in names {
        let other = folder_with(name);
        std::fs::rename(other.path().join("in.nettrace"), folder.path().join(name)).expect("a file");
    }
    folder
}

#[test]
fn of_merged_recordings_each_process_has_the_reports_that_it_had() {
    for (first, second) in [
        ("net10-sample.nettrace", "net10-gcverbose.nettrace"),
        ("net10-sample.nettrace", "net9-everything.nettrace"),
    ] {
        let folder = folder_of(&[first, second]);
        let merge = |arguments: &str| -> Value {
            serde_json::from_str(&printed(&folder, &format!("merge {arguments} --format json"), 0))
                .expect("an object")
        };
        let merged = merge(&format!("{second} {first} -o out.nettrace"));
        let process =
            |input: usize| merged["inputs"][input]["processes"][0]["to"].as_u64().expect("a process");
        assert_eq!(merged["inputs"][1]["start_s"].as_f64(), Some(0.0), "{merged}");
        // The first one begins first: its times stay as they are, and everything is the same, to the byte.
        let (same, other) = (process(1), process(0));
        let reports = "topN gc alloc exceptions contention threadpool startup jit requests";
        for report in reports.split(' ') {
            let of = |file: &str, pid: u64| {
                let output = dipc(&folder, &format!("report {file} {report} --pid {pid} --format json"));
                (output.status.code(), String::from_utf8(output.stdout).expect("text"))
            };
            assert!(of(first, same) == of("out.nettrace", same), "{first}: {report}");
        }
        for (file, pid, report, rows) in [(first, same, "topN", "rows"), (second, other, "gc", "generations")]
        {
            let names = |file: &str| {
                let text = printed(&folder, &format!("report {file} {report} --pid {pid} --format json"), 0);
                let report: Value = serde_json::from_str(&text).expect("an object");
                report[rows].clone()
            };
            assert!(names(file).as_array().is_some_and(|rows| !rows.is_empty()), "{file}");
            assert_eq!(names(file), names("out.nettrace"), "{file}");
        }
        let events = |file: &str, of: &str| {
            let text = printed(&folder, &format!("events {file} --pid {same} {of} --format jsonl"), 0);
            // The version of the format has other numbers of threads, and no numbers of stacks.
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        for of in
            ["", "--symbols --event Thread/Sample", "--stacks --provider Microsoft-Windows-DotNETRuntime"]
        {
            assert!(events(first, of) == events("out.nettrace", of), "{first}: {of}");
        }
        let profile = |file: &str| {
            printed(&folder, &format!("convert {file} -f folded -o out.folded --pid {same}"), 0);
            std::fs::read_to_string(folder.path().join("out.folded")).expect("a profile")
        };
        assert!(profile(first) == profile("out.nettrace"), "{first}");
        // What edit takes of the process is the recording of it.
        printed(&folder, &format!("edit out.nettrace -o part.nettrace --pid {same}"), 0);
        assert_eq!(stat(&folder, "part.nettrace")["events"], merged["inputs"][1]["events"]);
    }
}

#[test]
fn parts_merge_to_the_whole_and_other_recordings_stay_separate() {
    let folder = folder_with("net9-everything.nettrace");
    for (part, range) in [("a", "--to 300ms"), ("b", "--from 300ms --to 700ms"), ("c", "--from 700ms")] {
        printed(&folder, &format!("edit in.nettrace -o {part}.nettrace {range}"), 0);
    }
    printed(&folder, "merge b.nettrace a.nettrace c.nettrace -o out.nettrace", 0);
    let (whole, merged) = (stat(&folder, "in.nettrace"), stat(&folder, "out.nettrace"));
    for field in ["events", "lost", "kinds", "providers"] {
        assert_eq!(whole[field], merged[field], "{field}");
    }
    let events = |file: &str| printed(&folder, &format!("events {file} --format jsonl"), 0);
    let sorted = |text: String| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert!(sorted(events("in.nettrace")) == sorted(events("out.nettrace")));
    // The same process id in another recording is another process, unless it is said to be the same.
    let path = folder.path().join("a.nettrace");
    let mut bytes = std::fs::read(&path).expect("a recording");
    // The milliseconds of the start, which are the last of its eight numbers.
    let header = b"Nettrace\x14\0\0\0!FastSerialization.1".len() + 3 + 4 + 4 + 4 + b"Trace".len() + 1;
    bytes[header + 14] ^= 1;
    std::fs::write(&path, bytes).expect("a file");
    for (flag, processes) in [("", 2), ("--same-process", 1)] {
        let text =
            printed(&folder, &format!("merge a.nettrace b.nettrace -o out.nettrace --format json {flag}"), 0);
        let merged: Value = serde_json::from_str(&text).expect("an object");
        let ids: std::collections::BTreeSet<_> =
            (0..2).map(|input| merged["inputs"][input]["processes"][0]["to"].as_u64()).collect();
        assert_eq!(ids.len(), processes, "{text}");
    }
}

#[test]
fn parts_may_number_their_kinds_of_events_differently() {
    use nettrace_synth::v6::{ThreadEntry, ThreadRow, Trace};
    use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader};
    let folder = tempfile::tempdir().expect("a folder");
    // A mapped file with the number 7, and an event with the same bytes that numbers none.
    let payload = [7, 0x80, 1, 2, 3, 1, 0, b'a', 9];
    let kinds = [("Universal.System", 3), ("Demo", 8)];
    for (part, order) in [("a", [0, 1]), ("b", [1, 0])] {
        let mut trace = Trace::new(&TraceHeader::default());
        trace.thread_block(&[ThreadRow { index: 1, entries: vec![ThreadEntry::ThreadId(100)] }]);
        let mut block = EventBlock::v6();
        for (id, kind) in (1..).zip(order) {
            let (provider, event_id) = kinds[kind];
            trace.metadata_block(&[Metadata {
                id,
                provider: provider.into(),
                event_id,
                ..Metadata::default()
            }]);
            let timestamp = if part == "a" { 1_000 } else { 2_000 } + u64::from(id);
            let sequence = if part == "a" { id } else { id + 2 };
            let payload = payload.to_vec();
            let (thread, capture_thread) = (1, 1);
            let event =
                Event { metadata_id: id, sequence, timestamp, thread, capture_thread, ..Event::default() };
            block.event(&Event { payload, ..event });
        }
        trace.event_block(&block);
        std::fs::write(folder.path().join(format!("{part}.nettrace")), trace.finish()).expect("a file");
    }
    printed(&folder, "merge a.nettrace b.nettrace -o out.nettrace", 0);
    let bytes = std::fs::read(folder.path().join("out.nettrace")).expect("a file");
    let mut events = nettrace::SliceReader::new(&bytes).expect("a recording");
    let mut found = Vec::new();
    events.for_each(|event| found.push((event.id(), event.payload().to_vec()))).expect("a recording");
    // Of two recordings, parts of the first have the even numbers.
    let mapping = (3, [14, 0x80, 1, 2, 3, 1, 0, b'a', 18].to_vec());
    let other = (8, payload.to_vec());
    assert_eq!(found, [mapping.clone(), other.clone(), other, mapping]);
}

#[test]
fn blocks_out_of_the_time_are_not_read() {
    for (name, range, least) in [
        ("net10-counters.nettrace", "--from 100ms --to 200ms", 2),
        // A thread has no events then, and a sequence point names it.
        ("net10-counters.nettrace", "--from 3s", 3),
        ("net10-tick.nettrace", "--from 3s --to 4s", 9),
    ] {
        let folder = folder_with(name);
        let output = dipc(&folder, &format!("edit in.nettrace -o out.nettrace {range}"));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let skipped =
            told.split_once("Skipped        : ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        assert!(skipped >= Some(least), "{name}: {told}");
        let events = |file: &str| printed(&folder, &format!("events {file} {range} --format jsonl"), 0);
        assert!(events("in.nettrace") == events("out.nettrace"), "{name}");
        for report in ["gc", "alloc", "exceptions", "contention", "threadpool", "events"] {
            compare(&folder, &format!("{report} {range}"));
        }
        assert_eq!(stat(&folder, "out.nettrace")["lost"], 0, "{name}");
    }
}

#[test]
fn parts_are_whole_recordings_and_make_the_whole_again() {
    for (name, split) in
        [("net9-everything.nettrace", "--split-time 300ms"), ("net10-sample.nettrace", "--split-size 100kB")]
    {
        let folder = folder_with(name);
        printed(&folder, &format!("edit in.nettrace -o part.nettrace {split}"), 0);
        let mut parts: Vec<_> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .map(|it| it.expect("a file").file_name().into_string().expect("text"))
            .filter(|it| it.starts_with("part."))
            .collect();
        parts.sort();
        assert!(parts.len() >= 3 && parts[0] == "part.001.nettrace", "{parts:?}");
        for part in &parts {
            assert!(
                printed(&folder, &format!("events {part} --format jsonl --provider *Rundown"), 0)
                    .lines()
                    .count()
                    > 100
            );
        }
        printed(&folder, &format!("merge {} -o out.nettrace", parts.join(" ")), 0);
        let sorted = |file: &str| {
            let text = printed(&folder, &format!("events {file} --format jsonl --stacks"), 0);
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert!(sorted("in.nettrace") == sorted("out.nettrace"), "{name}");
    }
}

#[test]
fn replaces_strings_with_as_many_letters() {
    let folder = folder_with("net9-everything.nettrace");
    let output = dipc(
        &folder,
        "edit in.nettrace -o out.nettrace --redact command-lines,paths,exception-messages,*/RuntimeStart.BclMajorVersion",
    );
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(
        told.contains("Redacted       : Microsoft-DotNETCore-EventPipe/ProcessInfo.CommandLine"),
        "{told}"
    );
    let events =
        |file: &str, more: &str| printed(&folder, &format!("events {file} --format jsonl {more}"), 0);
    assert!(
        events("in.nettrace", "").contains("workload.dll")
            && !events("out.nettrace", "").contains("workload.dll")
    );
    assert_eq!(events("in.nettrace", "").lines().count(), events("out.nettrace", "").lines().count());
    // Sizes stay, and all that has no such text.
    let of_samples = "--provider Microsoft-DotNETCore-SampleProfiler --stacks";
    assert_eq!(events("in.nettrace", of_samples), events("out.nettrace", of_samples));
    // Every part names the process, by the same letters.
    printed(&folder, "edit in.nettrace -o part.nettrace --split-time 500ms --redact command-lines", 0);
    let process = |part: u32| events(&format!("part.00{part}.nettrace"), "--event ProcessInfo");
    assert!(process(1).contains("CommandLine"), "{}", process(1));
    assert_eq!(process(1), process(2));
    let refused = dipc(&folder, "edit in.nettrace -o out.nettrace --redact secrets");
    assert_eq!(refused.status.code(), Some(2));
}

/// V6 has texts as arrays of UTF-8 code units, too, which `events` shows as texts.
#[test]
fn replaces_strings_of_code_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let unit = |unit: Type| Box::new(unit);
    let texts = [Type::Array(unit(Type::Utf8CodeUnit)), Type::DataLoc(unit(Type::Utf8CodeUnit))];
    let fields = texts.into_iter().map(|ty| Field::new("text", ty)).collect();
    let mut trace = v6::Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata {
        id: 1,
        provider: "Demo".into(),
        event_id: 1,
        name: "Load".into(),
        fields,
        ..Metadata::default()
    }]);
    trace.thread_block(&[v6::ThreadRow { index: 1, ..v6::ThreadRow::default() }]);
    let mut block = EventBlock::v6();
    let units = || b"/secret".iter().copied().map(SynthValue::Utf8CodeUnit).collect();
    let payload = payload(&[SynthValue::Array(units()), SynthValue::DataLoc(units())]);
    block.event(&Event {
        metadata_id: 1,
        thread: 1,
        capture_thread: 1,
        sequence: 1,
        payload,
        ..Event::default()
    });
    trace.event_block(&block);
    std::fs::write(folder.path().join("in.nettrace"), trace.finish()).expect("a file");
    printed(&folder, "edit in.nettrace -o out.nettrace --redact Demo/Load.text", 0);
    let shown = |file: &str| printed(&folder, &format!("events {file} --format jsonl"), 0);
    assert_eq!(shown("in.nettrace").matches("/secret").count(), 2, "{}", shown("in.nettrace"));
    assert_eq!(shown("out.nettrace").matches("secret").count(), 0, "{}", shown("out.nettrace"));
    let bytes = std::fs::read(folder.path().join("out.nettrace")).expect("a file");
    assert!(!bytes.windows(6).any(|part| part == b"secret"));
}

#[test]
fn left_out_events_are_not_losses() {
    let folder = folder_with("net10-tinybuf.nettrace");
    let whole = stat(&folder, "in.nettrace");
    assert!(whole["lost"].as_u64() > Some(1000));
    printed(&folder, "edit in.nettrace -o out.nettrace --provider Microsoft-Windows-DotNETRuntime", 0);
    let part = stat(&folder, "out.nettrace");
    assert!(part["events"].as_u64() < whole["events"].as_u64());
    assert_eq!(part["lost"], whole["lost"]);
    let folder = folder_with("net9-everything.nettrace");
    printed(&folder, "edit in.nettrace -o out.nettrace --event GC/*", 0);
    assert_eq!(stat(&folder, "out.nettrace")["lost"], 0);
}

#[test]
fn filters_select_the_events_of_dipc_events() {
    let folder = folder_with("net9-everything.nettrace");
    for filter in [
        "--event GC/AllocationTick",
        "--provider Microsoft-DotNETCore-SampleProfiler",
        "--head 100",
        "--tail 100",
    ] {
        printed(&folder, &format!("edit in.nettrace -o out.nettrace {filter}"), 0);
        if !filter.starts_with("--tail") {
            let shown = |file: &str| printed(&folder, &format!("events {file} --format jsonl {filter}"), 0);
            assert!(shown("in.nettrace") == shown("out.nettrace"), "{filter}");
        }
        // The names of the methods are there whatever is left out.
        let rundown = |file: &str| {
            printed(&folder, &format!("events {file} --format jsonl --provider *Rundown"), 0).lines().count()
        };
        assert_eq!(rundown("in.nettrace"), rundown("out.nettrace"), "{filter}");
    }
}

/// The rows of `report requests`, without what depends on the length of the recording, and the slowest of
/// them.
fn requests(folder: &TempDir, file: &str, options: &str) -> (Vec<Value>, Value) {
    let text = printed(folder, &format!("report {file} requests --slowest 1 --format json {options}"), 0);
    let mut report: Value = serde_json::from_str(&text).expect("an object");
    let rows = report["rows"].as_array_mut().expect("rows");
    for row in rows.iter_mut() {
        row["per_second"] = Value::Null;
        row["parts"] = Value::Null;
        // Lock waits of other requests show that they were recorded.
        row["thread_parts"] = Value::Null;
    }
    let slowest = &report["slowest"][0];
    let slowest = ["activity", "start_ns", "duration_ns", "samples"].map(|key| slowest[key].clone());
    (report["rows"].as_array().expect("rows").clone(), slowest.into_iter().collect())
}

#[test]
fn a_request_is_extracted_with_the_work_of_its_threads() {
    let folder = folder_with("../reference/net9-web.nettrace");
    for name in ["/burn/{ms}", "/fan", "/hello/{n}", "/wait"] {
        printed(&folder, &format!("edit in.nettrace -o out.nettrace --request {name}"), 0);
        let whole = requests(&folder, "in.nettrace", &format!("--name {name}"));
        let part = requests(&folder, "out.nettrace", &format!("--name {name}"));
        assert_eq!(part.1, whole.1, "{name}");
        let servers = |rows: &[Value]| -> Vec<Value> {
            rows.iter().filter(|row| row["role"] == "server").cloned().collect()
        };
        assert_eq!(servers(&part.0), servers(&whole.0), "{name}");
        // Requests of other names have gone.
        assert_eq!(servers(&requests(&folder, "out.nettrace", "").0), servers(&whole.0), "{name}");
    }
}

#[test]
fn an_activity_is_cut_out_by_its_path_or_its_id() {
    let folder = folder_with("net9-joined.nettrace");
    printed(&folder, "edit in.nettrace -o out.nettrace --activity /#6006/1/6/", 0);
    let (rows, slowest) = requests(&folder, "out.nettrace", "");
    assert_eq!(slowest, requests(&folder, "in.nettrace", "").1);
    assert_eq!(rows.len(), 2, "the request and its query: {rows:?}");
    let by_path = std::fs::read(folder.path().join("out.nettrace")).expect("a file");
    printed(&folder, "edit in.nettrace -o out.nettrace --activity 00000016-0000-0000-0000-0000b58e9d59", 0);
    assert!(std::fs::read(folder.path().join("out.nettrace")).expect("a file") == by_path);
    // The samples of its threads while they worked for it, and no others.
    let samples = |file: &str| {
        let text = printed(&folder, &format!("events {file} --event Thread/Sample --format jsonl"), 0);
        text.lines().count()
    };
    assert!(samples("out.nettrace") * 3 < samples("in.nettrace"));
    let nobody = dipc(&folder, "edit in.nettrace -o out.nettrace --request nobody");
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("no such request"));
    assert_eq!(dipc(&folder, "edit in.nettrace -o out.nettrace --activity 4711").status.code(), Some(2));
}

#[test]
fn stacks_can_be_left_out_and_versions_raised() {
    let folder = folder_with("net10-sample.nettrace");
    printed(&folder, "edit in.nettrace -o out.nettrace --drop-stacks", 0);
    assert!(!printed(&folder, "events out.nettrace --stacks --format jsonl", 0).contains("\"stack\":[\""));
    printed(&folder, "edit in.nettrace -o out.nettrace --upgrade 6", 0);
    assert_eq!(stat(&folder, "out.nettrace")["version"], 6);
    assert!(compare(&folder, "topN"));
    let folder = folder_with("net10-netperf.netperf");
    printed(&folder, "edit in.nettrace -o out.nettrace", 0);
    assert_eq!(stat(&folder, "out.nettrace")["version"], 4);
    assert!(compare(&folder, "topN"));
}

#[test]
fn a_cut_recording_becomes_whole() {
    let folder = folder_with("net9-everything.nettrace");
    let path = folder.path().join("in.nettrace");
    let mut bytes = std::fs::read(&path).expect("a recording");
    bytes.truncate(1_000_000);
    bytes[500_000..500_100].fill(0xff);
    std::fs::write(&path, bytes).expect("a file");
    let text = printed(&folder, "repair in.nettrace -o out.nettrace --format json", 6);
    let repair: Value = serde_json::from_str(&text).expect("an object");
    assert!(repair["truncated_at"].is_u64() && repair["damage_count"].as_u64() > Some(0), "{text}");
    let whole = stat(&folder, "out.nettrace");
    assert_eq!((&whole["damage"], &whole["truncated"]), (&Value::Array(Vec::new()), &Value::Bool(false)));
    assert_eq!(whole["events"], repair["events"]);
    let again = printed(&folder, "repair out.nettrace -o again.nettrace", 0);
    assert!(again.contains("Damage   none"), "{again}");
}

#[test]
fn takes_names_from_another_recording() {
    let folder = folder_with("net10-sample.nettrace");
    let whole = folder.path().join("whole.nettrace");
    std::fs::rename(folder.path().join("in.nettrace"), &whole).expect("a file");
    let mut bytes = std::fs::read(&whole).expect("a recording");
    // The rundown stands at the end.
    bytes.truncate(bytes.len() / 2);
    std::fs::write(folder.path().join("in.nettrace"), bytes).expect("a file");
    printed(&folder, "repair in.nettrace -o bare.nettrace", 6);
    printed(&folder, "repair in.nettrace -o out.nettrace --names-from whole.nettrace", 6);
    let resolved = |file: &str| {
        let text = printed(&folder, &format!("events {file} --symbols --format jsonl"), 0);
        text.matches('!').count()
    };
    assert!(resolved("out.nettrace") > resolved("bare.nettrace") + 1000);
}

/// The file that `dipc trace` leaves next to the recording of a process that died.
#[test]
fn repair_adds_companion_names_and_other_commands_report_them() {
    let folder = folder_with("net10-sample.nettrace");
    let path = |name: &str| folder.path().join(name);
    let mut bytes = std::fs::read(path("in.nettrace")).expect("a recording");
    std::fs::rename(path("in.nettrace"), path("in.names.nettrace")).expect("a file");
    bytes.truncate(bytes.len() / 2);
    std::fs::write(path("in.nettrace"), bytes).expect("a file");
    let repair = printed(&folder, "repair in.nettrace -o out.nettrace --format json", 6);
    let repair: Value = serde_json::from_str(&repair).expect("JSON");
    assert!(repair["names_added"].as_u64() > Some(1000), "{repair}");
    for arguments in
        ["edit in.nettrace -o part.nettrace --to 1s", "merge in.nettrace out.nettrace -o all.nettrace"]
    {
        let errors = String::from_utf8(dipc_with_input(&folder, arguments).stderr).expect("text");
        assert!(
            errors.contains("warning: the names of methods in in.names.nettrace"),
            "{arguments}: {errors}"
        );
        assert!(errors.contains("dipc repair in.nettrace -o NEW"), "{arguments}: {errors}");
    }
}

#[test]
fn an_input_is_never_emptied() {
    let folder = folder_with("net10-sample.nettrace");
    let path = |name: &str| folder.path().join(name);
    let bytes = std::fs::read(path("in.nettrace")).expect("a recording");
    std::fs::write(path("names.nettrace"), &bytes).expect("a file");
    std::fs::hard_link(path("in.nettrace"), path("link.nettrace")).expect("a link");
    let mut commands = vec![
        "repair in.nettrace --names-from names.nettrace -o names.nettrace",
        "merge in.nettrace names.nettrace -o names.nettrace",
        "counters read in.nettrace --format csv -o in.nettrace",
        "counters read in.nettrace --format json -o ./in.nettrace",
    ];
    // The same file under another name, and without one.
    if cfg!(unix) {
        commands.extend([
            "edit in.nettrace -o link.nettrace",
            "merge names.nettrace in.nettrace -o link.nettrace",
            "repair names.nettrace --names-from in.nettrace -o link.nettrace",
            "edit - -o in.nettrace",
            "merge names.nettrace - -o in.nettrace",
            "repair - -o in.nettrace",
            "counters read in.nettrace --format jsonl -o link.nettrace",
            "counters read - --format csv -o in.nettrace",
        ]);
    }
    for arguments in commands {
        let output = dipc_with_input(&folder, arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        assert!(errors.contains("would be overwritten"), "{arguments}: {errors}");
        for name in ["in.nettrace", "names.nettrace"] {
            assert!(std::fs::read(path(name)).expect("a file") == bytes, "{arguments}: {name}");
        }
    }
}

#[test]
fn names_that_cannot_be_read_leave_the_output_as_it_was() {
    let folder = folder_with("net10-sample.nettrace");
    std::fs::write(folder.path().join("out.nettrace"), "before").expect("a file");
    printed(&folder, "repair in.nettrace --names-from missing.nettrace -o out.nettrace", 1);
    let other = folder_with("net10-gcverbose.nettrace");
    std::fs::copy(other.path().join("in.nettrace"), folder.path().join("other.nettrace")).expect("a file");
    printed(&folder, "repair in.nettrace --names-from other.nettrace -o out.nettrace", 1);
    assert!(std::fs::read(folder.path().join("out.nettrace")).expect("a file") == b"before");
}

#[test]
fn mistakes_are_refused() {
    let folder = folder_with("net10-sample.nettrace");
    for (arguments, message) in [
        ("edit in.nettrace -o in.nettrace", "would be overwritten"),
        ("edit in.nettrace -o ./in.nettrace", "would be overwritten"),
        ("edit in.nettrace -o out.nettrace --from 2s --to 1s", "not after --from"),
        ("repair in.nettrace -o -", "standard output"),
        ("merge in.nettrace -o -", "standard output"),
        ("merge in.nettrace -o in.nettrace", "would be overwritten"),
        ("merge - - -o out.nettrace", "can be read once"),
        ("repair - --names-from - -o out.nettrace", "can be read once"),
    ] {
        let output = dipc_with_input(&folder, arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {errors}");
        assert!(errors.contains(message), "{arguments}: {errors}");
    }
    assert!(folder.path().join("in.nettrace").metadata().expect("a file").len() > 400_000);
}

/// The kernel's samples of a process stay what they are when a recording is edited, taken apart and merged
/// again.
#[test]
fn the_kernels_samples_are_carried_with_their_names_and_times() {
    let folder = folder_with("net9-kernel.nettrace");
    let top = |file: &str, by: &str| -> Value {
        let text = printed(&folder, &format!("report {file} topN --by {by} --format json"), 0);
        serde_json::from_str(&text).expect("an object")
    };
    let metrics = ["cpu", "off-cpu", "wall"];
    let whole = metrics.map(|by| top("in.nettrace", by));
    printed(&folder, "edit in.nettrace -o copy.nettrace", 0);
    printed(&folder, "edit in.nettrace --provider Universal.* -o kernel.nettrace", 0);
    printed(&folder, "edit in.nettrace --provider Microsoft-* -o runtime.nettrace", 0);
    printed(&folder, "merge --same-process runtime.nettrace kernel.nettrace -o merged.nettrace", 0);
    for (by, whole) in metrics.into_iter().zip(&whole) {
        assert!(whole["total"].as_u64().unwrap() > 0, "{whole}");
        // Names and mappings are kept with whatever is kept.
        for file in ["copy.nettrace", "kernel.nettrace", "merged.nettrace"] {
            assert_eq!(&top(file, by), whole, "{file} {by}");
        }
    }
    printed(&folder, "report runtime.nettrace topN --by cpu", 1);
    // A part of the time is the same, cut out or chosen.
    printed(&folder, "edit in.nettrace --from 500ms --to 1s -o part.nettrace", 0);
    let chosen = printed(&folder, "report in.nettrace topN --by cpu --from 500ms --to 1s -n 20", 0);
    assert_eq!(printed(&folder, "report part.nettrace topN --by cpu -n 20", 0), chosen);
}
