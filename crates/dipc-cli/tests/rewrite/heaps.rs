//! Heaps of merged recordings, which have the dumps of several processes.

use std::fs;

use tempfile::TempDir;

use super::dipc;

/// The recordings of two heap dumps, and one of both: `both.nettrace`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    testdata::write("gcdump/recordings/small.nettrace", &folder.path().join("small.nettrace"));
    testdata::write("gcdump/recordings/net10.nettrace.xz", &folder.path().join("net10.nettrace"));
    let merged = dipc(&folder, "merge small.nettrace net10.nettrace -o both.nettrace");
    assert!(merged.status.success(), "{merged:?}");
    folder
}

#[test]
fn a_merged_recording_has_the_heaps_of_its_processes() {
    let folder = folder();
    for (file, pid) in [("small.nettrace", 4242), ("net10.nettrace", 19253)] {
        for command in ["report --head 50", "report --format json", "paths --type byte[]"] {
            let [own, of_both] = [file.to_owned(), format!("both.nettrace --pid {pid}")].map(|of| {
                let output = dipc(&folder, &format!("gcdump {command} {of}"));
                let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
                (output.status.code(), texts)
            });
            assert_eq!(own, of_both, "{command} {file}");
        }
        let [own, of_both] = [file.to_owned(), format!("both.nettrace --pid {pid}")].map(|of| {
            dipc(&folder, &format!("gcdump convert {of} -o heap.gcdump"));
            let path = folder.path().join("heap.gcdump");
            let bytes = fs::read(&path).expect("a file");
            fs::remove_file(path).expect("the file");
            bytes
        });
        assert!(own == of_both, "{file}");
    }
}

#[test]
fn the_processes_of_other_heaps_are_named() {
    let folder = folder();
    let messages = |arguments: &str| {
        let output = dipc(&folder, arguments);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, first) = messages("gcdump report both.nettrace");
    assert!(first.contains("this is the dump of process 4242, which began first"), "{first}");
    assert!(first.contains("the others are of: 19253"), "{first}");
    assert!(first.contains("--pid PID reads the dump of another process"), "{first}");
    let (code, none) = messages("gcdump report both.nettrace --pid 5");
    assert_eq!(code, Some(1), "{none}");
    assert!(none.contains("heap dumps of other processes: 4242, 19253"), "{none}");
    let (code, live) = messages("gcdump report -p 4 --pid 5");
    assert_eq!(code, Some(2), "{live}");
    let diff = dipc(
        &folder,
        "gcdump diff both.nettrace both.nettrace --pid-before 4242 --pid-after 19253 --format json",
    );
    let diff: serde_json::Value = serde_json::from_slice(&diff.stdout).expect("an object");
    assert_eq!((&diff["objects_before"], &diff["objects_after"]), (&5.into(), &12_287.into()), "{diff}");
}
