//! `dipc repair --names-from PID`: the names of a process that still runs.

use std::fs;
use std::path::Path;

use super::{Sim, dipc};

/// A recording of testdata, unpacked.
fn recording(name: &str) -> Vec<u8> {
    testdata::bytes(&format!("traces/{name}"))
}

#[test]
fn a_process_that_runs_gives_the_names_that_a_cut_recording_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let bytes = recording("net10-sample.nettrace.xz");
    fs::write(path("whole.nettrace"), &bytes).unwrap();
    // The rundown stands at the end.
    fs::write(path("cut.nettrace"), &bytes[..bytes.len() / 2]).unwrap();
    let sim = Sim::start(1, &["--replay", &path("whole.nettrace"), "--speed", "max"]);
    let repair = |from: &str, output: &str, code: i32| {
        let arguments = ["repair", &path("cut.nettrace"), "-o", &path(output), "--format", "json"];
        let mut command = dipc(&arguments);
        command.args(["--names-from", from]).env("TMPDIR", sim.folder.path());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{from}: {said}");
        (output.stdout, said)
    };
    let (of_file, _) = repair(&path("whole.nettrace"), "file.nettrace", 6);
    let (of_process, _) = repair(&sim.child.id().to_string(), "process.nettrace", 6);
    let result: serde_json::Value = serde_json::from_slice(&of_process).unwrap();
    assert!(result["names_added"].as_u64() > Some(500), "{result}");
    assert_eq!(of_file, of_process);
    assert!(fs::read(path("file.nettrace")).unwrap() == fs::read(path("process.nettrace")).unwrap());
    // A missing one leaves the output unchanged.
    let (_, said) = repair("4194304", "process.nettrace", 3);
    assert!(said.contains("4194304"), "{said}");
    assert!(fs::read(path("file.nettrace")).unwrap() == fs::read(path("process.nettrace")).unwrap());
}

#[test]
fn names_of_another_process_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("other.nettrace"), recording("net10-gcverbose.nettrace.xz")).unwrap();
    fs::write(path("in.nettrace"), recording("net10-sample.nettrace.xz")).unwrap();
    let sim = Sim::start(1, &["--replay", &path("other.nettrace"), "--speed", "max"]);
    let pid = sim.child.id().to_string();
    let arguments = ["repair", &path("in.nettrace"), "-o", &path("out.nettrace"), "--names-from", &pid];
    let output = dipc(&arguments).env("TMPDIR", sim.folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("process {pid}: of process 11094, not of")), "{said}");
    assert!(!Path::new(&path("out.nettrace")).exists());
}
