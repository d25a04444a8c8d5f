//! Sums over time, by slots of equal length.

use serde::Serialize;

/// Slots that a timeline has.
const SLOTS: usize = 120;

/// Sums over time in slots of equal length, which grow as time goes on: never more than 120.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The length of a slot.
    pub slot_ns: u64,
    /// The sum of each slot, the first one beginning with the recording. Sums saturate.
    pub sums: Vec<u64>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { slot_ns: 1_000_000, sums: Vec::new() }
    }
}

impl Timeline {
    /// Adds an amount at a time, in nanoseconds since the recording's start.
    pub fn add(&mut self, time: i64, amount: u64) {
        let time = time.max(0).unsigned_abs();
        while time / self.slot_ns >= SLOTS as u64 {
            self.slot_ns = self.slot_ns.saturating_mul(2);
            self.sums =
                self.sums.chunks(2).map(|pair| pair.iter().copied().fold(0, u64::saturating_add)).collect();
        }
        let slot = usize::try_from(time / self.slot_ns).unwrap_or(SLOTS);
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
            timeline.add(millisecond * 1_000_000, 3);
        }
        assert_eq!(timeline.slot_ns, 16_000_000);
        assert_eq!(timeline.sums.iter().sum::<u64>(), 3000);
        assert_eq!(timeline.sums[0], 48);
        timeline.add(i64::MAX, 1);
        assert!(timeline.sums.len() <= SLOTS);
        assert_eq!(timeline.sums.iter().sum::<u64>(), 3001);
    }

    #[test]
    fn sums_saturate() {
        let mut timeline = Timeline::default();
        for millisecond in [0, 1, 119] {
            timeline.add(millisecond * 1_000_000, u64::MAX - 1);
        }
        timeline.add(1_000_000_000, 7);
        assert_eq!((timeline.sums[0], timeline.sums.iter().max()), (u64::MAX, Some(&u64::MAX)));
    }
}
