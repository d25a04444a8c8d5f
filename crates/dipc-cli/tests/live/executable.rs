//! Programs that tests make and then run.
//!
//! A program that is open for writing cannot be run, and a child that another test starts has this process's
//! open files until it runs its own program. So no program is written by this process: `cp` does it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Copies a program with its permissions.
pub(crate) fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").arg("-p").arg(from.as_ref()).arg(to.as_ref()).status().unwrap();
    assert!(copied.success(), "cp {} {}", from.as_ref().display(), to.as_ref().display());
}

/// Makes a program out of its bytes.
pub(crate) fn write(path: impl AsRef<Path>, bytes: &[u8], mode: u32) {
    let beside = tempfile::NamedTempFile::new().unwrap();
    fs::write(beside.path(), bytes).unwrap();
    fs::set_permissions(beside.path(), Permissions::from_mode(mode)).unwrap();
    copy(beside.path(), path);
}
