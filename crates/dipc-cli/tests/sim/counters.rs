//! Sessions of dotnet-counters that were captured, replayed: `dipc counters collect` writes what that tool wrote.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Sim, dipc};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/counters").join(name)
}

/// Collects what a simulated runtime replays, in this format.
fn collected(recording: &str, format: &str) -> String {
    let folder = TempDir::new().unwrap();
    let replayed = folder.path().join("replayed.nettrace");
    let packed = File::open(testdata(recording)).unwrap();
    let unpacked =
        io::copy(&mut lzma_rust2::XzReader::new(packed, true), &mut File::create(&replayed).unwrap());
    assert!(unpacked.unwrap() > 0);
    let sim = Sim::start(1, &["--replay", replayed.to_str().unwrap(), "--speed", "max"]);
    let output = folder.path().join(format!("counters.{format}"));
    let arguments =
        ["counters", "collect", "--endpoint", sim.endpoint(), "--counters", "*", "--format", format];
    let mut command = dipc(&arguments);
    // The replay is over at once; the session goes on until it is stopped.
    let finished = command.args(["--duration", "5s", "-o"]).arg(&output).env("TZ", "UTC").output().unwrap();
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
    fs::read_to_string(output).unwrap()
}

#[test]
fn csv_is_that_of_the_tool_from_end_to_end() {
    let expected = fs::read_to_string(testdata("net10-csv.csv")).unwrap();
    assert_eq!(collected("net10-csv.nettrace.xz", "csv"), expected);
}

/// The tool writes when it received a value, which a replay does not repeat, and the name of the process, which the stream lacks.
#[test]
fn json_is_that_of_the_tool_from_end_to_end() {
    let expected = fs::read_to_string(testdata("net10-json.json")).unwrap();
    let without_times = |json: &str| -> Vec<String> {
        let (_, events) = json.split_once("\"Events\": ").unwrap();
        let mut parts = events.split("\"timestamp\": \"");
        let first = parts.next().unwrap().to_owned();
        let rest = parts.map(|part| part.split_once('"').unwrap().1.to_owned());
        [first].into_iter().chain(rest).collect()
    };
    let json = collected("net10-json.nettrace.xz", "json");
    assert!(json.starts_with("{ \"TargetProcess\": \"\", \"StartTime\": \"2026-11-21T09:19:3"), "{json}");
    assert_eq!(without_times(&json), without_times(&expected));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["Events"].as_array().unwrap().len(),
        250
    );
}
