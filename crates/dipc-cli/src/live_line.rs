//! The line that shows a recording while it runs, on a terminal only.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report;

/// Often enough to look alive.
const INTERVAL: Duration = Duration::from_millis(200);

/// The line. Where standard error is no terminal nothing is shown.
pub(crate) struct LiveLine {
    bar: ProgressBar,
    /// When the line was last written, and the events until then.
    last: (Instant, u64),
    shown: bool,
}

impl LiveLine {
    pub(crate) fn new() -> Self {
        let target =
            if report::is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target).with_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { bar, last: (Instant::now(), 0), shown: false }
    }

    /// Writes the line anew, unless that was done a moment ago.
    pub(crate) fn show(&mut self, elapsed: Duration, bytes: u64, events: u64, lost: u64, stopping: bool) {
        let (then, before) = self.last;
        let since = then.elapsed();
        if self.bar.is_hidden() || (self.shown && since < INTERVAL) {
            return;
        }
        let rate = u128::from(events.saturating_sub(before)) * 1000 / since.as_millis().max(1);
        let hint = if stopping { "stopping, Ctrl-C to wait no longer" } else { "Ctrl-C to stop" };
        self.bar.set_message(format!(
            "[{}]  {}  {events} events  {rate}/s  {lost} lost  ({hint})",
            clock(elapsed),
            indicatif::HumanBytes(bytes),
        ));
        self.bar.tick();
        self.last = (Instant::now(), events);
        self.shown = true;
    }

    /// Takes the line away.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// `dd:hh:mm:ss`, as dotnet-trace shows it.
fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{:02}:{:02}:{:02}:{:02}", seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_counts_days() {
        assert_eq!(clock(Duration::from_secs(93_784)), "01:02:03:04");
    }
}
