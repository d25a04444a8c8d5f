//! macOS, without `/proc`: processes are found by the sockets in this user's own `$TMPDIR`.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::Pid;
use socket2::Socket;

pub(crate) use crate::checked_folder::CheckedFolder as FolderBelow;
use crate::refusal::refused;
use crate::{PeerCredentials, ProcessState, SocketName};

/// `sun_path` has 104 bytes, the last of them NUL.
pub(super) const PATH_LIMIT: usize = 103;

/// `socket2` sets `SO_NOSIGPIPE` instead.
pub(super) const SEND_FLAGS: i32 = 0;

/// Fails: on macOS a long path cannot be reached through a directory descriptor.
pub(super) fn shorten(_path: &Path) -> Result<(PathBuf, OwnedFd), Errno> {
    Err(Errno::NAMETOOLONG)
}

pub(super) const RESTRICTS_BEFORE_BIND: bool = false;

pub(super) fn restrict_before_bind(_socket: &Socket) -> io::Result<()> {
    Ok(())
}

/// The metadata of a socket's file. On macOS it is not possible to connect to an open file.
pub(crate) struct SocketFile(Metadata);

impl SocketFile {
    /// Opens the file without following a link in the last part of the path: a runtime does not make links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        fs::symlink_metadata(path).map(Self)
    }

    pub(crate) fn owner(&self) -> u32 {
        self.0.uid()
    }

    pub(crate) fn is_socket(&self) -> bool {
        self.0.file_type().is_socket()
    }

    pub(super) fn into_path(self) -> Option<(PathBuf, OwnedFd)> {
        None
    }
}

/// Checks the file, opens it without waiting, and checks that it is the same file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let seen = fs::metadata(path)?;
    if !seen.is_file() {
        return Err(refused("not a regular file"));
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let opened = file.metadata()?;
    if !opened.is_file() || (opened.dev(), opened.ino()) != (seen.dev(), seen.ino()) {
        return Err(refused("not a regular file"));
    }
    Ok(file)
}

/// Opens the file, unless any of its folders is an automount point, where resolving a name mounts.
pub(crate) fn open_untrusted(path: &Path) -> io::Result<File> {
    let mut folders: Vec<_> = path.ancestors().skip(1).collect();
    folders.reverse();
    for folder in folders {
        let kind = rustix::fs::statfs(folder)?.f_fstypename;
        if kind.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).eq(*b"autofs") {
            return Err(refused("it lies below an automount point, which only the user may enter"));
        }
    }
    open_regular(path)
}

/// Returns whether the process exists; nothing else is known.
pub(crate) fn process_state(pid: u32) -> io::Result<ProcessState> {
    Ok(if is_alive(pid) { ProcessState::Running } else { ProcessState::Gone })
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH)))
}

/// Accepts a client on a socket that is close-on-exec and raises no SIGPIPE. A client that has already
/// disconnected is an error of the kind `ConnectionAborted`: no option of its socket can be set, which
/// [`Socket::accept`] does not distinguish from other errors.
pub(super) fn accept(listener: &Socket) -> io::Result<Socket> {
    let (socket, _) = listener.accept_raw()?;
    let configured = socket.set_cloexec(true).and_then(|()| socket.set_nosigpipe(true));
    configured.map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
    Ok(socket)
}

pub(super) fn peer_credentials(socket: &Socket) -> io::Result<PeerCredentials> {
    let (mut uid, mut gid): (libc::uid_t, libc::gid_t) = (u32::MAX, u32::MAX);
    // SAFETY: both pointers are to live integers of the types that the function writes, and the descriptor is
    // open.
    if unsafe { libc::getpeereid(socket.as_raw_fd(), &raw mut uid, &raw mut gid) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut pid: libc::pid_t = 0;
    let mut length = libc::socklen_t::try_from(size_of::<libc::pid_t>()).unwrap_or(0);
    // SAFETY: `pid` is a live integer of `length` bytes, the size that `LOCAL_PEERPID` writes; the descriptor
    // is open.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_LOCAL,
            libc::LOCAL_PEERPID,
            (&raw mut pid).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(PeerCredentials {
        pid: u32::try_from(pid).ok().filter(|&pid| pid != 0),
        uid: Some(uid),
        gid: Some(gid),
    })
}

/// Returns the pids in the names of the sockets in this user's directory.
pub(crate) fn process_ids() -> io::Result<Vec<u32>> {
    let mut pids: Vec<u32> = names()?.map(|name| name.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

fn names() -> io::Result<impl Iterator<Item = SocketName>> {
    let entries = fs::read_dir(std::env::temp_dir())?;
    Ok(entries.filter_map(|entry| SocketName::parse(&entry.ok()?.file_name())))
}

pub(crate) struct NamespaceView {
    directory: PathBuf,
}

impl NamespaceView {
    pub(crate) fn new() -> Self {
        Self { directory: std::env::temp_dir() }
    }

    pub(crate) fn socket_location(&self, _pid: u32) -> Option<SocketLocation> {
        Some(SocketLocation { directory: self.directory.clone(), is_shared: true, environment_error: None })
    }

    pub(crate) fn namespace_pid(&self, pid: u32) -> Option<u32> {
        Some(pid)
    }
}

pub(crate) struct SocketLocation {
    pub(crate) directory: PathBuf,
    pub(crate) is_shared: bool,
    pub(crate) environment_error: Option<io::Error>,
}

impl SocketLocation {
    pub(crate) const fn unreadable_file(&self) -> &'static str {
        "environ"
    }

    pub(crate) fn listing_path(&self) -> PathBuf {
        self.directory.clone()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) namespace_pid: u32,
    /// The effective user.
    pub(crate) uid: u32,
    start_seconds: u64,
}

/// Returns the kernel's information about a process; `None` if it does not exist, or is a zombie.
fn bsd_info(pid: u32) -> io::Result<Option<libc::proc_bsdinfo>> {
    let Ok(pid) = libc::c_int::try_from(pid) else { return Ok(None) };
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>();
    let length = libc::c_int::try_from(size).unwrap_or(0);
    // SAFETY: `info` is a live buffer of `length` bytes, and the function writes no more than that.
    let written =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, info.as_mut_ptr().cast(), length) };
    if written == length {
        // SAFETY: the structure has only integers, for which every bit pattern is valid, and all of its bytes
        // were set.
        return Ok(Some(unsafe { info.assume_init() }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) { Ok(None) } else { Err(error) }
}

impl Process {
    /// Returns false: threads of the kernel are not processes here.
    pub(crate) const fn is_kernel_thread(_: u32) -> bool {
        false
    }

    /// Reads a process; `None` if it does not exist, or is a zombie. Only root can read other users'
    /// processes.
    pub(crate) fn read(pid: u32) -> io::Result<Option<Self>> {
        Ok(bsd_info(pid)?.map(|info| Self {
            pid,
            namespace_pid: pid,
            uid: info.pbi_uid,
            start_seconds: info.pbi_start_tvsec,
        }))
    }

    /// Returns the start time in seconds since the epoch.
    pub(crate) fn start_key(&self) -> io::Result<u64> {
        Ok(self.start_seconds)
    }

    pub(crate) fn name(&self) -> String {
        format!("process {}", self.pid)
    }

    pub(crate) fn command_line(&self) -> io::Result<Vec<OsString>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
