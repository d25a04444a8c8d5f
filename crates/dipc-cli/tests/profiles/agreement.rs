//! Pauses and requests, which conditions, reports and screens count alike.

use std::path::Path;

use serde_json::Value;

use super::{json, recording, recording_in};

/// How often a condition is met in a recording.
fn met(folder: &Path, file: &str, condition: &str) -> Option<u64> {
    let output =
        super::dipc(folder, &["rules", "test", file, "--snapshot-on", condition, "--format", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("an object");
    result["met"].as_u64()
}

/// A thread that asks for a collection waits until the suspension of another has ended: that is no part of
/// its pause.
#[test]
fn pauses_of_conditions_match_the_report() {
    for (folder, file) in [
        recording("net9-background.nettrace"),
        recording("net10-gcverbose.nettrace"),
        recording("net3-everything.nettrace"),
        recording_in("reference", "net9-web.nettrace"),
    ] {
        let (folder, file) = (folder.path(), file.to_str().unwrap());
        let report = json(folder, &["report", file, "gc", "--format", "json"]);
        let pauses = &report["pauses"];
        assert_eq!(met(folder, file, "gc pause >= 0ms"), pauses["count"].as_u64(), "{file}");
        let buckets = pauses["histogram"].as_array().expect("buckets");
        let mut left = pauses["count"].as_u64().expect("a number");
        for bucket in buckets {
            left -= bucket["count"].as_u64().expect("a number");
            let condition =
                format!("gc pause >= {}us", bucket["below_ns"].as_f64().expect("a time") / 1000.0);
            assert_eq!(met(folder, file, &condition), Some(left), "{file}: {condition}");
        }
    }
}

#[test]
fn requests_of_conditions_match_the_report() {
    let (folder, file) = recording_in("reference", "net9-web.nettrace");
    let (folder, file) = (folder.path(), file.to_str().unwrap());
    let report = json(folder, &["report", file, "requests", "--slowest", "1000", "--format", "json"]);
    let rows = report["rows"].as_array().expect("rows");
    let served = || rows.iter().filter(|row| row["role"] == "server");
    let count = served().filter_map(|row| row["count"].as_u64()).sum::<u64>();
    assert_eq!(met(folder, file, "request >= 0ms"), Some(count));
    let failed = served().flat_map(|row| row["statuses"].as_array().expect("statuses"));
    let failed = failed.filter(|status| status["status"].as_str().is_some_and(|status| status >= "500"));
    let failed = failed.filter_map(|status| status["count"].as_u64()).sum::<u64>();
    assert_eq!(met(folder, file, "request status >= 500"), Some(failed));
    // Between the events of start and stop, not what a log message says of itself.
    let slowest = report["slowest"].as_array().expect("requests");
    for micros in [500, 1000, 2000, 10_000, 100_000] {
        let longer = slowest.iter().filter(|span| {
            span["end"] == "stopped"
                && span["provider"] == "Microsoft.AspNetCore.Hosting"
                && span["duration_ns"].as_u64() > Some(micros * 1000)
        });
        let longer = u64::try_from(longer.count()).expect("a number");
        assert_eq!(met(folder, file, &format!("request > {micros}us")), Some(longer), "{micros} us");
    }
}
