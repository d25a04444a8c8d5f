//! The errors of this crate.

use std::io;

use crate::obstacle::{AllocationObstacle, Obstacle};

/// An error of sampling.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process or thread does not exist, or has ended.
    #[error("process {pid}: it does not exist")]
    NoProcess {
        /// The requested process.
        pid: i32,
    },
    /// The kernel permits none of the requested events.
    #[error("perf_event_open for {tasks}: {error}: {reason}")]
    NotPermitted {
        /// The tasks to sample.
        tasks: String,
        /// The kernel's error.
        error: io::Error,
        /// The obstacle, if known.
        reason: Obstacle,
    },
    /// Threads times processors need more descriptors than this process may have.
    #[error(
        "{needed} descriptors are needed for {threads} threads on {processors} processors, and this process may have {limit}"
    )]
    TooManyDescriptors {
        /// The number of descriptors needed.
        needed: u64,
        /// Threads of the processes.
        threads: usize,
        /// Processors of the machine.
        processors: usize,
        /// The hard limit of this process.
        limit: u64,
    },
    /// The buffers need more locked memory than this user may have.
    #[error(
        "buffers of {pages} pages on {processors} processors: {error}: the user's perf_event_mlock_kb or RLIMIT_MEMLOCK is used up"
    )]
    BufferMemory {
        /// Pages of each buffer.
        pages: usize,
        /// Processors of the machine.
        processors: usize,
        /// The kernel's error.
        error: io::Error,
    },
    /// The kernel's user_events cannot be used, for this reason.
    #[error("user_events: {0}")]
    UserEvents(&'static str),
    /// The native allocations of a process cannot be recorded, for this reason.
    #[error("native allocations: {0}")]
    NativeAllocations(AllocationObstacle),
    /// No kernel supports the settings.
    #[error("{0}")]
    Settings(&'static str),
    /// A file of the kernel could not be read, or a call failed.
    #[error("{what}: {error}")]
    Io {
        /// The file or call.
        what: String,
        /// The reason.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}
