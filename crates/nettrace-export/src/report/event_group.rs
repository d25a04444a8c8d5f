//! The groups of events that reports are of.

use super::Overview;

/// Events that are recorded together, and that a report is of. A recording does not tell whether a group
/// without events was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EventGroup {
    /// Starts and ends of requests, and other spans.
    Requests,
    /// Collections.
    Collections,
    /// Samples of allocations.
    Allocations,
    /// Exceptions.
    Exceptions,
    /// Waits for locks.
    LockWaits,
    /// Threads of the pool, and its work.
    ThreadPool,
    /// Compiled methods.
    Compilation,
}

impl EventGroup {
    /// All groups.
    pub const ALL: [Self; 7] = [
        Self::Requests,
        Self::Collections,
        Self::Allocations,
        Self::Exceptions,
        Self::LockWaits,
        Self::ThreadPool,
        Self::Compilation,
    ];

    /// The name of the report in the commands of dipc.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Collections => "gc",
            Self::Allocations => "alloc",
            Self::Exceptions => "exceptions",
            Self::LockWaits => "contention",
            Self::ThreadPool => "threadpool",
            Self::Compilation => "jit",
        }
    }

    /// The name in a sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Collections => "garbage collections",
            Self::Allocations => "allocations",
            Self::Exceptions => "exceptions",
            Self::LockWaits => "waits for locks",
            Self::ThreadPool => "the thread pool",
            Self::Compilation => "compiled methods",
        }
    }

    /// Returns true if a recording has events of the group.
    pub const fn is_in(self, recording: &Overview) -> bool {
        match self {
            Self::Requests => recording.requests.is_some(),
            Self::Collections => !recording.gc.is_empty(),
            Self::Allocations => !recording.allocations.is_empty(),
            Self::Exceptions => !recording.exceptions.is_empty(),
            Self::LockWaits => !recording.contention.is_empty(),
            Self::ThreadPool => recording.thread_pool.is_some(),
            Self::Compilation => !recording.jit.is_empty(),
        }
    }
}
