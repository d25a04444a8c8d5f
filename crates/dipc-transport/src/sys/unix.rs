use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

#[cfg(target_vendor = "apple")]
use super::darwin as platform;
#[cfg(target_os = "linux")]
use super::linux as platform;
use crate::{Address, Deadline, Error, Operation, PeerCredentials};

/// As many connections may wait for `accept` as for a runtime's socket.
const BACKLOG: i32 = 255;

/// Between two attempts to connect to a listener whose queue is full: the kernel does not tell when there is room.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(5);

pub(crate) fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[derive(Debug)]
pub(crate) struct Stream(Socket);

impl Stream {
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }

    /// Sends without a signal: a peer that has gone is an error of this call, not the end of the program.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send_with_flags(bytes, platform::SEND_FLAGS)? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            count => Ok(count),
        }
    }

    pub(crate) fn peer_credentials(&self) -> io::Result<PeerCredentials> {
        platform::peer_credentials(&self.0)
    }
}

pub(crate) fn connect(address: &Address, deadline: Deadline) -> Result<Stream, Error> {
    let Address::Unix(path) = address;
    let started = std::time::Instant::now();
    let failed = |error: io::Error| connect_error(&error, path);
    let name = SocketPath::new(path, Operation::Connect)?;
    let socket = new_socket().map_err(failed)?;
    loop {
        let error = match socket.connect(&name.address) {
            Ok(()) => return Ok(Stream(socket)),
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => match deadline.remaining() {
                Some(Duration::ZERO) => {
                    let (operation, address) = (Operation::Connect, address.clone());
                    return Err(Error::TimedOut { operation, address, after: started.elapsed() });
                }
                left => std::thread::sleep(left.unwrap_or(FULL_QUEUE_PAUSE).min(FULL_QUEUE_PAUSE)),
            },
            _ => return Err(failed(error)),
        }
    }
}

fn connect_error(error: &io::Error, path: &Path) -> Error {
    let address = Address::Unix(path.to_path_buf());
    match error.kind() {
        io::ErrorKind::NotFound => Error::NoSocket { address },
        io::ErrorKind::PermissionDenied => {
            Error::PermissionDenied { operation: Operation::Connect, path: path.to_path_buf() }
        }
        // The kernel also refuses when the file is there and is something else.
        io::ErrorKind::ConnectionRefused if is_no_socket(path) => {
            Error::NotASocket { operation: Operation::Connect, path: path.to_path_buf() }
        }
        io::ErrorKind::ConnectionRefused => Error::Stale { address },
        _ => {
            let source =
                error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            Error::Io { operation: Operation::Connect, address, source }
        }
    }
}

fn is_no_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.file_type().is_socket())
}

/// Close-on-exec, and on Apple's systems without SIGPIPE: `socket2` sees to both.
fn new_socket() -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A path as a socket address holds it.
struct SocketPath {
    address: SockAddr,
    /// A long path is reached through this open directory; it must stay open for as long as the address is used.
    _directory: Option<OwnedFd>,
}

impl SocketPath {
    fn new(path: &Path, operation: Operation) -> Result<Self, Error> {
        let (short, directory) = if path.as_os_str().len() <= platform::PATH_LIMIT {
            (path.to_path_buf(), None)
        } else {
            let (short, directory) = platform::shorten(path).map_err(|error| match error {
                Errno::NOENT => Error::NoSocket { address: path.into() },
                Errno::ACCESS => Error::PermissionDenied { operation, path: path.to_path_buf() },
                _ => too_long(path, operation),
            })?;
            (short, Some(directory))
        };
        let address = SockAddr::unix(&short).map_err(|_| too_long(path, operation))?;
        Ok(Self { address, _directory: directory })
    }
}

fn too_long(path: &Path, operation: Operation) -> Error {
    Error::PathTooLong { operation, path: path.to_path_buf(), limit: platform::PATH_LIMIT }
}

#[derive(Debug)]
pub(crate) struct Acceptor {
    socket: Socket,
    path: PathBuf,
    /// Device and inode of the file that `bind` made.
    file: (u64, u64),
}

impl Acceptor {
    pub(crate) fn bind(path: &Path) -> Result<Self, Error> {
        let name = SocketPath::new(path, Operation::Listen)?;
        let failed = |error| listen_error(error, path);
        let socket = new_socket().map_err(failed)?;
        match socket.bind(&name.address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(&name, path) => {
                fs::remove_file(path).map_err(failed)?;
                socket.bind(&name.address)
            }
            other => other,
        }
        .map_err(failed)?;
        let file = identity(path).map_err(failed)?;
        let acceptor = Self { socket, path: path.to_path_buf(), file };
        // Nobody can connect before `listen`, so there is no moment at which others could.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        acceptor.socket.listen(BACKLOG).map_err(failed)?;
        Ok(acceptor)
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        let (socket, _) = self.socket.accept()?;
        socket.set_nonblocking(true)?;
        Ok(Stream(socket))
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        // Somebody else may have put another socket there since.
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Whether there is a socket on which nobody listens.
fn is_abandoned(name: &SocketPath, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
        && new_socket().is_ok_and(|socket| {
            socket.connect(&name.address).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        })
}

fn listen_error(error: io::Error, path: &Path) -> Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => Error::InUse { path: path.to_path_buf() },
        io::ErrorKind::PermissionDenied => {
            Error::PermissionDenied { operation: Operation::Listen, path: path.to_path_buf() }
        }
        _ => Error::Io { operation: Operation::Listen, address: path.into(), source: error },
    }
}

macro_rules! source_by_descriptor {
    ($type:ident, $field:tt) => {
        impl Source for $type {
            fn register(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
                SourceFd(&self.$field.as_raw_fd()).register(registry, token, interest)
            }

            fn reregister(
                &mut self,
                registry: &Registry,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                SourceFd(&self.$field.as_raw_fd()).reregister(registry, token, interest)
            }

            fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
                SourceFd(&self.$field.as_raw_fd()).deregister(registry)
            }
        }
    };
}

source_by_descriptor!(Stream, 0);
source_by_descriptor!(Acceptor, socket);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_want_of_permission_names_the_file() {
        let error = connect_error(&io::ErrorKind::PermissionDenied.into(), Path::new("/run/private/socket"));
        assert!(matches!(error, Error::PermissionDenied { .. }), "{error:?}");
        assert_eq!(error.to_string(), "connect: /run/private/socket: permission denied");
    }
}
