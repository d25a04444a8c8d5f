//! The time of a request by activity, computed event by event.

use std::time::Duration;

use nettrace::{RelativeTime, ThreadId};
use serde::{Serialize, Serializer};

use crate::work_interval::{WorkInterval, WorkIntervals, WorkKind};

/// The time of a request by activity. Each moment counts once, for the first of these that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TimeParts {
    /// The runtime had suspended the process for a garbage collection; `None` if suspensions were not
    /// recorded.
    #[serde(rename = "gc_pause_ns", serialize_with = "nanoseconds")]
    pub gc_pause: Option<Duration>,
    /// A thread worked for the request; `None` if the recording does not show when threads do.
    #[serde(rename = "on_thread_ns", serialize_with = "nanoseconds")]
    pub on_thread: Option<Duration>,
    /// A call to something outside the program had not ended; `None` if such calls were not recorded.
    #[serde(rename = "outgoing_ns", serialize_with = "nanoseconds")]
    pub outgoing: Option<Duration>,
    /// Work for the request was in the queue of the thread pool; `None` if such events were not recorded.
    #[serde(rename = "queued_ns", serialize_with = "nanoseconds")]
    pub queued: Option<Duration>,
    /// The rest; `None` if it is not known when threads worked for the request.
    #[serde(rename = "waiting_ns", serialize_with = "nanoseconds")]
    pub waiting: Option<Duration>,
}

/// Serializes a duration as whole nanoseconds. Saturates after 584 years.
#[allow(clippy::ref_option, reason = "the signature that serde calls")]
fn nanoseconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)).serialize(serializer)
}

/// The time of a process in garbage collection pauses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PauseClock {
    /// Pauses that have ended.
    total: Duration,
    /// The end of the last one.
    resumed: RelativeTime,
    /// The start of the current pause.
    since: Option<RelativeTime>,
}

impl PauseClock {
    /// Records whether a pause has ended, and the start of an open one.
    pub(crate) fn set(&mut self, has_ended: bool, since: Option<RelativeTime>, now: RelativeTime) {
        if has_ended {
            self.total = self.at(now);
            self.resumed = now;
        }
        self.since = since;
    }

    /// The sum of pauses until a time.
    pub(crate) fn at(&self, now: RelativeTime) -> Duration {
        let since = self.since.map_or(now, |since| since.max(self.resumed));
        self.total.saturating_add(now.saturating_duration_since(since))
    }
}

/// The state of a request's work, and the time in each state so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkState {
    /// The time of the last change of state.
    since: RelativeTime,
    /// The sum of pauses until then.
    paused: Duration,
    /// Threads that work for it.
    threads: u32,
    /// Calls that have not ended.
    calls: u32,
    gc_pause: Duration,
    on_thread: Duration,
    outgoing: Duration,
    waiting: Duration,
    /// The part of `waiting` during which work was in a queue.
    queued: Duration,
    /// The value of `waiting` up to which that was counted.
    counted: Duration,
    /// The intervals of the states, if requested.
    intervals: Option<Box<WorkIntervals>>,
}

/// The state of a request when work for it was put into a queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueMark {
    at: RelativeTime,
    /// The time of waiting until then.
    waiting: Duration,
}

/// The measured time of a request by activity. Parts without events in the recording are zero here, so that
/// its numbers are read with [`known`](Self::known) only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeasuredParts(TimeParts);

impl From<TimeParts> for MeasuredParts {
    fn from(parts: TimeParts) -> Self {
        Self(parts)
    }
}

/// The parts of requests' time that the recording has events for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownParts {
    /// [`TimeParts::gc_pause`].
    pub gc_pause: bool,
    /// [`TimeParts::on_thread`] and [`TimeParts::waiting`].
    pub on_thread: bool,
    /// [`TimeParts::outgoing`].
    pub outgoing: bool,
    /// [`TimeParts::queued`].
    pub queued: bool,
}

impl KnownParts {
    /// All parts, for recordings with events for each of them.
    pub const ALL: Self = Self { gc_pause: true, on_thread: true, outgoing: true, queued: true };
}

