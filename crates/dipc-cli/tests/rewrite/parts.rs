//! Which part `dipc edit` writes: times of the calendar, the time around an event, what it tells programs of
//! it.

use std::fs;
use std::path::Path;

use nettrace_synth::{
    Event, EventBlock, Field, Metadata, SystemTime, TraceHeader, Type, Value as SynthValue, payload, v6,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{dipc, dipc_with_input, folder_with, printed, stat};

/// Runs the program with arguments that have blanks: its exit code, standard output and standard error.
fn run(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dipc"))
        .current_dir(folder.path())
        .args(arguments)
        .output()
        .expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A recording that began on 2026-01-02 at 03:04:05.250 UTC, with an event `Shop/Order` each second, from the
/// first on, whose `amount` is its number and whose `customer` is one of two.
fn write_orders(path: &Path, start: SystemTime) {
    let mut trace = v6::Trace::new(&TraceHeader { start, ..TraceHeader::default() });
    trace.metadata_block(&[Metadata {
        id: 1,
        provider: "Shop".into(),
        event_id: 1,
        name: "Order".into(),
        fields: vec![Field::new("amount", Type::Int32), Field::new("customer", Type::String16)],
        ..Metadata::default()
    }]);
    trace.thread_block(&[v6::ThreadRow { index: 1, ..v6::ThreadRow::default() }]);
    let mut block = EventBlock::v6();
    for number in 1..=9_u32 {
        let customer = if number % 2 == 0 { "anna.smith" } else { "ben.miller" };
        let amount = i32::try_from(number).expect("a small number");
        block.event(&Event {
            metadata_id: 1,
            thread: 1,
            capture_thread: 1,
            sequence: number,
            timestamp: u64::from(number) * 1_000_000_000,
            payload: payload(&[SynthValue::Int32(amount), SynthValue::string16(customer)]),
            ..Event::default()
        });
    }
    trace.event_block(&block);
    fs::write(path, trace.finish()).expect("a file");
}

fn folder_with_orders() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let (year, month, day_of_week, day) = (2026, 1, 5, 2);
    let (hour, minute, second, millisecond) = (3, 4, 5, 250);
    let start = SystemTime { year, month, day_of_week, day, hour, minute, second, millisecond };
    write_orders(&folder.path().join("in.nettrace"), start);
    folder
}

/// The amounts of the orders of a recording.
fn amounts(folder: &TempDir, file: &str, more: &str) -> Vec<i64> {
    let text = printed(folder, &format!("events {file} --format jsonl {more}"), 0);
    let amount = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("an object");
        event["fields"]["amount"].as_i64().expect("a number")
    };
    text.lines().map(amount).collect()
}

#[test]
fn times_of_the_calendar_count_from_the_start_in_the_header() {
    let folder = folder_with_orders();
    // The start is at .250: the third order came at 08.250.
    for (range, expected) in [
        ("--from 2026-01-02T03:04:08.25Z --to 2026-01-02T03:04:10.25Z", vec![3, 4]),
        ("--from 2026-01-02T04:04:08.25+01:00 --to 5s", vec![3, 4]),
        ("--from 3s --to 2026-01-01T22:04:10.250-05:00", vec![3, 4]),
        ("--from 2026-01-02T03:04:08.250000001Z --to 2026-01-02T03:04:10.250000001Z", vec![4, 5]),
        ("--from 1999-12-31T23:59:59Z --to 2026-01-02T03:04:07Z", vec![1]),
        ("--from 2026-01-02T03:04:13.3Z --to 9999-12-30T00:00:00Z", vec![9]),
    ] {
        assert_eq!(amounts(&folder, "in.nettrace", range), expected, "events {range}");
        printed(&folder, &format!("edit in.nettrace -o out.nettrace {range}"), 0);
        assert_eq!(amounts(&folder, "out.nettrace", ""), expected, "edit {range}");
    }
}

