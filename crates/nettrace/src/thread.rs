//! The threads of a recording.

use alloc::string::String;
use alloc::vec::Vec;

use crate::time::Ticks;

/// The operating system's number of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ThreadId(pub u64);

impl core::fmt::Display for ThreadId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A thread, as the recording describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thread {
    pub(crate) index: u64,
    pub(crate) id: ThreadId,
    pub(crate) process_id: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) key_values: Vec<(String, String)>,
    /// Sequence number of the last event that it has captured, as far as known, lost ones included.
    pub(crate) last_sequence: u32,
    /// Time of that event; `None` before the first.
    pub(crate) last_time: Option<Ticks>,
    pub(crate) lost: u64,
    pub(crate) has_ended: bool,
    /// The number of times that events were left out unread, at the last gap in its numbers.
    pub(crate) unread: u32,
}

impl Thread {
    /// Creates a thread of which only the number is known.
    pub(crate) fn numbered(index: u64) -> Self {
        Self { index, id: ThreadId(index), ..Self::default() }
    }

    /// The number by which events refer to it: before V6 the operating system's, in V6 an index of the
    /// recording's own.
    pub const fn index(&self) -> u64 {
        self.index
    }
    /// The operating system's number; the index in a V6 recording without that.
    pub const fn id(&self) -> ThreadId {
        self.id
    }
    /// V6: the process that it belongs to.
    pub const fn process_id(&self) -> Option<u64> {
        self.process_id
    }
    /// V6: its name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
    /// V6: further pairs, as they are.
    pub fn key_values(&self) -> &[(String, String)] {
        &self.key_values
    }
    /// Number of the last event that it has captured, as far as known, lost ones included.
    pub const fn last_sequence(&self) -> u32 {
        self.last_sequence
    }
    /// V6: whether the recording has removed it, so that no later event refers to it.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }
    /// The number of its events that were lost.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

/// The index of a thread in [`ThreadTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadSlot(pub(crate) u32);

impl ThreadSlot {
    /// No thread.
    pub(crate) const NONE: Self = Self(u32::MAX);
}
