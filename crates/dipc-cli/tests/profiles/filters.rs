//! Filters that match many names, and filters that match nothing.

use std::path::Path;

use super::{dipc, json, printed, recording, recording_in};

/// What `dipc events` prints with filters: its lines, and what it says besides.
fn events(folder: &Path, file: &str, filters: &[&str]) -> (Vec<String>, String) {
    let mut arguments = vec!["events", file, "--format", "jsonl"];
    arguments.extend(filters);
    let output = dipc(folder, &arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{filters:?}: {said}");
    (String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect(), said)
}

#[test]
fn filters_take_patterns_of_names() {
    let (folder, file) = recording("net10-all.nettrace");
    let file = file.to_str().unwrap();
    let count = |filters: &[&str]| {
        let (lines, said) = events(folder.path(), file, filters);
        assert_eq!(said, "", "{filters:?}");
        lines.len()
    };
    let all = count(&[]);
    let runtime = count(&["--provider", "Microsoft-Windows-DotNETRuntime"]);
    let microsoft = count(&["--provider", "microsoft*"]);
    assert!(0 < runtime && runtime < microsoft && microsoft < all, "{runtime} {microsoft} {all}");
    assert_eq!(count(&["--provider", "*"]), all);
    let each = ["GC/Start", "GC/Stop"].map(|name| count(&["--event", name]));
    let both = count(&["--event", "GC/St*"]);
    assert!(each[0] > 0 && both == each[0] + each[1], "{each:?} {both}");
    assert_eq!(count(&["--event", "gcst*", "--provider", "*DotNETRuntime"]), both);
}

#[test]
fn unmatched_filters_list_the_available_values() {
    let (folder, file) = recording("net10-all.nettrace");
    let file = file.to_str().unwrap();
    for (filters, warning, help) in [
        (
            &["--provider", "Microsoft-Windows-DotNetRuntimes"][..],
            "warning: --provider Microsoft-Windows-DotNetRuntimes: the recording has no event of that provider",
            "help: there are Microsoft-Windows-DotNETRuntime (",
        ),
        (
            &["--provider", "zzz*"],
            "warning: --provider zzz*: the recording has no event of that provider",
            "help: the most frequent are Microsoft-",
        ),
        (
            &["--event", "GC/Strat"],
            "warning: --event GC/Strat: the recording has no event of that name",
            "help: there are GC/Start (",
        ),
        (
            &["--event", "60000"],
            "warning: --event 60000: the recording has no event of that number",
            "help: the most frequent are ",
        ),
        (
            &["--provider", "Workload*", "--event", "GC/Start"],
            "warning: --event GC/Start: these providers have no event of that name",
            "help: the most frequent are ",
        ),
        (
            &["--tid", "3"],
            "warning: --tid 3: the recording has no event of that thread",
            "help: events by thread: ",
        ),
        (
            &["--from", "1h"],
            "warning: --from 1 h 00 min: the recording has no event that late",
            "help: its events are from ",
        ),
        (
            &["--to", "1ns"],
            "warning: --to 1 ns: the recording has no event that early",
            "help: its events are from ",
        ),
    ] {
        for order in ["time", "file"] {
            let filters = [filters, &["--order", order]].concat();
            let (lines, said) = events(folder.path(), file, &filters);
            assert_eq!(lines.len(), 0, "{filters:?}");
            let said: Vec<_> = said.lines().collect();
            assert_eq!(said[0], warning, "{filters:?}: {said:?}");
            assert!(said[1].starts_with(help) && said.len() == 2, "{filters:?}: {said:?}");
        }
    }
    // Filters without a match are reported even if others match, unless there was no need to read on.
    let (lines, said) = events(folder.path(), file, &["--event", "GC/Start", "--event", "nosuch"]);
    assert!(!lines.is_empty() && said.contains("--event nosuch: the recording has no event"), "{said}");
    let (_, said) = events(folder.path(), file, &["--event", "GC/Start", "--event", "nosuch", "--head", "1"]);
    assert_eq!(said, "");
    // Each matches something.
    let thread = "--tid=".to_owned() + &a_thread_without(folder.path(), file, "GC/Start");
    let (lines, said) = events(folder.path(), file, &["--event", "GC/Start", &thread]);
    assert_eq!(lines.len(), 0);
    assert_eq!(said, "warning: no event matches all of the filters, although each of them matches some\n");
}

/// A thread that never emits this event.
fn a_thread_without(folder: &Path, file: &str, name: &str) -> String {
    let threads = |filters: &[&str]| {
        let (lines, _) = events(folder, file, filters);
        let line =
            |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap()["tid"].to_string();
        lines.iter().map(line).collect::<std::collections::BTreeSet<_>>()
    };
    threads(&[]).difference(&threads(&["--event", name])).next().unwrap().clone()
}

#[test]
fn unmatched_filters_of_reports_list_the_available_values() {
    let (folder, file) = recording("net10-all.nettrace");
    let file = file.to_str().unwrap();
    for (arguments, warning) in [
        (&["report", file, "topN", "--tid", "3"][..], "--tid 3: the recording has no event of that thread"),
        (&["report", file, "gc", "--from", "1h"], "--from 1 h 00 min: the recording has no event that late"),
        (&["report", file, "alloc", "--pid", "4"], "--pid 4: the recording has no event of that process"),
        (
            &["convert", file, "-f", "folded", "-o", "-", "--to", "1ns"],
            "--to 1 ns: the recording has no event that early",
        ),
    ] {
        let output = dipc(folder.path(), arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.matches(&format!("warning: {warning}\nhelp: ")).count(), 1, "{arguments:?}: {said}");
    }
}

/// Shares and rates of a part are of the part's time.
#[test]
fn reports_of_a_part_are_of_its_time() {
    let (folder, file) = recording("net10-gcverbose.nettrace");
    let report = ["report", file.to_str().unwrap(), "gc", "--format", "json"];
    let whole = json(folder.path(), &report);
    let part = json(folder.path(), &[&report[..], &["--from", "5ms"]].concat());
    let duration = |report: &serde_json::Value| report["duration_ns"].as_u64().unwrap();
    assert_eq!(duration(&part) + 5_000_000, duration(&whole));
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let pauses = number(&part["pauses"]["total_ns"]);
    let percent = pauses * 100.0 / number(&part["duration_ns"]);
    assert!(pauses > 0.0 && (number(&part["pause_percent"]) - percent).abs() < 1e-9, "{part}");

    let (folder, file) = recording_in("reference", "net9-web.nettrace");
    let report = ["report", file.to_str().unwrap(), "requests", "--format", "json"];
    let whole = json(folder.path(), &report);
    let part = json(folder.path(), &[&report[..], &["--from", "1s"]].concat());
    assert_eq!(duration(&part) + 1_000_000_000, duration(&whole));
    let rows = part["rows"].as_array().unwrap();
    for row in rows.iter().filter(|row| row["count"] != 0) {
        let rate = number(&row["count"]) / (number(&part["duration_ns"]) / 1e9);
        assert!((number(&row["per_second"]) - rate).abs() < 1e-9, "{row}");
    }
}

/// Methods are listed at the end of a recording, after the part.
#[test]
fn the_slowest_requests_of_a_part_have_names() {
    let (folder, file) = recording_in("reference", "net9-web.nettrace");
    let part = ["requests", "--slowest", "3", "--to", "3200ms", "--format", "json"];
    let report = printed(folder.path(), &[&["report", file.to_str().unwrap()][..], &part].concat());
    assert!(report.contains("Program.BurnHere") && !report.contains("?!?"), "{report}");
}

#[test]
fn converts_events_of_the_requested_processes() {
    let (folder, file) = recording("v6-record-trace.nettrace");
    let file = file.to_str().unwrap();
    let listed = printed(folder.path(), &["events", file, "--format", "jsonl", "--pid", "15801"]);
    let out = folder.path().join("out.jsonl");
    printed(folder.path(), &["convert", file, "-f", "jsonl", "--pid", "15801", "-o", out.to_str().unwrap()]);
    let converted = std::fs::read_to_string(out).unwrap();
    assert_eq!(converted.lines().count(), listed.lines().count());
    assert!(listed.lines().count() > 10);
}
