use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use socket2::Socket;

use crate::PeerCredentials;

/// `sun_path` has 108 bytes, the last of them NUL.
pub(super) const PATH_LIMIT: usize = 107;

pub(super) const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL;

/// A short name for a socket in a directory with a long one, valid while the returned descriptor is open.
pub(super) fn shorten(path: &Path) -> Result<(PathBuf, OwnedFd), Errno> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    Ok((short, directory))
}

/// `SO_PEERCRED`. Not through `rustix`, whose `UCred` cannot hold the pid 0 that the kernel gives for a process in
/// another pid namespace.
pub(super) fn peer_credentials(socket: &Socket) -> io::Result<PeerCredentials> {
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: `found` is a plain structure of integers, valid for every bit pattern and for `length` bytes, and lives
    // until the call returns; the kernel writes at most `length` bytes to it. The descriptor is open: it is borrowed
    // from `socket`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let pid = u32::try_from(found.pid).ok().filter(|&pid| pid != 0);
    Ok(PeerCredentials { pid, uid: found.uid, gid: found.gid })
}

/// The pids that this program can see.
pub(crate) fn process_ids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // An entry that cannot be read is a process that has just ended.
        pids.extend(entry.ok().and_then(|entry| entry.file_name().to_str()?.parse::<u32>().ok()));
    }
    pids.sort_unstable();
    Ok(pids)
}

/// From where this program sees the paths of other processes.
pub(crate) struct Viewpoint {
    mount_namespace: Option<PathBuf>,
    root: Option<(u64, u64)>,
}

impl Viewpoint {
    pub(crate) fn new() -> Self {
        Self { mount_namespace: fs::read_link("/proc/self/ns/mnt").ok(), root: directory_identity("/") }
    }

    /// Where a runtime in `process` puts its socket: `$TMPDIR`, else `/tmp`, as reached from here.
    pub(crate) fn socket_place(&self, process: &Process) -> SocketPlace {
        let (tmpdir, environment) = match fs::read(file_of(process.pid, "environ")) {
            Ok(environment) => (variable(&environment, "TMPDIR"), None),
            // A kernel thread has none: `/proc/2/environ` answers ESRCH to root.
            Err(error) => (None, (!has_ended(&error)).then_some(error)),
        };
        let directory =
            tmpdir.filter(|tmpdir| !tmpdir.as_os_str().is_empty()).unwrap_or_else(|| "/tmp".into());
        let directory = if directory.is_relative() {
            file_of(process.pid, "cwd").join(directory)
        } else if self.is_elsewhere(process) {
            let below_root = directory.strip_prefix("/").unwrap_or(&directory);
            file_of(process.pid, "root").join(below_root)
        } else {
            directory
        };
        SocketPlace { directory, environment }
    }

    /// Whether the paths of `process` mean other files than ours: another mount namespace, or a `chroot`.
    fn is_elsewhere(&self, process: &Process) -> bool {
        let namespace = fs::read_link(file_of(process.pid, "ns/mnt")).ok();
        let root = directory_identity(file_of(process.pid, "root"));
        // Without permission to look it is taken to be here; the name of the socket has to match anyway.
        namespace.is_some_and(|theirs| self.mount_namespace.as_ref().is_some_and(|ours| *ours != theirs))
            || root.is_some_and(|theirs| self.root.is_some_and(|ours| ours != theirs))
    }
}

pub(crate) struct SocketPlace {
    pub(crate) directory: PathBuf,
    pub(crate) environment: Option<io::Error>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) namespace_pid: u32,
    pub(crate) uid: u32,
    comm: String,
}

