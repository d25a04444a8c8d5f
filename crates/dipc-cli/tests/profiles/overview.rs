//! `dipc report FILE`: the reports in few words.

use serde_json::Value;

use super::{dipc, json, printed, recording};

/// The first fact of a report, which is not a cause.
fn finding(overview: &Value, report: &str) -> String {
    let mut findings = overview["findings"].as_array().unwrap().iter();
    let found = findings.find(|finding| finding["report"] == report && finding["is_problem"] == false);
    found.unwrap_or_else(|| panic!("no {report} in {overview:#}"))["text"].as_str().unwrap().to_owned()
}

fn missing(overview: &Value) -> Vec<&str> {
    overview["missing"].as_array().unwrap().iter().map(|part| part["report"].as_str().unwrap()).collect()
}

/// The figures are the same as in the goldens of the reports.
#[test]
fn the_overview_has_findings_and_missing_data() {
    let (folder, file) = recording("net10-gcverbose.nettrace");
    let file = file.to_str().unwrap();
    let overview = json(folder.path(), &["report", file, "--format", "json"]);
    let collections = json(folder.path(), &["report", file, "gc", "--format", "json"]);
    let allocations = json(folder.path(), &["report", file, "alloc", "--format", "json"]);
    let paused = format!("Paused {:.2}% of the time by ", collections["pause_percent"].as_f64().unwrap());
    let count = collections["collections"].as_array().unwrap().len();
    let gc = finding(&overview, "gc");
    assert!(gc.starts_with(&paused) && gc.contains(&format!(" {count} collections")), "{gc}");
    let alloc = finding(&overview, "alloc");
    let type_and_caller = format!("{} in Program.Run", allocations["types"][0]["csharp"].as_str().unwrap());
    assert!(alloc.ends_with(&type_and_caller), "{alloc}");
    assert_eq!(allocations["types"][0]["from"]["csharp"], "workload!Program.Run(string[])");
    assert_eq!(missing(&overview), ["requests", "topN", "exceptions", "contention", "threadpool", "jit"]);
    let stat = json(folder.path(), &["stat", file, "--format", "json"]);
    for field in ["events", "lost", "bytes", "duration_ns", "start", "process_id"] {
        assert_eq!(overview[field], stat[field], "{field}");
    }
    for command in ["--profile dotnet-sampled-thread-time", "--clrevents jit"] {
        assert!(printed(folder.path(), &["report", file, "-v"]).contains(command), "{command}");
    }
}

#[test]
fn the_overview_has_work_and_waits_of_threads() {
    let (folder, file) = recording("net10-sample.nettrace");
    let file = file.to_str().unwrap();
    let overview = json(folder.path(), &["report", file, "--format", "json"]);
    let work = "1.51 s of work, 18.1 ms of it running or waiting, which these samples do not tell apart: \
                95.51% Thread.PollGC.PollGCWorker (called from Spin.Hot)";
    assert!(finding(&overview, "topN").starts_with(work), "{overview:#}");
    let findings = overview["findings"].as_array().unwrap();
    // Of 11.1 s only those of threads that also worked, and did not sleep.
    for (begin, method) in [
        ("3.60 s blocked in the midst of work: ", " Parked.Box<"),
        ("2.11 s asleep (Thread.Sleep) on 2 threads: ", " Parked.Sleeper"),
        ("3 threads waited in one place all the time, ", "1 in Parked.Blocked (in Monitor.Enter)"),
    ] {
        let found = findings.iter().find(|it| it["text"].as_str().unwrap().starts_with(begin));
        let found = found.unwrap_or_else(|| panic!("{begin}: {overview:#}"));
        assert!(found["text"].as_str().unwrap().contains(method), "{found}");
        assert!(found["command"].as_str().unwrap().contains(" topN --blocked"), "{found}");
    }
    assert!(!missing(&overview).contains(&"topN"));
    assert_eq!(overview["runtime"], "10.0.14");
    let shown = printed(folder.path(), &["report", file]);
    assert!(shown.lines().count() < 24, "{shown}");
}

/// 4.57 ms of 274 are the method's own, and 2.29 ms are what it calls and waits for: those are not
/// subtracted.
#[test]
fn methods_that_also_wait_in_callees_are_kept() {
    let (folder, file) = recording("net10-all.nettrace");
    let file = file.to_str().unwrap();
    let top = json(folder.path(), &["report", file, "topN", "-n", "1000", "--format", "json"]);
    let row =
        top["rows"].as_array().unwrap().iter().find(|row| row["csharp"] == "workload!Program.Run(string[])");
    assert_eq!(
        (&row.unwrap()["exclusive"], &row.unwrap()["blocked"]),
        (&4_573_291.into(), &2_289_975.into())
    );
    let overview = json(folder.path(), &["report", file, "--format", "json"]);
    assert!(finding(&overview, "topN").ends_with("1.84% Program.Run"), "{overview:#}");
}

