//! The kernel's permission to sample: for root, for another user's process and for one's own.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use super::{Examined, examined};
use crate::executable;
use crate::program::{Running, dipc};
use crate::runtime::say_not_run;

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// A program without .NET, killed when dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start(user: u32) -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
        Self(command.uid(user).gid(user).spawn().unwrap())
    }

    /// Examines it as a user.
    fn examined_by(&self, user: u32) -> Examined {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("dipc");
        executable::copy(env!("CARGO_BIN_EXE_dipc"), &own);
        std::os::unix::fs::chown(folder.path(), Some(user), None).unwrap();
        let pid = self.0.id().to_string();
        let sample = dipc(["doctor", "-p", &pid, "--format", "json"]);
        let mut command = Command::new(&own);
        command.args(sample.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.uid(user).gid(user).current_dir("/");
        // It is not a .NET program, so it cannot be reached.
        examined(&Running::start(command).finish().with_code(3).json())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `kernel.perf_event_paranoid` if it is a level that the tests know.
fn level() -> Option<i32> {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok().filter(|level| (-1..=2).contains(level))
}

#[test]
fn each_user_learns_which_samples_the_kernel_permits() {
    if !rustix::process::geteuid().is_root() {
        return say_not_run("only root can be other users");
    }
    let Some(level) = level() else {
        return say_not_run("the kernel has no level of permission for samples");
    };
    let (ours, theirs) = (Sleeper::start(0), Sleeper::start(NOBODY));
    let by_root = theirs.examined_by(0).find("sampling").unwrap().clone();
    if by_root["status"] == "warning" {
        return say_not_run("this container permits no samples");
    }
    assert!(by_root["seen"].as_str().unwrap().contains("with time in the kernel"), "{by_root}");
    assert!(by_root["fix"].is_null(), "{by_root}");
    let uid = "sudo -u '#0' dipc";
    ours.examined_by(NOBODY).names(
        "sampling",
        "warning",
        &["may not sample it", "of user 0", uid, "CAP_PERFMON"],
    );
    let own = theirs.examined_by(NOBODY);
    if level >= 2 {
        let parts = ["user mode only", "perf_event_paranoid is 2", "perf_event_paranoid=1", "cap_perfmon"];
        own.names("sampling", "ok", &parts);
    } else {
        own.names("sampling", "ok", &["with time in the kernel", "perf_event_paranoid is"]);
    }
}
