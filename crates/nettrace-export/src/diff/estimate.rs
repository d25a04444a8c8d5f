//! The value of a side, with its standard error.

use serde::Serialize;

use crate::diff::durations::bounds;
use crate::diff::random::Random;
use crate::diff::series::Cell;
use crate::diff::subject::Statistic;

/// The number of samples that the bootstrap draws. The error of a standard error is then some 3 %.
const DRAWS: usize = 500;
/// The seed of the random numbers: results are the same in every run.
const SEED: u64 = 0x6469_7063;

/// An interval of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The interval this far around a value.
    pub(super) fn around(value: f64, distance: f64) -> Self {
        Self { low: value - distance, high: value + distance }
    }
}

/// A part of a side's time: a run, or a stretch of one.
#[derive(Debug, Clone, Default)]
pub(super) struct UnitSums {
    pub(super) cell: Cell,
    /// The amount of the basis.
    pub(super) base: f64,
}

/// A value and its known error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    /// The square of the standard error; `None` from a single unit.
    pub(super) variance: Option<f64>,
    /// Degrees of freedom.
    pub(super) degrees: f64,
    /// The number of events or samples.
    pub(super) count: f64,
}

/// The draws of a bootstrap: how often each unit is resampled. They are the same for all subjects of a side.
#[derive(Debug)]
pub(super) struct Draws {
    units: usize,
    counts: Vec<f64>,
}

impl Draws {
    pub(super) fn new(units: usize, side: u64) -> Self {
        let mut random = Random::new(SEED ^ (side << 32));
        let mut counts = vec![0.0; units * DRAWS];
        for draw in counts.chunks_exact_mut(units.max(1)) {
            for _ in 0..units {
                draw[random.below(units)] += 1.0;
            }
        }
        Self { units, counts }
    }

    /// Returns the variance of a value over the draws, of `value` of the numbers of times that each unit is
    /// resampled. Draws without a value are left out.
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    fn variance(&self, value: impl Fn(&[f64]) -> Option<f64>) -> Option<f64> {
        if self.units < 2 {
            return None;
        }
        let values: Vec<f64> = self.counts.chunks_exact(self.units).filter_map(value).collect();
        if values.len() < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        // A bootstrap of few units is too narrow by this factor.
        let units = self.units as f64;
        Some(squares / (values.len() - 1) as f64 * units / (units - 1.0))
    }
}

/// The settings of an estimate.
#[derive(Debug, Clone, Copy)]
pub(super) struct EstimateOptions {
    pub(super) statistic: Statistic,
    /// True if each event stands for many.
    pub(super) is_sampled: bool,
    /// The square of a typical event's amount, for a side without events.
    pub(super) typical_square: f64,
    /// True if units are neighbours in time.
    pub(super) are_stretches: bool,
}

/// Returns the value of a statistic over the units of a side; `None` if it is undefined, such as a percentile
/// of no durations.
pub(super) fn estimate(units: &[UnitSums], draws: &Draws, options: EstimateOptions) -> Option<Estimate> {
    match options.statistic {
        Statistic::Amount => {
            let parts = units.iter().map(|unit| (unit.cell.amount, unit.base));
            ratio(&parts.collect::<Vec<_>>(), units, draws, options)
        }
        Statistic::Count => {
            let parts = units.iter().map(|unit| (unit.cell.count, unit.base));
            ratio(&parts.collect::<Vec<_>>(), units, draws, options)
        }
        Statistic::Mean => {
            let parts = units.iter().map(|unit| (unit.cell.amount, unit.cell.count));
            ratio(&parts.collect::<Vec<_>>(), units, draws, options)
        }
        Statistic::P50 => quantile(units, draws, options, 0.5),
        Statistic::P99 => quantile(units, draws, options, 0.99),
    }
}

