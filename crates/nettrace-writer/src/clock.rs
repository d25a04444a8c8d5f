//! Times of one recording on the clock of another.

use nettrace::{Ticks, TraceInfo};

/// The relation of a recording's clock to the new recording's clock.
///
/// ```
/// use nettrace::{Ticks, TraceInfo};
/// use nettrace_writer::{ClockRelation, Merger, MergerOptions};
///
/// let first = TraceInfo::new_v6(1_795_251_731_000, Ticks(0), Vec::new());
/// // Another machine: it began five seconds later, and its clock is far ahead.
/// let second = TraceInfo::new_v6(1_795_251_736_000, Ticks(1 << 50), Vec::new());
/// let merger = Merger::new(&[first, second], MergerOptions::default())?;
/// assert_eq!(merger.clock(1), Some(ClockRelation::ByStartTimes));
/// assert_eq!(merger.time(1, Ticks(1 << 50)), Ticks(5_000_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockRelation {
    /// The same clock: times stay as they are.
    Same,
    /// Another clock. Both recordings state their start in UTC, in milliseconds, and by their clock: times
    /// are as exact as that.
    ByStartTimes,
    /// Another clock, and a header without a calendar time: both recordings are taken to begin together.
    Unknown,
}

/// Maximum difference between two readings of the same clock, in nanoseconds. The clocks of two machines, or
/// of one before and after its start, differ by seconds to years; the calendar is adjusted by less.
const MAX_DRIFT: u64 = 100_000_000;

/// The start of a recording, in UTC and in ticks of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Milliseconds since 1970; `None` if the header has no calendar time.
    pub(crate) start: Option<i64>,
    pub(crate) start_ticks: i64,
    pub(crate) frequency: u64,
}

/// The conversion of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) relation: ClockRelation,
    from: Clock,
    to: Clock,
}

impl Clock {
    pub(crate) fn of(info: &TraceInfo) -> Self {
        Self {
            start: info.start.unix_milliseconds(),
            start_ticks: info.start_ticks.0.cast_signed(),
            frequency: info.frequency,
        }
    }

    /// The clock's zero in UTC, in nanoseconds since 1970.
    fn zero(&self) -> Option<i128> {
        let start = i128::from(self.start?).saturating_mul(1_000_000);
        Some(start.saturating_sub(scaled(self.start_ticks.into(), self.frequency, 1_000_000_000)))
    }

    fn is_same(&self, other: &Self) -> bool {
        let drift = |other: &Self| Some(self.zero()?.saturating_sub(other.zero()?).unsigned_abs());
        let is_alike = self.start_ticks == other.start_ticks && self.start == other.start;
        self.frequency == other.frequency
            && (is_alike || drift(other).is_some_and(|drift| drift <= MAX_DRIFT.into()))
    }
}

impl Conversion {
    /// The conversion between two clocks, which are known to be the same if they tick equally fast and
    /// `is_one_machine`.
    pub(crate) fn new(from: Clock, to: Clock, is_one_machine: bool) -> Self {
        let is_known = is_one_machine && from.frequency == to.frequency;
        let relation = match (from.start, to.start) {
            _ if is_known || from.is_same(&to) => ClockRelation::Same,
            (Some(_), Some(_)) => ClockRelation::ByStartTimes,
            _ => ClockRelation::Unknown,
        };
        Self { relation, from, to }
    }

    #[inline]
    pub(crate) fn convert(&self, time: Ticks) -> Ticks {
        if self.relation == ClockRelation::Same { time } else { self.convert_other(time) }
    }

    #[inline(never)]
    fn convert_other(&self, time: Ticks) -> Ticks {
        let Self { from, to, .. } = self;
        let since_start = i128::from(time.0.cast_signed()).saturating_sub(from.start_ticks.into());
        let later = from.start.unwrap_or(0).saturating_sub(to.start.unwrap_or(0));
        let later = if self.relation == ClockRelation::ByStartTimes { later } else { 0 };
        let ticks = i128::from(to.start_ticks)
            .saturating_add(scaled(later.into(), 1000, to.frequency))
            .saturating_add(scaled(since_start, from.frequency, to.frequency));
        let limit = if ticks < 0 { i64::MIN } else { i64::MAX };
        Ticks(i64::try_from(ticks).unwrap_or(limit).cast_unsigned())
    }
}

/// Converts a count of `1/from` seconds to a count of `1/to` seconds.
pub(crate) fn scaled(count: i128, from: u64, to: u64) -> i128 {
    if from == to { count } else { count.saturating_mul(to.into()).checked_div(from.into()).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(start: i64, start_ticks: i64, frequency: u64) -> Clock {
        Clock { start: Some(start), start_ticks, frequency }
    }

    #[test]
    fn times_of_one_machine_stay_as_they_are() {
        let to = clock(1_000_000, 5_000_000_000, 1_000_000_000);
        // 2 s later, or 2.04 s by the calendar.
        let conversion = Conversion::new(clock(1_002_040, 7_000_000_000, 1_000_000_000), to, false);
        assert_eq!(conversion.relation, ClockRelation::Same);
        assert_eq!(conversion.convert(Ticks(7_000_000_123)), Ticks(7_000_000_123));
        // 300 ms passed between the readings of the clock and of the calendar.
        let late = clock(1_002_300, 7_000_000_000, 1_000_000_000);
        assert_eq!(Conversion::new(late, to, false).relation, ClockRelation::ByStartTimes);
        let conversion = Conversion::new(late, to, true);
        assert_eq!(conversion.relation, ClockRelation::Same);
        assert_eq!(conversion.convert(Ticks(7_000_000_123)), Ticks(7_000_000_123));
    }

    #[test]
    fn times_of_another_machine_are_shifted_and_scaled() {
        let to = clock(1_000_000, 5_000_000_000, 1_000_000_000);
        // Another frequency is another clock, of the same machine as well.
        let conversion = Conversion::new(clock(1_002_000, 70, 10_000_000), to, true);
        assert_eq!(conversion.relation, ClockRelation::ByStartTimes);
        // Half a second after a start that is 2 s later.
        assert_eq!(conversion.convert(Ticks(70 + 5_000_000)), Ticks(7_500_000_000));
        let conversion = Conversion::new(Clock { start: None, ..clock(0, 70, 10_000_000) }, to, false);
        assert_eq!(conversion.relation, ClockRelation::Unknown);
        assert_eq!(conversion.convert(Ticks(70)), Ticks(5_000_000_000));
    }
}
