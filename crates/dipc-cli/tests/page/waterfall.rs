//! The waterfall of a request: its bars add up to the report's sums, and its stacks are those that the report
//! of its thread's time has.

use std::path::Path;

use serde_json::Value;

use crate::{LOOK, WEB, open, report};

/// The time of a thread between two times in nanoseconds, waiting included; nothing without samples.
fn thread_time(folder: &Path, thread: &Value, from: f64, to: f64) -> f64 {
    let time = |nanoseconds: f64| format!("{}ms", nanoseconds / 1e6);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.current_dir(folder).args(["report", "app.nettrace", "topN", "--idle", "--format", "json"]);
    command.args(["--tid", &thread.to_string(), "--from", &time(from), "--to", &time(to)]);
    let output = command.output().expect("the program runs");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    report["total"].as_f64().unwrap_or(0.0)
}

#[test]
fn bars_add_up_to_the_parts_of_the_report() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        "const r = page.recording, sum = pieces => pieces.reduce((all, [from, to]) => all + to - from, 0);
        return r.slowest.map((row, index) => {
          const all = row[2] * 1000, work = requestWork(r.slowestWork[index], all), pieces = [work.threads, work.calls, work.queued, work.waiting];
          const edges = pieces.flat().sort((a, b) => a[0] - b[0]);
          return { start: row[1], duration: row[2], sums: pieces.map(sum), isCut: work.isCut, disjoint: edges.every(([from], place) => !place || from >= edges[place - 1][1]), inside: edges.every(([from, to]) => from >= 0 && to <= all && to > from) };
        });",
    );
    let reported = report(folder.path(), &["requests", "--slowest", "1000"]);
    let (mut found, mut paused) = (0, 0);
    for shown in seen.as_array().unwrap() {
        let number = |name: &str| shown[name].as_f64().unwrap();
        assert_eq!((&shown["disjoint"], &shown["inside"]), (&true.into(), &true.into()), "{shown}");
        let sums: Vec<_> =
            shown["sums"].as_array().unwrap().iter().map(|sum| sum.as_f64().unwrap()).collect();
        assert!((sums.iter().sum::<f64>() - number("duration") * 1000.0).abs() < 0.5, "{shown}");
        let is_same = |row: &&Value| {
            let is_same = |ours: &str, theirs: &str| {
                shown[ours].as_u64() == row[theirs].as_u64().map(|nanoseconds| nanoseconds / 1000)
            };
            is_same("start", "start_ns") && is_same("duration", "duration_ns")
        };
        let Some(row) = reported["slowest"].as_array().unwrap().iter().find(is_same) else { continue };
        let part = |name: &str| row["parts"][name].as_f64().unwrap_or_else(|| panic!("{name}: {row}"));
        let expected = ["on_thread_ns", "outgoing_ns", "queued_ns", "waiting_ns"].map(part);
        let pause = part("gc_pause_ns");
        found += 1;
        assert_eq!(shown["isCut"], false, "{shown}");
        paused += usize::from(pause > 0.0);
        for (sum, expected) in sums.iter().zip(expected) {
            // Pauses cover a part of a bar. The duration is in whole microseconds.
            assert!(*sum > expected - 1001.0 && *sum < expected + pause + 1.0, "{shown}: {row}");
        }
    }
    assert!(found > 20 && paused > 3, "{found} requests, {paused} with pauses");
}

/// The work of threads agrees with the report, and is drawn within their time.
#[test]
fn the_time_on_threads_is_split_as_in_the_report() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        "const r = page.recording, sum = pieces => pieces.reduce((all, [from, to]) => all + to - from, 0);
        const split = threadParts([30, 20, 2, 40, null, 10], { pieces: [[0, 50000], [100000, 200000]] });
        return { rows: r.slowest.map((row, index) => ({ start: row[1], duration: row[2], threads: r.slowestThreads[index] })),
          split: split.map(({ name, ns, pieces }) => [name, ns, sum(pieces)]), first: split[1].pieces };",
    );
    assert_eq!(
        seen["split"],
        serde_json::json!([
            ["– on a processor", 30_000, 30_000],
            ["– in lock waits (2)", 20_000, 20_000],
            ["– asleep", 40_000, 40_000],
            ["– in other waits", 10_000, 10_000],
        ])
    );
    assert_eq!(seen["first"], serde_json::json!([[30_000, 50_000]]));
    let reported = report(folder.path(), &["requests", "--slowest", "1000"]);
    let mut waited = 0;
    for shown in seen["rows"].as_array().unwrap() {
        let is_same = |row: &&Value| {
            let is_same = |ours: &str, theirs: &str| {
                shown[ours].as_u64() == row[theirs].as_u64().map(|nanoseconds| nanoseconds / 1000)
            };
            is_same("start", "start_ns") && is_same("duration", "duration_ns")
        };
        let Some(row) = reported["slowest"].as_array().unwrap().iter().find(is_same) else { continue };
        let parts = &row["thread_parts"];
        let micros = |name: &str| Value::from(parts[name].as_u64().map(|nanoseconds| nanoseconds / 1000));
        assert_eq!(shown["threads"][1], micros("lock_wait_ns"), "{shown}: {row}");
        assert_eq!(shown["threads"][2], parts["lock_waits"], "{shown}: {row}");
        assert_eq!(shown["threads"][3], micros("sleep_ns"), "{shown}: {row}");
        waited += parts["lock_waits"].as_u64().unwrap();
    }
    assert!(waited > 0, "{reported:#}");
}