fn ratio(
    parts: &[(f64, f64)],
    units: &[UnitSums],
    draws: &Draws,
    options: EstimateOptions,
) -> Option<Estimate> {
    let divided = |numerator: f64, denominator: f64| (denominator > 0.0).then(|| numerator / denominator);
    let sum = |part: fn(&(f64, f64)) -> f64| parts.iter().map(part).sum::<f64>();
    let (numerator, denominator) = (sum(|part| part.0), sum(|part| part.1));
    let value = divided(numerator, denominator)?;
    let variance = draws.variance(|counts| {
        // Both sums in one loop: this is a third of a comparison's instructions.
        let add = |(above, below): (f64, f64), (part, count): (&(f64, f64), &f64)| {
            (above + part.0 * count, below + part.1 * count)
        };
        let (numerator, denominator) = parts.iter().zip(counts).fold((0.0, 0.0), add);
        divided(numerator, denominator)
    });
    let sum_cells = |of: fn(&Cell) -> f64| units.iter().map(|unit| of(&unit.cell)).sum::<f64>();
    let (amount, count, squares) =
        (sum_cells(|cell| cell.amount), sum_cells(|cell| cell.count), sum_cells(|cell| cell.squares));
    let least = match options.statistic {
        // The amounts of independent samples, of at least one.
        Statistic::Amount if options.is_sampled => squares.max(options.typical_square),
        // The next event more or less.
        Statistic::Amount => {
            if count > 0.0 {
                squares / count
            } else {
                options.typical_square
            }
        }
        Statistic::Count => 1.0,
        // That of independent durations.
        _ if count > 1.0 => (squares - amount * amount / count).max(0.0) * count / (count - 1.0),
        _ => squares,
    } / (denominator * denominator);
    let residuals = parts.iter().map(|(numerator, denominator)| numerator - value * denominator);
    Some(finish(value, variance, least, count, &residuals.collect::<Vec<_>>(), options))
}

/// A percentile, by nearest rank, in the middle of its place.
fn quantile(units: &[UnitSums], draws: &Draws, options: EstimateOptions, share: f64) -> Option<Estimate> {
    let mut places: Vec<u32> =
        units.iter().flat_map(|unit| unit.cell.durations.iter().map(|(place, _)| place)).collect();
    places.sort_unstable();
    places.dedup();
    #[allow(clippy::cast_precision_loss, reason = "counts of durations")]
    let dense: Vec<Vec<f64>> = units
        .iter()
        .map(|unit| {
            let mut counts = vec![0.0; places.len()];
            for (place, count) in unit.cell.durations.iter() {
                if let Ok(index) = places.binary_search(&place) {
                    counts[index] = count as f64;
                }
            }
            counts
        })
        .collect();
    let resampled = |weights: &[f64]| {
        let mut sums = vec![0.0; places.len()];
        for (counts, weight) in dense.iter().zip(weights).filter(|(_, weight)| **weight > 0.0) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += weight * count;
            }
        }
        sums
    };
    let all = resampled(&vec![1.0; units.len()]);
    let count: f64 = all.iter().sum();
    let value = at_rank(&places, &all, (count * share).ceil())?;
    let variance = draws.variance(|weights| {
        let sums = resampled(weights);
        let count: f64 = sums.iter().sum();
        at_rank(&places, &sums, (count * share).ceil())
    });
    // The standard error of the rank, and the error of a place with only its middle known.
    let ranks = (count * share * (1.0 - share)).sqrt();
    let low = at_rank(&places, &all, (count * share - ranks).ceil().max(1.0))?;
    let high = at_rank(&places, &all, (count * share + ranks).ceil().min(count))?;
    let index = places.partition_point(|place| bounds(*place).0 <= value).saturating_sub(1);
    let width = places.get(index).map_or(0.0, |place| bounds(*place).1);
    let least = ((high - low) / 2.0).powi(2) + width * width / 12.0;
    let residuals = dense.iter().map(|counts| {
        let above: f64 = counts.iter().skip(index + 1).sum();
        above - (1.0 - share) * counts.iter().sum::<f64>()
    });
    Some(finish(value, variance, least, count, &residuals.collect::<Vec<_>>(), options))
}

fn at_rank(places: &[u32], counts: &[f64], rank: f64) -> Option<f64> {
    let mut seen = 0.0;
    let index = counts.iter().position(|count| {
        seen += count;
        seen > 0.0 && seen >= rank
    })?;
    let (start, width) = bounds(*places.get(index)?);
    Some(start + width / 2.0)
}

#[allow(clippy::cast_precision_loss, reason = "small numbers")]
fn finish(
    value: f64,
    variance: Option<f64>,
    least: f64,
    count: f64,
    residuals: &[f64],
    options: EstimateOptions,
) -> Estimate {
    let units = residuals.len() as f64;
    let correlation = if options.are_stretches { neighbour_correlation(residuals) } else { 0.0 };
    // A sum of values that depend on their neighbours varies like a sum of fewer independent values.
    let inflation = (1.0 + correlation) / (1.0 - correlation);
    let degrees = (units / inflation - 1.0).max(1.0);
    let variance = variance.map(|variance| (variance * inflation).max(least));
    Estimate { value, variance, degrees, count }
}

