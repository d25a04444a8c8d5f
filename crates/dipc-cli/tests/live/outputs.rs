//! The files that results go to: a name for each, one writer at a time, and a word where something is
//! overwritten.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::program::{Running, dipc, run, stat};
use crate::runtime::Runtime;
use crate::workload::Workload;

/// `dipc trace` of a process, without a name for the file, in a folder.
fn trace_in(folder: &Path, pid: u32) -> Running {
    let pid = pid.to_string();
    let mut command = dipc(["trace", "-p", &pid, "--duration", "1s", "--rundown", "false"]);
    command.current_dir(folder);
    Running::start(command)
}

#[test]
fn recordings_of_one_name_and_second_are_files_of_their_own() {
    let Some(one) = Workload::start(Runtime::NativeAot9) else { return };
    let Some(other) = Workload::start(Runtime::NativeAot9) else { return };
    let folder = tempfile::tempdir().unwrap();
    let pids = [one.pid(), other.pid(), one.pid(), other.pid()];
    let running = pids.map(|pid| trace_in(folder.path(), pid));
    for running in running {
        running.finish().with_code(0);
    }
    let files: Vec<PathBuf> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), pids.len(), "{files:?}");
    let mut recorded: Vec<_> = files
        .iter()
        .map(|file| {
            let stat = stat(file, 0);
            stat.assert_whole();
            let pid = stat.0["process_id"].to_string();
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with(&format!("workload_{pid}_")), "{name}");
            pid
        })
        .collect();
    recorded.sort();
    let mut expected = pids.map(|pid| pid.to_string());
    expected.sort();
    assert_eq!(recorded, expected);
    let names: BTreeSet<_> = files.iter().collect();
    assert_eq!(names.len(), pids.len());
}

#[test]
fn a_second_writer_of_a_recording_is_refused() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    let (pid, path) = (workload.pid().to_string(), file.to_str().unwrap());
    let mut first =
        Running::start(dipc(["trace", "-p", &pid, "-o", path, "--providers", "Workload-Typed:F:5"]));
    first.until_recorded(&file, 1);
    let second = run(["trace", "-p", &pid, "-o", path, "--duration", "1s"]).with_code(1);
    second.assert_error_names(&[path, "another program is writing"]);
    workload.run("emit 3");
    first.signal(Signal::INT);
    let first = first.finish().with_code(0);
    assert!(!first.stderr.contains("Overwriting"), "{}", first.stderr);
    let stat = stat(&file, 0);
    stat.assert_whole();
    assert!(stat.provider("Workload-Typed") >= 3, "{}", stat.0);
}

#[test]
fn reports_overwritten_files() {
    let Some(workload) = Workload::start(Runtime::Net9_0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let pid = workload.pid().to_string();
    let path = |name: &str| {
        let path = folder.path().join(name);
        fs::write(&path, "seventeen bytes..").unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let (recording, profile, core) = (path("out.nettrace"), path("out.folded"), path("core"));
    for arguments in [
        &["trace", "-p", &pid, "--duration", "200ms", "-o", &recording][..],
        &["convert", &recording, "-f", "folded", "-o", &profile],
        &["dump", "-p", &pid, "--type", "mini", "-o", &core],
    ] {
        let output = arguments.last().unwrap();
        let said = |finished: &str| {
            finished.contains("Overwriting") && finished.contains(&format!("{output}, 17 bytes"))
        };
        let finished = run(arguments.iter().copied());
        assert!(said(&finished.stderr), "{arguments:?}: {}", finished.stderr);
        assert_ne!(fs::read(output).unwrap(), b"seventeen bytes..", "{arguments:?}");
    }
}

#[test]
fn devices_and_pipes_are_written_to_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("a.nettrace");
    ::testdata::write("traces/net10-sample.nettrace.xz", &recording);
    let recording = recording.to_str().unwrap();
    for format in ["jsonl", "speedscope"] {
        let null = run(["convert", recording, "-f", format, "-o", "/dev/null"]);
        assert!(null.stderr.contains("/dev/null\n"), "{}", null.stderr);
        // Standard output is a pipe here.
        let piped = run(["convert", recording, "-f", format, "-o", "/dev/stdout"]);
        assert_eq!(piped.code, null.code, "{}", piped.stderr);
        assert_eq!(piped.stdout, run(["convert", recording, "-f", format, "-o", "-"]).stdout);
        assert!(!piped.stdout.is_empty());
    }
    for ending in ["jsonl", "speedscope.json"] {
        for name in ["null", "stdout"] {
            assert!(!Path::new(&format!("/dev/{name}.{ending}")).exists());
        }
    }
}
