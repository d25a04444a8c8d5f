//! Heap dumps of a replayed session: by the block mode of .NET 11, and by what earlier runtimes take instead.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::{Sim, run};

#[test]
fn a_dump_in_block_mode_is_the_same_as_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let packed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gcdump/recordings/net10.nettrace.xz");
    let replayed = path("replayed.nettrace");
    let mut packed = lzma_rust2::XzReader::new(File::open(packed).unwrap(), true);
    io::copy(&mut packed, &mut File::create(&replayed).unwrap()).unwrap();
    let converted = path("converted.gcdump");
    assert_eq!(run(&["gcdump", "convert", &replayed, "-o", &converted]).0, Some(0));
    let expected = fs::read(converted).unwrap();
    for (version, command) in
        [("11", "CollectTracing6"), ("10", "CollectTracing5"), ("3.1", "CollectTracing2")]
    {
        let sim = Sim::start(1, &["--version", version, "--replay", &replayed, "--speed", "max"]);
        let collected = path(&format!("{version}.gcdump"));
        let arguments = ["gcdump", "collect", "-v", "--endpoint", sim.endpoint(), "-o", &collected];
        let (code, _, messages) = run(&arguments);
        assert_eq!(code, Some(0), "{version}: {messages}");
        assert!(messages.contains(&format!("by {command}\n")), "{version}: {messages}");
        assert!(fs::read(collected).unwrap() == expected, "{version}: another file");
    }
}
