use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::process::{Process, descriptor_path, has_ended, proc_path, read};
use super::socket_file::open_as_its_process;

/// The mount namespace and root of this process, from which other processes' paths are reached.
pub(crate) struct NamespaceView {
    mount_namespace: Option<PathBuf>,
    root: Option<(u64, u64)>,
}

impl NamespaceView {
    pub(crate) fn new() -> Self {
        Self { mount_namespace: fs::read_link("/proc/self/ns/mnt").ok(), root: directory_identity("/") }
    }

    /// Returns the directory of the socket of `process`: `$TMPDIR`, else `/tmp`, as reached from here.
    pub(crate) fn socket_location(&self, process: &Process) -> SocketLocation {
        let (tmpdir, environment_error) = match read(&proc_path(process.pid, "environ")) {
            Ok(environment) => (variable(&environment, "TMPDIR"), None),
            // A kernel thread has none: `/proc/2/environ` answers ESRCH to root.
            Err(error) => (None, (!has_ended(&error)).then_some(error)),
        };
        let directory =
            tmpdir.filter(|tmpdir| !tmpdir.as_os_str().is_empty()).unwrap_or_else(|| "/tmp".into());
        if directory.is_relative() {
            let directory = proc_path(process.pid, "cwd").join(directory);
            return SocketLocation { directory, opened: None, environment_error };
        }
        if !self.is_elsewhere(process) {
            return SocketLocation { directory, opened: None, environment_error };
        }
        let below_root = directory.strip_prefix("/").unwrap_or(&directory);
        let directory = proc_path(process.pid, "root").join(below_root);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open_as_its_process(&directory, flags).ok();
        SocketLocation { directory, opened, environment_error }
    }

    /// Returns whether the paths of `process` mean other files than those of this process: another mount namespace, or a `chroot`.
    fn is_elsewhere(&self, process: &Process) -> bool {
        let namespace = fs::read_link(proc_path(process.pid, "ns/mnt")).ok();
        let root = directory_identity(proc_path(process.pid, "root"));
        // Without permission the namespace is assumed to be the same; the name of the socket has to match anyway.
        namespace.is_some_and(|theirs| self.mount_namespace.as_ref().is_some_and(|ours| *ours != theirs))
            || root.is_some_and(|theirs| self.root.is_some_and(|ours| ours != theirs))
    }
}

/// The directory of a socket.
pub(crate) struct SocketLocation {
    pub(crate) directory: PathBuf,
    /// The directory, if it belongs to another mount namespace or root.
    opened: Option<OwnedFd>,
    /// The reason why `TMPDIR` is not known.
    pub(crate) environment_error: Option<io::Error>,
}

impl SocketLocation {
    /// Returns a path to list the directory by, valid while `self` lives.
    pub(crate) fn listing_path(&self) -> PathBuf {
        self.opened.as_ref().map_or_else(|| self.directory.clone(), descriptor_path)
    }
}

fn directory_identity(path: impl AsRef<Path>) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn variable(environment: &[u8], name: &str) -> Option<PathBuf> {
    environment
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .map(|value| OsStr::from_bytes(value).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_name_of_a_variable_counts() {
        let environment = b"MYTMPDIR=/a\0TMPDIRS=/b\0TMPDIR=/c=d e\0TMPDIR=/f\0";
        assert_eq!(variable(environment, "TMPDIR"), Some("/c=d e".into()));
        assert_eq!(variable(b"", "TMPDIR"), None);
    }
}
