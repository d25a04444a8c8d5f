use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{SkipReason, SocketName};
use crate::peer::is_trusted;
use crate::sys::Process;
use crate::{Address, Connection, Deadline, Error, PeerCheck};

/// A process with a diagnostic socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Endpoint {
    /// The pid as seen from here.
    pub pid: u32,
    /// The pid that the process itself sees; another one in a container.
    pub namespace_pid: u32,
    /// The start time in the socket's name ([`SocketName::key`]).
    pub key: u64,
    /// The socket, as reached from here: below `/proc/{pid}/root` where the process has its own mounts.
    pub path: PathBuf,
    /// The effective user of the process.
    pub uid: u32,
    /// The name of the process.
    pub name: String,
}

impl Endpoint {
    /// Where to connect to.
    pub fn address(&self) -> Address {
        Address::Unix(self.path.clone())
    }

    /// Who has to listen there.
    pub fn peer_check(&self) -> PeerCheck {
        PeerCheck::Process { pid: self.pid, uid: self.uid }
    }

    /// Connects, and checks that it is this process that listens.
    pub fn connect(&self, deadline: Deadline) -> Result<Connection, Error> {
        Connection::connect(&self.address(), self.peer_check(), deadline)
    }
}

/// A file that stands where the socket of a process should.
pub(super) struct Miss {
    pub(super) name: Option<SocketName>,
    pub(super) path: PathBuf,
    pub(super) reason: SkipReason,
}

/// Looks in `directory` for the socket that `process` must have made, by its exact name. `Ok(None)`: there is none,
/// or the process has ended.
pub(super) fn locate(process: &Process, directory: &Path) -> Result<Option<Endpoint>, Miss> {
    let Ok(start_key) = process.start_key() else { return Ok(None) };
    // A runtime that could not find out its start time says 0. Nothing then tells an old socket from a new one but the
    // check of the peer, so it comes second.
    for key in [start_key, 0] {
        let name = SocketName { pid: process.namespace_pid, key };
        let path = directory.join(name.to_string());
        match inspect(&path, process) {
            Ok(()) => {
                let Process { pid, namespace_pid, uid, .. } = *process;
                return Ok(Some(Endpoint { pid, namespace_pid, key, path, uid, name: process.name() }));
            }
            Err(SkipReason::Unreadable(error)) if is_absent(&error) => {}
            Err(reason @ SkipReason::Unreadable(_)) => {
                return Err(Miss { name: None, path: directory.to_path_buf(), reason });
            }
            Err(reason) => return Err(Miss { name: Some(name), path, reason }),
        }
    }
    Ok(None)
}

/// Checks the file before anything connects to it. Links are not followed: a runtime makes none.
fn inspect(path: &Path, process: &Process) -> Result<(), SkipReason> {
    let metadata = fs::symlink_metadata(path).map_err(SkipReason::Unreadable)?;
    if !is_trusted(metadata.uid(), process.uid) {
        return Err(SkipReason::ForeignOwner { owner: metadata.uid(), uid: process.uid });
    }
    if !metadata.file_type().is_socket() {
        return Err(SkipReason::NotASocket);
    }
    Ok(())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
