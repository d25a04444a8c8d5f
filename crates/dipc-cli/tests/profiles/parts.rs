//! Percentages and rates of parts of a recording.

use nettrace_synth::clr::Recording;

use crate::{dipc, json, printed, recording};

/// A collection at 1 s that stops all for 100 ms, one at 2 s of which the recording may have no more than the
/// beginning, and an event at 10 s.
fn collections() -> Vec<u8> {
    let mut recording = Recording::new();
    recording.thread(7);
    for (number, start) in [(1, 1000), (2, 2000)] {
        let at = |ms: u64| (start + ms) * 1_000_000;
        recording.at(at(0)).suspend_begin(1).at(at(1)).suspend_end();
        recording.at(at(2)).gc_start(number, 2, 1).at(at(99)).gc_end(number, 2);
        recording.at(at(100)).restart_end();
    }
    recording.at(10_000_000_000).restart_end();
    recording.bytes()
}

#[test]
fn shares_are_of_the_requested_range() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.nettrace"), collections()).unwrap();
    for (range, duration, share) in [
        (&["--from", "500ms", "--to", "1500ms"][..], 1_000_000_000_u64, 10.0),
        (&["--from", "900ms"], 9_100_000_000, 200.0 / 91.0),
        // As far as the recording goes.
        (&["--from", "1500ms", "--to", "60s"], 8_500_000_000, 100.0 / 85.0),
        (&["--to", "4s"], 4_000_000_000, 5.0),
        (&[], 10_000_000_000, 2.0),
    ] {
        let report =
            json(folder.path(), &[&["report", "x.nettrace", "gc", "--format", "json"], range].concat());
        assert_eq!(report["duration_ns"], duration, "{range:?}");
        assert!((report["pause_percent"].as_f64().unwrap() - share).abs() < 1e-9, "{range:?}: {report:#}");
    }
    let cut = ["report", "x.nettrace", "gc", "--to", "2050ms"];
    let report = json(folder.path(), &[&cut[..], &["--format", "json"]].concat());
    let pauses: Vec<_> = report["collections"].as_array().unwrap().iter().map(|it| &it["pause_ns"]).collect();
    assert_eq!(pauses, [&100_000_000.into(), &serde_json::Value::Null], "{report:#}");
    let shown = printed(folder.path(), &cut);
    assert!(shown.contains("Paused 4.88% of 2.05 s, 1 time, the longest 100 ms"), "{shown}");
}

#[test]
fn a_process_of_a_merge_has_its_own_time() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.nettrace"), collections()).unwrap();
    let (other, file) = recording("net10-gcverbose.nettrace");
    let file = file.to_str().unwrap();
    printed(
        other.path(),
        &["merge", file, folder.path().join("x.nettrace").to_str().unwrap(), "-o", "all.nettrace"],
    );
    let stat = json(other.path(), &["stat", file, "--format", "json"]);
    let pid = stat["process_id"].to_string();
    let alone = json(other.path(), &["report", file, "gc", "--format", "json"]);
    let merged = json(other.path(), &["report", "all.nettrace", "gc", "--pid", &pid, "--format", "json"]);
    let share = |report: &serde_json::Value| report["pause_percent"].as_f64().unwrap();
    // Up to the time from the start of the session to its first event.
    let (alone, merged) = (share(&alone), share(&merged));
    assert!(merged >= alone && merged < alone * 1.01, "{merged} of {alone}");
}

/// .NET Core 2.0 wrote such recordings, which have no number of a process.
#[test]
fn a_recording_without_a_process_is_not_one_of_a_machine() {
    let folder = tempfile::tempdir().unwrap();
    let synth = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/traces/synth-v2.netperf");
    let shown = dipc(folder.path(), &["report", synth, "topN"]);
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert!(errors.contains("samples of threads") && !errors.contains("CPU"), "{errors}");
}