impl Process {
    /// `None` for what is no process with a memory of its own: ended, a thread, a zombie or a kernel thread.
    pub(crate) fn read(pid: u32) -> io::Result<Option<Self>> {
        match fs::read(file_of(pid, "status")) {
            Ok(status) => Ok(Self::from_status(pid, &String::from_utf8_lossy(&status))),
            Err(error) if has_ended(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn from_status(pid: u32, status: &str) -> Option<Self> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        let number = |text: &str| text.parse::<u32>().ok();
        if field("Tgid").and_then(number) != Some(pid) || field("VmSize").is_none() {
            return None;
        }
        // Real, effective, saved, file system.
        let uid = field("Uid")?.split_ascii_whitespace().nth(1).and_then(number)?;
        // From the outermost namespace that we can see to the process's own. Kernels without it have no namespaces.
        let namespace_pid = field("NSpid").and_then(|pids| pids.split_ascii_whitespace().next_back());
        let namespace_pid = namespace_pid.and_then(number).unwrap_or(pid);
        Some(Self { pid, namespace_pid, uid, comm: field("Name")?.to_owned() })
    }

    /// The start time in clock ticks since boot.
    pub(crate) fn start_key(&self) -> io::Result<u64> {
        let stat = fs::read(file_of(self.pid, "stat"))?;
        start_time(&stat)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no start time in /proc/PID/stat"))
    }

    /// The kernel keeps 15 bytes of a name; the rest is taken from the command line where that begins with them.
    pub(crate) fn name(&self) -> String {
        const COMM_LIMIT: usize = 15;
        if self.comm.len() < COMM_LIMIT {
            return self.comm.clone();
        }
        let arguments = self.command_line().unwrap_or_default();
        let whole = arguments.iter().take(2).find_map(|argument| {
            let name = Path::new(argument).file_name()?.to_string_lossy();
            name.starts_with(&self.comm).then(|| name.into_owned())
        });
        whole.unwrap_or_else(|| self.comm.clone())
    }

    pub(crate) fn command_line(&self) -> io::Result<Vec<OsString>> {
        let mut bytes = fs::read(file_of(self.pid, "cmdline"))?;
        // Each argument ends in NUL, the last one too unless the process has rewritten its title.
        bytes.pop_if(|last| *last == 0);
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        Ok(bytes.split(|&byte| byte == 0).map(|argument| OsString::from_vec(argument.to_vec())).collect())
    }
}

fn file_of(pid: u32, name: &str) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join(name)
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
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

/// Field 22. The second field is the name of the process in parentheses, and may hold spaces and parentheses itself:
/// what follows the last one begins with the third field.
fn start_time(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tw) (x\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4711\n\
        Uid:\t1000\t1001\t1002\t1003\nNSpid:\t4711\t17\t1\nVmSize:\t  2460 kB\n";

    #[test]
    fn a_process_has_the_pid_of_its_innermost_namespace_and_its_effective_user() {
        let process = Process::from_status(4711, STATUS).unwrap();
        assert_eq!(process, Process { pid: 4711, namespace_pid: 1, uid: 1001, comm: "w) (x".into() });
    }

    #[test]
    fn kernels_without_namespaces_say_nothing_of_them() {
        let status = STATUS.replace("NSpid", "Other");
        assert_eq!(Process::from_status(4711, &status).unwrap().namespace_pid, 4711);
    }

    #[test]
    fn threads_and_kernel_threads_are_no_processes() {
        assert_eq!(Process::from_status(4712, STATUS), None);
        assert_eq!(Process::from_status(4711, &STATUS.replace("VmSize", "Other")), None);
        assert_eq!(Process::from_status(4711, ""), None);
        assert_eq!(Process::read(2).unwrap(), None);
    }

    #[test]
    fn the_start_time_is_field_22_whatever_the_name_is() {
        let fields = "S 1 4711 4711 0 -1 4194560 92 0 0 0 1 2 3 4 20 0 1 0 987654321 2519040 378";
        for name in ["sleep", "a) R 1 2 3", "((", "", "\u{fc}) (", "a\nb"] {
            assert_eq!(start_time(format!("4711 ({name}) {fields}").as_bytes()), Some(987_654_321), "{name}");
        }
        for cut in ["", "4711 (sleep", "4711 (sleep)", "4711 (sleep) S 1 4711"] {
            assert_eq!(start_time(cut.as_bytes()), None, "{cut}");
        }
    }

    #[test]
    fn only_the_whole_name_of_a_variable_counts() {
        let environment = b"MYTMPDIR=/a\0TMPDIRS=/b\0TMPDIR=/c=d e\0TMPDIR=/f\0";
        assert_eq!(variable(environment, "TMPDIR"), Some("/c=d e".into()));
        assert_eq!(variable(b"", "TMPDIR"), None);
    }
}
