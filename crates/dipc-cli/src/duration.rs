//! Durations on the command line and in output for people.

use std::time::Duration;

/// The one grammar of times, which conditions have, too.
pub(crate) use clr_conditions::parse_duration as parse;

/// Parses the seconds between two values of a live session.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| format!("'{text}' is not a number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(interval) if interval >= Duration::from_millis(100) => Ok(interval),
        _ => Err(format!("{text} s: the shortest interval that runtimes keep is 0.1 s")),
    }
}

/// Formats a duration for people: `350 ms`, `12.3 s`, `2 min 05 s`, `1 h 02 min`.
pub(crate) fn display(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds == 0 {
        format!("{} ms", duration.as_millis())
    } else if seconds < 60 {
        format!("{}.{} s", seconds, duration.subsec_millis() / 100)
    } else if seconds < 3600 {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    } else {
        format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_for_people() {
        for (milliseconds, shown) in
            [(350, "350 ms"), (12_345, "12.3 s"), (125_000, "2 min 05 s"), (3_725_000, "1 h 02 min")]
        {
            assert_eq!(display(Duration::from_millis(milliseconds)), shown);
        }
    }
}