#[test]
fn reports_and_profiles_take_times_of_the_calendar() {
    // It began at 09:02:42.156.
    let folder = folder_with("net10-gcverbose.nettrace");
    assert_eq!(stat(&folder, "in.nettrace")["start"], "2026-11-21T09:02:42.156Z");
    for command in [
        "report in.nettrace gc --format json",
        "report in.nettrace alloc --format json",
        "report in.nettrace topN --by alloc --format json",
        "report in.nettrace stacks --by alloc --format json",
        "convert in.nettrace -f folded --by alloc -o -",
        "convert in.nettrace -f jsonl -o -",
    ] {
        let whole = printed(&folder, command, 0);
        let part = printed(&folder, &format!("{command} --from 20ms --to 70ms"), 0);
        let dates = "--from 2026-11-21T09:02:42.176Z --to 2026-11-21T10:02:42.226+01:00";
        assert!(whole != part, "{command}");
        assert_eq!(part, printed(&folder, &format!("{command} {dates}"), 0), "{command}");
    }
    // This report marks what began before the part.
    let requests = folder_with("net10-exceptions.nettrace");
    let command = "report in.nettrace requests";
    let of = |range: &str| dipc(&requests, &format!("{command} {range}")).stdout;
    let start = stat(&requests, "in.nettrace")["start"].as_str().expect("a time").to_owned();
    assert_eq!(of("--from 0s"), of(&format!("--from {start}")));
}

/// The duration of a recording by the report of collections, in nanoseconds, and the share in percent of it
/// for which the program stood still.
fn gc_time(folder: &TempDir, file: &str) -> (u64, f64) {
    let report = printed(folder, &format!("report {file} gc --format json"), 0);
    let report: Value = serde_json::from_str(&report).expect("an object");
    (report["duration_ns"].as_u64().expect("a number"), report["pause_percent"].as_f64().expect("a number"))
}

#[test]
fn shares_of_a_part_are_of_its_own_time() {
    let folder = folder_with("net9-background.nettrace");
    let milliseconds = |count: u64| count * 1_000_000;
    printed(&folder, "edit in.nettrace -o part.nettrace --from 500ms --to 800ms", 0);
    let whole = printed(&folder, "report in.nettrace gc --format json --from 500ms --to 800ms", 0);
    assert_eq!(printed(&folder, "report part.nettrace gc --format json", 0), whole);
    assert_eq!(gc_time(&folder, "part.nettrace").0, milliseconds(300));
    let overview = |file: &str| -> Value {
        serde_json::from_str(&printed(&folder, &format!("report {file} --format json"), 0))
            .expect("an object")
    };
    assert_eq!(overview("part.nettrace")["duration_ns"], milliseconds(300));
    assert!(overview("part.nettrace")["program"].is_string(), "named before the part");
    // A part of the part, a copy of it, and a part that ends with the recording.
    printed(&folder, "edit part.nettrace -o inner.nettrace --from 700ms --to 2s", 0);
    assert_eq!(gc_time(&folder, "inner.nettrace").0, milliseconds(100));
    printed(&folder, "repair part.nettrace -o copy.nettrace", 0);
    printed(&folder, "edit part.nettrace -o without.nettrace --provider *DotNETRuntime*", 0);
    for copy in ["copy.nettrace", "without.nettrace"] {
        assert_eq!(gc_time(&folder, copy), gc_time(&folder, "part.nettrace"), "{copy}");
    }
    printed(&folder, "edit in.nettrace -o end.nettrace --from 500ms", 0);
    let last = stat(&folder, "in.nettrace")["duration_ns"].as_u64().expect("a number");
    assert_eq!(gc_time(&folder, "end.nettrace").0, last + 1 - milliseconds(500));
    // Flags select within the part.
    let inner = printed(&folder, "report part.nettrace gc --format json --from 700ms", 0);
    let inner: Value = serde_json::from_str(&inner).expect("an object");
    assert_eq!(inner["duration_ns"], milliseconds(100));
    // Its statement is not an event of the process, and a merged recording is not the part.
    let events = printed(&folder, "events part.nettrace", 0)
        + &printed(&folder, "report part.nettrace events -n 100", 0);
    assert!(!events.contains("Dipc-Recording"), "{events}");
    printed(&folder, "merge part.nettrace end.nettrace -o merged.nettrace", 0);
    assert!(gc_time(&folder, "merged.nettrace").0 > milliseconds(1000));
}

