//! Core dumps of a disk that was full: the truncation is reported, and the rest is shown.

use std::fs;

use serde_json::Value;

use crate::program::run;

/// Opens a core dump of the repository at 100 lengths. No runtime is needed.
fn cut(name: &str) {
    let bytes = testdata::bytes(&format!("cores/{name}.core.xz"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut");
    let path = path.to_str().unwrap();
    let whole = fs::write(path, &bytes).map(|()| run(["dump", "analyze", path])).unwrap();
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let (mut with_program, mut with_threads, mut with_runtime) = (0, 0, 0);
    for part in 0..100 {
        let length = bytes.len() * part / 100;
        fs::write(path, &bytes[..length]).unwrap();
        let read = run(["dump", "analyze", path, "--format", "json"]).with_code(6);
        let report = read.json();
        if report["error"].is_string() {
            // Not even the headers are whole.
            let expected = format!("the core dump is truncated: it has {length} bytes, ");
            read.assert_error_names(&[&expected]);
            assert!(length < 1000, "{length}");
            continue;
        }
        assert_eq!(report["file_bytes"], length, "{part}");
        assert!(report["promised_bytes"].as_u64() > Some(length as u64), "{part}");
        let missing = report["missing"][0].as_str().unwrap();
        assert!(missing.starts_with("the core dump is truncated: it has "), "{part}: {missing}");
        with_program += usize::from(report["program"].is_string());
        with_runtime += usize::from(report["runtime"].is_string());
        if report["runtime"].is_null() && report["program"].is_string() {
            let threads = report["native_threads"].as_array().unwrap();
            let has_frames = |thread: &Value| !thread["frames"].as_array().unwrap().is_empty();
            assert!(threads.iter().all(has_frames), "{part}");
            with_threads += usize::from(!threads.is_empty());
        }
        // A view says the same, or has an answer.
        let view = run(["dump", "analyze", path, "stacks"]).with_code(6);
        if view.stdout.is_empty() {
            view.assert_error_names(&["the core dump is truncated: it has "]);
        }
        assert!(!view.stderr.contains("no .NET runtime"), "{}", view.stderr);
    }
    // The notes are at the beginning.
    with_threads += with_runtime;
    assert!(with_program > 80 && with_threads > 80, "{with_program}, {with_threads}");
    assert!(with_runtime > 0);
}

#[test]
fn a_mini_core_is_cut_at_100_places() {
    cut("parked-mini");
}

#[test]
fn a_core_with_a_heap_is_cut_at_100_places() {
    cut("shop-heap");
}

#[test]
fn a_core_of_net_core_3_1_is_cut_at_100_places() {
    cut("deadlock-3.1");
}
