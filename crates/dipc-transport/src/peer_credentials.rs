use std::fmt;

/// The peer of a connection, as the kernel reports it.
///
/// For a client these are the credentials at the time of the peer's `listen`; for a server, at the time of
/// the client's `connect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerCredentials {
    /// The process; `None` if it is not visible from this pid namespace, or the connection is a TCP one.
    pub pid: Option<u32>,
    /// The effective user of the process; `None` for named pipes and TCP.
    pub uid: Option<u32>,
    /// The effective group of the process; `None` for named pipes and TCP.
    pub gid: Option<u32>,
}

impl fmt::Display for PeerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, self.uid) {
            (Some(pid), Some(uid)) => write!(f, "process {pid} of user {uid}"),
            (Some(pid), None) => write!(f, "process {pid}"),
            (None, Some(uid)) => write!(f, "a process of user {uid} that is not visible from here"),
            (None, None) => f.write_str("a process that is not known"),
        }
    }
}
