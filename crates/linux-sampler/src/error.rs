//! The errors of this crate.

use std::io;

/// An error of sampling.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process or thread does not exist, or has ended.
    #[error("process {pid}: it does not exist")]
    NoProcess {
        /// The process asked for.
        pid: i32,
    },
    /// The kernel permits none of the events asked for.
    #[error("perf_event_open for {tasks}: {error}: {reason}")]
    NotPermitted {
        /// The tasks that were to be sampled.
        tasks: String,
        /// The kernel's answer.
        error: io::Error,
        /// The setting that is in the way, as far as it can be told.
        reason: crate::Obstacle,
    },
    /// Threads times processors need more descriptors than this process may have.
    #[error(
        "{needed} descriptors are needed for {threads} threads on {processors} processors, and this process may have {limit}"
    )]
    TooManyDescriptors {
        /// Descriptors that are needed.
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
        /// The kernel's answer.
        error: io::Error,
    },
    /// The settings cannot be met by any kernel.
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
