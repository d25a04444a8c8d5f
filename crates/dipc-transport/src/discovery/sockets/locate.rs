use std::io;
use std::path::{Path, PathBuf};

use crate::peer::is_trusted;
use crate::sys::{Process, SocketFile};
use crate::{Endpoint, SkipReason, SocketName};

/// An untrusted file at the path of a process's socket.
pub(super) struct Rejection {
    pub(super) name: Option<SocketName>,
    pub(super) path: PathBuf,
    pub(super) reason: SkipReason,
}

/// Finds the socket of `process` in `directory` by exact name. `Ok(None)` if it does not exist, or the
/// process has ended.
pub(super) fn locate(process: &Process, directory: &Path) -> Result<Option<Endpoint>, Rejection> {
    let Ok(start_key) = process.start_key() else { return Ok(None) };
    // A runtime that could not determine its start time uses 0. Only the check of the peer can then
    // distinguish an old socket from a new one, so that name is tried second.
    for key in [start_key, 0] {
        let name = SocketName { pid: process.namespace_pid, key };
        let path = directory.join(name.to_string());
        match inspect(&path, process) {
            Ok(()) => {
                let Process { pid, namespace_pid, uid, .. } = *process;
                return Ok(Some(Endpoint {
                    pid,
                    namespace_pid,
                    key,
                    path,
                    uid: Some(uid),
                    name: process.name(),
                }));
            }
            Err(SkipReason::Unreadable(error)) if is_absent(&error) => {}
            Err(reason @ SkipReason::Unreadable(_)) => {
                return Err(Rejection { name: None, path: directory.to_path_buf(), reason });
            }
            Err(reason) => return Err(Rejection { name: Some(name), path, reason }),
        }
    }
    Ok(None)
}

/// Checks the file. Connecting checks again, on the file that it then connects to.
fn inspect(path: &Path, process: &Process) -> Result<(), SkipReason> {
    let file = SocketFile::open(path).map_err(SkipReason::Unreadable)?;
    if !is_trusted(file.owner(), process.uid) {
        return Err(SkipReason::ForeignOwner { owner: file.owner(), uid: process.uid });
    }
    if !file.is_socket() {
        return Err(SkipReason::NotASocket);
    }
    Ok(())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