#[test]
fn time_off_the_processors_is_the_same_in_part_and_whole() {
    let (folder, file) = recording("net9-kernel.nettrace");
    let file = file.to_str().unwrap();
    let topn = |file: &str, by: &str, range: &[&str]| {
        json(folder.path(), &[&["report", file, "topN", "--by", by, "--format", "json"], range].concat())
    };
    let mut total = 0;
    for (from, to) in [("0ms", "60ms"), ("60ms", "200ms"), ("200ms", "450ms"), ("450ms", "60s")] {
        let range = ["--from", from, "--to", to];
        printed(folder.path(), &[&["edit", file, "-o", "part.nettrace"], &range[..]].concat());
        for by in ["off-cpu", "wall", "cpu"] {
            let (whole, part) = (topn(file, by, &range), topn("part.nettrace", by, &[]));
            assert_eq!(part["rows"], whole["rows"], "{by} {range:?}");
            assert_eq!((&part["total"], &part["idle"]), (&whole["total"], &whole["idle"]), "{by} {range:?}");
        }
        let off_cpu = topn("part.nettrace", "off-cpu", &["--idle"]);
        total += off_cpu["total"].as_u64().unwrap();
    }
    // The parts make up the whole, but for what was before the start.
    let all = topn(file, "off-cpu", &["--idle", "--from", "0ms"]);
    assert_eq!(all["total"].as_u64().unwrap(), total);
}

#[test]
fn a_thread_that_is_cut_out_is_as_idle_as_before() {
    let (folder, file) = recording("net10-all.nettrace");
    let file = file.to_str().unwrap();
    let topn = |file: &str, tid: &str| {
        let output =
            dipc(folder.path(), &["report", file, "topN", "--tid", tid, "--by", "wall", "--format", "json"]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).ok()
    };
    let mut compared = 0;
    for tid in 10_890..10_920 {
        let tid = tid.to_string();
        let Some(before) = topn(file, &tid) else { continue };
        printed(folder.path(), &["edit", file, "--tid", &tid, "-o", "one.nettrace"]);
        let after = topn("one.nettrace", &tid).expect("samples");
        assert_eq!((&after["idle"], &after["total"]), (&before["idle"], &before["total"]), "thread {tid}");
        // Samples of the others are marks, which weigh nothing.
        let all =
            json(folder.path(), &["report", "one.nettrace", "topN", "--by", "wall", "--format", "json"]);
        assert_eq!((&all["idle"], &all["total"]), (&before["idle"], &before["total"]), "thread {tid}");
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}

#[test]
fn profiles_that_would_overlap_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let push = ["push", "-p", "1", "--pyroscope", "http://127.0.0.1:9", "--every", "4s", "--duration", "10s"];
    let refused = dipc(folder.path(), &push);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--duration 10.0 s is longer than --every 4.0 s"), "{errors}");
}

#[test]
fn net_core_3_1_has_its_own_version() {
    let (folder, file) = recording("net3-everything.nettrace");
    let overview = json(folder.path(), &["report", file.to_str().unwrap(), "--format", "json"]);
    assert_eq!(overview["runtime"], "3.1.23");
}

#[test]
fn a_merge_has_the_command_line_and_the_version_of_one_process() {
    let (first, net3) = recording("net3-everything.nettrace");
    let (_second, net10) = recording("net10-all.nettrace");
    let (net3, net10) = (net3.to_str().unwrap(), net10.to_str().unwrap());
    let of = |file: &str| json(first.path(), &["report", file, "--format", "json"]);
    for files in [[net3, net10], [net10, net3]] {
        printed(first.path(), &["merge", files[0], files[1], "-o", "all.nettrace"]);
        let all = of("all.nettrace");
        let by_program = |one: &serde_json::Value| one["program"] == all["program"];
        let own = [of(net3), of(net10)].into_iter().find(by_program).expect("the program of one of them");
        assert_eq!((&all["runtime"], &all["process_id"]), (&own["runtime"], &own["process_id"]));
        let shown = printed(first.path(), &["report", "all.nettrace"]);
        assert!(shown.lines().next().unwrap().ends_with(", and 1 other process"), "{shown}");
    }
}
