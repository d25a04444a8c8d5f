//! The times at which work for a request was queued, on a thread, or in a call.

use nettrace::{RelativeTime, ThreadId};

/// Maximum number of intervals of a request.
const MAX_INTERVALS: usize = 64;

/// The kind of work in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkKind {
    /// A thread worked for the request, or waited in the midst of work.
    OnThread(ThreadId),
    /// A call to something outside the program had not ended.
    Call,
    /// Work for the request was in the queue of the thread pool.
    Queued,
}

/// An interval in a request. Intervals of a request may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkInterval {
    /// The kind of the interval.
    pub kind: WorkKind,
    /// The beginning of the interval.
    pub start: RelativeTime,
    /// The end of the interval.
    pub end: RelativeTime,
}

/// The intervals of a request that has not ended: the first 64.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkIntervals {
    ended: Vec<WorkInterval>,
    open: Vec<(WorkKind, RelativeTime)>,
}

impl WorkIntervals {
    pub(crate) fn begin(&mut self, kind: WorkKind, now: RelativeTime) {
        if self.ended.len().saturating_add(self.open.len()) < MAX_INTERVALS {
            self.open.push((kind, now));
        }
    }

    /// Ends the last interval of this kind that has begun.
    pub(crate) fn end(&mut self, kind: WorkKind, now: RelativeTime) {
        if let Some(place) = self.open.iter().rposition(|(open, _)| *open == kind) {
            let (kind, start) = self.open.remove(place);
            self.add(kind, start, now);
        }
    }

    /// Adds an interval that has ended. Empty intervals are left out.
    pub(crate) fn add(&mut self, kind: WorkKind, start: RelativeTime, end: RelativeTime) {
        if end > start && self.ended.len() < MAX_INTERVALS {
            self.ended.push(WorkInterval { kind, start, end });
        }
    }

    /// Ends all intervals, and returns them sorted by start.
    pub(crate) fn finish(mut self, now: RelativeTime) -> Vec<WorkInterval> {
        for (kind, start) in std::mem::take(&mut self.open) {
            self.add(kind, start, now);
        }
        self.ended.sort_by_key(|interval| interval.start);
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanoseconds: i64) -> RelativeTime {
        RelativeTime::from_nanos(nanoseconds)
    }

    #[test]
    fn intervals_end_by_kind_and_are_bounded() {
        let (one, other) = (WorkKind::OnThread(ThreadId(1)), WorkKind::OnThread(ThreadId(2)));
        let mut intervals = WorkIntervals::default();
        intervals.begin(one, at(10));
        intervals.begin(other, at(20));
        intervals.begin(WorkKind::Call, at(25));
        intervals.end(one, at(30));
        intervals.end(one, at(31));
        intervals.add(WorkKind::Queued, at(5), at(9));
        intervals.add(WorkKind::Queued, at(9), at(9));
        let all = intervals.finish(at(50));
        let seen: Vec<_> = all.iter().map(|it| (it.kind, it.start.as_nanos(), it.end.as_nanos())).collect();
        assert_eq!(
            seen,
            [(WorkKind::Queued, 5, 9), (one, 10, 30), (other, 20, 50), (WorkKind::Call, 25, 50)]
        );
        let mut many = WorkIntervals::default();
        for number in 0..1000 {
            many.begin(one, at(number));
            if number % 2 == 0 {
                many.end(one, at(number + 1));
            }
        }
        assert_eq!(many.finish(at(5000)).len(), MAX_INTERVALS);
    }
}
