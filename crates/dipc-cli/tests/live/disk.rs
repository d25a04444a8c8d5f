//! A full disk ends a recording; everything received before is kept.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::loss::FLOOD;
use crate::program::{Running, dipc, stat};
use crate::runtime::{Runtime, not_run, say_not_run};
use crate::workload::Workload;

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_device_that_is_full() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    let finished =
        Running::start(dipc(["trace", "-p", &pid, "-o", "/dev/full", "--duration", "20s"])).finish();
    finished.with_code(1).assert_error_names(&["/dev/full", "No space left"]);
    workload.run("emit 1");
}

/// The limit of `ulimit -f` is in blocks of 512 or 1024 bytes.
#[test]
fn a_limit_on_file_sizes() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 200; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_dipc"), "trace", "-p"]);
    command.arg(workload.pid().to_string()).args(["--providers", FLOOD, "-o"]).arg(&file);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(command);
    running.until_recorded(&file, 1);
    workload.send("flood 2 20000");
    let finished = running.finish().with_code(1);
    finished.assert_error_names(&["out.nettrace", "File too large", "the session was stopped"]);
    assert!(finished.stderr.contains("ulimit -f"), "{}", finished.stderr);
    let stat = stat(&file, 6);
    assert!(stat.0["bytes"].as_u64().unwrap() >= 100 * 1024, "{}", stat.0);
    workload.done("flood 2 20000");
}

/// Some file systems report only at the end that they could not store the data.
#[test]
fn reports_errors_of_writing_and_closing() {
    if !Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok_and(|it| it.success()) {
        say_not_run("strace is not there");
        return;
    }
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.nettrace");
    for (fault, step, why) in
        [("fdatasync:error=EIO", "store", "Input/output error"), ("close:error=EDQUOT", "close", "quota")]
    {
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-o", "/dev/null", "-P"])
            .arg(&file)
            .arg("-e")
            .arg(format!("inject={fault}"));
        command.arg(env!("CARGO_BIN_EXE_dipc"));
        command.args(["trace", "-p", &pid, "--duration", "100ms", "-o"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = Running::start(command).finish().with_code(1);
        finished.assert_error_names(&[step, "out.nettrace", why]);
    }
}

/// In a mount namespace of its own the program writes to a file system of 512 KiB.
#[test]
fn a_disk_that_fills_up() {
    const SCRIPT: &str = r#"mount -t tmpfs -o size=512k none "$1" || exit 99
"$2" trace -p "$3" --providers "$4" --rundown false --duration 60s -o "$1/out.nettrace"; code=$?
cp "$1/out.nettrace" "$5"; exit $code"#;
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let (mount, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = kept.path().join("kept.nettrace");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]).arg(mount.path());
    command.arg(env!("CARGO_BIN_EXE_dipc")).arg(workload.pid().to_string()).arg(FLOOD).arg(&file);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if !can_mount(mount.path()) {
        not_run("this user may not mount a small file system");
        return;
    }
    let mut running = Running::start(command);
    // These fill the disk once the session has begun.
    let deadline = Instant::now() + PATIENCE;
    while !running.is_over() {
        assert!(Instant::now() < deadline, "the disk does not fill up");
        workload.run("flood 2 20000");
    }
    let finished = running.finish().with_code(1);
    finished.assert_error_names(&["out.nettrace", "No space left"]);
    let stat = stat(&file, 6);
    assert!(stat.0["bytes"].as_u64().unwrap() > 400_000, "{}", stat.0);
    assert!(stat.count("Workload-Typed", "Tick") > 1000, "{}", stat.0);
    workload.run("emit 1");
}

fn can_mount(at: &Path) -> bool {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none"]).arg(at);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
