//! From samples to times.

use hashbrown::HashMap;
use nettrace::{Event, ThreadId, Ticks};

/// The time from one mark of a thread to its next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interval<T> {
    /// The thread's process, if known.
    pub process: Option<u64>,
    /// The thread.
    pub thread: ThreadId,
    /// The time at which it was seen.
    pub start: Ticks,
    /// The time at which it was seen next; not before `start`.
    pub end: Ticks,
    /// The mark that starts the interval: a stack, and whether it ran managed code.
    pub mark: T,
}

impl<T> Interval<T> {
    /// Returns the length of the interval.
    pub const fn ticks(&self) -> u64 {
        debug_assert!(self.start.0 <= self.end.0, "`end` is not before `start`");
        self.end.0.saturating_sub(self.start.0)
    }
}

/// Makes intervals of marks: of each thread's samples, in time order.
///
/// The last mark of a thread does not make an interval: its duration is not known.
///
/// ```
/// use clr_events::Intervals;
/// use nettrace::{ThreadId, Ticks};
///
/// let mut intervals = Intervals::default();
/// assert!(intervals.mark_at(None, ThreadId(7), Ticks(10), "Load").is_none());
/// let loading = intervals.mark_at(None, ThreadId(7), Ticks(25), "Pay").ok_or("an interval")?;
/// assert_eq!((loading.mark, loading.ticks()), ("Load", 15));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Intervals<T> {
    open: HashMap<(Option<u64>, ThreadId), (Ticks, T)>,
}

impl<T> Default for Intervals<T> {
    fn default() -> Self {
        Self { open: HashMap::new() }
    }
}

impl<T> Intervals<T> {
    /// Marks the thread of an event, and gives the interval that this ends.
    pub fn mark(&mut self, event: &Event<'_>, mark: T) -> Option<Interval<T>> {
        self.mark_at(event.process_id(), event.thread_id(), event.time(), mark)
    }

    /// Marks a thread, and gives the interval that this ends.
    pub fn mark_at(
        &mut self,
        process: Option<u64>,
        thread: ThreadId,
        end: Ticks,
        mark: T,
    ) -> Option<Interval<T>> {
        let (start, mark) = self.open.insert((process, thread), (end, mark))?;
        Some(Interval { process, thread, start, end: end.max(start), mark })
    }

    /// The last mark of each thread, unordered: empty intervals.
    pub fn into_open(self) -> impl Iterator<Item = Interval<T>> {
        self.open.into_iter().map(|((process, thread), (start, mark))| Interval {
            process,
            thread,
            start,
            end: start,
            mark,
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn marks_last_until_the_next_of_their_thread() {
        let mut intervals = Intervals::default();
        let marks = [(1, 10, 'a'), (2, 11, 'b'), (1, 15, 'c'), (1, 15, 'd'), (2, 30, 'e')];
        let made: Vec<_> = marks
            .into_iter()
            .filter_map(|(thread, time, mark)| {
                intervals.mark_at(Some(1), ThreadId(thread), Ticks(time), mark)
            })
            .map(|interval| (interval.thread.0, interval.start.0, interval.ticks(), interval.mark))
            .collect();
        assert_eq!(made, [(1, 10, 5, 'a'), (1, 15, 0, 'c'), (2, 11, 19, 'b')]);
        let mut open: Vec<_> =
            intervals.into_open().map(|interval| (interval.mark, interval.ticks())).collect();
        open.sort_unstable();
        assert_eq!(open, [('d', 0), ('e', 0)]);
    }
}
