//! The times of all threads within a range of time.

use nettrace::{RelativeTime, TraceInfo};

use super::{KernelTimes, Life, ThreadTime};

/// The times of a thread within a range, by the kernel's account. Their sum is the time that readings show
/// the thread to have existed in the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadUse {
    /// The number of the thread.
    pub thread: u64,
    /// Nanoseconds on a processor.
    pub ran: u64,
    /// Nanoseconds during which it was runnable without a processor.
    pub queued: u64,
    /// Nanoseconds of the rest, spent waiting.
    pub waited: u64,
}

impl KernelTimes {
    /// Returns the times of each thread between two times of a recording, in the order of the threads'
    /// numbers. Threads without two known readings are left out.
    ///
    /// An interval between two readings that lies partly in the range counts with that part. A thread that
    /// began between two readings waited for an unknown time before the second, which is left out.
    pub fn in_range(&self, info: &TraceInfo, from: RelativeTime, to: RelativeTime) -> Vec<ThreadUse> {
        let rounds: Vec<_> = self.rounds.iter().map(|round| info.relative_time(round.time)).collect();
        let mut all: Vec<_> = self
            .threads
            .keys()
            .filter_map(|thread| {
                let mut sum = Sum::default();
                for (round, times) in rounds.windows(2).enumerate() {
                    let [start, end] = *times else { continue };
                    let (inside, length) = (overlap((start, end), (from, to)), nanoseconds(start, end));
                    if inside > 0
                        && let Some((time, is_whole)) = self.between_with_begin(*thread, round)
                    {
                        sum.add(time, is_whole, (inside, length));
                    }
                }
                sum.finish(*thread)
            })
            .collect();
        all.sort_unstable_by_key(|it| it.thread);
        all
    }

    /// Returns the nanoseconds that the process ran between two times of a recording, in threads that have
    /// ended, too; `None` if less than nineteen twentieths of it are known.
    ///
    /// An interval between two readings that lies partly in the range counts with that part.
    pub fn process_time(&self, info: &TraceInfo, from: RelativeTime, to: RelativeTime) -> Option<u64> {
        let mut known = 0u64;
        let mut ran = 0u64;
        for pair in self.rounds.windows(2) {
            let [start, end] = pair else { continue };
            let interval = (info.relative_time(start.time), info.relative_time(end.time));
            let inside = overlap(interval, (from, to));
            if inside > 0 {
                let time = end.process?.checked_sub(start.process?)?;
                known = known.saturating_add(inside);
                ran = ran.saturating_add(share(time, inside, nanoseconds(interval.0, interval.1)));
            }
        }
        (known.saturating_mul(20) >= nanoseconds(from, to).saturating_mul(19) && known > 0).then_some(ran)
    }

    /// Returns the time of a thread between a round and the next, and whether the thread existed at the
    /// first.
    fn between_with_begin(&self, thread: u64, round: usize) -> Option<(ThreadTime, bool)> {
        let time = self.between(thread, round)?;
        let is_there = |life: &Life| life.end.is_none_or(|end| end > round) && life.until(round).is_some();
        Some((time, self.threads.get(&thread)?.iter().any(is_there)))
    }
}

/// The sum of a thread's times.
#[derive(Debug, Default)]
struct Sum {
    ran: u64,
    queued: u64,
    /// Nanoseconds for which the thread existed.
    existed: u64,
}

impl Sum {
    /// Adds the part `inside` of an interval.
    fn add(&mut self, time: ThreadTime, is_whole: bool, (inside, length): (u64, u64)) {
        let (ran, queued) = (share(time.ran, inside, length), share(time.queued, inside, length));
        self.ran = self.ran.saturating_add(ran);
        self.queued = self.queued.saturating_add(queued);
        let existed = if is_whole { inside } else { ran.saturating_add(queued).min(inside) };
        self.existed = self.existed.saturating_add(existed);
    }

    fn finish(self, thread: u64) -> Option<ThreadUse> {
        if self.existed == 0 {
            return None;
        }
        // The account lags, so an interval may include some of the time before it.
        let ran = self.ran.min(self.existed);
        let queued = self.queued.min(self.existed.saturating_sub(ran));
        let waited = self.existed.saturating_sub(ran).saturating_sub(queued);
        Some(ThreadUse { thread, ran, queued, waited })
    }
}

