//! The table of the threads of a recording, which finds their lost events.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::loss::{Gap, Loss};
use crate::thread::{Thread, ThreadSlot};
use crate::time::Ticks;

/// The number of recently used threads that are found by the low bits of their index: blocks switch often,
/// among few threads. A power of two.
const CACHE: usize = 64;

/// The threads. A thread that is described again gets a new slot, so that earlier events keep their meaning.
#[derive(Debug)]
pub(crate) struct ThreadTable {
    threads: Vec<Thread>,
    slots: BTreeMap<u64, u32>,
    /// Indexes with slots that they had before.
    replaced: BTreeSet<(u64, u32)>,
    cache: [(u64, ThreadSlot); CACHE],
    pub(crate) loss: Loss,
    /// V6: every thread is described before its first event. Before V6 events introduce threads.
    pub(crate) are_described: bool,
    /// The number of times that events were left out unread.
    unread: u32,
    /// Faults since the last call of [`take_faults`](Self::take_faults).
    faults: Vec<Fault>,
}

/// An impossible reference to a thread (V6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) index: u64,
    pub(crate) what: &'static str,
}

/// Maximum number of kept faults per block.
const FAULTS_KEPT: usize = 16;

impl Default for ThreadTable {
    fn default() -> Self {
        Self {
            threads: Vec::new(),
            slots: BTreeMap::new(),
            replaced: BTreeSet::new(),
            cache: [(0, ThreadSlot::NONE); CACHE],
            loss: Loss::default(),
            are_described: false,
            unread: 0,
            faults: Vec::new(),
        }
    }
}

impl ThreadTable {
    /// Returns the thread with that index, which is added if it is new.
    #[inline]
    pub(crate) fn slot(&mut self, index: u64) -> ThreadSlot {
        let place = usize::from(index.to_le_bytes()[0]) & (CACHE - 1);
        match self.cache.get(place) {
            Some(&(cached, slot)) if cached == index && slot != ThreadSlot::NONE => slot,
            _ => self.slot_uncached(index, place),
        }
    }

    #[inline(never)]
    fn slot_uncached(&mut self, index: u64, place: usize) -> ThreadSlot {
        let slot = if let Some(&slot) = self.slots.get(&index) {
            ThreadSlot(slot)
        } else {
            if self.are_described {
                self.fault(index, "thread that is not described before it is referred to");
            }
            self.insert(Thread::numbered(index))
        };
        if let Some(entry) = self.cache.get_mut(place) {
            *entry = (index, slot);
        }
        slot
    }

    /// Adds a thread; its index means this thread from now on.
    pub(crate) fn insert(&mut self, thread: Thread) -> ThreadSlot {
        let Ok(slot) = u32::try_from(self.threads.len()) else { return ThreadSlot::NONE };
        if let Some(before) = self.slots.insert(thread.index, slot) {
            self.replaced.insert((thread.index, before));
        }
        self.cache = [(0, ThreadSlot::NONE); CACHE];
        self.threads.push(thread);
        ThreadSlot(slot)
    }

    /// Adds a thread of V6. Its index must be free.
    pub(crate) fn describe(&mut self, thread: Thread) {
        if self.slots.contains_key(&thread.index) {
            self.fault(thread.index, "thread that is described again although it was not removed");
        }
        self.insert(thread);
    }

    /// V6: ends the meaning of an index. `last_sequence` is the number of the last event that the thread
    /// captured.
    pub(crate) fn remove(&mut self, index: u64, last_sequence: u32) {
        if let Some(&slot) = self.slots.get(&index) {
            self.captured_up_to(ThreadSlot(slot), last_sequence, None);
            if let Some(thread) = self.get_mut(ThreadSlot(slot)) {
                thread.has_ended = true;
            }
            self.slots.remove(&index);
            self.replaced.insert((index, slot));
            self.cache = [(0, ThreadSlot::NONE); CACHE];
        } else {
            self.fault(index, "thread that is removed although it is not there");
        }
    }

