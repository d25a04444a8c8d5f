//! The speed of a replayed recording.

use std::time::Duration;

/// The speed at which a recording is sent until the session is stopped; the rest of it follows at once then.
///
/// ```
/// use dipc_sim::{Runtime, Speed};
/// use std::time::Duration;
///
/// # let (folder, recording) = (tempfile::tempdir()?, b"Nettrace".to_vec());
/// // A recording of an hour in ten seconds.
/// let speed = Speed::Over(Duration::from_secs(10));
/// let runtime = Runtime::builder().replay(recording).speed(speed).start_in(folder.path())?;
/// assert!(!runtime.has_died());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Speed {
    /// As fast as the client reads.
    #[default]
    Max,
    /// By the recording's own times, this many times as fast: `Recorded(1.0)` is the original speed.
    Recorded(f64),
    /// Spread evenly over this time; in a loop, each round.
    Over(Duration),
    /// Bytes per second.
    BytesPerSecond(u64),
}

impl Speed {
    /// Returns how many of a recording's `len` bytes are due after `elapsed`: all if the speed is not a rate
    /// of bytes.
    pub(crate) fn bytes_due(self, len: usize, elapsed: Duration) -> usize {
        let (bytes, time) = match self {
            Self::Max | Self::Recorded(_) => return len,
            Self::Over(time) => (u64::try_from(len).unwrap_or(u64::MAX), time),
            Self::BytesPerSecond(bytes) => (bytes, Duration::from_secs(1)),
        };
        let due = u128::from(bytes).saturating_mul(elapsed.as_nanos()).checked_div(time.as_nanos());
        due.and_then(|due| usize::try_from(due).ok()).map_or(len, |due| due.min(len))
    }
}

/// Multiplies a duration; saturates.
pub(crate) fn scale(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_recording_is_spread_evenly_and_ends_on_time() {
        let speed = Speed::Over(10 * SECOND);
        assert_eq!(speed.bytes_due(1000, Duration::ZERO), 0);
        assert_eq!(speed.bytes_due(1000, 5 * SECOND), 500);
        assert_eq!(speed.bytes_due(1000, 10 * SECOND), 1000);
        assert_eq!(speed.bytes_due(1000, Duration::MAX), 1000);
        assert_eq!(speed.bytes_due(usize::MAX, Duration::MAX), usize::MAX);
    }

    #[test]
    fn bytes_per_second_are_counted() {
        assert_eq!(Speed::BytesPerSecond(300).bytes_due(1000, 2 * SECOND), 600);
        assert_eq!(Speed::BytesPerSecond(300).bytes_due(1000, 4 * SECOND), 1000);
        assert_eq!(Speed::BytesPerSecond(0).bytes_due(1000, 4 * SECOND), 0);
    }

    #[test]
    fn full_speed_and_a_duration_of_zero_are_the_same() {
        assert_eq!(Speed::Max.bytes_due(1000, Duration::ZERO), 1000);
        assert_eq!(Speed::Over(Duration::ZERO).bytes_due(1000, Duration::ZERO), 1000);
    }
}