fn nanoseconds(start: RelativeTime, end: RelativeTime) -> u64 {
    u64::try_from(end.as_nanos().saturating_sub(start.as_nanos())).unwrap_or(0)
}

fn overlap(one: (RelativeTime, RelativeTime), other: (RelativeTime, RelativeTime)) -> u64 {
    nanoseconds(one.0.max(other.0), one.1.min(other.1))
}

/// Returns `time * part / whole`.
fn share(time: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(time).saturating_mul(u128::from(part));
    product.checked_div(whole.into()).and_then(|share| u64::try_from(share).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use nettrace::{SliceReader, Ticks};
    use nettrace_synth::TraceHeader;
    use nettrace_synth::nettrace::Trace;

    use super::*;

    const MS: u64 = 1_000_000;

    /// The header of a recording with a clock that counts nanoseconds from zero.
    fn info() -> TraceInfo {
        let header = TraceHeader { frequency: 1_000_000_000, sync_ticks: 0, ..TraceHeader::default() };
        let bytes = Trace::new(&header).finish();
        let mut reader = SliceReader::new(&bytes).unwrap();
        reader.for_each(|_| {}).unwrap();
        reader.info().unwrap().clone()
    }

    fn at(milliseconds: i64) -> RelativeTime {
        RelativeTime::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn the_time_of_a_process_is_known_or_none() {
        let mut times = KernelTimes::default();
        for (milliseconds, process) in [(0, Some(70)), (100, Some(90)), (200, Some(100)), (300, None)] {
            times.begin_round(Ticks(milliseconds * MS), process);
        }
        let of = |from, to| times.process_time(&info(), at(from), at(to));
        assert_eq!((of(0, 200), of(50, 100), of(0, 150)), (Some(30), Some(10), Some(25)));
        // Outside of the readings, and where a reading lacks it.
        assert_eq!((of(195, 200), of(0, 250), of(400, 500), of(100, 100)), (Some(0), None, None, None));
    }

    fn of(times: &KernelTimes, from: i64, to: i64) -> Vec<(u64, [u64; 3])> {
        let all = times.in_range(&info(), at(from), at(to));
        all.iter().map(|it| (it.thread, [it.ran, it.queued, it.waited].map(|time| time / MS))).collect()
    }

    #[test]
    fn a_thread_runs_is_runnable_or_waits() {
        let mut times = KernelTimes::default();
        times.begin_round(Ticks(0), None);
        times.set(7, 0, 0);
        times.set(8, 500 * MS, 0);
        times.begin_round(Ticks(100 * MS), None);
        times.set(7, 60 * MS, 10 * MS);
        times.begin_round(Ticks(200 * MS), None);
        times.set(7, 160 * MS, 10 * MS);
        assert_eq!(of(&times, 0, 200), [(7, [160, 10, 30]), (8, [0, 0, 200])]);
        // Half of the first interval, and all of the second.
        assert_eq!(of(&times, 50, 200), [(7, [130, 5, 15]), (8, [0, 0, 150])]);
        // Nothing is known of the time after the last round.
        assert_eq!(of(&times, 150, 400), [(7, [50, 0, 0]), (8, [0, 0, 50])]);
        assert_eq!(of(&times, 200, 400), []);
    }

    #[test]
    fn threads_that_begin_and_end_count_while_they_are_seen() {
        let mut times = KernelTimes::default();
        times.begin_round(Ticks(0), None);
        times.set(8, 500 * MS, 0);
        times.begin_round(Ticks(100 * MS), None);
        times.set(9, 20 * MS, 5 * MS);
        times.begin_round(Ticks(200 * MS), None);
        times.end(8);
        assert_eq!(of(&times, 0, 200), [(8, [0, 0, 100]), (9, [20, 5, 100])]);
    }

    /// The account is updated at ticks of the scheduler.
    #[test]
    fn no_thread_runs_longer_than_the_range() {
        let mut times = KernelTimes::default();
        times.begin_round(Ticks(0), None);
        times.set(7, 0, 0);
        times.begin_round(Ticks(100 * MS), None);
        times.set(7, 104 * MS, 3 * MS);
        assert_eq!(of(&times, 0, 100), [(7, [100, 0, 0])]);
    }
}
