//! The test of a difference between two estimates.

use crate::diff::estimate::{Estimate, Interval};
use crate::diff::student;
use crate::diff::verdict::Verdict;

/// The quantile of the normal distribution for a power of 80 %.
const POWER: f64 = 0.842;
/// Upper bound on the recordings a side that are counted.
const MAX_UNITS: usize = 1000;

/// A test of whether two estimates differ by more than an allowance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Test {
    pub(super) difference: f64,
    /// The probability of such a difference by chance.
    pub(super) probability: f64,
    allowed: f64,
    variances: [f64; 2],
    degrees: [f64; 2],
    units: [usize; 2],
}

impl Test {
    /// Tests estimates of this many units each; `None` if the error of either is unknown.
    pub(super) fn new(estimates: [Estimate; 2], units: [usize; 2], allowed: f64) -> Option<Self> {
        let [base, new] = estimates;
        let mut test = Self {
            difference: new.value - base.value,
            probability: 1.0,
            allowed,
            variances: [base.variance?, new.variance?],
            degrees: [base.degrees, new.degrees],
            units,
        };
        let beyond = test.difference.abs() - allowed;
        let error = test.error();
        if beyond > 0.0 {
            test.probability =
                if error > 0.0 { student::two_sided(beyond / error, test.welch_degrees()) } else { 0.0 };
        }
        Some(test)
    }

    fn error(&self) -> f64 {
        (self.variances[0] + self.variances[1]).sqrt()
    }

    /// The degrees of freedom by Welch and Satterthwaite.
    fn welch_degrees(&self) -> f64 {
        let [base, new] = self.variances;
        let parts = base.powi(2) / self.degrees[0] + new.powi(2) / self.degrees[1];
        if parts > 0.0 { (base + new).powi(2) / parts } else { self.degrees[0] + self.degrees[1] }
    }

    /// Returns half of the width of the interval with this probability outside: a smaller difference is noise
    /// at this level.
    pub(super) fn distance(&self, outside: f64) -> f64 {
        student::critical(outside, self.welch_degrees()) * self.error() + self.allowed
    }

    /// Returns the interval of the difference with this probability outside.
    pub(super) fn interval(&self, outside: f64) -> Interval {
        Interval::around(self.difference, self.distance(outside))
    }

    /// Judges the difference at a level. Differences below `limit` are irrelevant.
    ///
    /// A difference is a finding if its interval does not contain 0, and the same if no difference within the
    /// interval is of interest.
    pub(super) fn judge(&self, level: f64, limit: f64) -> Verdict {
        let size = self.difference.abs();
        let distance = self.distance(level);
        let is_noise = self.probability > level;
        if !is_noise && size >= limit && size > 0.0 {
            return if self.difference > 0.0 { Verdict::Worse } else { Verdict::Better };
        }
        if size + distance < limit { Verdict::Same } else { Verdict::Undecided }
    }

    /// Returns the number of units that each side needs for a judgement, if more units resemble the existing
    /// ones: of ten such comparisons, eight would have one. `None` if more than 1,000 are needed.
    pub(super) fn deciding_units(&self, level: f64, limit: f64) -> Option<usize> {
        let size = self.difference.abs();
        let decides = |count: &usize| {
            let test = self.with_units(*count);
            let distance = test.distance(level) + POWER * test.error();
            (distance < size && size >= limit) || size + distance < limit
        };
        let mut high = self.units[0].max(self.units[1]).max(2);
        while !decides(&high) {
            high *= 2;
            if high > 2 * MAX_UNITS {
                return None;
            }
        }
        let low = high / 2;
        let counts: Vec<usize> = (low..=high).collect();
        let count = counts.get(counts.partition_point(|count| !decides(count))).copied();
        count.filter(|count| *count <= MAX_UNITS)
    }

    /// The test with as many units a side, with the variance of the existing units.
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    fn with_units(&self, count: usize) -> Self {
        let factor = |side: usize| self.units[side].max(1) as f64 / count as f64;
        let degrees = |side: usize| ((self.degrees[side] + 1.0) / factor(side) - 1.0).max(1.0);
        Self {
            variances: [0, 1].map(|side: usize| self.variances[side] * factor(side)),
            degrees: [degrees(0), degrees(1)],
            units: [count; 2],
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(difference: f64, deviation: f64, units: usize) -> Test {
        let count = f64::from(u32::try_from(units).unwrap());
        let estimate = |value| Estimate {
            value,
            variance: Some(deviation * deviation / count),
            degrees: count - 1.0,
            count: 1000.0,
        };
        Test::new([estimate(100.0), estimate(100.0 + difference)], [units; 2], 0.0).unwrap()
    }

    #[test]
    fn a_wide_interval_does_not_prove_equality() {
        let verdict = |difference, deviation| test(difference, deviation, 5).judge(0.01, 5.0);
        assert_eq!(verdict(59.0, 30.0), Verdict::Undecided);
        assert_eq!(verdict(0.0, 30.0), Verdict::Undecided);
        assert_eq!(verdict(0.0, 1.0), Verdict::Same);
        assert_eq!(verdict(59.0, 10.0), Verdict::Worse);
        assert_eq!(verdict(-59.0, 10.0), Verdict::Better);
        // The sides differ, by less or by more than the limit.
        assert_eq!(verdict(4.0, 0.5), Verdict::Undecided);
        assert_eq!(verdict(3.0, 0.5), Verdict::Same);
    }

    #[test]
    fn verdicts_and_intervals_agree() {
        for difference in -40i32..40 {
            for deviation in 1..30 {
                let test = test(f64::from(difference), f64::from(deviation), 4);
                let interval = test.interval(0.002);
                let verdict = test.judge(0.002, 5.0);
                let excludes_zero = interval.low > 0.0 || interval.high < 0.0;
                assert_eq!(
                    matches!(verdict, Verdict::Worse | Verdict::Better),
                    excludes_zero && difference.abs() >= 5,
                    "{interval:?}"
                );
                assert_eq!(
                    verdict == Verdict::Same,
                    interval.low > -5.0 && interval.high < 5.0,
                    "{interval:?}"
                );
            }
        }
    }

    #[test]
    fn the_needed_recordings_decide() {
        let undecided = test(20.0, 15.0, 3);
        let needed = undecided.deciding_units(0.001, 5.0).unwrap();
        assert!((10..40).contains(&needed), "{needed}");
        assert_eq!(undecided.judge(0.001, 5.0), Verdict::Undecided);
        assert_eq!(test(20.0, 15.0, needed).judge(0.001, 5.0), Verdict::Worse);
        // Nearly as large as is of interest.
        assert_eq!(test(4.999, 15.0, 3).deciding_units(0.001, 5.0), None);
        let same = test(1.0, 6.0, 3).deciding_units(0.001, 5.0).unwrap();
        assert_eq!(test(1.0, 6.0, same).judge(0.001, 5.0), Verdict::Same);
    }
}
