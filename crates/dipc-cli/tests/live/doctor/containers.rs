//! Namespaces of pids and mounts, as containers have them. Root only.

use std::process::Command;

use super::examine;
use crate::program::dipc;
use crate::runtime::Runtime::{self, NativeAot9, Net9_0};
use crate::runtime::say_not_run;
use crate::workload::Workload;

/// Starts the workload in its own namespaces, after a shell script that prepares them; `$TMPDIR` is the
/// folder of its socket.
fn contained(runtime: Runtime, options: &[&str], script: &str) -> Option<Contained> {
    if !rustix::process::geteuid().is_root() {
        say_not_run("only root can make namespaces");
        return None;
    }
    let program = runtime.workload()?;
    let mut command = Command::new("unshare");
    command.args(options).args(["sh", "-c", &format!("{script}; exec \"$0\" \"$@\"")]);
    command.arg(program.get_program()).args(program.get_args());
    Some(Contained(Workload::contained(runtime, command)))
}

struct Contained(Workload);

impl Contained {
    /// Returns the pid as seen from here: `unshare` itself, or its child.
    fn pid(&self) -> u32 {
        let unshare = self.0.pid();
        let children = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
        children.split_whitespace().next().map_or(unshare, |child| child.parse().unwrap())
    }
}

#[test]
fn a_process_in_its_own_namespaces() {
    let options = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    for runtime in [NativeAot9, Net9_0] {
        // A tmpfs over its folder: from outside the socket is only below /proc/PID/root.
        let Some(contained) = contained(runtime, &options, "mount -t tmpfs none \"$TMPDIR\"") else {
            continue;
        };
        let pid = contained.pid();
        let examined = examine(pid, 0);
        examined.only_problems(&[]);
        let parts = [&*format!("process 1 there is process {pid} here"), &format!("/proc/{pid}/root")];
        examined.names("container", "warning", &parts);
        examined.names("socket", "ok", &[&format!("/proc/{pid}/root")]);
    }
}

#[test]
fn a_read_only_folder() {
    for runtime in [NativeAot9, Net9_0] {
        let script = "mount -t tmpfs -o ro none \"$TMPDIR\"";
        let Some(contained) = contained(runtime, &["--mount"], script) else { continue };
        let examined = examine(contained.pid(), 3);
        examined.only_problems(&["socket"]);
        examined.names("socket", "problem", &["in a read-only file system", "mount something writable"]);
    }
}

/// A sidecar that has the folder of a program's socket, and process ids of its own.
#[test]
fn a_socket_of_another_pid_namespace() {
    for runtime in [NativeAot9, Net9_0] {
        let Some(contained) = contained(runtime, &["--pid", "--fork", "--kill-child"], "true") else {
            continue;
        };
        let Contained(program) = &contained;
        let mut entries = std::fs::read_dir(program.folder()).unwrap().map(|entry| entry.unwrap().path());
        let socket = entries.find(|path| path.to_string_lossy().ends_with("-socket")).unwrap();
        let sidecar = |arguments: &[&str]| {
            let dipc = dipc(arguments.iter().copied());
            let mut command = Command::new("unshare");
            command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
            command.arg(dipc.get_program()).args(dipc.get_args());
            command.env("TMPDIR", program.folder());
            let output = command.output().unwrap();
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
        };
        let listed = sidecar(&["ps"]);
        assert!(listed.contains(&format!("listens at {}: use --endpoint", socket.display())), "{listed}");
        let examined = sidecar(&["doctor"]);
        let advice = format!("use --endpoint {} instead of the pid", socket.display());
        assert!(examined.contains(&advice) && !examined.contains("can be removed"), "{examined}");
        let endpoint = socket.to_str().unwrap();
        let refused = sidecar(&["dump", "--stream", "--endpoint", endpoint, "-o", "-"]);
        assert!(refused.contains("shareProcessNamespace"), "{refused}");
    }
}

/// Root of a container that dropped all capabilities, next to one that did not.
#[test]
fn root_without_capabilities() {
    if !rustix::process::geteuid().is_root() {
        say_not_run("only root can drop capabilities");
        return;
    }
    let Some(program) = Workload::start(NativeAot9) else { return };
    let pid = program.pid().to_string();
    for arguments in
        [&["info", "-p", &pid][..], &["dump", "--stream", "-p", &pid, "-o", "-"], &["doctor", "-p", &pid]]
    {
        let dipc = dipc(arguments.iter().copied());
        let mut command = Command::new("setpriv");
        command.arg("--bounding-set=-all").arg(dipc.get_program()).args(dipc.get_args());
        let output = command.output().unwrap();
        assert!(!output.status.success());
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let advice = "the process has capabilities that dipc lacks (CHOWN, ";
        assert!(printed.contains(advice) && printed.contains("--cap-add SYS_PTRACE"), "{printed}");
    }
}
