//! Lost events: the runtime captured them, and they are not in the recording.

use alloc::vec::Vec;

use crate::thread::ThreadId;
use crate::time::Ticks;

/// Maximum number of listed gaps. The traced process controls the count, so further gaps count only in the
/// total.
const GAPS_LISTED: usize = 65_536;

/// Consecutive events of one thread that are not in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The thread that captured them.
    pub thread: ThreadId,
    /// The number of events.
    pub events: u64,
    /// The thread's last event before them; `None` if they precede all of its events.
    pub after: Option<Ticks>,
    /// The thread's first event, or the sequence point, after them; `None` at the end of the thread.
    pub before: Option<Ticks>,
}

/// Events that the runtime lost, from the gaps in the threads' sequence numbers.
///
/// Versions 1 to 3 do not number events: their losses are unknown. Events in damaged parts of a recording
/// count too.
///
/// ```
/// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
/// let mut events = nettrace::SliceReader::new(bytes)?;
/// events.for_each(|_| {})?;
/// let gap = events.loss().gaps()[0];
/// assert_eq!((events.loss().total(), gap.thread.0, gap.events), (2, 8, 2));
/// # Ok::<(), nettrace::Error>(())
/// ```
///
/// # Ended threads
/// Before V6 the runtime reports the events of a thread until it ends, and not always until its last one;
/// then the count is a [lower bound](Self::is_lower_bound). A sequence point has the last sequence number of
/// each thread at the time that the point was created. A thread that ends after it, with its buffers written
/// by then, does not appear in any later sequence point: events that it lost in between are not counted
/// anywhere. A thread that lost all its events, because the session never had room for its buffer, does not
/// appear in any sequence point. In V6 each removed thread has its last sequence number.
///
/// # Source
/// dotnet/runtime, `src/native/eventpipe/ep-buffer-manager.c`: `buffer_manager_allocate_buffer_for_thread`
/// adds a thread to the session's list with its first buffer,
/// `ep_buffer_manager_write_all_buffers_to_file_v4` removes ended threads from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loss {
    total: u64,
    gaps: Vec<Gap>,
    is_lower_bound: bool,
}

impl Loss {
    /// Events lost by all threads together, so far.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Returns true if more events may have been lost than [`total`](Self::total): the buffers were full at
    /// some time, and the version does not report what a thread lost before it ended. False while no loss is
    /// known.
    pub const fn is_lower_bound(&self) -> bool {
        self.is_lower_bound
    }

    /// The gaps in the order in which they were found; only the first 65,536 are listed.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Adds a gap. `has_final_numbers`: the version reports the last sequence number of a thread that ended.
    pub(crate) fn add(&mut self, gap: Gap, has_final_numbers: bool) {
        self.is_lower_bound |= !has_final_numbers;
        self.total = self.total.saturating_add(gap.events);
        if self.gaps.len() < GAPS_LISTED {
            self.gaps.push(gap);
        }
    }
}
