//! Sums over time, by slots of equal length.

use std::time::Duration;

use nettrace::RelativeTime;
use serde::Serialize;

use crate::report::nanoseconds;

/// Slots that a timeline has.
const SLOTS: usize = 120;

/// Sums over time in at most 120 slots of equal length, which grow with the duration.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The length of a slot.
    #[serde(rename = "slot_ns", serialize_with = "nanoseconds::serialize")]
    pub slot: Duration,
    /// The sum of each slot, the first one beginning with the recording. Sums saturate.
    pub sums: Vec<u64>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { slot: Duration::from_millis(1), sums: Vec::new() }
    }
}

impl Timeline {
    /// Adds an amount at a time; one before the recording's start counts as the start.
    pub fn add(&mut self, time: RelativeTime, amount: u64) {
        let time = time.since_start().as_nanos();
        while time / self.slot.as_nanos() >= SLOTS as u128 {
            self.slot = self.slot.saturating_mul(2);
            self.sums =
                self.sums.chunks(2).map(|pair| pair.iter().copied().fold(0, u64::saturating_add)).collect();
        }
        let slot = usize::try_from(time / self.slot.as_nanos()).unwrap_or(SLOTS);
        if self.sums.len() <= slot {
            self.sums.resize(slot + 1, 0);
        }
        if let Some(sum) = self.sums.get_mut(slot) {
            *sum = sum.saturating_add(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_grow_and_nothing_is_lost() {
        let mut timeline = Timeline::default();
        for millisecond in 0..1000 {
            timeline.add(RelativeTime::from_nanos(millisecond * 1_000_000), 3);
        }
        assert_eq!(timeline.slot, Duration::from_millis(16));
        assert_eq!(timeline.sums.iter().sum::<u64>(), 3000);
        assert_eq!(timeline.sums[0], 48);
        timeline.add(RelativeTime::MAX, 1);
        assert!(timeline.sums.len() <= SLOTS);
        assert_eq!(timeline.sums.iter().sum::<u64>(), 3001);
    }

    #[test]
    fn sums_saturate() {
        let mut timeline = Timeline::default();
        for millisecond in [0, 1, 119] {
            timeline.add(RelativeTime::from_nanos(millisecond * 1_000_000), u64::MAX - 1);
        }
        timeline.add(RelativeTime::from_nanos(1_000_000_000), 7);
        assert_eq!((timeline.sums[0], timeline.sums.iter().max()), (u64::MAX, Some(&u64::MAX)));
    }
}
