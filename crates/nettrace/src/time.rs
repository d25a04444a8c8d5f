//! Times, as recordings store them, and relative to a recording's start.

use core::time::Duration;

/// A time in ticks of the recording's clock: [`TraceInfo::frequency`](crate::TraceInfo::frequency) of them
/// are a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(pub u64);

/// A time relative to the recording's start, in nanoseconds; negative where it is earlier.
///
/// ```
/// use std::time::Duration;
/// use nettrace::RelativeTime;
///
/// let [early, late] = [100, 250].map(|ms| RelativeTime::after_start(Duration::from_millis(ms)));
/// assert_eq!(late.saturating_duration_since(early), Duration::from_millis(150));
/// assert_eq!(early.as_nanos(), 100_000_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelativeTime(i64);

impl RelativeTime {
    /// The earliest time.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest time.
    pub const MAX: Self = Self(i64::MAX);
    /// The recording's start.
    pub const START: Self = Self(0);

    /// Creates the time that is `nanoseconds` after the recording's start.
    #[inline]
    pub const fn from_nanos(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// Creates the time that long after the recording's start. Saturates after 292 years.
    pub fn after_start(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Returns the nanoseconds from the recording's start; negative where the time is earlier.
    #[inline]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Returns the duration from the recording's start; zero where the time is earlier.
    pub fn since_start(self) -> Duration {
        self.saturating_duration_since(Self::START)
    }

    /// Returns the duration from another time; zero where that is later.
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.max(earlier).abs_diff(earlier)
    }

    /// Returns the duration between two times, whichever is earlier.
    pub const fn abs_diff(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.abs_diff(other.0))
    }
}

/// A calendar time in UTC, as Windows' `SYSTEMTIME` stores it.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 2 | u16 | year |
/// | 2 | 2 | u16 | month, 1 to 12 |
/// | 4 | 2 | u16 | day of the week, 0 is Sunday |
/// | 6 | 2 | u16 | day of the month, 1 to 31 |
/// | 8 | 2 | u16 | hour |
/// | 10 | 2 | u16 | minute |
/// | 12 | 2 | u16 | second |
/// | 14 | 2 | u16 | millisecond |
///
/// ```
/// let time = nettrace::SystemTime::from_unix_milliseconds(1_700_000_000_123);
/// assert_eq!((time.year, time.month, time.day, time.millisecond), (2023, 11, 14, 123));
/// assert_eq!(time.unix_milliseconds(), Some(1_700_000_000_123));
/// ```
///
/// # Source
/// `NetTraceFormat.md`, Trace block and type code 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the table above has each field")]
#[allow(clippy::exhaustive_structs, reason = "the fields of SYSTEMTIME")]
pub struct SystemTime {
    pub year: u16,
    pub month: u16,
    pub day_of_week: u16,
    pub day: u16,
    pub hour: u16,
    pub minute: u16,
    pub second: u16,
    pub millisecond: u16,
}

impl SystemTime {
    pub(crate) fn from_le_bytes(bytes: [u8; 16]) -> Self {
        let [y0, y1, mo0, mo1, w0, w1, d0, d1, h0, h1, mi0, mi1, s0, s1, ms0, ms1] = bytes;
        Self {
            year: u16::from_le_bytes([y0, y1]),
            month: u16::from_le_bytes([mo0, mo1]),
            day_of_week: u16::from_le_bytes([w0, w1]),
            day: u16::from_le_bytes([d0, d1]),
            hour: u16::from_le_bytes([h0, h1]),
            minute: u16::from_le_bytes([mi0, mi1]),
            second: u16::from_le_bytes([s0, s1]),
            millisecond: u16::from_le_bytes([ms0, ms1]),
        }
    }

    /// The calendar time of a number of milliseconds since 1970-01-01T00:00:00Z; years beyond 65,535 end
    /// there.
    #[allow(clippy::arithmetic_side_effects, reason = "divisors are constants other than 0")]
    pub fn from_unix_milliseconds(milliseconds: u64) -> Self {
        let small = |value: i64| u16::try_from(value).unwrap_or(u16::MAX);
        let part = |divisor: u64, modulus: u64| small((milliseconds / divisor % modulus).cast_signed());
        let days = (milliseconds / 86_400_000).cast_signed();
        let (year, month, day) = date_of_days(days);
        Self {
            year: small(year),
            month: small(month),
            // 1970-01-01 was a Thursday; Sunday is 0.
            day_of_week: small(days.wrapping_add(4) % 7),
            day: small(day),
            hour: part(3_600_000, 24),
            minute: part(60_000, 60),
            second: part(1000, 60),
            millisecond: part(1, 1000),
        }
    }

    /// Returns the milliseconds since 1970-01-01T00:00:00Z; `None` if the fields are not a calendar time.
    pub fn unix_milliseconds(&self) -> Option<i64> {
        let (year, month, day) = (i64::from(self.year), i64::from(self.month), i64::from(self.day));
        let plausible = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
            && self.millisecond < 1000;
        if !plausible {
            return None;
        }
        let seconds = days_since_epoch(year, month, day)
            .checked_mul(86_400)?
            .checked_add(i64::from(self.hour).checked_mul(3600)?)?
            .checked_add(i64::from(self.minute).checked_mul(60)?)?
            .checked_add(i64::from(self.second))?;
        seconds.checked_mul(1000)?.checked_add(i64::from(self.millisecond))
    }
}

/// Returns the year, month and day of a number of days since 1970-01-01: the inverse of [`days_since_epoch`].
#[allow(clippy::arithmetic_side_effects, reason = "a number of days below 2^47: nothing comes near 64 bits")]
fn date_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a Gregorian date. Years are counted from March, so that a leap day
/// ends one.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "year fits 16 bits, month and day are checked: nothing comes near 64 bits"
)]
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(
        year: u16,
        month: u16,
        day: u16,
        hour: u16,
        minute: u16,
        second: u16,
        millisecond: u16,
    ) -> Option<i64> {
        SystemTime { year, month, day_of_week: 0, day, hour, minute, second, millisecond }.unix_milliseconds()
    }

    #[test]
    fn calendar_to_unix() {
        // Expected values from `date -u -d … +%s`.
        assert_eq!(at(1970, 1, 1, 0, 0, 0, 0), Some(0));
        assert_eq!(at(2000, 2, 29, 12, 0, 0, 0), Some(951_825_600_000));
        assert_eq!(at(2026, 11, 21, 9, 2, 11, 123), Some(1_795_251_731_123));
        assert_eq!(at(1601, 1, 1, 0, 0, 0, 0), Some(-11_644_473_600_000));
        assert_eq!(at(2023, 2, 29, 0, 0, 0, 0), None);
        assert_eq!(at(2026, 13, 1, 0, 0, 0, 0), None);
        assert_eq!(at(2026, 1, 1, 24, 0, 0, 0), None);
    }

    #[test]
    fn unix_to_calendar() {
        for milliseconds in [0, 951_825_600_000, 951_782_400_000, 1_795_251_731_123, 4_107_542_399_999] {
            let time = SystemTime::from_unix_milliseconds(milliseconds);
            assert_eq!(time.unix_milliseconds(), Some(milliseconds.cast_signed()), "{time:?}");
        }
        // `date -u -d @1795251731 +%w` is 6, a Saturday.
        assert_eq!(SystemTime::from_unix_milliseconds(1_795_251_731_123).day_of_week, 6);
        assert_eq!(SystemTime::from_unix_milliseconds(u64::MAX).year, u16::MAX);
    }
}
