//! The line that shows a recording while it runs, on a terminal only.

use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr as _;

use crate::render::messages;
use crate::render::width;

/// Minimum time between two updates of the line.
const INTERVAL: Duration = Duration::from_millis(200);

/// The width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 80;

/// Moves the cursor to the beginning of the line, and clears it.
const ERASE: &str = "\r\x1b[2K";

/// The line. If standard error is not a terminal, nothing is shown.
pub(crate) struct LiveLine {
    /// True if standard error is a terminal that can overwrite a line.
    is_visible: bool,
    /// The requested length of the recording.
    duration: Option<Duration>,
    last: Update,
    shown: bool,
}

/// The last update of the line.
struct Update {
    time: Instant,
    /// The number of events until then.
    events: u64,
}

impl LiveLine {
    pub(crate) fn new(duration: Option<Duration>) -> Self {
        let is_visible = !messages::is_quiet() && messages::can_overwrite();
        Self { is_visible, duration, last: Update { time: Instant::now(), events: 0 }, shown: false }
    }

    /// Updates the line, unless the last update was less than [`INTERVAL`] ago.
    pub(crate) fn show(&mut self, elapsed: Duration, bytes: u64, events: u64, lost: u64, stopping: bool) {
        let since = self.last.time.elapsed();
        if !self.is_visible || (self.shown && since < INTERVAL) {
            return;
        }
        let rate = u128::from(events.saturating_sub(self.last.events)) * 1000 / since.as_millis().max(1);
        let left = self.duration.filter(|_| !stopping).map(|duration| left(duration.saturating_sub(elapsed)));
        let mut text = format!(
            "[{}]  {}{}  {events} events  {rate}/s  {lost} lost",
            clock(elapsed),
            left.unwrap_or_default(),
            binary_bytes(bytes),
        );
        let hint = if stopping { "  (stopping, Ctrl-C to wait no longer)" } else { "  (Ctrl-C to stop)" };
        let width = width::of_errors();
        // A narrow terminal shows only the numbers.
        if width.is_none_or(|width| text.chars().count() + hint.len() < width) {
            text += hint;
        }
        let line = filled(&text, width.unwrap_or(DEFAULT_WIDTH));
        let erase = if self.shown { ERASE } else { "" };
        messages::control_terminal(&format!("{erase}{line}"));
        self.last = Update { time: Instant::now(), events };
        self.shown = true;
    }

    /// Removes the line.
    pub(crate) fn end(self) {
        drop(self);
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if self.shown {
            messages::control_terminal(ERASE);
        }
    }
}

/// Returns the text, cut or filled with spaces to the whole width: a message that follows begins on the next
/// line.
fn filled(text: &str, width: usize) -> String {
    let text = width::prefix(text, width);
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Formats a number of bytes with a binary unit: `1.43 MiB`.
#[allow(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn binary_bytes(bytes: u64) -> String {
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{amount:.2} {unit}") }
}

/// `dd:hh:mm:ss`, as dotnet-trace shows it.
fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{:02}:{:02}:{:02}:{:02}", seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// `1:05 left  `, with hours if there are any. A started second counts in full.
fn left(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02} left  "),
        _ => format!("{hours}:{minutes:02}:{seconds:02} left  "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_counts_days() {
        assert_eq!(clock(Duration::from_secs(93_784)), "01:02:03:04");
    }

    #[test]
    fn sizes_have_binary_units() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1_500_000, "1.43 MiB"),
            (1_500_000_000, "1.40 GiB"),
            (u64::MAX, "16.00 EiB"),
        ] {
            assert_eq!(binary_bytes(bytes), shown);
        }
    }

    #[test]
    fn lines_have_the_width_of_the_terminal() {
        assert_eq!(filled("[00:01]  µ", 12), "[00:01]  µ  ");
        assert_eq!(filled("[00:01]  µ", 10), "[00:01]  µ");
        assert_eq!(filled("[00:01]  µ", 4), "[00:");
        assert_eq!(filled("", 0), "");
    }

    #[test]
    fn the_time_that_is_left_ends_with_nothing() {
        for (milliseconds, shown) in
            [(0, "0:00"), (1, "0:01"), (65_000, "1:05"), (65_001, "1:06"), (90_061_000, "25:01:01")]
        {
            assert_eq!(left(Duration::from_millis(milliseconds)), format!("{shown} left  "));
        }
    }
}