#[test]
fn times_that_cannot_be_known_are_refused() {
    let folder = folder_with_orders();
    let refused = |arguments: &str, code: i32, part: &str| {
        let output = dipc_with_input(&folder, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        assert!(said.contains(part), "{arguments}: {said}");
    };
    refused("events in.nettrace --from 2026-01-02T03:04:08", 2, "without a zone");
    refused("edit in.nettrace -o out.nettrace --to 2026-01-02", 2, "without a zone");
    refused("report in.nettrace gc --from 2026-01-32T03:04:08Z", 2, "not a date");
    refused("events - --from 2026-01-02T03:04:08Z", 2, "which takes a file");
    refused("edit in.nettrace -o out.nettrace --from 4s --to 2026-01-02T03:04:08Z", 2, "not after --from");
    refused("events -p 1 --from 2026-01-02T03:04:08Z", 2, "are for recordings");
    // A header of zeros has no time of day.
    write_orders(&folder.path().join("in.nettrace"), SystemTime::default());
    refused("events in.nettrace --from 2026-01-02T03:04:08Z", 1, "its header has no time of day");
    assert_eq!(amounts(&folder, "in.nettrace", "--from 8s"), [8, 9]);
}

#[test]
fn a_part_surrounds_the_match_of_a_condition() {
    let folder = folder_with_orders();
    let edit = |more: &[&str]| {
        let arguments = [&["edit", "in.nettrace", "-o", "out.nettrace", "--around"], more].concat();
        run(&folder, &arguments)
    };
    for (arguments, expected, time) in [
        (
            &["event Shop/Order amount = 4", "--before", "1s", "--after", "2s"][..],
            &[3, 4, 5, 6][..],
            "4.00 s",
        ),
        (&["event Shop/Order amount = 4", "--before", "0s", "--after", "0s"], &[4], "4.00 s"),
        (
            &["event Shop/Order amount > 3", "--occurrence", "3", "--after", "0s", "--before", "1s"],
            &[5, 6],
            "6.00 s",
        ),
        (&["event Shop/Order"], &[1, 2, 3, 4, 5, 6], "1.00 s"),
    ] {
        let (code, printed, said) = edit(arguments);
        assert_eq!((code, &*printed), (Some(0), ""), "{arguments:?}: {said}");
        assert!(said.contains(&format!("Around         : {time}, event Shop/Order")), "{said}");
        assert_eq!(amounts(&folder, "out.nettrace", ""), expected, "{arguments:?}");
    }
    for (arguments, code, part) in [
        (&["event Shop/Order amount = 10"][..], 1, "the condition is never met"),
        (&["event Shop/Order amount = 4", "--occurrence", "2"], 1, "the condition is met once"),
        (&["event Shop/Order", "--occurrence", "10"], 1, "the condition is met 9 times"),
        (&["gc pause > soon"], 2, "at character"),
        (&["event Shop/Order", "--from", "1s"], 2, "cannot be used with"),
        (&["event Shop/Order", "--occurrence", "0"], 2, "0 is not in 1.."),
    ] {
        let (found, _, said) = edit(arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    assert_eq!(run(&folder, &["edit", "in.nettrace", "-o", "out.nettrace", "--before", "1s"]).0, Some(2));
}

/// The condition has the time that `dipc rules test` shows, and a recording that was cut ends with `crash`.
#[test]
fn conditions_match_the_rules() {
    let folder = folder_with("net10-exceptions.nettrace");
    let condition = "exception System.Net.Sockets.SocketException";
    let (_, rules, _) =
        run(&folder, &["rules", "test", "in.nettrace", "--snapshot-on", condition, "--format", "json"]);
    let rules: Value = serde_json::from_str(&rules).expect("an object");
    let edit = ["edit", "in.nettrace", "-o", "out.nettrace", "--before", "1ms", "--after", "1ms"];
    for number in ["1", "2"] {
        let more = ["--around", condition, "--occurrence", number, "--format", "json"];
        let (code, printed, said) = run(&folder, &[&edit[..], &more].concat());
        let Some(firing) = rules["firings"].get(number.parse::<usize>().expect("a number") - 1) else {
            assert_eq!(code, Some(1), "{said}");
            continue;
        };
        let time = firing["time_ns"].as_i64().expect("a time");
        let result: Value = serde_json::from_str(&printed).expect("an object");
        assert_eq!(result["parts"][0]["from_ns"], time - 1_000_000, "{said}");
        assert_eq!(result["parts"][0]["to_ns"], time + 1_000_001);
    }
    assert!(rules["met"].as_u64() > Some(0));
    let path = folder.path().join("in.nettrace");
    let bytes = fs::read(&path).expect("a recording");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("a file");
    let (code, _, said) = run(&folder, &[&edit[..], &["--around", "crash"]].concat());
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("the stream ended in the middle"), "{said}");
}

/// A condition that is met all the time had 100 rows of "too early".
#[test]
fn the_times_between_two_snapshots_are_one_row() {
    let folder = folder_with("net10-exceptions.nettrace");
    let test = |more: &[&str]| {
        let condition = "exception System.Exception or exception *";
        let fixed = ["rules", "test", "in.nettrace", "--snapshot-interval", "1h", "--snapshot-on", condition];
        run(&folder, &[&fixed[..], more].concat()).1
    };
    let json: Value = serde_json::from_str(&test(&["--format", "json"])).expect("an object");
    let met = json["met"].as_u64().expect("a number");
    assert!(met > 2 && json["snapshots"] == 1, "{json}");
    assert_eq!(json["firings"].as_array().map(Vec::len), Some(usize::try_from(met).expect("few")));
    let table = test(&[]);
    assert_eq!(table.lines().count(), 5, "{table}");
    let between = format!("too early, {} times until ", met - 1);
    assert!(table.contains(" yes ") && table.contains(&between), "{table}");
}

#[test]
fn an_edit_reports_kept_and_replaced_events_as_json() {
    let folder = folder_with_orders();
    let result = |arguments: &str| -> Value {
        let text =
            printed(&folder, &format!("edit in.nettrace -o out.nettrace --format json {arguments}"), 0);
        serde_json::from_str(&text).expect("an object")
    };
    let bytes = |file: &str| fs::metadata(folder.path().join(file)).expect("a file").len();
    let found = result("--from 3s --to 5s --redact Shop/Order.customer");
    let part = json!({
        "file": "out.nettrace", "version": 6, "from_ns": 3_000_000_000_i64, "to_ns": 5_000_000_000_i64,
        "read": 9, "kept": 2, "cut": 7, "bytes": bytes("out.nettrace"), "skipped_blocks": 0, "skipped_bytes": 0,
    });
    let expected = json!({
        "parts": [part], "requests": null, "redacted": [{"field": "Shop/Order.customer", "texts": 2}],
        "not_described": [], "truncated_at": null, "damage_count": 0,
    });
    assert_eq!(found, expected);
    // Numbers of all parts are added.
    let found = result("--split-time 4s --redact Shop/Order.customer");
    let parts = found["parts"].as_array().expect("a list");
    let kept: Vec<_> = parts.iter().map(|part| part["kept"].as_u64()).collect();
    assert_eq!(kept, [Some(3), Some(4), Some(2)]);
    assert_eq!(parts[1]["file"], "out.002.nettrace");
    assert_eq!(parts[1]["bytes"], bytes("out.002.nettrace"));
    assert_eq!(found["redacted"], json!([{"field": "Shop/Order.customer", "texts": 9}]));
    let refused = dipc(&folder, "edit in.nettrace -o - --format json");
    assert_eq!(refused.status.code(), Some(2));

    let folder = folder_with("net10-sample.nettrace");
    let path = folder.path().join("in.nettrace");
    let bytes = fs::read(&path).expect("a recording");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("a file");
    let text = printed(&folder, "edit in.nettrace -o out.nettrace --format json", 6);
    let found: Value = serde_json::from_str(&text).expect("an object");
    let kept = &found["parts"][0]["kept"];
    assert!(found["truncated_at"].as_u64() > Some(200_000), "{text}");
    assert_eq!(&stat(&folder, "out.nettrace")["events"], kept);
}

/// By a hash equal texts stay equal in one run, and are others in the next; an x says nothing but the length.
#[test]
fn replaces_strings_with_a_hash_or_the_same_letter() {
    let folder = folder_with_orders();
    let customers = |arguments: &str| -> Vec<String> {
        printed(
            &folder,
            &format!("edit in.nettrace -o out.nettrace --redact Shop/Order.customer {arguments}"),
            0,
        );
        let text = printed(&folder, "events out.nettrace --format jsonl", 0);
        let customer = |line: &str| {
            let event: Value = serde_json::from_str(line).expect("an object");
            event["fields"]["customer"].as_str().expect("a text").to_owned()
        };
        text.lines().map(customer).collect()
    };
    for arguments in ["", "--redact-with hash"] {
        let (first, second) = (customers(arguments), customers(arguments));
        assert_ne!(first, second);
        for run in [first, second] {
            assert!(run.iter().all(|name| name.len() == 10 && !name.contains(['.', ' '])), "{run:?}");
            assert_ne!(run[0], run[1]);
            assert!(run.iter().enumerate().all(|(index, name)| *name == run[index % 2]), "{run:?}");
        }
    }
    assert_eq!(customers("--redact-with x"), ["xxxxxxxxxx"; 9]);
    assert_eq!(dipc(&folder, "edit in.nettrace -o out.nettrace --redact-with x").status.code(), Some(2));
}
