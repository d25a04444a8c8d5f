//! Points in time as users write them: relative to the start of a recording (`1m30s`), calendar times
//! (`2026-11-21T09:02:44Z`), or times of day (`09:02Z`).

use std::time::Duration;

use jiff::civil::{DateTime, Time};
use jiff::{SignedDuration, Timestamp};

use crate::duration;

/// A point in the time of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimePoint {
    /// A time since the recording's start.
    SinceStart(Duration),
    /// A calendar time.
    At(Timestamp),
    /// A time of day, on the day of the recording.
    TimeOfDay(TimeOfDay),
}

/// A time of day, by its distance from midnight in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeOfDay(SignedDuration);

impl TimeOfDay {
    /// Returns the last instant with this time of day that is not after `limit`.
    pub(crate) fn last_until(self, limit: Timestamp) -> Timestamp {
        const DAY: i64 = 24 * 60 * 60;
        let seconds = (limit.as_duration() - self.0).as_secs();
        let midnight = Timestamp::from_second(seconds.div_euclid(DAY) * DAY).unwrap_or(Timestamp::MIN);
        midnight.checked_add(self.0).unwrap_or(limit)
    }

    /// Returns the instant with this time of day that is nearest to `time`.
    pub(crate) fn nearest(self, time: Timestamp) -> Timestamp {
        self.last_until(time.checked_add(SignedDuration::from_hours(12)).unwrap_or(time))
    }
}

/// Parses a point in time: a duration that [`duration::parse`] accepts, an RFC 3339 time, or its part after
/// the date.
///
/// A time without a zone is rejected: a recording may be read on another machine than it was made on.
pub(crate) fn parse(text: &str) -> Result<TimePoint, String> {
    const EXAMPLE: &str = "2026-11-21T09:02:44Z";
    let text = text.trim();
    if !begins_with_year(text) {
        if let Some(time) = time_of_day(text) {
            return time;
        }
        return match duration::parse(text) {
            Ok(duration) => Ok(TimePoint::SinceStart(duration)),
            Err(why) => Err(format!("{why}, or with a date as {EXAMPLE}")),
        };
    }
    text.parse().map(TimePoint::At).map_err(|_| {
        if text.parse::<DateTime>().is_ok() {
            format!(
                "a date and time without a zone; write it as {EXAMPLE} in UTC, or with an offset as +01:00"
            )
        } else {
            format!("this is not a date and time; write it as {EXAMPLE}")
        }
    })
}

/// Parses a time of day, which has a zone or no seconds; `None` for other texts, such as durations.
fn time_of_day(text: &str) -> Option<Result<TimePoint, String>> {
    let end = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at_checked(end)?;
    let colons = time.bytes().filter(|byte| *byte == b':').count();
    if zone.is_empty() && colons != 1 || colons == 0 {
        return None;
    }
    let has_time = time.parse::<Time>().is_ok();
    // Of any day: the zone is that of the instant.
    let at = format!("1970-01-01T{text}").parse::<Timestamp>();
    Some(match at {
        Ok(at) if has_time => Ok(TimePoint::TimeOfDay(TimeOfDay(at.as_duration()))),
        _ if has_time && zone.is_empty() => Err(format!(
            "a time of day without a zone; write it as {time}Z in UTC, or with an offset as {time}+01:00"
        )),
        _ => Err("this is not a time of day; write it as 09:02Z".to_owned()),
    })
}

/// Returns true if the text begins like a date, which no duration does.
fn begins_with_year(text: &str) -> bool {
    let (year, rest) = text.split_at_checked(4).unwrap_or_default();
    year.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_from_the_start_and_of_the_calendar() {
        assert_eq!(parse("1m30s"), Ok(TimePoint::SinceStart(Duration::from_secs(90))));
        assert_eq!(parse("00:00:02"), Ok(TimePoint::SinceStart(Duration::from_secs(2))));
        let at = |text: &str| parse(text).unwrap();
        let expected = TimePoint::At(Timestamp::from_millisecond(1_795_251_764_250).unwrap());
        for text in ["2026-11-21T09:02:44.25Z", "2026-11-21 09:02:44.25z", "2026-11-21T10:02:44.250+01:00"] {
            assert_eq!(at(text), expected, "{text}");
        }
    }

    #[test]
    fn times_of_day_have_a_zone() {
        let time = |text: &str| match parse(text).unwrap() {
            TimePoint::TimeOfDay(time) => time,
            other => panic!("{text}: {other:?}"),
        };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(time("09:02Z").last_until(at("2026-11-21T09:02:00Z")), at("2026-11-21T09:02:00Z"));
        assert_eq!(time("09:02:01Z").last_until(at("2026-11-21T09:02:00Z")), at("2026-11-20T09:02:01Z"));
        assert_eq!(time("00:30+01:00").last_until(at("2026-11-21T00:00:00Z")), at("2026-11-20T23:30:00Z"));
        assert_eq!(time("23:30-01:00").last_until(at("2026-11-21T00:00:00Z")), at("2026-11-20T00:30:00Z"));
        assert_eq!(time("23:50Z").nearest(at("2026-11-21T00:10:00Z")), at("2026-11-20T23:50:00Z"));
        assert_eq!(time("09:02Z").nearest(at("2026-11-21T09:02:44Z")), at("2026-11-21T09:02:00Z"));
        let error = |text: &str| parse(text).unwrap_err();
        assert!(error("09:02").contains("without a zone; write it as 09:02Z"), "{}", error("09:02"));
        for text in ["25:00Z", "09:02:44X", "09:02+", "9Z"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rejects_invalid_times_and_lists_the_valid_forms() {
        for (text, part) in [
            ("2026-11-21T09:02:44", "without a zone"),
            ("2026-11-21", "without a zone"),
            ("2026-13-21T09:02:44Z", "not a date"),
            ("2026-11-21T25:02:44Z", "not a date"),
            ("2026-", "not a date"),
            ("30", "no unit"),
            ("", "missing"),
            ("ü2026", "expected"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part) && error.contains("2026-11-21T09:02:44Z"), "{text}: {error}");
        }
    }
}
