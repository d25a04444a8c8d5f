//! Filters that match many names, and filters that match nothing.

use std::path::Path;

use super::{dipc, recording};

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
fn filters_that_match_nothing_say_what_there_is() {
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
    // What matches nothing is told although something else matches, unless there was no need to read on.
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
fn reports_say_what_there_is_too() {
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
