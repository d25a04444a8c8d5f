use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

use socket2::Domain;

use super::platform::SocketFile;
use super::socket_path::SocketPath;
use super::stream::{Socket, Stream};
use crate::peer::is_trusted;
use crate::{Address, Deadline, Error, Operation, PeerCheck};

/// The pause between two attempts to connect to a listener with a full queue: the kernel does not report free
/// slots.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(5);

pub(crate) fn connect(address: &Address, check: PeerCheck, deadline: Deadline) -> Result<Stream, Error> {
    match address {
        Address::Unix(path) => connect_unix(path, check, deadline),
        Address::Tcp(_) | Address::Pipe(_) => {
            Err(Error::Unsupported { operation: Operation::Connect, address: address.clone() })
        }
    }
}

fn connect_unix(path: &Path, check: PeerCheck, deadline: Deadline) -> Result<Stream, Error> {
    let started = Instant::now();
    let failed = |error: io::Error| connect_error(&error, path);
    let name = match check {
        PeerCheck::Process { pid, uid } => {
            SocketPath::of_file(checked_file(path, pid, uid)?, path, Operation::Connect)?
        }
        // A path chosen by the user may be a link.
        PeerCheck::Any | PeerCheck::Server { .. } => SocketPath::new(path, Operation::Connect)?,
    };
    let socket = Socket::new(Domain::UNIX).map_err(failed)?;
    loop {
        let error = match socket.inner().connect(&name.address) {
            Ok(()) => return Stream::new(socket).map_err(failed),
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => match deadline.remaining() {
                Some(Duration::ZERO) => {
                    let (address, after) = (path.into(), started.elapsed());
                    return Err(Error::timed_out(Operation::Connect, address, after, check.pid()));
                }
                left => std::thread::sleep(left.unwrap_or(FULL_QUEUE_PAUSE).min(FULL_QUEUE_PAUSE)),
            },
            _ => return Err(failed(error)),
        }
    }
}

/// Opens the socket of a process and checks it: not a link, and of a trusted owner.
fn checked_file(path: &Path, pid: u32, uid: u32) -> Result<SocketFile, Error> {
    let file = SocketFile::open(path).map_err(|error| connect_error(&error, path))?;
    if !is_trusted(file.owner(), uid) {
        return Err(Error::ForeignSocket { path: path.to_path_buf(), owner: file.owner(), pid, uid });
    }
    if !file.is_socket() {
        return Err(Error::NotASocket { operation: Operation::Connect, path: path.to_path_buf() });
    }
    Ok(file)
}

fn connect_error(error: &io::Error, path: &Path) -> Error {
    let address = Address::Unix(path.to_path_buf());
    match error.kind() {
        io::ErrorKind::NotFound => Error::NoSocket { address },
        io::ErrorKind::PermissionDenied => {
            Error::PermissionDenied { operation: Operation::Connect, path: path.to_path_buf() }
        }
        // The kernel also refuses if the file exists and is not a socket.
        io::ErrorKind::ConnectionRefused if is_other_file(path) => {
            Error::NotASocket { operation: Operation::Connect, path: path.to_path_buf() }
        }
        io::ErrorKind::ConnectionRefused => Error::Stale { address },
        _ => {
            let reason =
                error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            Error::Io { operation: Operation::Connect, address, reason }
        }
    }
}

/// Returns true if `path` exists and is not a socket.
fn is_other_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_permission_names_the_file() {
        let error = connect_error(&io::ErrorKind::PermissionDenied.into(), Path::new("/run/private/socket"));
        assert!(matches!(error, Error::PermissionDenied { .. }), "{error:?}");
        assert_eq!(error.to_string(), "connect: /run/private/socket: permission denied");
    }
}
