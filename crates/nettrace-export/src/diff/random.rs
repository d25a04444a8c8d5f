//! Random numbers that are the same in every run.

/// SplitMix64.
///
/// # Source
/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014); the constants are from Java's
/// `SplittableRandom`.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`; 0 if that is 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from((u128::from(self.next()) * limit as u128) >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_published_generator() {
        // The first outputs for the seed 1234567, as listed with the C source of Vigna's splitmix64.c.
        let mut random = Random::new(1_234_567);
        let numbers: Vec<_> = (0..3).map(|_| random.next()).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn numbers_below_a_limit_are_evenly_spread() {
        let mut random = Random::new(1);
        let mut counts = [0u32; 5];
        for _ in 0..50_000 {
            counts[random.below(5)] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }
}
