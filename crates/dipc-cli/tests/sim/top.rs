//! `dipc top` on recordings that are replayed: it counts what the reports of those recordings count.

use serde_json::Value;
use tempfile::TempDir;

use crate::{Sim, run};

/// A collection that `top` sees is one of the report, with the same pause.
#[test]
fn pauses_of_top_match_the_report() {
    for name in ["net10-gcverbose.nettrace", "net9-background.nettrace", "net3-everything.nettrace"] {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join(name);
        testdata::write(&format!("traces/{name}.xz"), &file);
        let file = file.to_str().unwrap();
        let (_, report, _) = run(&["report", file, "gc", "--format", "json"]);
        let report: Value = serde_json::from_str(&report).unwrap();
        let pauses = &report["pauses"];
        assert!(pauses["count"].as_u64() > Some(0), "{name}");

        let sim = Sim::start(1, &["--replay", file, "--speed", "max"]);
        let arguments = ["--format", "jsonl", "--refresh-interval", "0.5", "--count", "4"];
        let (code, top, errors) = run(&[&["top", "--endpoint", sim.endpoint()], &arguments[..]].concat());
        assert_eq!(code, Some(0), "{errors}");
        let intervals: Vec<Value> = top.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let numbers = |key: &str| {
            let numbers = intervals.iter().map(|interval| interval["collections"][key].as_u64().unwrap());
            numbers.collect::<Vec<_>>()
        };
        let sum = |key: &str| numbers(key).into_iter().sum::<u64>();
        assert_eq!(Some(sum("pause_ns")), pauses["total_ns"].as_u64(), "{name}: {top}");
        assert_eq!(numbers("longest_pause_ns").into_iter().max(), pauses["max_ns"].as_u64(), "{name}");
        assert_eq!(sum("count"), report["collections"].as_array().unwrap().len() as u64, "{name}");
    }
}