/// Of a request of 1.22 s of which only a pause of 70 ms is known, the bar is not all pause.
#[test]
fn bars_are_as_wide_as_the_whole_time() {
    let Some((_folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const widths = bar => [...bar.querySelectorAll('i')].reduce((sum, piece) => sum + parseFloat(piece.style.width), 0);
            const slow = partsBar([70e6, 0, 0, 0, 0], 1220e6), whole = partsBar([70e6, 1145e6, 0, 0, 0], 1220e6);
            const parts = requestParts(page.recording, [0, 0, 1220e3, '', 0, true, 70e3, null, null, null, null]).rows.map(({{ name, ns }}) => [name, ns]);
            const shown = () => [...document.querySelectorAll(`#table .bar`)].map(widths);
            tab('slowest'); const slowest = shown();
            tab('requests'); const requests = shown();
            return {{ slow: widths(slow), title: slow.title, whole: whole.title, parts, slowest, requests }};"
        ),
    );
    assert!((seen["slow"].as_f64().unwrap() - 100.0 * 70.0 / 1220.0).abs() < 0.01, "{seen}");
    assert!(seen["title"].as_str().unwrap().ends_with(", not known 1.15 s"), "{seen}");
    assert!(!seen["whole"].as_str().unwrap().contains("not known"), "less than a hundredth: {seen}");
    assert_eq!(
        seen["parts"],
        serde_json::json!([["GC pause", 70_000_000], ["not known", 1_150_000_000]]),
        "{seen}"
    );
    for table in ["slowest", "requests"] {
        let bars = seen[table].as_array().unwrap();
        assert!(bars.iter().all(|bar| bar.as_f64().unwrap() <= 100.001), "{table}: {seen}");
        assert!(bars.len() > 2, "{table}: {seen}");
    }
}

#[test]
fn a_picked_request_shows_the_stacks_of_its_threads() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const r = page.recording;
            tab('slowest');
            const lines = () => [...document.querySelectorAll('#table tbody tr')], picked = [];
            const count = lines().length;
            for (let index = 0; index < Math.min(count, 40); index++) {{
              at('whole').click();
              const start = column(2)[index], length = column(3)[index], place = r.slowest.findIndex(row => row[1] * 1000 === start && row[2] * 1000 === length);
              lines()[index].dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter', bubbles: true }}));
              const box = at('detail').querySelector('.request'), stacks = [...box.querySelectorAll('.requeststacks tr')], bars = [...box.querySelectorAll('.parts tr')];
              picked.push({{ start, length, intervals: r.slowestWork[place].intervals, stacks: stacks.map(row => Number(row.dataset.ns)), leaves: stacks.map(row => row.cells[0].textContent), whole: stacks.map(row => row.title), states: stacks.map(row => row.cells[2].textContent),
                scopes: [...box.querySelectorAll('th')].every(th => th.scope === 'row'), captions: [...box.querySelectorAll('caption')].map(caption => caption.textContent),
                bars: bars.map(row => [row.cells[0].textContent, [...row.querySelectorAll('i')].map(mark => [parseFloat(mark.style.left), parseFloat(mark.style.width)])]), calls: [...box.querySelectorAll('.requestcalls th')].map(th => th.textContent), note: box.querySelector('.note').textContent }});
            }}
            return picked;"
        ),
    );
    let (mut compared, mut with_calls, mut blocked) = (0, 0, 0);
    for picked in seen.as_array().unwrap() {
        let number = |name: &str| picked[name].as_f64().unwrap();
        let list = |name: &str| picked[name].as_array().unwrap();
        assert_eq!(picked["scopes"], true, "{picked}");
        assert!(picked["note"].as_str().unwrap().starts_with("Bars stand where"), "{picked}");
        for bar in list("bars") {
            for mark in bar[1].as_array().unwrap() {
                let (left, width) = (mark[0].as_f64().unwrap(), mark[1].as_f64().unwrap());
                assert!(left >= 0.0 && left + width <= 100.001, "{picked}");
            }
        }
        with_calls += usize::from(!list("calls").is_empty());
        let stacks: Vec<_> = list("stacks").iter().map(|time| time.as_f64().unwrap()).collect();
        assert!(stacks.is_sorted_by(|one, other| one >= other), "{picked}");
        for (leaf, whole) in list("leaves").iter().zip(list("whole")) {
            let (leaf, whole) = (leaf.as_str().unwrap(), whole.as_str().unwrap());
            assert!(whole.lines().take(2).any(|line| line == leaf) && !leaf.ends_with("_TIME"), "{picked}");
        }
        blocked += list("states").iter().filter(|state| **state == "blocked").count();
        // Of eight stacks there may be more.
        if stacks.is_empty() || stacks.len() == 8 || compared == 6 {
            continue;
        }
        compared += 1;
        let mut expected = 0.0;
        for interval in list("intervals").chunks(4).filter(|interval| interval[0] == 0) {
            let time = |place: usize| number("start") + interval[place].as_f64().unwrap();
            expected += thread_time(folder.path(), &interval[1], time(2), time(3));
        }
        let shown: f64 = stacks.iter().sum();
        // The start is known to the microsecond.
        let intervals = u32::try_from(list("intervals").len() / 4).unwrap();
        let tolerance = 1000.0 * f64::from(1 + intervals);
        assert!((shown - expected).abs() < tolerance, "{shown} for {expected}: {picked}");
    }
    assert!(compared > 2 && with_calls > 0 && blocked > 0, "{compared} {with_calls} {blocked}: {seen}");
}
