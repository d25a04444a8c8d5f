//! Numbers as people read them.

use std::time::Duration;

/// Formats a duration in a suitable unit, with three digits. Saturates after 584 years.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(nettrace_export::units::time(Duration::from_micros(1_234)), "1.23 ms");
/// ```
pub fn time(duration: Duration) -> String {
    scaled(nanoseconds(duration), &[(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs"), (1, "ns")])
}

/// The nanoseconds of a duration. Saturates after 584 years.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Formats bytes in a suitable unit, with three digits: 1 MB is 1,000,000 bytes.
///
/// ```
/// use nettrace_export::units;
///
/// assert_eq!((units::bytes(1_530_000), units::count(1_530_000)), ("1.53 MB".into(), "1,530,000".into()));
/// ```
pub fn bytes(bytes: u64) -> String {
    scaled(
        bytes,
        &[(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "KB"), (1, "B")],
    )
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn scaled(number: u64, units: &[(u64, &str)]) -> String {
    let Some((size, unit)) = units.iter().find(|(size, _)| number >= *size).or(units.last()) else {
        return number.to_string();
    };
    if *size == 1 {
        return format!("{number} {unit}");
    }
    let value = number as f64 / *size as f64;
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

/// Formats an integer with separated thousands.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the share of a part in percent; 0 of nothing.
#[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Formats a number with its noun: `1 wait`, `2,000 waits`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Formats a percentage with two decimals.
pub fn percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

/// The same without trailing zeros.
pub fn short_percent(share: f64) -> String {
    let text = percent(share);
    let digits = text.trim_end_matches('%').trim_end_matches('0').trim_end_matches('.');
    format!("{digits}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0, 999, 1000, 1_234_567, 99_960_000, 12_345_678_901].map(Duration::from_nanos).map(time),
            ["0 ns", "999 ns", "1.00 µs", "1.23 ms", "100 ms", "12.3 s"]
        );
        assert_eq!([0, 999, 1536, 5_000_000_000].map(bytes), ["0 B", "999 B", "1.54 KB", "5.00 GB"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 10.0, 33.333, 99.999].map(percent), ["0.00%", "10.00%", "33.33%", "100.00%"]);
        assert_eq!(
            [0.0, 10.0, 39.9, 33.333, 99.999].map(short_percent),
            ["0%", "10%", "39.9%", "33.33%", "100%"]
        );
        assert_eq!([share(0, 0), share(1, 4), share(3, 3)].map(percent), ["0.00%", "25.00%", "100.00%"]);
    }
}
