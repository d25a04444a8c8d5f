//! Remarks about a collection that goes on.

use std::time::Duration;

use clr_counters::SessionSettings;
use dipc_client::SessionId;

/// The receiver of remarks while something is collected. Use `()` to ignore them.
pub trait Observer {
    /// Takes a remark. Called between two reads: it must not block.
    fn note(&mut self, note: Note);
}

/// A remark about a collection that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The process is being dumped, and its createdump has not ended within `limit`: it may hang.
    CreatedumpRuns {
        /// The process.
        pid: u32,
        /// The process of createdump.
        createdump: u32,
        /// The time for which it has run at least.
        limit: Duration,
    },
    /// The kernel permits samples of user mode only. They lack the time in the kernel, and the stacks of
    /// waits if these were wanted (`off_cpu`).
    UserModeOnly {
        /// True if stacks of waits were wanted.
        off_cpu: bool,
    },
    /// The kernel's samples include those of child processes, as before Linux 5.13.
    ChildrenIncluded,
    /// The running threads of a snapshot have no stacks.
    RunningStacksMissing {
        /// The reason.
        reason: String,
    },
    /// The kernel's samples of a process end early.
    SamplesEnded {
        /// The reason.
        reason: String,
    },
    /// A session without a rundown began: the runtime cannot choose the keywords of its rundown.
    RundownLeftOut,
    /// A session began.
    SessionStarted {
        /// The runtime's id of the session.
        id: SessionId,
        /// The form of CollectTracing that the runtime accepted.
        command: &'static str,
    },
    /// The runtime collected nothing, as one that is starting does: it is asked once more after `wait`.
    NothingCollected {
        /// The time until the next session.
        wait: Duration,
    },
    /// The shared session of the process's Meters has other settings: the process is asked again, with these.
    SettingsAdopted {
        /// The settings of the next session.
        settings: SessionSettings,
    },
}

impl Observer for () {
    fn note(&mut self, _: Note) {}
}
