//! Dumps: a runtime without a working `createdump`, and one that is writing a dump.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::examine;
use crate::executable;
use crate::program::{Running, dipc};
use crate::runtime::{self, Runtime};
use crate::workload::Workload;

/// Starts the workload on a copy of the runtime with another `createdump`.
fn with_createdump(folder: &Path, text: Option<&str>, mode: u32) -> Option<Workload> {
    let command = Runtime::Net9_0.workload()?;
    let copy = folder.join("dotnet");
    same_files(&runtime::installation(Runtime::Net9_0)?, &copy);
    let createdump = copy.join("shared/Microsoft.NETCore.App").join("9.0.1/createdump");
    let original = fs::read(&createdump).unwrap();
    fs::remove_file(&createdump).unwrap();
    executable::write(&createdump, text.map_or(original.as_slice(), str::as_bytes), mode);
    let mut own = Command::new(copy.join("dotnet"));
    own.args(command.get_args());
    Some(Workload::from_command(Runtime::Net9_0, own))
}

/// Links the files where the file system allows it, else copies them. Not symbolic links, whose targets the
/// kernel would name.
fn same_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            same_files(&source, &target);
        } else if fs::hard_link(&source, &target).is_err() {
            executable::copy(&source, &target);
        }
    }
}

/// Creates a folder on the disk of the runtimes, so that files can be linked.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn a_createdump_that_is_not_executable() {
    let folder = folder();
    let Some(workload) = with_createdump(folder.path(), None, 0o644) else { return };
    let examined = examine(workload.pid(), 0);
    examined.only_problems(&[]);
    examined.names("createdump", "warning", &["createdump: it is not executable", "chmod +x"]);

    // The result of a dump that is forced all the same.
    let pid = workload.pid().to_string();
    let core = folder.path().join("core");
    Running::start(dipc(["dump", "-p", &pid, "--force", "-o", core.to_str().unwrap()])).finish();
    let examined = examine(workload.pid(), 3);
    examined.only_problems(&["socket"]);
    examined.names("socket", "problem", &["removed: by the runtime itself after a dump request"]);
}

#[test]
fn a_process_that_writes_a_dump() {
    let folder = folder();
    let slow = "#!/bin/sh\nsleep 600 &\necho $! > \"$TMPDIR/sleeper\"\nwait\n";
    let Some(workload) = with_createdump(folder.path(), Some(slow), 0o755) else { return };
    let pid = workload.pid().to_string();
    let core = folder.path().join("core");
    let dump = Running::start(dipc(["dump", "-p", &pid, "-o", core.to_str().unwrap()]));
    let sleeper = workload.folder().join("sleeper");
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(&sleeper).map_or(true, |text| !text.ends_with('\n')) {
        assert!(Instant::now() < deadline, "createdump does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    let examined = examine(workload.pid(), 3);
    examined.only_problems(&["state", "answer"]);
    examined.names("state", "problem", &["is being dumped by createdump", "when the dump is written"]);
    let sleeper: i32 = fs::read_to_string(&sleeper).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(sleeper).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    dump.finish();
}
