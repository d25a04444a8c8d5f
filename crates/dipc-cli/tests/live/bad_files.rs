//! Files that are not recordings, or are incomplete.

use std::fs;
use std::path::Path;

use crate::program::{run, run_with_input, stat};
use crate::runtime::testdata;

const READING: [&[&str]; 4] = [
    &["stat"],
    &["stat", "--format", "json"],
    &["events"],
    &["events", "--format", "jsonl", "--order", "file"],
];

pub(crate) fn recording(name: &str) -> Vec<u8> {
    ::testdata::bytes(&format!("traces/{name}"))
}

fn fails(bytes: &[u8], code: i32, names: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("given");
    fs::write(&file, bytes).unwrap();
    for command in READING {
        let path = file.to_str().unwrap();
        let finished = run(command.iter().copied().chain([path])).with_code(code);
        finished.assert_error_names(&[&[path], names].concat());
        assert!(finished.stdout.is_empty(), "{}", finished.text());
        run_with_input(command.iter().copied().chain(["-"]), bytes).with_code(code).assert_error_names(names);
    }
}

#[test]
fn not_a_recording() {
    fails(b"#!/bin/sh\necho this is a script, not a recording\n", 1, &["not"]);
    fails(&[0; 4096], 1, &["not"]);
}

#[test]
fn files_of_other_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("a.nettrace.gz");
    let says = |file: &Path, help: &str| {
        for command in ["stat", "events", "report"] {
            let finished = run([command, file.to_str().unwrap()]).with_code(1);
            finished.assert_error_names(&[file.to_str().unwrap()]);
            assert!(finished.stderr.contains(help), "{}", finished.stderr);
        }
    };
    for magic in [&b"\x1f\x8b\x08"[..], b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"] {
        fs::write(&packed, [magic, &[0; 100]].concat()).unwrap();
        says(&packed, "\nhelp: the file is compressed: decompress it first");
    }
    let dump = testdata().join("gcdump/files/small.gcdump");
    says(&dump, &format!("\nhelp: it is a .gcdump file: dipc gcdump report {}", dump.display()));
}

#[test]
fn an_empty_file() {
    fails(b"", 1, &["empty"]);
}

#[test]
fn a_file_that_is_not_there() {
    for command in READING {
        let finished = run(command.iter().copied().chain(["/nonexistent/x.nettrace"])).with_code(1);
        finished.assert_error_names(&["/nonexistent/x.nettrace"]);
        run(command.iter().copied().chain(["/"])).with_code(1).assert_error_names(&["/"]);
    }
}

/// A recording cut anywhere is read up to the last whole block, with the place of the cut, and exit code 6.
#[test]
fn a_cut_recording() {
    let whole = recording("net10-tick.nettrace.xz");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.nettrace");
    let mut before = 0;
    for end in [200, 1000, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..end]).unwrap();
        let stat = stat(&file, 6);
        assert_eq!(
            (&stat.0["truncated"], stat.0["bytes"].as_u64()),
            (&true.into(), Some(end as u64)),
            "{end}"
        );
        let events = stat.0["events"].as_u64().unwrap();
        assert!(events >= before, "a longer prefix has no fewer events");
        before = events;
        assert_eq!(lines(&file, 6) as u64, events, "{end}");
    }
    assert_eq!(before, 80_001, "a cut of the last byte alone loses no event");
}

/// Before the end of its header a recording says nothing of itself that could be shown.
#[test]
fn a_recording_cut_in_its_header() {
    let whole = recording("net10-tick.nettrace.xz");
    for end in [8, 50, 100] {
        fails(&whole[..end], 6, &["cut", "header"]);
    }
}

/// A damaged block costs its own events, not those after it.
#[test]
fn a_damaged_recording() {
    let mut bytes = recording("net10-tick.nettrace.xz");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged.nettrace");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    fs::write(&file, &bytes).unwrap();
    let stat = stat(&file, 6);
    assert_eq!(stat.0["damage"].as_array().map(Vec::len), Some(1), "{}", stat.0);
    let offset = stat.0["damage"][0]["offset"].as_u64().unwrap();
    assert!(offset <= middle as u64 + 64, "{}", stat.0);
    let events = stat.0["events"].as_u64().unwrap();
    assert!(events > 30_000 && events < 80_001, "{events}");
    assert_eq!(lines(&file, 6) as u64, events);
}

fn lines(file: &Path, code: i32) -> usize {
    let finished = run(["events", file.to_str().unwrap(), "--format", "jsonl"]).with_code(code);
    finished.json_lines().count()
}
