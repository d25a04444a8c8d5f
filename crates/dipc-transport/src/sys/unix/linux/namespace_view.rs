use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linux_proc_stat::Status;
use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags};
use rustix::io::Errno;

use super::process::{descriptor_path, has_ended, proc_path};
use super::socket_file::open_as_its_process;

/// The namespaces and root of this process, relative to which other processes and their paths are seen.
pub(crate) struct NamespaceView {
    mount_namespace: Option<PathBuf>,
    /// The pid namespace, if `/proc` shows pids of the same one.
    pid_namespace: Option<PathBuf>,
    root: Option<Root>,
}

/// The root directory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Root {
    device: (u32, u32),
    inode: u64,
    /// The id of its mount, since Linux 5.8. A mount is in one mount namespace only, and no two that exist
    /// have the same id.
    mount: Option<u64>,
}

impl NamespaceView {
    pub(crate) fn new() -> Self {
        let is_own_proc = linux_proc_stat::read(Path::new("/proc/self/status"))
            .is_ok_and(|status| Status::new(&status).namespace_ids().count() == 1);
        Self {
            mount_namespace: fs::read_link("/proc/self/ns/mnt").ok(),
            pid_namespace: is_own_proc.then(|| fs::read_link("/proc/self/ns/pid").ok()).flatten(),
            root: Root::read(Path::new("/")),
        }
    }

    /// Returns the pid of a process in its own namespace, if this process is in the same namespace.
    pub(crate) fn namespace_pid(&self, pid: u32) -> Option<u32> {
        let ours = self.pid_namespace.as_ref()?;
        (fs::read_link(proc_path(pid, "ns/pid")).ok()? == *ours).then_some(pid)
    }

    /// Returns the directory of the socket of a process: `$TMPDIR`, or `/tmp` by default, as reached from
    /// here. `None` for an ended process, and for a kernel thread, which has no memory.
    pub(crate) fn socket_location(&self, pid: u32) -> Option<SocketLocation> {
        let (tmpdir, mut environment_error) = match linux_proc_stat::read(&proc_path(pid, "environ")) {
            Ok(environment) => (variable(&environment, "TMPDIR"), None),
            // A kernel thread has no memory: `/proc/2/environ` returns ESRCH to root.
            Err(error) if has_ended(&error) => return None,
            Err(error) => (None, Some(error)),
        };
        // CAP_PERFMON lets newer kernels show the environment of a process, but not its files.
        let root_error = environment_error.is_none().then(|| denial(&proc_path(pid, "root"))).flatten();
        let is_root_denied = root_error.is_some();
        environment_error = environment_error.or(root_error);
        let directory =
            tmpdir.filter(|tmpdir| !tmpdir.as_os_str().is_empty()).unwrap_or_else(|| "/tmp".into());
        if directory.is_relative() {
            let directory = proc_path(pid, "cwd").join(directory);
            return Some(SocketLocation {
                directory,
                opened: None,
                is_shared: false,
                environment_error,
                is_root_denied,
            });
        }
        if !self.is_elsewhere(pid) {
            return Some(SocketLocation {
                directory,
                opened: None,
                is_shared: true,
                environment_error,
                is_root_denied,
            });
        }
        let below_root = directory.strip_prefix("/").unwrap_or(&directory);
        let directory = proc_path(pid, "root").join(below_root);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open_as_its_process(&directory, flags).ok();
        Some(SocketLocation { directory, opened, is_shared: false, environment_error, is_root_denied })
    }

    /// Returns whether the paths of a process refer to other files than the same paths in this process:
    /// another mount namespace, or a `chroot`. Without permission they are assumed to be the same; the name
    /// of the socket has to match anyway.
    fn is_elsewhere(&self, pid: u32) -> bool {
        let (Some(ours), Some(theirs)) = (self.root, Root::read(&proc_path(pid, "root"))) else {
            return self.is_in_other_namespace(pid);
        };
        // The namespace needs no look if the mounts are known.
        ours != theirs || ours.mount.is_none() && self.is_in_other_namespace(pid)
    }

    fn is_in_other_namespace(&self, pid: u32) -> bool {
        let theirs = fs::read_link(proc_path(pid, "ns/mnt")).ok();
        theirs.is_some_and(|theirs| self.mount_namespace.as_ref().is_some_and(|ours| *ours != theirs))
    }
}

/// Returns the error if a link of `/proc` may not be followed.
fn denial(link: &Path) -> Option<io::Error> {
    let error = fs::read_link(link).err()?;
    (error.kind() == io::ErrorKind::PermissionDenied).then_some(error)
}

impl Root {
    fn read(path: &Path) -> Option<Self> {
        // The kernel knows these fields without asking a file server.
        let (flags, fields) = (AtFlags::STATX_DONT_SYNC, StatxFlags::INO | StatxFlags::MNT_ID);
        match rustix::fs::statx(CWD, path, flags, fields) {
            Ok(found) => Some(Self {
                device: (found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
                mount: (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id),
            }),
            // Before Linux 4.11, and in some sandboxes.
            Err(Errno::NOSYS | Errno::PERM) => {
                let found = fs::metadata(path).ok()?;
                let device = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
                Some(Self { device, inode: found.ino(), mount: None })
            }
            Err(_) => None,
        }
    }
}

/// The directory of a socket.
pub(crate) struct SocketLocation {
    pub(crate) directory: PathBuf,
    /// The directory, if it is in another mount namespace or root.
    opened: Option<OwnedFd>,
    /// True if the path leads to the same directory for all processes that have it.
    pub(crate) is_shared: bool,
    /// The reason why `TMPDIR` is not known, or not in which root it is.
    pub(crate) environment_error: Option<io::Error>,
    is_root_denied: bool,
}

impl SocketLocation {
    /// The file in the folder of the process with that error.
    pub(crate) const fn unreadable_file(&self) -> &'static str {
        if self.is_root_denied { "root" } else { "environ" }
    }

    /// Returns a path to list the directory by, valid while `self` lives.
    pub(crate) fn listing_path(&self) -> PathBuf {
        self.opened.as_ref().map_or_else(|| self.directory.clone(), descriptor_path)
    }
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
    fn pids_are_known_in_this_namespace_only() {
        let own = std::process::id();
        let view = NamespaceView::new();
        assert!(view.pid_namespace.is_none() || view.namespace_pid(own) == Some(own));
        let other = NamespaceView { pid_namespace: Some("pid:[1]".into()), ..view };
        assert_eq!(other.namespace_pid(own), None);
        let unknown = NamespaceView { pid_namespace: None, ..other };
        assert_eq!(unknown.namespace_pid(own), None);
    }

    #[test]
    fn only_the_whole_name_of_a_variable_counts() {
        let environment = b"MYTMPDIR=/a\0TMPDIRS=/b\0TMPDIR=/c=d e\0TMPDIR=/f\0";
        assert_eq!(variable(environment, "TMPDIR"), Some("/c=d e".into()));
        assert_eq!(variable(b"", "TMPDIR"), None);
    }
}
