//! Bins of time.

use nettrace::RelativeTime;

/// Bins that a recording is divided into, at most: more than a screen has columns.
pub(super) const MAX_BINS: u32 = 5000;

/// The width of bins: 1 ms, 2 ms, 10 ms, 20 ms, 100 ms and so on. Each is a multiple of the narrower ones, so
/// counts in narrow bins can be added to counts in wide ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BinWidth {
    /// A power of ten.
    tens: u64,
    is_twice: bool,
}

impl Default for BinWidth {
    fn default() -> Self {
        Self { tens: 1_000_000, is_twice: false }
    }
}

impl BinWidth {
    /// The narrowest bins such that [`MAX_BINS`] of them reach up to a time.
    pub(super) fn up_to(end: RelativeTime) -> Self {
        let mut width = Self::default();
        while width.bin(end) >= MAX_BINS {
            width = width.wider();
        }
        width
    }

    /// The next wider bins.
    pub(super) const fn wider(self) -> Self {
        if self.is_twice {
            Self { tens: self.tens.saturating_mul(10), is_twice: false }
        } else {
            Self { is_twice: true, ..self }
        }
    }

    pub(super) const fn nanoseconds(self) -> u64 {
        if self.is_twice { self.tens.saturating_mul(2) } else { self.tens }
    }

    /// Returns the number of narrower bins in a bin of this width.
    pub(super) fn count_of(self, narrower: Self) -> u32 {
        u32::try_from(self.nanoseconds() / narrower.nanoseconds()).unwrap_or(u32::MAX).max(1)
    }

    /// The bin of a time; a time before the recording's start counts as the start.
    pub(super) fn bin(self, time: RelativeTime) -> u32 {
        let bin = time.as_nanos().max(0).unsigned_abs() / self.nanoseconds();
        u32::try_from(bin).unwrap_or(u32::MAX)
    }

    /// Divides an interval at the bins' edges: passes each bin with the nanoseconds in it.
    pub(super) fn split(self, start: RelativeTime, nanoseconds: u64, mut each: impl FnMut(u32, u64)) {
        let width = self.nanoseconds();
        let mut at = start.as_nanos().max(0).unsigned_abs();
        let end = at.saturating_add(nanoseconds);
        while at < end {
            let bin = at / width;
            let next = bin.saturating_add(1).saturating_mul(width).min(end);
            each(u32::try_from(bin).unwrap_or(u32::MAX), next - at);
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_multiples_of_earlier_widths() {
        let mut width = BinWidth::default();
        let mut widths = Vec::new();
        while width.nanoseconds() < u64::MAX / 10 {
            widths.push(width.nanoseconds());
            width = width.wider();
        }
        assert_eq!(widths[..5], [1_000_000, 2_000_000, 10_000_000, 20_000_000, 100_000_000]);
        assert!(widths.windows(2).all(|pair| pair[1] % pair[0] == 0));
    }

    #[test]
    fn bins_reach_up_to_the_end() {
        for (end, width) in [
            (0, 1),
            (4_999_999_999, 1),
            (5_000_000_000, 2),
            (3_600_000_000_000, 1000),
            (i64::MAX, 2_000_000_000),
        ] {
            let end = RelativeTime::from_nanos(end);
            let bins = BinWidth::up_to(end);
            assert_eq!(bins.nanoseconds(), width * 1_000_000);
            assert!(bins.bin(end) < MAX_BINS);
        }
    }

    #[test]
    fn intervals_are_divided_at_edges() {
        let parts = |start, nanoseconds| {
            let mut parts = Vec::new();
            BinWidth::default()
                .split(RelativeTime::from_nanos(start), nanoseconds, |bin, part| parts.push((bin, part)));
            parts
        };
        assert_eq!(parts(1_500_000, 2_000_001), [(1, 500_000), (2, 1_000_000), (3, 500_001)]);
        assert_eq!(parts(2_000_000, 1_000_000), [(2, 1_000_000)]);
        assert_eq!(parts(-5, 7), [(0, 7)]);
        assert_eq!(parts(5, 0), []);
    }
}
