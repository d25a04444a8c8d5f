//! Evidence about the process and its user.

/// Evidence about a pid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessEvidence {
    /// The process exists.
    Found {
        /// The pid.
        pid: u32,
        /// The name of the process.
        name: String,
    },
    /// No such process is visible from here.
    NotFound {
        /// The pid.
        pid: u32,
    },
    /// No such process is visible from here, but processes in containers have that pid there.
    InContainer {
        /// The pid in the container.
        pid: u32,
        /// The pids of these processes as seen from here.
        outer_pids: Vec<u32>,
    },
    /// The number is a thread id.
    Thread {
        /// The number.
        pid: u32,
        /// The process that the thread belongs to.
        process: u32,
    },
    /// The process is a thread of the kernel.
    KernelThread {
        /// The pid.
        pid: u32,
        /// The name of the thread.
        name: String,
    },
    /// The process has ended, and its parent has not waited for it.
    Zombie {
        /// The pid.
        pid: u32,
        /// The name of the process.
        name: String,
    },
    /// The system does not show the process.
    Unreadable {
        /// The pid.
        pid: u32,
        /// The file and the system's reason.
        reason: String,
    },
}

/// Evidence about users and permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserEvidence {
    /// The system does not show the users.
    Unknown,
    /// The users of the examined and of this process.
    Known {
        /// The effective user of the examined process.
        process_uid: u32,
        /// The effective user of this process.
        own_uid: u32,
        /// The reason why the environment of the examined process cannot be read: the file and the system's
        /// reason.
        unreadable: Option<String>,
    },
    /// Processes of this host with an unreadable environment.
    Unreadable {
        /// The number of them.
        count: usize,
    },
}
