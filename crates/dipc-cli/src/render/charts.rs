//! Charts made of characters: sparklines and histograms.

use std::fmt::Write as _;

use nettrace_export::report::{Bucket, Distribution, Timeline};

use crate::render::{units, width};

const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The widths of charts: without a terminal, the least, and the greatest.
const WIDTH: (usize, usize, usize) = (80, 40, 120);
/// The width of the columns before a bar.
const BEFORE_BAR: usize = 26;

fn width() -> usize {
    let (usual, least, most) = WIDTH;
    width::of_output().unwrap_or(usual).clamp(least, most)
}

/// Returns a line of small columns that shows amounts over time.
fn sparkline(timeline: &Timeline, width: usize) -> String {
    let each = timeline.sums.len().div_ceil(width).max(1);
    let sums: Vec<u64> =
        timeline.sums.chunks(each).map(|sums| sums.iter().copied().fold(0, u64::saturating_add)).collect();
    let most = sums.iter().copied().max().unwrap_or(0);
    sums.iter()
        .map(|sum| {
            // Any nonzero amount is visible.
            let level = if most == 0 { 0 } else { (u128::from(*sum) * 8).div_ceil(u128::from(most)) };
            LEVELS[usize::try_from(level).unwrap_or(8).min(8)]
        })
        .collect()
}

/// A sparkline with its scale below it.
pub(crate) fn over_time(title: &str, timeline: &Timeline) -> String {
    let length = timeline.slot.saturating_mul(u32::try_from(timeline.sums.len()).unwrap_or(u32::MAX));
    let line = sparkline(timeline, width() - 4);
    let end = units::time(length);
    let width = line.chars().count();
    format!(
        "\n{title}\n  {line}\n  0 s{end:>width$}\n",
        width = width.saturating_sub(3).max(end.chars().count() + 1)
    )
}

/// Returns bars that show the number of durations by length.
pub(crate) fn histogram(title: &str, distribution: &Distribution) -> String {
    bars(title, distribution, width() - BEFORE_BAR - 1)
}

fn bars(title: &str, distribution: &Distribution, width: usize) -> String {
    let most = distribution.histogram.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let mut text = format!("\n{title}\n");
    for Bucket { below, count, .. } in &distribution.histogram {
        let eighths = u128::from(*count) * 8 * width as u128;
        let eighths = usize::try_from(eighths.div_ceil(u128::from(most))).unwrap_or(0);
        let mut bar = "█".repeat(eighths / 8);
        if eighths % 8 > 0 {
            bar.push(LEVELS_ACROSS[eighths % 8]);
        }
        let below = units::time(*below);
        let _ = writeln!(text, "  < {below:>9}  {count:>9}  {bar}");
    }
    text
}

const LEVELS_ACROSS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Returns a line that summarizes durations.
pub(crate) fn summary(distribution: &Distribution) -> String {
    let Distribution { count, total, median, p90, p99, max, .. } = distribution;
    let [total, median, p90, p99, max] = [total, median, p90, p99, max].map(|time| units::time(*time));
    let count = units::count(*count);
    format!("{count}, {total} in all; median {median}, 90% {p90}, 99% {p99}, longest {max}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nettrace::RelativeTime;

    use super::*;

    #[test]
    fn small_values_are_visible() {
        let mut timeline = Timeline::default();
        for (slot, sum) in [(1, 1), (2, 500), (3, 1000)] {
            timeline.add(RelativeTime::from_nanos(slot * 1_000_000), sum);
        }
        assert_eq!(sparkline(&timeline, 60), " ▁▄█");
        assert_eq!(sparkline(&Timeline::default(), 60), "");
    }

    #[test]
    fn bars_are_as_long_as_there_are_many() {
        let durations = std::iter::once(1000).chain([2000; 120]);
        let text = bars("Pauses", &Distribution::of(durations.map(Duration::from_nanos).collect()), 60);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[2], "  <   1.02 µs          1  ▌");
        assert!(lines[3].ends_with(&"█".repeat(60)));
    }
}
