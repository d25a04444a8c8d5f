//! The line that shows a recording while it runs, on a terminal only.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::render::messages;
use crate::render::width;

/// The least time between two updates of the line.
const INTERVAL: Duration = Duration::from_millis(200);

/// The line. If standard error is not a terminal, nothing is shown.
pub(crate) struct LiveLine {
    bar: ProgressBar,
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
        let target =
            if messages::is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target).with_style(
            ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { bar, duration, last: Update { time: Instant::now(), events: 0 }, shown: false }
    }

    /// Updates the line, unless the last update was less than [`INTERVAL`] ago.
    pub(crate) fn show(&mut self, elapsed: Duration, bytes: u64, events: u64, lost: u64, stopping: bool) {
        let since = self.last.time.elapsed();
        if self.bar.is_hidden() || (self.shown && since < INTERVAL) {
            return;
        }
        let rate = u128::from(events.saturating_sub(self.last.events)) * 1000 / since.as_millis().max(1);
        let left = self.duration.filter(|_| !stopping).map(|duration| left(duration.saturating_sub(elapsed)));
        let mut text = format!(
            "[{}]  {}{}  {events} events  {rate}/s  {lost} lost",
            clock(elapsed),
            left.unwrap_or_default(),
            indicatif::HumanBytes(bytes),
        );
        let hint = if stopping { "  (stopping, Ctrl-C to wait no longer)" } else { "  (Ctrl-C to stop)" };
        // A narrow terminal shows only the numbers.
        if width::of_errors().is_none_or(|width| text.chars().count() + hint.len() < width) {
            text += hint;
        }
        self.bar.set_message(text);
        self.bar.tick();
        self.last = Update { time: Instant::now(), events };
        self.shown = true;
    }

    /// Removes the line.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
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
    fn the_time_that_is_left_ends_with_nothing() {
        for (milliseconds, shown) in
            [(0, "0:00"), (1, "0:01"), (65_000, "1:05"), (65_001, "1:06"), (90_061_000, "25:01:01")]
        {
            assert_eq!(left(Duration::from_millis(milliseconds)), format!("{shown} left  "));
        }
    }
}
