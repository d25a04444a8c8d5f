//! Durations as users write them: `1m30s`, `500ms`, and .NET's `dd:hh:mm:ss`.

use std::time::Duration;

/// The units, longest name first so that `ms` is not read as `m`.
const UNITS: [(&str, u64); 8] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

/// Parses a duration.
///
/// * Numbers with units, one after the other: `30s`, `1m30s`, `1.5s`, `500ms`. The units are `d`, `h`, `m`,
///   `s`, `ms`, `us` or `µs`, and `ns`.
/// * .NET's forms with colons: `hh:mm`, `hh:mm:ss`, `dd:hh:mm:ss` and `d.hh:mm:ss`, where seconds may have a
///   fraction.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(clr_conditions::parse_duration("1m30s"), Ok(Duration::from_secs(90)));
/// assert!(clr_conditions::parse_duration("30").is_err());
/// ```
///
/// # Errors
/// With the reason and the accepted forms. A number without a unit is refused: .NET would read it as days.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let nanoseconds = if text.contains(':') { colons(text) } else { units(text) };
    let nanoseconds =
        nanoseconds.map_err(|why| format!("{why}; write it as 30s, 1m30s, 500ms or dd:hh:mm:ss"))?;
    Ok(Duration::from_nanos(nanoseconds))
}

fn units(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Err("a time is missing".to_owned());
    }
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if number.is_empty() {
            return Err(format!("a number is expected before '{after}'"));
        }
        let known = UNITS.iter().find_map(|(unit, size)| Some((unit, size, after.strip_prefix(unit)?)));
        let Some((unit, size, next)) = known else {
            return Err(if after.is_empty() {
                format!("'{number}' has no unit")
            } else {
                format!("'{after}' does not begin with a unit of time")
            });
        };
        let part = scaled(number, *size).ok_or_else(|| format!("'{number}{unit}' is not a time"))?;
        total = total.checked_add(part).ok_or("the time is longer than 584 years")?;
        rest = next;
    }
    Ok(total)
}

/// `number`, which may have a fraction, times `size`, rounded down to whole nanoseconds.
fn scaled(number: &str, size: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.len() > 12 {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(size)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let divisor = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse::<u128>().ok()?.checked_mul(size.into())?.checked_div(divisor)?;
    whole.checked_add(u64::try_from(part).ok()?)
}

fn colons(text: &str) -> Result<u64, String> {
    const SECOND: u64 = 1_000_000_000;
    let malformed = || format!("'{text}' is not of the form dd:hh:mm:ss");
    let parts: Vec<&str> = text.split(':').collect();
    let split_days = |first: &'_ str| match first.split_once('.') {
        Some((days, hours)) => (days.to_owned(), hours.to_owned()),
        None => ("0".to_owned(), first.to_owned()),
    };
    let (days, hours, minutes, seconds) = match parts[..] {
        [days, hours, minutes, seconds] => (days.to_owned(), hours.to_owned(), minutes, seconds),
        [first, minutes, seconds] => {
            let (days, hours) = split_days(first);
            (days, hours, minutes, seconds)
        }
        [first, minutes] => {
            let (days, hours) = split_days(first);
            (days, hours, minutes, "0")
        }
        _ => return Err(malformed()),
    };
    let mut total = 0_u64;
    for (number, size, limit, name) in [
        (&*days, 86_400, u64::MAX, "days"),
        (&*hours, 3_600, 24, "hours"),
        (minutes, 60, 60, "minutes"),
        (seconds, 1, 60, "seconds"),
    ] {
        let part = scaled(number, SECOND).ok_or_else(malformed)?;
        if name != "seconds" && number.contains('.') {
            return Err(malformed());
        }
        if part / SECOND >= limit {
            return Err(format!("'{text}' has {number} {name}, but less than {limit} fit that place"));
        }
        total = part.checked_mul(size).and_then(|part| total.checked_add(part)).ok_or_else(malformed)?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_users_write() {
        for (text, milliseconds) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1.5s", 1_500),
            ("0s", 0),
            ("1d2h", 93_600_000),
            ("00:00:00:30", 30_000),
            ("00:00:30", 30_000),
            ("00:01:30", 90_000),
            ("1:30", 5_400_000),
            ("01:02:03:04", 93_784_000),
            ("1.02:03:04", 93_784_000),
            ("00:00:00.250", 250),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(parse_duration("3us"), Ok(Duration::from_micros(3)));
        assert_eq!(parse_duration("374278ns"), Ok(Duration::from_nanos(374_278)));
        assert_eq!(parse_duration("0.000000001s"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn rejects_invalid_times_and_lists_the_valid_forms() {
        for text in [
            "",
            "30",
            "s",
            "xx",
            "-5s",
            "1.s",
            ".5s",
            "1..2s",
            "30x",
            "1:2:3:4:5",
            "00:60:00",
            "24:00:00",
            "00:00:60",
            "1:",
            ":",
            "1.5:00:00:00",
            "a:b:c",
            "99999999999d",
            "00:1.5:00",
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains("1m30s"), "{text}: {error}");
        }
    }
}
