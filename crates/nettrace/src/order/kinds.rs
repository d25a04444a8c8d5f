//! The kinds of events to bring into time order.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::event::Event;
use crate::metadata::{Metadata, MetadataSlot};
use crate::thread::ThreadSlot;

/// The events of a kind that a reader needs in time order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[allow(clippy::exhaustive_enums, reason = "a reader orders no events, some or all")]
pub enum Interest {
    /// No event.
    #[default]
    None,
    /// Events that may show that a thread works for another activity than before. An event without an
    /// activity is left out if the previous event in its block, apart from events of no interest, also has
    /// this interest, the same thread and no activity.
    Activity,
    /// All events.
    All,
}

impl Interest {
    /// [`All`](Self::All) if events of a kind are needed, or else [`None`](Self::None).
    pub const fn all_if(is_needed: bool) -> Self {
        if is_needed { Self::All } else { Self::None }
    }
}

/// A choice of kinds of events. Each is decided once.
pub(super) struct KindChoice {
    interest_of: Box<dyn Fn(&Metadata) -> Interest + Send + Sync>,
    /// By the slot of the metadata.
    kinds: Vec<Kind>,
}

/// A kind of event.
#[derive(Debug, Clone, Copy)]
struct Kind {
    interest: Interest,
    /// The number of events read so far, of interest or not.
    count: u64,
}

impl KindChoice {
    pub(super) fn new(interest_of: impl Fn(&Metadata) -> Interest + Send + Sync + 'static) -> Self {
        Self { interest_of: Box::new(interest_of), kinds: Vec::new() }
    }

    /// Decides the new kinds in a recording's table. The rows of the table never change.
    #[inline]
    pub(super) fn update(&mut self, rows: &[Metadata]) {
        if let Some(new) = rows.get(self.kinds.len()..) {
            let kind = |row| Kind { interest: (self.interest_of)(row), count: 0 };
            self.kinds.extend(new.iter().map(kind));
        }
    }

    /// The interest in events of a kind.
    #[inline]
    pub(super) fn interest(&self, slot: MetadataSlot) -> Interest {
        self.kinds.get(slot.0 as usize).map_or(Interest::None, |kind| kind.interest)
    }

    /// Counts events of a kind.
    #[inline]
    pub(super) fn count(&mut self, slot: MetadataSlot, events: u32) {
        if let Some(kind) = self.kinds.get_mut(slot.0 as usize) {
            kind.count = kind.count.saturating_add(events.into());
        }
    }

    /// The numbers of events, by the slot of their metadata.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.kinds.iter().map(|kind| kind.count)
    }
}

impl fmt::Debug for KindChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindChoice").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

/// Finds the events of [`Interest::Activity`] that show nothing new, among the rows of a block.
#[derive(Debug, Default)]
pub(super) struct ActivityFilter {
    /// The thread of the last event of interest, if that shows that it works for no activity.
    idle: Option<ThreadSlot>,
}

impl ActivityFilter {
    /// Takes in an event of a kind that is wholly of interest: it may change the activity.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.idle = None;
    }

    /// Takes in an event that shows its activity. Returns whether it is needed.
    #[inline]
    pub(super) fn is_needed(&mut self, event: &Event<'_>) -> bool {
        let thread = event.header.thread;
        if event.activity().is_some() {
            self.idle = None;
        } else if self.idle.replace(thread) == Some(thread) {
            return false;
        }
        true
    }

    /// Returns true if further events of the same kind, thread and activity are needed.
    #[inline]
    pub(super) fn are_others_needed(&self) -> bool {
        self.idle.is_none()
    }
}
