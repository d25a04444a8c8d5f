//! Values as .NET's configuration reads them from text.

use std::fmt::Write as _;
use std::time::Duration;

/// Parses `true` or `false`, in any case.
pub(crate) fn parse_boolean(text: &str) -> Option<bool> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else {
        text.eq_ignore_ascii_case("false").then_some(false)
    }
}

/// Parses a `TimeSpan`: `[d.]hh:mm[:ss[.fffffff]]`, or a number of days.
///
/// # Source
/// The invariant format of `TimeSpan.Parse` in .NET. Negative ones are not accepted: no setting takes one.
pub(crate) fn parse_time_span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.len() <= 8 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    let mut parts = text.split(':');
    let first = parts.next()?;
    let Some(minutes) = parts.next() else {
        return number(first)?.checked_mul(86_400).map(Duration::from_secs);
    };
    let (seconds, is_end) = (parts.next(), parts.next().is_none());
    let (days, hours) = match first.split_once('.') {
        Some((days, hours)) => (number(days)?, number(hours)?),
        None => (0, number(first)?),
    };
    let (seconds, fraction) = match seconds {
        None => (0, ""),
        Some(seconds) => match seconds.split_once('.') {
            Some((seconds, fraction)) => (number(seconds)?, fraction),
            None => (number(seconds)?, ""),
        },
    };
    let minutes = number(minutes)?;
    let ticks = match fraction {
        "" => 0,
        fraction if fraction.len() <= 7 => number(&format!("{fraction:0<7}"))?,
        _ => return None,
    };
    if !is_end || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let seconds = days.checked_mul(86_400)?.checked_add(hours * 3600 + minutes * 60 + seconds)?;
    Some(Duration::new(seconds, u32::try_from(ticks * 100).ok()?))
}

/// Writes a duration as .NET does: `[d.]hh:mm:ss[.fffffff]`.
///
/// ```
/// use dipc_monitor::configuration::format_time_span;
/// use std::time::Duration;
///
/// assert_eq!(format_time_span(Duration::from_millis(90_500)), "00:01:30.5000000");
/// assert_eq!(format_time_span(Duration::from_secs(90_000)), "1.01:00:00");
/// ```
pub fn format_time_span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let mut text = String::new();
    // Writing into a `String` does not fail.
    if days > 0 {
        let _ = write!(text, "{days}.");
    }
    let _ = write!(text, "{hours:02}:{:02}:{:02}", seconds / 60 % 60, seconds % 60);
    let ticks = duration.subsec_nanos() / 100;
    if ticks > 0 {
        let _ = write!(text, ".{ticks:07}");
    }
    text
}

/// A range of status codes: `500`, or `400-499`.
pub(crate) fn parse_status_codes(text: &str) -> Option<(u16, u16)> {
    let code = |text: &str| {
        let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_code.then(|| text.parse::<u16>().ok()).flatten().filter(|code| (100..600).contains(code))
    };
    let text = text.trim();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (code(first.trim())?, code(last.trim())?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans_match_dotnet() {
        let rows = [
            ("00:01:00", Some(Duration::from_secs(60))),
            ("1:00:00", Some(Duration::from_secs(3600))),
            ("1.02:03:04", Some(Duration::from_secs(93_784))),
            ("00:00:00.5", Some(Duration::from_millis(500))),
            ("00:00:00.0000001", Some(Duration::from_nanos(100))),
            ("00:30", Some(Duration::from_secs(1800))),
            ("30", Some(Duration::from_secs(30 * 86_400))),
            ("24:00:00", None),
            ("00:60:00", None),
            ("-00:00:01", None),
            ("00:00:00.00000001", None),
            ("1:2:3:4", None),
            ("30s", None),
            ("", None),
            (":", None),
            ("99999999.23:59:59", Some(Duration::from_secs(99_999_999 * 86_400 + 86_399))),
            ("999999999.00:00:00", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_time_span(text), expected, "{text}");
        }
        for text in ["00:01:00", "1.02:03:04", "00:00:00.5000000"] {
            assert_eq!(format_time_span(parse_time_span(text).unwrap()), text);
        }
    }

    #[test]
    fn status_codes_are_numbers_or_ranges() {
        let rows = [
            ("500", Some((500, 500))),
            ("400-499", Some((400, 499))),
            (" 400 - 404 ", Some((400, 404))),
            ("499-400", None),
            ("99", None),
            ("600", None),
            ("+40", None),
            ("4xx", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_status_codes(text), expected, "{text}");
        }
    }
}
