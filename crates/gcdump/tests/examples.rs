//! The example, run on testdata.

#[path = "../examples/largest.rs"]
#[expect(dead_code, reason = "its main")]
mod largest;

use std::path::Path;

#[test]
fn the_largest_types_of_a_file_and_of_its_recording_are_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gcdump");
    let [file, recording] = ["files/small.gcdump", "recordings/small.nettrace"].map(|name| {
        let mut out = Vec::new();
        largest::run(&[folder.join(name).to_str().unwrap().to_owned()], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    });
    assert!(file.contains("     20000      1 byte[]"), "{file}");
    assert_eq!(file, recording);
}
