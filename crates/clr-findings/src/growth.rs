//! The growth of numbers over time.

use crate::thresholds;

/// The growth of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    /// The growth over the time.
    pub(crate) number: f64,
    /// The time.
    pub(crate) seconds: f64,
    /// The last value.
    pub(crate) last: f64,
}

impl Growth {
    pub(crate) fn per_second(self) -> f64 {
        self.number / self.seconds
    }

    /// The growth as a whole number.
    pub(crate) fn count(self) -> u64 {
        whole(self.number)
    }

    /// The growth in words: `1,600 more in 4.0 s, now 12,000`.
    pub(crate) fn in_words(self) -> String {
        let [grown, last] =
            [self.number, self.last].map(|number| nettrace_export::units::count(whole(number)));
        format!("{grown} more in {:.1} s, now {last}", self.seconds)
    }
}

/// Returns the growth of a number, read at three or more times in seconds, if it does not stop: it grows in
/// each part of the time, evenly, by a minimum per second, and doubles within an hour.
pub(crate) fn steady(values: &[(f64, f64)], min_per_second: f64) -> Option<Growth> {
    let [(start, before), .., (end, last)] = *values else { return None };
    let growth = Growth { number: last - before, seconds: end - start, last };
    let min_rate = min_per_second.max(growth.per_second() * thresholds::EVEN_GROWTH / 100.0);
    let grows = |pair: &[(f64, f64)]| match pair {
        [(start, before), (end, last)] => end > start && (last - before) / (end - start) >= min_rate,
        _ => false,
    };
    let doubles = growth.per_second() * thresholds::DOUBLING_SECONDS >= last;
    (values.len() > 2 && values.windows(2).all(grows) && doubles).then_some(growth)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a saturating conversion")]
pub(crate) fn whole(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_that_stops_or_is_uneven_or_slow_is_not_steady() {
        let grows = |values: [f64; 4]| {
            let values: Vec<_> = [0.0, 1.0, 2.0, 3.0].into_iter().zip(values).collect();
            steady(&values, 10.0).is_some()
        };
        assert!(grows([1000.0, 1040.0, 1080.0, 1120.0]));
        // A cache that is full, a start, a pool that gives back.
        assert!(!grows([1000.0, 1040.0, 1080.0, 1080.0]));
        assert!(!grows([0.0, 900.0, 950.0, 1000.0]));
        assert!(!grows([1000.0, 1040.0, 1020.0, 1060.0]));
        assert!(!grows([1000.0, 1009.0, 1018.0, 1027.0]));
        // It doubles in a day.
        assert!(!grows([1e6, 1e6 + 12.0, 1e6 + 24.0, 1e6 + 36.0]));
        assert_eq!(steady(&[(0.0, 0.0), (1.0, 100.0)], 10.0), None);
    }
}