impl WorkState {
    pub(crate) fn new(now: RelativeTime, clock: &PauseClock) -> Self {
        Self { since: now, paused: clock.at(now), ..Self::default() }
    }

    /// With the times of all changes.
    pub(crate) fn with_intervals(self) -> Self {
        Self { intervals: Some(Box::default()), ..self }
    }

    /// Counts the time up to now; called before each change of the state.
    fn advance(&mut self, now: RelativeTime, clock: &PauseClock) {
        let elapsed = now.saturating_duration_since(self.since);
        let paused = clock.at(now);
        let gc_pause = paused.saturating_sub(self.paused).min(elapsed);
        let rest = elapsed.saturating_sub(gc_pause);
        self.gc_pause = self.gc_pause.saturating_add(gc_pause);
        let part = match (self.threads, self.calls) {
            (1.., _) => &mut self.on_thread,
            (0, 1..) => &mut self.outgoing,
            (0, 0) => &mut self.waiting,
        };
        *part = part.saturating_add(rest);
        self.since = self.since.max(now);
        self.paused = paused;
    }

    /// A thread begins or ends its work.
    pub(crate) fn thread(&mut self, thread: ThreadId, is_start: bool, now: RelativeTime, clock: &PauseClock) {
        self.advance(now, clock);
        self.mark(WorkKind::OnThread(thread), is_start, now);
        self.threads = if is_start { self.threads.saturating_add(1) } else { self.threads.saturating_sub(1) };
    }

    fn mark(&mut self, kind: WorkKind, is_start: bool, now: RelativeTime) {
        match &mut self.intervals {
            Some(intervals) if is_start => intervals.begin(kind, now),
            Some(intervals) => intervals.end(kind, now),
            None => {}
        }
    }

    /// A call begins or ends.
    pub(crate) fn call(&mut self, is_start: bool, now: RelativeTime, clock: &PauseClock) {
        self.advance(now, clock);
        self.mark(WorkKind::Call, is_start, now);
        self.calls = if is_start { self.calls.saturating_add(1) } else { self.calls.saturating_sub(1) };
    }

    /// Work is put into a queue; pass the mark to [`dequeue`](Self::dequeue).
    pub(crate) fn enqueue(&mut self, now: RelativeTime, clock: &PauseClock) -> QueueMark {
        self.advance(now, clock);
        QueueMark { at: now, waiting: self.waiting }
    }

    /// Work is taken from a queue. Time during which several pieces were queued counts once.
    pub(crate) fn dequeue(&mut self, mark: QueueMark, now: RelativeTime, clock: &PauseClock) {
        self.advance(now, clock);
        if let Some(intervals) = &mut self.intervals {
            intervals.add(WorkKind::Queued, mark.at, now);
        }
        let queued = self.waiting.saturating_sub(mark.waiting.max(self.counted));
        self.queued = self.queued.saturating_add(queued);
        self.counted = self.waiting;
    }

    /// The times of all changes up to the request's end; empty if they were not wanted.
    pub(crate) fn take_intervals(&mut self, now: RelativeTime) -> Vec<WorkInterval> {
        self.intervals.take().map(|intervals| intervals.finish(now)).unwrap_or_default()
    }

    /// The parts at the request's end, as if all were known.
    pub(crate) fn finish(mut self, now: RelativeTime, clock: &PauseClock) -> MeasuredParts {
        self.advance(now, clock);
        MeasuredParts(TimeParts {
            gc_pause: Some(self.gc_pause),
            on_thread: Some(self.on_thread),
            outgoing: Some(self.outgoing),
            queued: Some(self.queued),
            waiting: Some(self.waiting.saturating_sub(self.queued)),
        })
    }
}

