use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use socket2::Socket;

mod namespace_view;
mod process;
mod socket_file;
mod state;
mod walk;

use crate::PeerCredentials;

pub(crate) use linux_proc_stat::process_ids;
pub(crate) use namespace_view::{NamespaceView, SocketLocation};
pub(crate) use process::Process;
pub(crate) use socket_file::SocketFile;
pub(crate) use state::process_state;
pub(crate) use walk::{FolderBelow, open_regular, open_untrusted};

/// `sun_path` has 108 bytes, the last of them NUL.
pub(super) const PATH_LIMIT: usize = 107;

pub(super) const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL;

/// Returns a short path to a socket in a directory with a long one, valid while the returned descriptor is
/// open.
pub(super) fn shorten(path: &Path) -> Result<(PathBuf, OwnedFd), Errno> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    Ok((short, directory))
}

/// True if a socket has a mode of its own, which `bind` gives to the file minus the umask: the file never has
/// more permissions.
pub(super) const RESTRICTS_BEFORE_BIND: bool = true;

pub(super) fn restrict_before_bind(socket: &Socket) -> io::Result<()> {
    Ok(rustix::fs::fchmod(socket, Mode::RUSR | Mode::WUSR)?)
}

/// Accepts a client on a socket that is close-on-exec.
pub(super) fn accept(listener: &Socket) -> io::Result<Socket> {
    listener.accept().map(|(socket, _)| socket)
}

/// Reads `SO_PEERCRED`, without `rustix`: its `UCred` cannot hold the pid 0 that the kernel reports for a
/// process in another pid namespace.
pub(super) fn peer_credentials(socket: &Socket) -> io::Result<PeerCredentials> {
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: `found` is a plain structure of integers, valid for every bit pattern and for `length` bytes,
    // and lives until the call returns; the kernel writes at most `length` bytes to it. The descriptor is
    // open: it is borrowed from `socket`.
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
    Ok(PeerCredentials { pid, uid: Some(found.uid), gid: Some(found.gid) })
}
