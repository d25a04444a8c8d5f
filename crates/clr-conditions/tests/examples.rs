//! The example, run on testdata.

#[path = "../examples/when.rs"]
#[expect(dead_code, reason = "its main")]
mod when;

use std::path::Path;

#[test]
fn each_exception_of_a_recording_meets_the_condition() {
    let recording = Path::new(env!("CARGO_TARGET_TMPDIR")).join("when.nettrace");
    testdata::write("traces/net10-all.nettrace.xz", &recording);
    let path = recording.to_str().unwrap().to_owned();
    let mut out = Vec::new();
    when::run(&[path.clone(), "exception System.InvalidOperationException".to_owned()], &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    // `throw 5` in testdata/traces/facts.jsonl.
    assert_eq!(out.lines().filter(|line| line.contains(" s ")).count(), 5, "{out}");
    assert!(out.starts_with("needs Microsoft-Windows-DotNETRuntime:0x8000:"), "{out}");
    assert!(when::run(&[path, "exception and".to_owned()], &mut Vec::new()).is_err());
}
