//! The example, run on testdata.

#[path = "../examples/largest.rs"]
#[expect(dead_code, reason = "its main")]
mod largest;

use std::path::Path;

#[test]
fn the_largest_types_of_a_file_match_its_recording() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gcdump");
    let [file, recording] = ["files/small.gcdump", "recordings/small.nettrace"].map(|name| {
        let mut out = Vec::new();
        largest::run(&[folder.join(name).to_str().unwrap().to_owned()], &mut out).unwrap();
        String::from_utf8(out).unwrap()
    });
    assert!(file.starts_with("     20000      20000      1 byte[]\n"), "{file}");
    // A file lacks the names of declaring types.
    let numbers = |text: &str| text.lines().map(|line| line[..28].to_owned()).collect::<Vec<_>>();
    assert_eq!(numbers(&file), numbers(&recording));
    assert!(recording.contains(" 2 Shop.Order.Line\n"), "{recording}");
}
