//! The time of a process's tick counts: ages by the system's clock, and times of the calendar.

use std::time::Duration;

use clr_dump::{Dump, TickTime};
use dipc_collect::thread_times::monotonic;
use jiff::{SignedDuration, Timestamp};

use crate::inspect::core_source::Source;

/// The seconds from the beginning of the year 1 to that of 1970.
const UNIX_EPOCH: i64 = 62_135_596_800;

/// The clock of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickClock {
    /// Milliseconds at the time of reading; `None` of a core dump, which does not have them.
    now: Option<u64>,
    /// A moment by ticks and in UTC; `None` if the memory lacks it.
    moment: Option<TickTime>,
}

impl TickClock {
    pub(crate) fn new(source: &Source, dump: &Dump<'_>) -> Self {
        let now = source.pid().and_then(|_| monotonic()).map(|nanoseconds| nanoseconds / 1_000_000);
        Self { now, moment: dump.statics().tick_time() }
    }

    /// Milliseconds from now until a tick, negative in the past; `None` of a core dump.
    pub(crate) fn until(&self, tick: u64) -> Option<i64> {
        Some(difference(tick, self.now?))
    }

    /// The time since a tick with these lowest 32 bits; `None` of a core dump.
    pub(crate) fn age(&self, tick: u32) -> Option<Duration> {
        let low = u32::try_from(self.now? & u64::from(u32::MAX)).ok()?;
        // A tick of this moment can be later than the clock that was read before it.
        let since = low.wrapping_sub(tick).cast_signed();
        Some(Duration::from_millis(u64::try_from(since).unwrap_or_default()))
    }

    /// The time in UTC of a tick; `None` if unknown.
    pub(crate) fn time(&self, tick: u64) -> Option<Timestamp> {
        let moment = self.moment?;
        let since = SignedDuration::from_millis(difference(tick, moment.tick));
        Self::utc(moment.utc)?.checked_add(since).ok()
    }

    /// The time of a `DateTime` in UTC, by its `Ticks`; `None` if it is out of range.
    pub(crate) fn utc(ticks: u64) -> Option<Timestamp> {
        let seconds = i64::try_from(ticks / 10_000_000).ok()?.checked_sub(UNIX_EPOCH)?;
        let nanoseconds = i32::try_from(ticks % 10_000_000).ok()?.checked_mul(100)?;
        Timestamp::new(seconds, nanoseconds).ok()
    }

    /// The same for a tick with these lowest 32 bits.
    pub(crate) fn time_of_low(&self, tick: u32) -> Option<Timestamp> {
        let near = self.now.or(Some(self.moment?.tick))?;
        let low = u32::try_from(near & u64::from(u32::MAX)).ok()?;
        self.time(near.checked_add_signed(i64::from(tick.wrapping_sub(low).cast_signed()))?)
    }
}

/// The milliseconds from one tick to another. Ticks are far below the limits of the numbers.
const fn difference(tick: u64, from: u64) -> i64 {
    tick.wrapping_sub(from).cast_signed()
}

/// A time in UTC, to the millisecond.
pub(crate) fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of 2024-01-01 in UTC.
    const DAY: u64 = 638_396_640_000_000_000;

    fn clock(now: Option<u64>) -> TickClock {
        TickClock { now, moment: Some(TickTime::new(1 << 33, DAY)) }
    }

    #[test]
    fn ticks_have_an_age_and_a_time() {
        let clock = clock(Some((1 << 33) + 5_000));
        assert_eq!([7_000, 4_000].map(|ms| clock.until((1 << 33) + ms)), [Some(2_000), Some(-1_000)]);
        assert_eq!(clock.age(3_000), Some(Duration::from_secs(2)));
        assert_eq!(clock.age(5_001), Some(Duration::ZERO));
        let time = |time: Option<Timestamp>| time.map(time_text);
        assert_eq!(time(clock.time((1 << 33) + 1_500)).as_deref(), Some("2024-01-01 00:00:01.500Z"));
        assert_eq!(time(clock.time_of_low(u32::MAX)).as_deref(), Some("2023-12-31 23:59:59.999Z"));
    }

    #[test]
    fn a_core_dump_has_times_without_ages() {
        let clock = clock(None);
        assert_eq!((clock.until(1), clock.age(1)), (None, None));
        assert!(clock.time_of_low(7).is_some());
    }
}
