//! The example, run on testdata.

#[path = "../examples/values.rs"]
#[expect(dead_code, reason = "its main")]
mod values;

use std::fs;
use std::path::Path;

/// There are as many values as rows in dotnet-counters' file of the same session.
#[test]
fn every_value_of_a_recording_is_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/counters");
    let recording = Path::new(env!("CARGO_TARGET_TMPDIR")).join("values.nettrace");
    testdata::write("counters/net10-csv.nettrace.xz", &recording);
    let path = recording.to_str().unwrap().to_owned();
    let mut out = Vec::new();
    values::run(&[path.clone(), "System.Runtime[dotnet.assembly.count]".to_owned()], &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let rows = fs::read_to_string(folder.join("net10-csv.csv")).unwrap();
    let rows = rows.lines().filter(|row| row.contains("dotnet.assembly.count")).count();
    assert!(rows > 0, "the file has such rows");
    assert_eq!(lines.lines().count(), rows, "{lines}");
    assert!(values::run(&[path, "a[".to_owned()], &mut Vec::new()).is_err());
}
