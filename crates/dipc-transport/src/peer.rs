use std::fmt;

use crate::sys;
use crate::{Address, Error};

/// Who must listen on the other side.
///
/// `/tmp` is shared: anybody can make a socket with the name of somebody else's endpoint. The kernel tells who
/// listens, and the check is made after connecting and before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerCheck {
    /// Whoever listens: the user chose the address.
    Any,
    /// That process, listening as its own user, as root, or as the user of this program.
    Process {
        /// The pid as this program's pid namespace has it.
        pid: u32,
        /// The effective user id of the process.
        uid: u32,
    },
}

/// Who is on the other side of a connection, as the kernel tells it.
///
/// For a client these are the credentials at the time of the other side's `listen`, for a server those at the time of
/// the client's `connect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The process; `None` where it is not visible from this pid namespace.
    pub pid: Option<u32>,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
}

impl fmt::Display for PeerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid} of user {}", self.uid),
            None => write!(f, "a process of user {} that is not visible from here", self.uid),
        }
    }
}

impl PeerCheck {
    /// Compares what the kernel says with what is expected.
    pub(crate) fn verify(self, found: PeerCredentials, address: &Address) -> Result<(), Error> {
        match self {
            Self::Any => Ok(()),
            Self::Process { pid, uid } if found.pid == Some(pid) && is_trusted(found.uid, uid) => Ok(()),
            Self::Process { pid, uid } => {
                Err(Error::PeerMismatch { address: address.clone(), pid, uid, found })
            }
        }
    }
}

/// Whether something that `uid` made may be taken for the work of a process of `process_uid`: its own user could have
/// made it, and root and we ourselves need no trick to deceive us.
pub(crate) fn is_trusted(uid: u32, process_uid: u32) -> bool {
    uid == process_uid || uid == 0 || uid == sys::effective_uid()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verify(check: PeerCheck, found: PeerCredentials) -> Result<(), Error> {
        check.verify(found, &Address::Unix("/tmp/s".into()))
    }

    #[test]
    fn only_the_expected_process_passes() {
        let check = PeerCheck::Process { pid: 7, uid: 4242 };
        let own = PeerCredentials { pid: Some(7), uid: 4242, gid: 1 };
        assert!(verify(check, own).is_ok());
        assert!(verify(check, PeerCredentials { uid: 0, ..own }).is_ok());
        assert!(verify(check, PeerCredentials { uid: sys::effective_uid(), ..own }).is_ok());
        assert!(verify(check, PeerCredentials { pid: Some(8), ..own }).is_err());
        assert!(verify(check, PeerCredentials { pid: None, ..own }).is_err());
        assert!(verify(check, PeerCredentials { uid: 4243, ..own }).is_err());
        assert!(verify(PeerCheck::Any, PeerCredentials { pid: None, uid: 4243, gid: 1 }).is_ok());
    }

    #[test]
    fn a_mismatch_names_both_sides() {
        let found = PeerCredentials { pid: Some(8), uid: 33, gid: 33 };
        let error = verify(PeerCheck::Process { pid: 7, uid: 4242 }, found).unwrap_err();
        assert_eq!(
            error.to_string(),
            "connect: /tmp/s: expected process 7 of user 4242 to listen there, found process 8 of user 33"
        );
    }
}
