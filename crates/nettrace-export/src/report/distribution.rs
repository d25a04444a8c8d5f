//! Distributions of durations.

use serde::Serialize;

/// Durations in few numbers, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Distribution {
    /// The number of durations.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// The middle one.
    pub median_ns: u64,
    /// 90 of 100 are at most so long.
    pub p90_ns: u64,
    /// 99 of 100 are at most so long.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Counts by duration, without empty buckets at either end.
    pub histogram: Vec<Bucket>,
}

/// The number of durations less than a power of two, and not less than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bucket {
    /// All are less than this.
    pub below_ns: u64,
    /// So many.
    pub count: u64,
}

impl Distribution {
    /// Of these, exactly: percentiles are by nearest rank.
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let at = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or(0)
        };
        let mut buckets = [0; 65];
        for value in &values {
            buckets[bits(*value)] += 1;
        }
        Self {
            count: values.len() as u64,
            total_ns: values.iter().fold(0, |sum, value| sum.saturating_add(*value)),
            median_ns: at(50),
            p90_ns: at(90),
            p99_ns: at(99),
            max_ns: values.last().copied().unwrap_or(0),
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
        below_ns: 1u64.checked_shl(u32::try_from(index).unwrap_or(64)).unwrap_or(u64::MAX),
        count: *count,
    };
    buckets.iter().enumerate().take(last).skip(first).map(bucket).collect()
}

/// Bits of a number that are kept: what is counted is not more than a 64th off.
const PRECISION: usize = 6;
const PARTS: usize = 1 << PRECISION;

/// Durations of which there may be very many: counted by length, in 30 KB.
#[derive(Debug, Clone)]
pub struct Durations {
    counts: Vec<u64>,
    count: u64,
    total: u64,
    max: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self { counts: vec![0; (65 - PRECISION) * PARTS], count: 0, total: 0, max: 0 }
    }
}

impl Durations {
    /// Counts one.
    pub fn add(&mut self, nanoseconds: u64) {
        if let Some(count) = self.counts.get_mut(place(nanoseconds)) {
            *count += 1;
        }
        self.count += 1;
        self.total = self.total.saturating_add(nanoseconds);
        self.max = self.max.max(nanoseconds);
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
            found.map_or(0, lowest)
        };
        let mut buckets = [0; 65];
        for (index, count) in self.counts.iter().enumerate() {
            buckets[bits(lowest(index))] += count;
        }
        Distribution {
            count: self.count,
            total_ns: self.total,
            median_ns: at(50),
            p90_ns: at(90),
            p99_ns: at(99),
            max_ns: self.max,
            histogram: histogram(&buckets),
        }
    }
}

/// Returns the index of a number's counter: the first `2 * PARTS` have one each, then each power of two has `PARTS`.
#[allow(clippy::cast_possible_truncation, reason = "what is cut has few bits")]
const fn place(value: u64) -> usize {
    let shift = bits(value).saturating_sub(PRECISION + 1);
    shift * PARTS + (value >> shift) as usize
}

/// The lowest number of a place.
const fn lowest(place: usize) -> u64 {
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
        let exact = Distribution::of((1..=200).rev().collect());
        assert_eq!((exact.median_ns, exact.p90_ns, exact.p99_ns, exact.max_ns), (100, 180, 198, 200));
        assert_eq!((exact.count, exact.total_ns), (200, 20_100));
        assert_eq!(exact.histogram[0], Bucket { below_ns: 2, count: 1 });
        assert_eq!(exact.histogram.last(), Some(&Bucket { below_ns: 256, count: 73 }));
        assert_eq!(Distribution::of(Vec::new()), Distribution::default());
    }

    #[test]
    fn counted_ones_are_nearly_exact() {
        let values: Vec<u64> = (0..20_000).map(|n| n * n * 37).collect();
        let mut counted = Durations::default();
        for value in &values {
            counted.add(*value);
        }
        let (counted, exact) = (counted.distribution(), Distribution::of(values));
        for (ours, theirs) in [
            (counted.median_ns, exact.median_ns),
            (counted.p90_ns, exact.p90_ns),
            (counted.p99_ns, exact.p99_ns),
        ] {
            assert!(ours <= theirs && theirs - ours <= theirs / 64, "{ours} for {theirs}");
        }
        assert_eq!((counted.max_ns, counted.total_ns), (exact.max_ns, exact.total_ns));
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
