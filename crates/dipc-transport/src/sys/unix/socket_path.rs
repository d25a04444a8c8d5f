use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use socket2::SockAddr;

use super::platform::{self, SocketFile};
use crate::{Error, Operation};

/// The socket address of a path.
pub(super) struct SocketPath {
    pub(super) address: SockAddr,
    /// The descriptor in the address, which must stay open while the address is used.
    _descriptor: Option<OwnedFd>,
}

impl SocketPath {
    /// Returns the address of a path. A long path is reached through its directory.
    pub(super) fn new(path: &Path, operation: Operation) -> Result<Self, Error> {
        if path.as_os_str().len() <= platform::PATH_LIMIT {
            return Self::short(path, path, None, operation);
        }
        let (short, directory) = platform::shorten(path).map_err(|error| match error {
            Errno::NOENT if operation == Operation::Connect => Error::NoSocket { address: path.into() },
            Errno::NOENT => Error::Io { operation, address: path.into(), reason: error.into() },
            Errno::ACCESS => Error::PermissionDenied { operation, path: path.to_path_buf() },
            _ => too_long(path, operation),
        })?;
        Self::short(&short, path, Some(directory), operation)
    }

    /// Returns the address of an open file, even if its path has since been replaced.
    pub(super) fn of_file(file: SocketFile, path: &Path, operation: Operation) -> Result<Self, Error> {
        match file.into_path() {
            Some((short, descriptor)) => Self::short(&short, path, Some(descriptor), operation),
            None => Self::new(path, operation),
        }
    }

    fn short(
        short: &Path,
        path: &Path,
        through: Option<OwnedFd>,
        operation: Operation,
    ) -> Result<Self, Error> {
        let address = SockAddr::unix(short).map_err(|_| too_long(path, operation))?;
        Ok(Self { address, _descriptor: through })
    }
}

fn too_long(path: &Path, operation: Operation) -> Error {
    let path = PathBuf::from(path);
    Error::PathTooLong { operation, path, limit: platform::PATH_LIMIT }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_an_error_of_the_operation() {
        let path = Path::new("/no/such/folder").join("x".repeat(platform::PATH_LIMIT));
        let message = |operation| SocketPath::new(&path, operation).map(drop).unwrap_err().to_string();
        let listen = message(Operation::Listen);
        assert!(listen.starts_with("listen: ") && listen.contains("No such file"), "{listen}");
        let connect = message(Operation::Connect);
        assert!(connect.starts_with("connect: ") && connect.ends_with("no such socket"), "{connect}");
    }
}