/// Returns the correlation of values with the next one, from 0 to 0.9.
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
fn neighbour_correlation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    let all: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if all <= 0.0 {
        return 0.0;
    }
    let pairs: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    // In short series the estimate is too low by this much.
    (pairs / all + 1.0 / count).clamp(0.0, 0.9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMOUNT: EstimateOptions = EstimateOptions {
        statistic: Statistic::Amount,
        is_sampled: false,
        typical_square: 0.0,
        are_stretches: false,
    };

    fn unit(amount: f64, base: f64) -> UnitSums {
        let cell = Cell { amount, count: 1.0, ..Cell::default() };
        UnitSums { cell, base }
    }

    /// The standard error of a mean: the deviation of the values by the root of their number.
    #[test]
    fn the_standard_error_of_a_mean_is_the_textbooks() {
        let values: Vec<f64> = (0..16).map(|n| f64::from(n * 7 % 16)).collect();
        let units: Vec<_> = values.iter().map(|value| unit(*value, 1.0)).collect();
        let found = estimate(&units, &Draws::new(16, 0), AMOUNT).unwrap();
        let mean = values.iter().sum::<f64>() / 16.0;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 15.0 / 16.0;
        assert!((found.value - mean).abs() < 1e-12);
        let ratio = found.variance.unwrap() / variance;
        assert!((0.8..1.25).contains(&ratio), "{ratio}");
        assert!((found.degrees - 15.0).abs() < 1e-12);
        assert_eq!(found, estimate(&units, &Draws::new(16, 0), AMOUNT).unwrap());
    }

    #[test]
    fn one_unit_has_no_error_and_no_base_no_value() {
        assert_eq!(estimate(&[unit(5.0, 2.0)], &Draws::new(1, 0), AMOUNT).unwrap().variance, None);
        assert_eq!(estimate(&[unit(5.0, 0.0)], &Draws::new(1, 0), AMOUNT), None);
        assert_eq!(estimate(&[], &Draws::new(0, 0), AMOUNT), None);
    }

    #[test]
    fn samples_have_at_least_the_error_of_their_number() {
        // Equal units do not vary, but 100 samples of 1 do.
        let mut units = vec![unit(10.0, 1.0); 10];
        for unit in &mut units {
            (unit.cell.count, unit.cell.squares) = (10.0, 10.0);
        }
        let options = EstimateOptions { is_sampled: true, ..AMOUNT };
        let found = estimate(&units, &Draws::new(10, 0), options).unwrap();
        assert!((found.variance.unwrap() - 1.0).abs() < 1e-9);
        let none = vec![unit(0.0, 1.0); 10];
        let options = EstimateOptions { typical_square: 4.0, ..options };
        let found = estimate(&none, &Draws::new(10, 0), options).unwrap();
        assert!((found.variance.unwrap() - 0.04).abs() < 1e-9);
    }

    #[test]
    fn percentiles_are_by_rank() {
        let mut units = vec![UnitSums::default(); 4];
        for number in 1..=400u64 {
            units[(number % 4) as usize].cell.durations.add(number * 1000);
        }
        for (statistic, expected) in [(Statistic::P50, 200_000.0), (Statistic::P99, 396_000.0)] {
            let found = estimate(&units, &Draws::new(4, 0), EstimateOptions { statistic, ..AMOUNT }).unwrap();
            assert!((found.value / expected - 1.0).abs() < 1.0 / 64.0, "{found:?}");
            assert!(found.variance.unwrap() > 0.0);
        }
    }

    #[test]
    fn neighbours_that_are_alike_make_the_error_larger() {
        let slow: Vec<_> = (0..20).map(|n| unit(if n < 10 { 1.0 } else { 2.0 }, 1.0)).collect();
        let fast: Vec<_> = (0..20).map(|n| unit(if n % 2 == 0 { 1.0 } else { 2.0 }, 1.0)).collect();
        let options = EstimateOptions { are_stretches: true, ..AMOUNT };
        let [slow, fast] = [slow, fast].map(|units| estimate(&units, &Draws::new(20, 0), options).unwrap());
        assert!(slow.variance.unwrap() > 10.0 * fast.variance.unwrap());
        assert!(slow.degrees < 3.0 && fast.degrees > 18.0);
    }
}
