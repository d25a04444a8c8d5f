//! Durations of a slice of time, counted by length.

use std::collections::BTreeMap;

use crate::report::distribution::{lowest, place};

/// Counts by length, a 64th exact. Few lengths occur in a slice, which are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SparseDurations(BTreeMap<u32, u64>);

impl SparseDurations {
    /// Counts a duration in nanoseconds.
    pub(super) fn add(&mut self, nanoseconds: u64) {
        *self.0.entry(u32::try_from(place(nanoseconds)).unwrap_or(u32::MAX)).or_default() += 1;
    }

    /// Adds the counts of another slice.
    pub(super) fn merge(&mut self, other: &Self) {
        for (place, count) in &other.0 {
            *self.0.entry(*place).or_default() += count;
        }
    }

    /// The places that occur, with their counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().map(|(place, count)| (*place, *count))
    }
}

/// Returns the shortest duration of a place, and the width of the place, in nanoseconds.
#[allow(clippy::cast_precision_loss, reason = "as exact as a place")]
pub(super) fn bounds(place: u32) -> (f64, f64) {
    let start = lowest(place as usize);
    (start as f64, lowest(place as usize + 1).saturating_sub(start) as f64)
}
