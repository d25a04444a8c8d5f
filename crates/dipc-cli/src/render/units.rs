//! Numbers for people.

/// Nanoseconds in the unit that suits them, with three digits.
pub(crate) fn time(nanoseconds: u64) -> String {
    scaled(nanoseconds, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs"), (1, "ns")])
}

/// Bytes in the unit that suits them, with three digits: 1 MB is 1,000,000 bytes.
pub(crate) fn bytes(bytes: u64) -> String {
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

/// A whole number with its thousands apart.
pub(crate) fn count(number: u64) -> String {
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

/// A share.
pub(crate) fn percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0, 999, 1000, 1_234_567, 99_960_000, 12_345_678_901].map(time),
            ["0 ns", "999 ns", "1.00 µs", "1.23 ms", "100 ms", "12.3 s"]
        );
        assert_eq!([0, 999, 1536, 5_000_000_000].map(bytes), ["0 B", "999 B", "1.54 KB", "5.00 GB"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
