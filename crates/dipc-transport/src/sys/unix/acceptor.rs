use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mio::Interest;
use socket2::{Domain, SockAddr};

use super::platform;
use super::socket_path::SocketPath;
use super::stream::{Socket, Stream};
use crate::cancel::{Canceller, Interruption};
use crate::readiness::Readiness;
use crate::{Address, Deadline, Error, Operation, TcpAddress};

/// The number of connections that may wait for `accept`, as for a runtime's socket.
const BACKLOG: i32 = 255;

/// A listening socket with the means to wait for clients.
#[derive(Debug)]
pub(crate) struct Acceptor {
    socket: ListeningSocket,
    readiness: Readiness,
}

#[derive(Debug)]
pub(crate) struct ListeningSocket {
    socket: Socket,
    file: Option<BoundFile>,
}

/// The file that `bind` made.
#[derive(Debug)]
struct BoundFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Acceptor {
    /// Listens, and returns the bound address as well: TCP port 0 is replaced by the port that the system
    /// chose.
    pub(crate) fn bind(address: &Address) -> Result<(Self, Address), Error> {
        let (mut socket, bound) = ListeningSocket::bind(address)?;
        let readiness = Readiness::new(&mut socket.socket, Interest::READABLE)
            .map_err(|reason| Error::Io { operation: Operation::Listen, address: bound.clone(), reason })?;
        Ok((Self { socket, readiness }, bound))
    }

    pub(crate) fn accept(&mut self, deadline: Deadline) -> Result<Stream, Interruption> {
        let socket = self.readiness.retry(deadline, || {
            loop {
                match self.socket.accept() {
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    result => return result,
                }
            }
        })?;
        Stream::new(socket).map_err(Interruption::Failed)
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.readiness.canceller()
    }
}

impl ListeningSocket {
    pub(crate) fn bind(address: &Address) -> Result<(Self, Address), Error> {
        match address {
            Address::Unix(path) => Ok((Self::bind_unix(path)?, address.clone())),
            Address::Tcp(tcp) => Self::bind_tcp(*tcp).map_err(|error| listen_error(error, address)),
            Address::Pipe(_) => {
                Err(Error::Unsupported { operation: Operation::Listen, address: address.clone() })
            }
        }
    }

    fn bind_unix(path: &Path) -> Result<Self, Error> {
        let name = SocketPath::new(path, Operation::Listen)?;
        let failed = |error| listen_error(error, &path.into());
        let socket = Socket::new(Domain::UNIX).map_err(failed)?;
        platform::restrict_before_bind(socket.inner()).map_err(failed)?;
        match socket.inner().bind(&name.address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(&name, path) => {
                fs::remove_file(path).map_err(failed)?;
                socket.inner().bind(&name.address)
            }
            other => other,
        }
        .map_err(failed)?;
        let identity = identity(path).map_err(failed)?;
        let listening = Self { socket, file: Some(BoundFile { path: path.to_path_buf(), identity }) };
        if !platform::RESTRICTS_BEFORE_BIND {
            // Clients cannot connect before `listen`, so the file is never open to others.
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        }
        listening.socket.inner().listen(BACKLOG).map_err(failed)?;
        Ok(listening)
    }

    fn bind_tcp(address: TcpAddress) -> io::Result<(Self, Address)> {
        let address = address.socket_address();
        let socket = Socket::new(Domain::for_address(address))?;
        // Otherwise the port could not be reused for minutes after its connections have ended.
        socket.inner().set_reuse_address(true)?;
        socket.inner().bind(&SockAddr::from(address))?;
        socket.inner().listen(BACKLOG)?;
        let bound = socket.inner().local_addr()?.as_socket().unwrap_or(address);
        Ok((Self { socket, file: None }, Address::Tcp(TcpAddress::anywhere(bound))))
    }

    /// Accepts a client. A client that has already disconnected is an error of the kind `ConnectionAborted`;
    /// others may be waiting in the queue.
    pub(crate) fn accept(&mut self) -> io::Result<Socket> {
        let socket = platform::accept(self.socket.inner())?;
        let configured = if self.file.is_none() { socket.set_tcp_nodelay(true) } else { Ok(()) };
        // macOS refuses to set options of a socket after its peer has gone.
        configured
            .and_then(|()| Socket::connected(socket))
            .map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }

    pub(crate) fn source(&mut self) -> &mut Socket {
        &mut self.socket
    }
}

impl Drop for BoundFile {
    fn drop(&mut self) {
        // Another process may have bound another socket there since.
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Returns whether the file is a socket without a listener.
fn is_stale(name: &SocketPath, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
        && Socket::new(Domain::UNIX).is_ok_and(|socket| {
            let result = socket.inner().connect(&name.address);
            result.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        })
}

fn listen_error(error: io::Error, address: &Address) -> Error {
    let (operation, address) = (Operation::Listen, address.clone());
    match (error.kind(), address) {
        (io::ErrorKind::AddrInUse, address) => Error::InUse { address },
        (io::ErrorKind::PermissionDenied, Address::Unix(path)) => Error::PermissionDenied { operation, path },
        (_, address) => Error::Io { operation, address, reason: error },
    }
}
