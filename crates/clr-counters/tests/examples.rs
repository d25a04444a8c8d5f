//! The example, run on testdata.

#[path = "../examples/values.rs"]
#[expect(dead_code, reason = "its main")]
mod values;

use std::fs::{self, File};
use std::path::Path;

/// There are as many values as rows in dotnet-counters' file of the same session.
#[test]
fn every_value_of_a_recording_is_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/counters");
    let recording = Path::new(env!("CARGO_TARGET_TMPDIR")).join("values.nettrace");
    let compressed = File::open(folder.join("net10-csv.nettrace.xz")).unwrap();
    std::io::copy(&mut lzma_rust2::XzReader::new(compressed, false), &mut File::create(&recording).unwrap())
        .unwrap();
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
