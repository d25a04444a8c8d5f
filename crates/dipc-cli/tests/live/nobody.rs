//! Programs that run as a user without rights.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::executable;
use crate::runtime::{Runtime, say_not_run};
use crate::workload::Workload;

/// The id of the user `nobody`, and of its group.
const NOBODY: u32 = 65_534;

/// The user `nobody`, with a folder and a copy of the program in it: the built one may be for root only.
pub(crate) struct Nobody(TempDir);

impl Nobody {
    /// Creates the folder. Says so if this process cannot start programs of another user.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            say_not_run("only root can be another user");
            return None;
        }
        let user = Self(tempfile::tempdir().unwrap());
        chown(user.folder(), Some(NOBODY), Some(NOBODY)).unwrap();
        executable::copy(env!("CARGO_BIN_EXE_dipc"), user.program());
        Some(user)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// The copy of the program.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder().join("dipc")
    }

    /// Returns the command of the user.
    pub(crate) fn run(&self, mut command: Command) -> Command {
        command.env("TMPDIR", self.folder()).current_dir("/").uid(NOBODY).gid(NOBODY);
        command
    }

    /// Returns a command of the user with its output in pipes.
    pub(crate) fn run_with_output(&self, mut command: Command) -> Command {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.run(command)
    }

    /// Starts a workload of the user.
    pub(crate) fn workload(&self, runtime: Runtime) -> Option<Workload> {
        Some(Workload::from_command(runtime, self.run(runtime.workload()?)))
    }
}
