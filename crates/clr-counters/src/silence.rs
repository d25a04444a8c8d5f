//! Silence of a session's counters.

use std::fmt;
use std::time::{Duration, Instant};

use nettrace::Event;

use crate::meter::METRICS_PROVIDER;

/// The ways in which a process reports counters. Each may fall silent on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CounterSource {
    /// Counters of EventSources.
    EventCounters,
    /// Instruments of Meters.
    Meters,
}

impl fmt::Display for CounterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EventCounters => "EventCounters",
            Self::Meters => "Meters",
        })
    }
}

/// Watches whether the counters of a session that lives still report. A runtime stops them without a word
/// when it miscounts their clients, or when a listener of older runtimes leaves.
///
/// A source counts as silent after three intervals without any report of it, if it has reported before.
/// Sources without instruments report the interval alone, so a silent source is not one without values.
///
/// ```no_run
/// use std::time::{Duration, Instant};
/// use clr_counters::SilenceWatch;
///
/// let mut watch = SilenceWatch::new(Duration::from_secs(1));
/// let mut events = nettrace::Reader::new(std::io::stdin().lock())?;
/// while let Some(event) = events.next()? {
///     watch.add(&event);
///     for (source, silent_for) in watch.check(Instant::now()) {
///         eprintln!("no {source} for {silent_for:?}");
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SilenceWatch {
    limit: Duration,
    event_counters: SourceState,
    meters: SourceState,
}

/// The reports of a source.
#[derive(Debug, Default)]
struct SourceState {
    has_reported: bool,
    /// The time of the last values, or of the last warning about the silence.
    last: Option<Instant>,
    /// The number of warnings about the silence since the last values.
    told: u32,
}

impl SilenceWatch {
    /// Minimum silence to report: a process on a busy machine may be late.
    const MIN_LIMIT: Duration = Duration::from_secs(3);
    /// Maximum time between two reports of the same silence.
    const MAX_WAIT: Duration = Duration::from_secs(60);

    /// Creates the watch of a session with values at this interval.
    pub fn new(interval: Duration) -> Self {
        let limit = interval.saturating_mul(3).max(Self::MIN_LIMIT);
        Self { limit, event_counters: SourceState::default(), meters: SourceState::default() }
    }

    /// Takes an event of the session.
    pub fn add(&mut self, event: &Event<'_>) {
        if event.provider() == METRICS_PROVIDER {
            // Faults, limits and refusals are not reports: see the ids in `meter`.
            self.meters.has_reported |= matches!(event.id(), 2..=8 | 16 | 19);
        } else if event.name() == "EventCounters" {
            self.event_counters.has_reported = true;
        }
    }

    /// Returns the sources that have just fallen silent, each with the time since its last report. A source
    /// that stays silent is returned again, after longer and longer times.
    pub fn check(&mut self, now: Instant) -> Vec<(CounterSource, Duration)> {
        let limit = self.limit;
        let sources = [
            (CounterSource::EventCounters, &mut self.event_counters),
            (CounterSource::Meters, &mut self.meters),
        ];
        let silent =
            sources.into_iter().filter_map(|(source, state)| Some((source, state.check(now, limit)?)));
        silent.collect()
    }
}

impl SourceState {
    fn check(&mut self, now: Instant, limit: Duration) -> Option<Duration> {
        if std::mem::take(&mut self.has_reported) {
            (self.last, self.told) = (Some(now), 0);
            return None;
        }
        let silence = now.saturating_duration_since(self.last?);
        let factor = 2_u32.saturating_pow(self.told);
        if silence < limit.saturating_mul(factor).min(SilenceWatch::MAX_WAIT.max(limit)) {
            return None;
        }
        (self.last, self.told) = (Some(now), self.told.saturating_add(1));
        Some(silence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_silent_after_three_intervals() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watch = SilenceWatch::new(Duration::from_secs(2));
        // Without a report there is nothing to miss.
        assert_eq!(watch.check(at(100)), []);
        watch.meters.has_reported = true;
        assert_eq!(watch.check(at(100)), []);
        assert_eq!(watch.check(at(105)), []);
        assert_eq!(watch.check(at(106)), [(CounterSource::Meters, Duration::from_secs(6))]);
        // Again after twice the time.
        assert_eq!(watch.check(at(117)), []);
        assert_eq!(watch.check(at(118)).len(), 1);
        // And from the start after a report.
        watch.meters.has_reported = true;
        assert_eq!(watch.check(at(120)), []);
        assert_eq!(watch.check(at(126)).len(), 1);
        // Never more than a minute apart.
        let told = (127..1000).filter(|seconds| !watch.check(at(*seconds)).is_empty()).count();
        assert_eq!(told, 16);
    }
}
