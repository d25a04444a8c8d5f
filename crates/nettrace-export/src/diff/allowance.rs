//! The difference between two runs of the same program that one recording a side does not show.

use crate::diff::estimate::{Estimate, Interval, UnitSums};
use crate::diff::run::Run;
use crate::diff::sides::{Noise, SideUnits};
use crate::diff::student;
use crate::diff::subject::{Basis, Kind, Statistic, Subject};

/// The probability outside the interval of a difference.
const OUTSIDE_INTERVAL: f64 = 0.05;

/// The amount that a difference has to exceed before it is tested, where a side has one recording.
///
/// Beyond a part of every value, it is what a busy machine changes: threads wait longer for a processor, and
/// the kernel has more to do for the same system calls and interrupts. A recording has both numbers, but how
/// much they vary is seen with several recordings a side alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    noise: Noise,
    basis: Basis,
    /// The part of every value.
    relative: f64,
    /// The difference between the parts of the time in which threads could run and had no processor.
    queued: f64,
    /// The difference between the kernel's parts of CPU time.
    kernel: f64,
}

impl Allowance {
    pub(super) fn new(sides: &[SideUnits<'_>; 2], noise: Noise, basis: Basis, relative: f64) -> Self {
        let difference = |of: &dyn Fn(&[Run]) -> Option<f64>| match (of(sides[0].runs), of(sides[1].runs)) {
            (Some(base), Some(new)) => (new - base).abs(),
            _ => 0.0,
        };
        Self { noise, basis, relative, queued: difference(&queued), kernel: difference(&kernel_share) }
    }

    /// Tests the difference of the estimates of both sides, which are of these units; `None` if the error of
    /// either is not known.
    pub(super) fn test(
        &self,
        kind: Kind,
        statistic: Statistic,
        estimates: [Option<Estimate>; 2],
        units: &[Vec<UnitSums>; 2],
    ) -> Option<Test> {
        let [Some(base), Some(new)] = estimates else { return None };
        if self.noise == Noise::Unknown {
            return None;
        }
        let value = if base.value > 0.0 { base.value } else { new.value };
        let kernel = [0, 1].map(|side: usize| kernel_value(&units[side]));
        test((base, new), self.of(kind, statistic, value, kernel))
    }

    /// Whether units are neighbours in time.
    pub(super) fn is_of_stretches(&self) -> bool {
        self.noise != Noise::Runs
    }

    /// Returns it for a value of the base, or of the new side if the base has none. `kernel` is the part of
    /// the value of each side that was in the kernel.
    fn of(&self, kind: Kind, statistic: Statistic, value: f64, kernel: [f64; 2]) -> f64 {
        if self.noise != Noise::Stretches {
            return 0.0;
        }
        let is_cpu = matches!(kind, Kind::Cpu | Kind::CpuInclusive);
        let relative = match self.basis {
            Basis::Share if is_cpu => self.relative + self.kernel,
            Basis::Second => self.relative + self.queued,
            _ if statistic.is_duration() => self.relative + self.queued,
            _ => self.relative,
        };
        relative * value + (kernel[1] - kernel[0]).abs()
    }
}

/// The result of a test of a difference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Test {
    pub(super) interval: Interval,
    pub(super) probability: f64,
}

/// Tests whether two estimates differ by more than is `allowed`; `None` if the error of either is not known.
fn test((base, new): (Estimate, Estimate), allowed: f64) -> Option<Test> {
    let variances = [base.variance?, new.variance?];
    let variance = variances[0] + variances[1];
    let difference = new.value - base.value;
    // Welch and Satterthwaite.
    let parts = variances[0].powi(2) / base.degrees + variances[1].powi(2) / new.degrees;
    let degrees = if parts > 0.0 { variance * variance / parts } else { base.degrees + new.degrees };
    let error = variance.sqrt();
    let beyond = (difference.abs() - allowed).max(0.0);
    let probability = match (beyond > 0.0, error > 0.0) {
        (false, _) => 1.0,
        (true, false) => 0.0,
        (true, true) => student::two_sided(beyond / error, degrees),
    };
    let distance = student::critical(OUTSIDE_INTERVAL, degrees) * error + allowed;
    Some(Test { interval: Interval::around(difference, distance), probability })
}

/// The part of a value that was in the kernel.
fn kernel_value(units: &[UnitSums]) -> f64 {
    let sum = |of: fn(&UnitSums) -> f64| units.iter().map(of).sum::<f64>();
    let base = sum(|unit| unit.base);
    if base > 0.0 { sum(|unit| unit.cell.kernel) / base } else { 0.0 }
}

/// The part of the time in which the threads of all runs could run that they spent without a processor.
#[allow(clippy::cast_precision_loss, reason = "small numbers")]
pub(super) fn queued(runs: &[Run]) -> Option<f64> {
    let all: Option<Vec<f64>> = runs.iter().map(|run| run.queued).collect();
    let all = all.filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() / all.len() as f64)
}

fn kernel_share(runs: &[Run]) -> Option<f64> {
    let cells = || runs.iter().filter_map(|run| run.cells.get(&Subject::all(Kind::Cpu))).flatten();
    let amount: f64 = cells().map(|cell| cell.amount).sum();
    (amount > 0.0).then(|| cells().map(|cell| cell.kernel).sum::<f64>() / amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(noise: Noise, basis: Basis) -> Allowance {
        Allowance { noise, basis, relative: 0.03, queued: 0.2, kernel: 0.05 }
    }

    fn of(basis: Basis, kind: Kind, statistic: Statistic) -> f64 {
        allowance(Noise::Stretches, basis).of(kind, statistic, 100.0, [4.0, 1.0])
    }

    #[test]
    fn a_busy_machine_widens_the_values_that_it_changes() {
        let is = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        is(of(Basis::Second, Kind::Cpu, Statistic::Amount), 23.0 + 3.0);
        is(of(Basis::Share, Kind::Cpu, Statistic::Amount), 8.0 + 3.0);
        is(of(Basis::Share, Kind::Allocations, Statistic::Amount), 3.0 + 3.0);
        is(of(Basis::Run, Kind::CpuInclusive, Statistic::Amount), 3.0 + 3.0);
        is(of(Basis::Run, Kind::Requests, Statistic::P99), 23.0 + 3.0);
        // Several recordings a side show it themselves.
        is(allowance(Noise::Runs, Basis::Second).of(Kind::Cpu, Statistic::Amount, 100.0, [4.0, 1.0]), 0.0);
    }

    #[test]
    fn the_kernel_is_a_part_of_the_value() {
        let mut units = vec![UnitSums::default(); 2];
        (units[0].cell.kernel, units[0].base) = (3.0, 1.0);
        (units[1].cell.kernel, units[1].base) = (1.0, 3.0);
        assert!((kernel_value(&units) - 1.0).abs() < 1e-9);
        assert!(kernel_value(&[]).abs() < 1e-9);
    }
}
