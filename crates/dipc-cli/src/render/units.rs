//! Formatting of numbers for people.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) use nettrace_export::units::{
    bytes, count, counted, nanoseconds, percent, share, short_percent, time,
};

/// Formats a number with separated thousands and at most three decimals, fewer for large numbers; tiny and
/// huge ones with an exponent.
pub(crate) fn number(number: f64) -> String {
    let size = number.abs();
    if !number.is_finite() {
        return number.to_string();
    }
    if (size != 0.0 && size < 0.000_5) || size >= 1e15 {
        return format!("{number:.3e}");
    }
    let digits = match size {
        1000.0.. => 1,
        100.0.. => 2,
        _ => 3,
    };
    let text = format!("{number:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    format!("{sign}{}{rest}", digits.parse().map_or_else(|_| digits.to_owned(), count))
}

/// Formats a number with its unit: `62.5 MB`, `4.20 ms`, `12.6 %`, `80 order/s`. Seconds per second are a
/// share of time.
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    let (of, per_second) = match unit.strip_suffix("/s") {
        Some(of) => (of, "/s"),
        None => (unit, ""),
    };
    match of {
        "s" if !per_second.is_empty() => format!("{} %", number(value * 100.0)),
        "B" | "By" => scaled_by(value, 1.0, bytes, per_second),
        "MB" => scaled_by(value, 1e6, bytes, per_second),
        "s" => scaled_by(value, 1e9, |nanoseconds| time(Duration::from_nanos(nanoseconds)), per_second),
        "ms" => scaled_by(value, 1e6, |nanoseconds| time(Duration::from_nanos(nanoseconds)), per_second),
        "" => format!("{}{}{per_second}", number(value), if per_second.is_empty() { "" } else { " " }),
        // The counted thing is in braces.
        of => format!("{} {}{per_second}", number(value), of.trim_matches(['{', '}'])),
    }
}

/// Formats a value with `write`, which takes a whole number of units of `1 / scale`; if that is too large or
/// NaN, as a plain number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
fn scaled_by(value: f64, scale: f64, write: impl Fn(u64) -> String, per_second: &str) -> String {
    let size = (value * scale).abs().round();
    if size.is_nan() || size >= 1e18 {
        return number(value) + per_second;
    }
    let sign = if value < 0.0 && size > 0.0 { "-" } else { "" };
    format!("{sign}{}{per_second}", write(size as u64))
}

/// Formats a time since the beginning of a recording: `61.250 s`. Such times in a column compare digit by
/// digit, which times with [three digits](time) do not.
pub(crate) fn moment(since_start: Duration) -> String {
    format!("{:.3} s", since_start.as_secs_f64())
}

/// Formats a number that may have shrunk, with its sign.
pub(crate) fn signed(number: i128, show: impl Fn(u64) -> String) -> String {
    let size = show(u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX));
    match number {
        0 => size,
        1.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

/// The local time of day: `09:18:46`.
pub(crate) fn time_of_day(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// Returns the name of a signal that ends programs, given its number on Linux.
pub(crate) const fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, -1.5, 0.0126, 1234.5678, 1e6, -0.0001, 2.5e17, f64::NAN].map(number),
            ["0", "-1.5", "0.013", "1,234.6", "1,000,000", "-1.000e-4", "2.500e17", "NaN"]
        );
        let quantities = [
            (62.500_864, "MB", "62.5 MB"),
            (10_591_984.0, "By/s", "10.6 MB/s"),
            (-512.0, "B", "-512 B"),
            (0.0042, "s", "4.20 ms"),
            (0.001_25, "s/s", "0.125 %"),
            (24.5, "ms", "24.5 ms"),
            (12.6, "%", "12.6 %"),
            (80.0, "{order}/s", "80 order/s"),
            (3.0, "/s", "3 /s"),
            (1234.0, "", "1,234"),
            (21.5, "C", "21.5 C"),
            (f64::NAN, "By", "NaN"),
        ];
        for (value, unit, text) in quantities {
            assert_eq!(quantity(value, unit), text);
        }
    }
}
