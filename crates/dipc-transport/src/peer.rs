use crate::sys;
use crate::{Address, Error, PeerCredentials};

/// The process that must listen at an address.
///
/// `/tmp` is shared: any user can make a socket with the name of another process's endpoint. The kernel
/// reports the process that listens, and the check is made after connecting and before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerCheck {
    /// Any process: the user chose the address.
    Any,
    /// One process, listening as its own user, as root, or as the user of this program.
    Process {
        /// The pid in this program's pid namespace.
        pid: u32,
        /// The effective user id of the process.
        uid: u32,
    },
    /// One process, on a system that does not report the user of a connection: the server of a named pipe.
    Server {
        /// The pid.
        pid: u32,
    },
}

impl PeerCheck {
    /// Compares the credentials that the kernel reports with the expected ones.
    pub(crate) fn verify(self, found: PeerCredentials, address: &Address) -> Result<(), Error> {
        let (pid, uid) = match self {
            Self::Any => return Ok(()),
            Self::Process { pid, uid } => (pid, Some(uid)),
            Self::Server { pid } => (pid, None),
        };
        let user_is_right = match (uid, found.uid) {
            (Some(expected), Some(found)) => is_trusted(found, expected),
            (Some(_), None) => false,
            (None, _) => true,
        };
        if found.pid == Some(pid) && user_is_right {
            return Ok(());
        }
        Err(Error::PeerMismatch { address: address.clone(), pid, uid, found })
    }

    /// Returns the expected process.
    pub(crate) fn pid(self) -> Option<u32> {
        match self {
            Self::Any => None,
            Self::Process { pid, .. } | Self::Server { pid } => Some(pid),
        }
    }
}

/// Returns whether a file of `uid` is trusted as made by a process of `process_uid`: its own user could have
/// made it, and root and the user of this process do not need to plant a file.
pub(crate) fn is_trusted(uid: u32, process_uid: u32) -> bool {
    uid == process_uid || uid == 0 || sys::effective_uid() == Some(uid)
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
        let own = PeerCredentials { pid: Some(7), uid: Some(4242), gid: Some(1) };
        assert!(verify(check, own).is_ok());
        assert!(verify(check, PeerCredentials { uid: Some(0), ..own }).is_ok());
        if let Some(uid) = sys::effective_uid() {
            assert!(verify(check, PeerCredentials { uid: Some(uid), ..own }).is_ok());
        }
        assert!(verify(check, PeerCredentials { pid: Some(8), ..own }).is_err());
        assert!(verify(check, PeerCredentials { pid: None, ..own }).is_err());
        assert!(verify(check, PeerCredentials { uid: Some(4243), ..own }).is_err());
        assert!(verify(check, PeerCredentials { uid: None, ..own }).is_err());
        assert!(verify(PeerCheck::Any, PeerCredentials { pid: None, uid: Some(4243), gid: None }).is_ok());
        assert!(verify(PeerCheck::Server { pid: 7 }, PeerCredentials { uid: None, ..own }).is_ok());
        assert!(verify(PeerCheck::Server { pid: 8 }, PeerCredentials { uid: None, ..own }).is_err());
    }

    #[test]
    fn a_mismatch_names_both_sides() {
        let found = PeerCredentials { pid: Some(8), uid: Some(33), gid: Some(33) };
        let error = verify(PeerCheck::Process { pid: 7, uid: 4242 }, found).unwrap_err();
        assert_eq!(
            error.to_string(),
            "connect: /tmp/s: expected process 7 of user 4242 to listen there, found process 8 of user 33"
        );
        let found = PeerCredentials { uid: None, ..found };
        let error = verify(PeerCheck::Server { pid: 7 }, found).unwrap_err();
        assert_eq!(error.to_string(), "connect: /tmp/s: expected process 7 to listen there, found process 8");
    }
}
