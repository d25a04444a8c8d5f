//! Points in time as users write them: relative to the start of a recording (`1m30s`), or calendar times
//! (`2026-11-21T09:02:44Z`).

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::duration;

/// A point in the time of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimePoint {
    /// A time since the recording's start.
    SinceStart(Duration),
    /// A calendar time.
    At(Timestamp),
}

/// Parses a point in time: a duration that [`duration::parse`] accepts, or an RFC 3339 time.
///
/// A calendar time without a zone is rejected: a recording may be read on another machine than it was made
/// on.
pub(crate) fn parse(text: &str) -> Result<TimePoint, String> {
    const EXAMPLE: &str = "2026-11-21T09:02:44Z";
    let text = text.trim();
    if !begins_with_year(text) {
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