    fn fault(&mut self, index: u64, what: &'static str) {
        if self.faults.len() < FAULTS_KEPT {
            self.faults.push(Fault { index, what });
        }
    }

    /// Returns the faults since the last call.
    pub(crate) fn take_faults(&mut self) -> Vec<Fault> {
        core::mem::take(&mut self.faults)
    }

    /// Ends the meaning of all indexes, as sequence points of V6 may do.
    pub(crate) fn forget_indexes(&mut self) {
        for slot in self.slots.values() {
            if let Some(thread) = usize::try_from(*slot).ok().and_then(|slot| self.threads.get_mut(slot)) {
                thread.has_ended = true;
            }
        }
        self.slots.clear();
        self.replaced.clear();
        self.cache = [(0, ThreadSlot::NONE); CACHE];
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.threads.len()).unwrap_or(u32::MAX)
    }

    /// Returns the thread with that index, if there is one.
    pub(crate) fn known(&self, index: u64) -> ThreadSlot {
        self.slots.get(&index).map_or(ThreadSlot::NONE, |slot| ThreadSlot(*slot))
    }

    /// Returns the meaning that the index had among the first `known` threads.
    #[inline]
    pub(crate) fn slot_among(&self, index: u64, known: u32) -> ThreadSlot {
        let place = usize::from(index.to_le_bytes()[0]) & (CACHE - 1);
        match self.cache.get(place) {
            Some(&(cached, slot)) if cached == index && slot.0 < known => slot,
            _ => self.slot_among_uncached(index, known),
        }
    }

    #[inline(never)]
    fn slot_among_uncached(&self, index: u64, known: u32) -> ThreadSlot {
        match self.slots.get(&index) {
            Some(&slot) if slot < known => ThreadSlot(slot),
            _ => {
                let before = self.replaced.range((index, 0)..(index, known)).next_back();
                before.map_or(ThreadSlot::NONE, |(_, slot)| ThreadSlot(*slot))
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, slot: ThreadSlot) -> Option<&Thread> {
        self.threads.get(usize::try_from(slot.0).ok()?)
    }

    #[inline]
    fn get_mut(&mut self, slot: ThreadSlot) -> Option<&mut Thread> {
        self.threads.get_mut(usize::try_from(slot.0).ok()?)
    }

    pub(crate) fn all(&self) -> &[Thread] {
        &self.threads
    }

    /// Accounts for an event of a thread: all between its last one and this were lost.
    #[inline]
    pub(crate) fn captured(&mut self, slot: ThreadSlot, sequence: u32, time: Ticks) {
        let Some(thread) = self.get_mut(slot) else { return };
        if sequence == thread.last_sequence.wrapping_add(1) {
            thread.last_sequence = sequence;
            thread.last_time = Some(time);
        } else {
            self.captured_after_gap(slot, sequence, time);
        }
    }

    #[inline(never)]
    fn captured_after_gap(&mut self, slot: ThreadSlot, sequence: u32, time: Ticks) {
        if self.has_unread_before(slot) {
            return self.note(slot, sequence, time);
        }
        let Some(thread) = self.get(slot) else { return };
        let ahead = sequence.wrapping_sub(thread.last_sequence).cast_signed();
        // Backwards: the thread ended and another thread got its number; the new thread's events count from
        // 1.
        let lost =
            if ahead > 0 { ahead.unsigned_abs().saturating_sub(1) } else { sequence.saturating_sub(1) };
        self.lose(slot, lost, Some(time));
        self.note(slot, sequence, time);
    }

    /// Accounts for events of a thread without a gap, up to this one.
    #[inline]
    pub(crate) fn note(&mut self, slot: ThreadSlot, sequence: u32, time: Ticks) {
        if let Some(thread) = self.get_mut(slot) {
            thread.last_sequence = sequence;
            thread.last_time = Some(time);
        }
    }

    /// Accounts for the last number of a sequence point: events up to it that were not read were lost.
    pub(crate) fn captured_up_to(&mut self, slot: ThreadSlot, sequence: u32, time: Option<Ticks>) {
        if self.has_unread_before(slot) {
            return self.note(slot, sequence, time.unwrap_or_default());
        }
        let Some(thread) = self.get(slot) else { return };
        let ahead = sequence.wrapping_sub(thread.last_sequence).cast_signed();
        if ahead > 0 {
            self.lose(slot, ahead.unsigned_abs(), time);
            if let Some(thread) = self.get_mut(slot) {
                thread.last_sequence = sequence;
                thread.last_time = time.or(thread.last_time);
            }
        }
    }

    /// Notes that events were left out unread: the next gap in the numbers of each thread is not a loss.
    pub(crate) fn pass_unread(&mut self) {
        self.unread = self.unread.wrapping_add(1);
    }

    /// Returns true if events of the thread may have been left out unread since the last call.
    fn has_unread_before(&mut self, slot: ThreadSlot) -> bool {
        let unread = self.unread;
        self.get_mut(slot).is_some_and(|thread| core::mem::replace(&mut thread.unread, unread) != unread)
    }

    /// Before V6: a sequence point with a lower number than the last event belongs to another thread with the
    /// same id.
    pub(crate) fn restart_behind(&mut self, slot: ThreadSlot, sequence: u32) {
        if let Some(thread) = self.get_mut(slot)
            && sequence.wrapping_sub(thread.last_sequence).cast_signed() < 0
        {
            thread.last_sequence = sequence;
        }
    }

    fn lose(&mut self, slot: ThreadSlot, count: u32, before: Option<Ticks>) {
        if count == 0 {
            return;
        }
        let Some(thread) = self.get_mut(slot) else { return };
        thread.lost = thread.lost.saturating_add(u64::from(count));
        let gap = Gap { thread: thread.id, events: u64::from(count), after: thread.last_time, before };
        self.loss.add(gap, self.are_described);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::ThreadId;

    #[test]
    fn gaps_are_losses() {
        let mut table = ThreadTable::default();
        let slot = table.slot(7);
        for (sequence, time) in [(1, 10), (2, 20), (5, 50)] {
            table.captured(slot, sequence, Ticks(time));
        }
        table.captured_up_to(slot, 8, Some(Ticks(60)));
        table.captured(slot, 9, Ticks(70));
        assert_eq!(table.loss.total(), 2 + 3);
        let expected = [
            Gap { thread: ThreadId(7), events: 2, after: Some(Ticks(20)), before: Some(Ticks(50)) },
            Gap { thread: ThreadId(7), events: 3, after: Some(Ticks(50)), before: Some(Ticks(60)) },
        ];
        assert_eq!(table.loss.gaps(), expected);
        assert_eq!(table.get(slot).map(Thread::lost), Some(5));
    }

    #[test]
    fn first_event_of_a_thread_may_be_late() {
        let mut table = ThreadTable::default();
        let slot = table.slot(7);
        table.captured(slot, 4, Ticks(1));
        assert_eq!(table.loss.total(), 3);
    }

    #[test]
    fn a_number_given_to_another_thread_begins_again() {
        let mut table = ThreadTable::default();
        let slot = table.slot(7);
        for sequence in 1..=100 {
            table.captured(slot, sequence, Ticks(0));
        }
        table.captured(slot, 1, Ticks(1));
        table.captured(slot, 2, Ticks(1));
        assert_eq!(table.loss.total(), 0);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut table = ThreadTable::default();
        let slot = table.slot(7);
        table.note(slot, u32::MAX, Ticks(0));
        table.captured(slot, 0, Ticks(1));
        table.captured(slot, 2, Ticks(2));
        assert_eq!(table.loss.total(), 1);
    }

    #[test]
    fn described_again_is_another_thread() {
        let mut table = ThreadTable::default();
        let before = table.slot(3);
        table.remove(3, 0);
        let after = table.slot(3);
        assert_ne!(before, after);
        assert_eq!(table.all().len(), 2);
        assert_eq!([0, 1, 2].map(|known| table.slot_among(3, known)), [ThreadSlot::NONE, before, after]);
        assert_eq!(table.slot_among(4, 2), ThreadSlot::NONE);
    }
}
