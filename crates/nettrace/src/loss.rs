//! Events that the runtime captured and that are not in the recording.

use alloc::vec::Vec;

use crate::thread::ThreadId;
use crate::time::Ticks;

/// Gaps beyond this many are counted in the total and not listed: their number is the traced process's to choose.
const GAPS_LISTED: usize = 65_536;

/// Consecutive events of one thread that are not in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The thread that captured them.
    pub thread: ThreadId,
    /// How many.
    pub events: u64,
    /// The thread's last event before them; `None` if there was none.
    pub after: Option<Ticks>,
    /// The thread's first event, or the sequence point, behind them; `None` at the end of the thread.
    pub before: Option<Ticks>,
}

/// Events that the runtime dropped, from the gaps in the threads' sequence numbers.
///
/// Versions 1 to 3 number no events: nothing is known of their losses. Where a recording is damaged, events in the damaged
/// part count too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loss {
    total: u64,
    gaps: Vec<Gap>,
}

impl Loss {
    /// Events lost by all threads together, so far.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Each gap in the order in which it was found; only the first 65,536 are listed.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    pub(crate) fn add(&mut self, gap: Gap) {
        self.total = self.total.saturating_add(gap.events);
        if self.gaps.len() < GAPS_LISTED {
            self.gaps.push(gap);
        }
    }
}
