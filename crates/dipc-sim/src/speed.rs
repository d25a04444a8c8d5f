//! How fast a recording is replayed.

use std::time::Duration;

/// How fast a recording is sent before the session is stopped; after that, what is left follows at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Speed {
    /// As fast as the client reads.
    #[default]
    Max,
    /// As its own times say, so many times as fast: `Recorded(1.0)` is as it happened.
    Recorded(f64),
    /// Spread evenly over this time; of a recording that is played over and over, each round.
    Over(Duration),
    /// So many bytes a second.
    BytesPerSecond(u64),
}

impl Speed {
    /// How many of the recording's `len` bytes have been sent once `elapsed` has passed, where its own times do not tell.
    pub(crate) fn due(self, len: usize, elapsed: Duration) -> usize {
        let (per, time) = match self {
            Self::Max | Self::Recorded(_) => return len,
            Self::Over(time) => (u64::try_from(len).unwrap_or(u64::MAX), time),
            Self::BytesPerSecond(bytes) => (bytes, Duration::from_secs(1)),
        };
        let due = u128::from(per).saturating_mul(elapsed.as_nanos()).checked_div(time.as_nanos());
        due.and_then(|due| usize::try_from(due).ok()).map_or(len, |due| due.min(len))
    }
}

/// So many times as long, as far as a duration goes.
pub(crate) fn scaled(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_recording_is_spread_evenly_and_ends_on_time() {
        let speed = Speed::Over(10 * SECOND);
        assert_eq!(speed.due(1000, Duration::ZERO), 0);
        assert_eq!(speed.due(1000, 5 * SECOND), 500);
        assert_eq!(speed.due(1000, 10 * SECOND), 1000);
        assert_eq!(speed.due(1000, Duration::MAX), 1000);
        assert_eq!(speed.due(usize::MAX, Duration::MAX), usize::MAX);
    }

    #[test]
    fn bytes_per_second_are_counted() {
        assert_eq!(Speed::BytesPerSecond(300).due(1000, 2 * SECOND), 600);
        assert_eq!(Speed::BytesPerSecond(300).due(1000, 4 * SECOND), 1000);
        assert_eq!(Speed::BytesPerSecond(0).due(1000, 4 * SECOND), 0);
    }

    #[test]
    fn full_speed_and_no_time_at_all_are_the_same() {
        assert_eq!(Speed::Max.due(1000, Duration::ZERO), 1000);
        assert_eq!(Speed::Over(Duration::ZERO).due(1000, Duration::ZERO), 1000);
    }
}
