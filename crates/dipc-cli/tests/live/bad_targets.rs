//! Targets that are missing, not .NET, or not reachable.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::executable;
use crate::program::{Running, dipc, run};
use crate::runtime::Runtime;
use crate::workload::Workload;

/// The commands that attach, each with its arguments besides the target.
const ATTACHING: [&[&str]; 3] = [&["info"], &["env"], &["trace", "-o", "-", "--duration", "5s"]];

/// Above the kernel's highest: never a process.
const NO_PROCESS: &str = "4194305";

#[test]
fn no_such_process() {
    for command in ATTACHING {
        let finished = run(command.iter().copied().chain(["-p", NO_PROCESS])).with_code(3);
        finished.assert_error_names(&[NO_PROCESS, "no such process"]);
        assert!(finished.stdout.is_empty(), "{}", finished.text());
        // Nothing stands before the error.
        assert!(finished.stderr.starts_with("error: "), "{}", finished.stderr);
        assert!(finished.stderr.contains("\nhelp: dipc ps lists "), "{}", finished.stderr);
    }
}

#[test]
fn a_process_that_is_not_dotnet() {
    let ourselves = std::process::id().to_string();
    for command in ATTACHING {
        let finished = run(command.iter().copied().chain(["-p", &ourselves])).with_code(3);
        finished.assert_error_names(&[&ourselves, "no diagnostic socket"]);
        assert!(finished.stderr.contains("help: the process is not .NET"), "{}", finished.stderr);
    }
}

#[test]
fn no_permission() {
    let Some(workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    for command in ATTACHING {
        let mut command = dipc(command.iter().copied().chain(["-p", &pid]));
        if rustix::process::geteuid().is_root() {
            // Another user; the program may be in a folder for root only.
            let program = folder.path().join("dipc");
            executable::copy(command.get_program(), &program);
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
            let mut as_other = Command::new(program);
            as_other
                .args(command.get_args())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            as_other.uid(65534).gid(65534).current_dir("/");
            command = as_other;
        } else {
            fs::set_permissions(workload.socket(), fs::Permissions::from_mode(0o000)).unwrap();
        }
        Running::start(command).finish().with_code(3).assert_error_names(&[&pid, "permi"]);
    }
}

/// A process that lives, with a socket of the right name on which no process listens.
struct Stale {
    process: Child,
    _folder: tempfile::TempDir,
    socket: std::path::PathBuf,
}

impl Stale {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = Command::new("sleep").arg("600").env("TMPDIR", folder.path()).spawn().unwrap();
        // Its environment can be read a moment after its start.
        let environment = format!("/proc/{}/environ", process.id());
        while !String::from_utf8_lossy(&fs::read(&environment).unwrap()).contains("TMPDIR=") {
            std::thread::yield_now();
        }
        let name = format!("dotnet-diagnostic-{}-{}-socket", process.id(), start_time(process.id()));
        let socket = folder.path().join(name);
        drop(UnixListener::bind(&socket).unwrap());
        Self { process, _folder: folder, socket }
    }
}

impl Drop for Stale {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Field 22 of `/proc/PID/stat`; the second, in parentheses, may hold anything.
fn start_time(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap().to_owned()
}

#[test]
fn a_socket_without_a_listener() {
    let stale = Stale::start();
    let pid = stale.process.id().to_string();
    for command in ATTACHING {
        let finished = run(command.iter().copied().chain(["-p", &pid])).with_code(3);
        finished.assert_error_names(&[&pid, "no process listens"]);
    }
    let path = stale.socket.to_str().unwrap();
    run(["info", "--endpoint", path]).with_code(3).assert_error_names(&[path]);

    // The list shows what is there and why it cannot be used, and is not a failure.
    let listed = run(["ps", "--format", "json"]).with_code(0).json();
    if let Some(row) = listed.as_array().unwrap().iter().find(|row| row["pid"] == stale.process.id()) {
        assert!(row["error"].is_string(), "{row}");
    }
}

#[test]
fn a_socket_with_the_key_of_an_earlier_process() {
    let mut stale = Stale::start();
    let pid = stale.process.id().to_string();
    fs::remove_file(&stale.socket).unwrap();
    // As left behind by a process with the same id, or planted by someone: alive, but not this process's.
    stale.socket = stale.socket.with_file_name(format!("dotnet-diagnostic-{pid}-17-socket"));
    let planted = UnixListener::bind(&stale.socket).unwrap();
    planted.set_nonblocking(true).unwrap();
    run(["info", "-p", &pid]).with_code(3).assert_error_names(&[&pid]);
    let contacted = planted.accept();
    assert!(contacted.is_err(), "the planted socket was sent something: {contacted:?}");
}

#[test]
fn an_endpoint_that_is_not_there() {
    run(["info", "--endpoint", "/nonexistent/socket"])
        .with_code(3)
        .assert_error_names(&["/nonexistent/socket"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "not a socket").unwrap();
    let path = file.to_str().unwrap();
    run(["info", "--endpoint", path]).with_code(3).assert_error_names(&[path]);
}

#[test]
fn wrong_usage() {
    let ourselves = std::process::id().to_string();
    for arguments in [
        &["trace"] as &[&str],
        &["trace", "-p", "-5"],
        &["trace", "-p", &ourselves, "--providers", "Name:zz"],
        &["trace", "-p", &ourselves, "--providers", "Name:1:loud"],
        &["trace", "-p", &ourselves, "--providers", "Name:1:4:key=\"unclosed"],
        &["trace", "-p", &ourselves, "--providers", ":1:4"],
        &["trace", "-p", &ourselves, "--profile", "nosuch"],
        &["trace", "-p", &ourselves, "--clrevents", "nosuch"],
        &["trace", "-p", &ourselves, "--duration", "soon"],
        &["trace", "-p", &ourselves, "--buffersize", "0"],
        &["stat"],
        &["nosuch"],
    ] {
        let finished = run(arguments.iter().copied()).with_code(2);
        assert!(finished.stderr.starts_with("error: "), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stdout.is_empty(), "{arguments:?}: {}", finished.text());
    }
}

/// Nothing may be recorded that could not be kept: what cannot work is found before the session begins.
#[test]
fn an_output_in_a_folder_that_is_not_there() {
    let Some(mut workload) = Workload::start(Runtime::NativeAot9) else { return };
    let pid = workload.pid().to_string();
    for output in ["/nonexistent/out.nettrace", "/", "/proc/out.nettrace"] {
        assert!(!Path::new(output).is_file());
        let finished = run(["trace", "-p", &pid, "-o", output, "--duration", "5s"]).with_code(1);
        finished.assert_error_names(&[output]);
        assert!(!finished.stderr.contains("Provider Name"), "{}", finished.stderr);
    }
    workload.run("emit 1");
}
