//! The time at which a stream arrives, which reveals impossible time stamps.

use std::time::{Duration, Instant};

use nettrace::RelativeTime;

/// Maximum time by which an event may be ahead of its receipt.
pub(crate) const TOLERANCE: Duration = Duration::from_secs(10);
/// The number of consecutive events ahead of their receipt after which the stream's clock is considered to be
/// ahead: a recording is replayed faster than it was made.
const MAX_AHEAD: u32 = 1000;

/// A clock that starts with the stream.
#[derive(Debug)]
pub(crate) struct ReceiptClock {
    start: Instant,
    elapsed: Duration,
    /// The time by which the stream's clock is ahead.
    ahead: Duration,
    /// The latest time that an event may have.
    latest: RelativeTime,
    /// The number of consecutive events that were later than that.
    in_a_row: u32,
}

impl ReceiptClock {
    pub(crate) fn start(now: Instant) -> Self {
        let latest = RelativeTime::after_start(TOLERANCE);
        Self { start: now, elapsed: Duration::ZERO, ahead: Duration::ZERO, latest, in_a_row: 0 }
    }

    /// Records that a part of the stream has arrived.
    pub(crate) fn receive(&mut self, now: Instant) {
        self.elapsed = now.saturating_duration_since(self.start);
        self.update();
    }

    fn update(&mut self) {
        let latest = self.elapsed.saturating_add(self.ahead).saturating_add(TOLERANCE);
        self.latest = RelativeTime::after_start(latest);
    }

    /// Returns whether an event that has just arrived may have this time.
    #[inline]
    pub(crate) fn admits(&mut self, time: RelativeTime) -> bool {
        if time <= self.latest {
            self.in_a_row = 0;
            return true;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row < MAX_AHEAD {
            return false;
        }
        self.in_a_row = 0;
        self.ahead = time.since_start().saturating_sub(self.elapsed);
        self.update();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: i64) -> RelativeTime {
        RelativeTime::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn single_times_ahead_of_the_receipt_are_not_believed() {
        let start = Instant::now();
        let mut clock = ReceiptClock::start(start);
        assert!(clock.admits(at(-5)) && clock.admits(at(10)) && !clock.admits(at(11)));
        clock.receive(start + Duration::from_secs(60));
        for _ in 0..5000 {
            assert!(clock.admits(at(60)) && clock.admits(at(70)) && !clock.admits(RelativeTime::MAX));
        }
    }

    #[test]
    fn a_stream_may_be_faster_than_its_receipt() {
        let mut clock = ReceiptClock::start(Instant::now());
        let refused = (0..5000).filter(|n| !clock.admits(at(1000 + n / 1000))).count();
        assert_eq!(refused, 999);
        assert!(!clock.admits(RelativeTime::MAX) && clock.admits(at(1006)));
    }
}