#[test]
fn reports_causes_and_missing_names_first() {
    let (folder, file) = recording("net9-background.nettrace");
    let overview = json(folder.path(), &["report", file.to_str().unwrap(), "--format", "json"]);
    let problems: Vec<_> = overview["findings"]
        .as_array()
        .unwrap()
        .iter()
        .take_while(|finding| finding["is_problem"] == true)
        .map(|finding| finding["report"].as_str().unwrap())
        .collect();
    assert_eq!(problems, ["gc", "topN"], "{overview:#}");
}

#[test]
fn format_of_the_overview_differs_from_a_reports() {
    let (folder, file) = recording("net10-gcverbose.nettrace");
    let output = dipc(folder.path(), &["report", file.to_str().unwrap(), "--format", "json", "gc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("after the name of the report"));
}

/// The workload slept for 220 ms, and computed for 250 ms on busy processors.
#[test]
fn kernel_samples_show_running_code_and_waits() {
    let (folder, file) = recording("net9-kernel.nettrace");
    let file = file.to_str().unwrap();
    let overview = json(folder.path(), &["report", file, "--format", "json"]);
    let texts: Vec<_> =
        overview["findings"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
    let found = |part: &str| {
        let mut all = texts.iter().filter(|text| text.contains(part));
        *all.next().unwrap_or_else(|| panic!("no {part} in {texts:#?}"))
    };
    // 87 ms more were spent on the processors, but not by the program.
    assert!(found("123 ms of CPU time: ").contains(" Spin.Fib"), "{texts:#?}");
    assert!(
        found("31.0 ms for this recording's session, 56.0 ms compilation").starts_with("Not"),
        "{texts:#?}"
    );
    let on_cpu = found("On the processors: ");
    for part in [
        "managed code",
        "the JIT compiler",
        "the runtime's other code",
        "the kernel",
        "the garbage collector",
    ] {
        assert!(on_cpu.contains(part), "{on_cpu}");
    }
    assert!(found("221 ms asleep (Thread.Sleep) on 1 thread").contains(" Program.Run"), "{texts:#?}");
    assert!(found("9.96 ms blocked in the midst of work").contains(" Program.Run"), "{texts:#?}");
    assert!(found("207 ms ready to run, without a processor").contains(" Spin.Fib"), "{texts:#?}");
    assert!(!missing(&overview).contains(&"topN"));
    assert!(
        overview["findings"].as_array().unwrap().iter().all(|it| it["is_problem"] == false),
        "{texts:#?}"
    );
    let top = |by: &str| json(folder.path(), &["report", file, "topN", "--by", by, "--format", "json"]);
    let (cpu, off_cpu, wall) = (top("cpu"), top("off-cpu"), top("wall"));
    assert_eq!((&cpu["unit"], &cpu["total"]), (&"ns".into(), &210_000_000.into()));
    assert_eq!((&off_cpu["unit"], &off_cpu["metric"]), (&"ns".into(), &"off-cpu".into()));
    // CPU time comes first in every view, waits second.
    assert_eq!(json(folder.path(), &["report", file, "topN", "--format", "json"]), cpu);
    let waits = json(folder.path(), &["report", file, "topN", "--idle", "--format", "json"]);
    assert_eq!(waits["metric"], "wall", "options about waits ask for these");
    let shown = printed(folder.path(), &["report", file, "topN"]);
    let (first, second) = shown.split_once("Waits").expect("a second table");
    assert!(first.contains("CPU time: 210 ms in 210 samples") && !first.contains("futex"), "{shown}");
    assert!(second.contains("230 ms") && second.contains("Program.Run"), "{shown}");
    let tree = printed(folder.path(), &["report", file, "stacks"]);
    assert!(tree.contains("CPU time: 210 ms") && tree.contains("off the processors left out"), "{tree}");
    let collapsed = |more: &[&str]| {
        printed(folder.path(), &[&["convert", file, "-f", "folded", "-o", "-"], more].concat())
    };
    assert_eq!(collapsed(&[]), collapsed(&["--by", "cpu"]));
    let number = |report: &Value| report["total"].as_u64().unwrap();
    assert_eq!(number(&wall), 210_000_000 + number(&off_cpu), "wall is both");
    let kinds = |report: &Value| {
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| row["kind"].as_str().unwrap().to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    for kind in ["managed", "jit", "runtime", "native", "kernel"] {
        assert!(kinds(&cpu).contains(kind), "{kind}");
    }
}

/// The page and its findings are of one reading.
#[test]
fn a_page_warns_of_damage_once() {
    let (folder, file) = recording("net10-all.nettrace");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(folder.path().join("cut.nettrace"), &bytes[..900_000]).unwrap();
    let output = dipc(folder.path(), &["convert", "cut.nettrace", "-f", "html"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(errors.matches("cut.nettrace: cut at offset ").count(), 1, "{errors}");
}