impl MeasuredParts {
    /// Returns the parts that the recording has events for; the others are `None`.
    #[must_use]
    pub fn known(self, known: KnownParts) -> TimeParts {
        let Self(measured) = self;
        let unknown_queued = if known.queued { None } else { measured.queued };
        let waiting =
            measured.waiting.map(|waiting| waiting.saturating_add(unknown_queued.unwrap_or_default()));
        TimeParts {
            gc_pause: measured.gc_pause.filter(|_| known.gc_pause),
            on_thread: measured.on_thread.filter(|_| known.on_thread),
            outgoing: measured.outgoing.filter(|_| known.outgoing),
            queued: measured.queued.filter(|_| known.queued),
            waiting: waiting.filter(|_| known.on_thread),
        }
    }

    /// Adds the parts of another request.
    pub fn add(&mut self, other: &Self) {
        let (Self(sums), Self(other)) = (self, other);
        let add = |sum: &mut Option<Duration>, part: Option<Duration>| {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or_default().saturating_add(part));
            }
        };
        add(&mut sums.gc_pause, other.gc_pause);
        add(&mut sums.on_thread, other.on_thread);
        add(&mut sums.outgoing, other.outgoing);
        add(&mut sums.queued, other.queued);
        add(&mut sums.waiting, other.waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanoseconds: i64) -> RelativeTime {
        RelativeTime::from_nanos(nanoseconds)
    }

    fn nanoseconds(parts: TimeParts) -> [Option<u128>; 5] {
        let TimeParts { gc_pause, on_thread, outgoing, queued, waiting } = parts;
        [gc_pause, on_thread, outgoing, queued, waiting].map(|part| part.map(|part| part.as_nanos()))
    }

    #[test]
    fn each_moment_counts_once() {
        let mut clock = PauseClock::default();
        let mut work = WorkState::new(at(100), &clock);
        work.thread(ThreadId(1), true, at(110), &clock);
        work.call(true, at(130), &clock);
        // A pause while a thread works, which continues for 5 after it stops.
        clock.set(false, Some(at(140)), at(140));
        work.thread(ThreadId(1), false, at(150), &clock);
        clock.set(true, None, at(155));
        let mark = work.enqueue(at(160), &clock);
        work.call(false, at(170), &clock);
        let other = work.enqueue(at(172), &clock);
        work.dequeue(mark, at(180), &clock);
        work.dequeue(other, at(190), &clock);
        // Waiting 10, on a thread 20 + 10, paused 15, in the call 15, queued 20, waiting 10.
        let parts = work.finish(at(200), &clock).known(KnownParts::ALL);
        assert_eq!(nanoseconds(parts), [Some(15), Some(30), Some(15), Some(20), Some(20)]);
    }

    #[test]
    fn unknown_parts_are_not_zero() {
        let clock = PauseClock::default();
        let mut work = WorkState::new(at(0), &clock);
        let mark = work.enqueue(at(5), &clock);
        work.dequeue(mark, at(10), &clock);
        assert_eq!(nanoseconds(work.clone().finish(at(20), &clock).known(KnownParts::default())), [None; 5]);
        let known = KnownParts { on_thread: true, ..KnownParts::default() };
        assert_eq!(
            nanoseconds(work.finish(at(20), &clock).known(known)),
            [None, Some(0), None, None, Some(20)]
        );
    }

    #[test]
    fn pauses_that_overlap_count_once() {
        let mut clock = PauseClock::default();
        clock.set(false, Some(at(10)), at(10));
        clock.set(false, Some(at(10)), at(20));
        assert_eq!(clock.at(at(25)).as_nanos(), 15);
        clock.set(true, Some(at(20)), at(30));
        assert_eq!(clock.at(at(35)).as_nanos(), 25);
        clock.set(true, None, at(40));
        assert_eq!((clock.at(at(40)).as_nanos(), clock.at(at(50)).as_nanos()), (30, 30));
        // The end of this pause is lost, so it does not count.
        clock.set(false, Some(at(60)), at(60));
        assert_eq!(clock.at(at(61)).as_nanos(), 31);
        clock.set(false, Some(at(70)), at(70));
        assert_eq!(clock.at(at(71)).as_nanos(), 31);
    }
}
