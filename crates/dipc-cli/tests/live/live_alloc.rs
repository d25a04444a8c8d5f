//! `--by live-alloc` on a program that keeps one in a hundred of what five methods allocate, and nothing of
//! what a sixth one does (`testdata/workload/incidents/kept.cs`).

use std::collections::BTreeMap;
use std::process::Command;

use crate::program::{Recorded, Recording, run};
use crate::runtime::{Runtime, on_runtimes, program_of_10};
use crate::workload::{Target, Workload, await_providers};

/// Rounds of ticks: 8 GB are allocated and 80 batches of 1 MB kept. Each has ten ticks or nine.
const ROUNDS: &str = "400";

/// Rounds of objects that are drawn at random: 40 GB, of which some 3,200 objects that are drawn are kept.
/// The standard error of a share of 30 % is 0.8 points.
const RANDOM_ROUNDS: &str = "2000";

/// The bytes that the program says it has kept, by method.
type Kept = BTreeMap<String, f64>;

/// Records the program from before its first allocation to after its last collection.
fn record(program: Command, await_session: impl FnOnce()) -> (Recorded, Kept) {
    let mut target = Target::start(program);
    assert_eq!(target.line(), "ready");
    let mut recording = Recording::start(target.pid(), &["--profile", "live-alloc"]);
    recording.until(1);
    await_session();
    target.send("");
    let kept: Kept = (0..5).map(|_| (target.line(), target.line().parse().unwrap())).collect();
    assert_eq!(target.line(), "done");
    (recording.interrupt(), kept)
}

fn check(program: Command, await_session: impl FnOnce()) {
    let (recorded, kept) = record(program, await_session);
    recorded.stat(0).assert_whole();
    let file = recorded.file();
    let report = ["report", file.to_str().unwrap(), "topN", "--by", "live-alloc", "--inclusive"];
    let report = run(report.into_iter().chain(["--format", "json"])).with_code(0);
    let top = report.json();
    assert!(top["live"]["doubt"].is_null() && top["live"]["full_collections"].as_u64() > Some(0), "{top}");
    assert_eq!((&top["metric"], &top["unit"]), (&"live-alloc".into(), &"bytes".into()));
    let rows = top["rows"].as_array().unwrap();
    let bytes = |method: &str| -> f64 {
        let of_method = |name: &str| name.contains(&format!("Shop.{method}("));
        let rows = rows.iter().filter(|row| of_method(row["csharp"].as_str().unwrap()));
        rows.map(|row| row["inclusive"].as_f64().unwrap()).sum()
    };
    let alive: f64 = kept.keys().map(|method| bytes(method)).sum();
    let all_kept: f64 = kept.values().sum();
    for (method, kept) in &kept {
        let (seen, truth) = (100.0 * bytes(method) / alive, 100.0 * kept / all_kept);
        assert!((seen - truth).abs() < 3.0, "{method}: {seen:.2} %, and {truth:.2} % are kept: {top}");
    }
    assert!((0.9..1.1).contains(&(alive / all_kept)), "{alive} of {all_kept}: {top}");
    assert!(!top.to_string().contains("Scratch.Fill"), "{top}");
}

fn shares_of_what_is_kept_are_true_and_of_what_is_freed_there_is_nothing(runtime: Runtime) {
    let Some(mut program) = runtime.program("incidents/kept.dll") else { return };
    program.arg(ROUNDS);
    check(program, || await_providers(runtime));
}
on_runtimes!(shares_of_what_is_kept_are_true_and_of_what_is_freed_there_is_nothing: net_3_1, net_8_0, net_9_0);

/// Its collections report generations and no survivors: nothing is known to live.
#[test]
fn native_programs_do_not_report_what_lives() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let recording = Recording::start(workload.pid(), &["--profile", "live-alloc"]);
    for command in ["alloc 100", "gc 2 1"] {
        workload.run(command);
    }
    let recorded = recording.interrupt();
    let report = run(["report", recorded.file().to_str().unwrap(), "topN", "--by", "live-alloc"]);
    let report = report.with_code(1);
    report.assert_error_names(&["no allocations that a collection found alive"]);
    assert!(report.stderr.contains("(NativeAOT does not report what survives)\n"), "{}", report.stderr);
    assert!(report.stderr.contains(" without a report of what survived\n"), "{}", report.stderr);
}

/// .NET 10 samples objects at random.
#[test]
fn objects_sampled_at_random_are_followed() {
    let Some(mut program) = program_of_10("incidents/kept10.dll") else { return };
    program.arg(RANDOM_ROUNDS);
    check(program, || ());
}
