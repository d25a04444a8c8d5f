//! Distributions of durations.

use std::time::Duration;

use serde::Serialize;

use crate::report::nanoseconds;

/// Durations in few numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Distribution {
    /// The number of durations.
    pub count: u64,
    /// All together.
    #[serde(rename = "total_ns", serialize_with = "nanoseconds::serialize")]
    pub total: Duration,
    /// The middle one.
    #[serde(rename = "median_ns", serialize_with = "nanoseconds::serialize")]
    pub median: Duration,
    /// 90 of 100 are at most so long.
    #[serde(rename = "p90_ns", serialize_with = "nanoseconds::serialize")]
    pub p90: Duration,
    /// 99 of 100 are at most so long.
    #[serde(rename = "p99_ns", serialize_with = "nanoseconds::serialize")]
    pub p99: Duration,
    /// Maximum duration.
    #[serde(rename = "max_ns", serialize_with = "nanoseconds::serialize")]
    pub max: Duration,
    /// Counts by duration, without empty buckets at either end.
    pub histogram: Vec<Bucket>,
}

/// The number of durations less than a power of two, and not less than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bucket {
    /// All are less than this.
    #[serde(rename = "below_ns", serialize_with = "nanoseconds::serialize")]
    pub below: Duration,
    /// So many.
    pub count: u64,
}

impl Distribution {
    /// Returns the exact distribution of these values: percentiles are by nearest rank.
    pub fn of(mut values: Vec<Duration>) -> Self {
        values.sort_unstable();
        let at = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or_default()
        };
        let mut buckets = [0; 65];
        for value in &values {
            buckets[bits(nanoseconds::saturating(*value))] += 1;
        }
        Self {
            count: values.len() as u64,
            total: values.iter().fold(Duration::ZERO, |sum, value| sum.saturating_add(*value)),
            median: at(50),
            p90: at(90),
            p99: at(99),
            max: values.last().copied().unwrap_or_default(),
            histogram: histogram(&buckets),
        }
    }
}

/// Bits that a number takes.
const fn bits(value: u64) -> usize {
    (64 - value.leading_zeros()) as usize
}

fn histogram(buckets: &[u64; 65]) -> Vec<Bucket> {
    let is_used = |(_, count): &(usize, &u64)| **count > 0;
    let first = buckets.iter().enumerate().find(is_used).map_or(0, |(index, _)| index);
    let last = buckets.iter().enumerate().rfind(is_used).map_or(0, |(index, _)| index + 1);
    let bucket = |(index, count): (usize, &u64)| Bucket {
        below: Duration::from_nanos(1u64.checked_shl(u32::try_from(index).unwrap_or(64)).unwrap_or(u64::MAX)),
        count: *count,
    };
    buckets.iter().enumerate().take(last).skip(first).map(bucket).collect()
}

/// The number of bits kept of a number: counted values are at most a 64th off.
const PRECISION: usize = 6;
const PARTS: usize = 1 << PRECISION;

/// Any number of durations, counted by length, in 30 KB.
///
/// ```
/// use std::time::Duration;
/// use nettrace_export::report::Durations;
///
/// let mut waits = Durations::default();
/// (1..=100).for_each(|ms| waits.add(Duration::from_millis(ms)));
/// let waits = waits.distribution();
/// assert_eq!((waits.count, waits.max), (100, Duration::from_millis(100)));
/// assert!((98..=99).contains(&waits.p99.as_millis()));
/// ```
#[derive(Debug, Clone)]
pub struct Durations {
    counts: Vec<u64>,
    count: u64,
    total: Duration,
    max: Duration,
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            counts: vec![0; (65 - PRECISION) * PARTS],
            count: 0,
            total: Duration::ZERO,
            max: Duration::ZERO,
        }
    }
}

impl Durations {
    /// Counts one.
    pub fn add(&mut self, duration: Duration) {
        if let Some(count) = self.counts.get_mut(place(nanoseconds::saturating(duration))) {
            *count += 1;
        }
        self.count += 1;
        self.total = self.total.saturating_add(duration);
        self.max = self.max.max(duration);
    }

    /// Returns the distribution; percentiles are up to a 64th too low.
    pub fn distribution(&self) -> Distribution {
        let at = |percent: u64| {
            let rank = (self.count * percent).div_ceil(100).max(1);
            let mut seen = 0;
            let found = self.counts.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            Duration::from_nanos(found.map_or(0, lowest))
        };
        let mut buckets = [0; 65];
        for (index, count) in self.counts.iter().enumerate() {
            buckets[bits(lowest(index))] += count;
        }
        Distribution {
            count: self.count,
            total: self.total,
            median: at(50),
            p90: at(90),
            p99: at(99),
            max: self.max,
            histogram: histogram(&buckets),
        }
    }
}

/// Returns the index of a number's counter: the first `2 * PARTS` have one each, then each power of two has
/// `PARTS`.
#[allow(clippy::cast_possible_truncation, reason = "what is cut has few bits")]
pub(crate) const fn place(value: u64) -> usize {
    let shift = bits(value).saturating_sub(PRECISION + 1);
    shift * PARTS + (value >> shift) as usize
}

/// The lowest number of a place.
pub(crate) const fn lowest(place: usize) -> u64 {
    if place < 2 * PARTS {
        return place as u64;
    }
    let shift = place / PARTS - 1;
    ((place - shift * PARTS) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_nearest_rank() {
        let exact = Distribution::of((1..=200).rev().map(Duration::from_nanos).collect());
        assert_eq!(
            [exact.median, exact.p90, exact.p99, exact.max],
            [100, 180, 198, 200].map(Duration::from_nanos)
        );
        assert_eq!((exact.count, exact.total), (200, Duration::from_nanos(20_100)));
        assert_eq!(exact.histogram[0], Bucket { below: Duration::from_nanos(2), count: 1 });
        assert_eq!(exact.histogram.last(), Some(&Bucket { below: Duration::from_nanos(256), count: 73 }));
        assert_eq!(Distribution::of(Vec::new()), Distribution::default());
    }

    #[test]
    fn counted_ones_are_nearly_exact() {
        let values: Vec<_> = (0..20_000).map(|n| Duration::from_nanos(n * n * 37)).collect();
        let mut counted = Durations::default();
        for value in &values {
            counted.add(*value);
        }
        let (counted, exact) = (counted.distribution(), Distribution::of(values));
        for (ours, theirs) in
            [(counted.median, exact.median), (counted.p90, exact.p90), (counted.p99, exact.p99)]
        {
            assert!(ours <= theirs && theirs.abs_diff(ours) <= theirs / 64, "{ours:?} for {theirs:?}");
        }
        assert_eq!((counted.max, counted.total), (exact.max, exact.total));
        assert_eq!(counted.histogram, exact.histogram);
    }

    #[test]
    fn every_number_has_a_place() {
        for value in [0, 1, 63, 64, 127, 128, 129, 1 << 40, u64::MAX] {
            assert!(lowest(place(value)) <= value && place(value) < Durations::default().counts.len());
            assert_eq!(place(lowest(place(value))), place(value));
        }
    }
}
