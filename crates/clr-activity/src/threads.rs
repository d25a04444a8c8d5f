//! The threads of a recording, and the work of each.

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use nettrace::ThreadId;
use uuid::Uuid;

use crate::span::SpanId;
use crate::tasks::Worker;

/// Maximum number of threads to follow.
const MAX_THREADS: usize = 1 << 16;

/// A thread, unique among all processes.
type ThreadKey = (Option<u64>, ThreadId);

/// The work of a thread.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) worker: Worker,
    pub(crate) request: Option<SpanId>,
    /// The activity that gave this request, and the generation of the live spans at that time.
    pub(crate) resolved: Option<(Uuid, u64)>,
    /// An activity that was or lay within a span, and the generation.
    in_span: Option<(Uuid, u64)>,
}

impl Thread {
    /// Returns true if an event that shows only its thread's activity does not have new information.
    pub(crate) fn is_at(&self, activity: Option<Uuid>, generation: u64) -> bool {
        match activity {
            None => self.worker.request.is_none() && self.request.is_none(),
            Some(id) => {
                let known = Some((id, generation));
                self.worker.request == activity && self.resolved == known && self.in_span == known
            }
        }
    }

    /// Returns true if an activity is or lies within a span, according to `find`.
    pub(crate) fn is_in_span(&mut self, id: Uuid, generation: u64, find: impl FnOnce() -> bool) -> bool {
        if self.in_span == Some((id, generation)) {
            return true;
        }
        let is_found = find();
        if is_found {
            self.in_span = Some((id, generation));
        }
        is_found
    }
}

/// The threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    all: IndexMap<ThreadKey, Thread, DefaultHashBuilder>,
    /// The index of each thread in `all`, by slot in the recording.
    slots: Vec<Option<u32>>,
}

/// The index of a thread in [`Threads`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadIndex(usize);

impl Threads {
    /// Returns the index of a thread, adding it if it is new; `None` if there are too many.
    #[inline]
    pub(crate) fn index(&mut self, slot: usize, key: ThreadKey) -> Option<ThreadIndex> {
        if let Some(Some(place)) = self.slots.get(slot)
            && let Some((known, _)) = self.all.get_index(*place as usize)
            && *known == key
        {
            return Some(ThreadIndex(*place as usize));
        }
        self.index_of_new_slot(slot, key)
    }

    #[inline(never)]
    fn index_of_new_slot(&mut self, slot: usize, key: ThreadKey) -> Option<ThreadIndex> {
        let place = match self.all.get_index_of(&key) {
            Some(place) => place,
            None if self.all.len() >= MAX_THREADS => return None,
            None => self.all.insert_full(key, Thread::default()).0,
        };
        // The slot of an event without a thread exceeds every table.
        if slot < MAX_THREADS {
            if self.slots.len() <= slot {
                self.slots.resize(slot.saturating_add(1), None);
            }
            if let Some(known) = self.slots.get_mut(slot) {
                *known = u32::try_from(place).ok();
            }
        }
        Some(ThreadIndex(place))
    }

    #[allow(clippy::indexing_slicing, reason = "a place in this table, which only grows")]
    pub(crate) fn get(&self, index: ThreadIndex) -> &Thread {
        &self.all[index.0]
    }

    #[allow(clippy::indexing_slicing, reason = "a place in this table, which only grows")]
    pub(crate) fn get_mut(&mut self, index: ThreadIndex) -> &mut Thread {
        &mut self.all[index.0]
    }

    /// The thread, if it was seen.
    pub(crate) fn of(&self, key: ThreadKey) -> Option<&Thread> {
        self.all.get(&key)
    }
}
