//! The difference between two runs of the same program that one recording a side does not show.

use crate::diff::estimate::{Estimate, UnitSums};
use crate::diff::run::Run;
use crate::diff::sides::{Noise, SideUnits};
use crate::diff::subject::{Basis, Kind, Statistic, Subject};
use crate::diff::test::Test;

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
    /// The difference between the sides in the part of the time that threads could run but had to wait for a
    /// processor.
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
        let units = [units[0].len(), units[1].len()];
        Test::new([base, new], units, self.of(kind, statistic, value, kernel))
    }

    /// Returns true if units are neighbours in time.
    pub(super) fn is_of_stretches(&self) -> bool {
        self.noise != Noise::Runs
    }

    /// Returns the allowance for a value of the base, or of the new side if the base lacks it. `kernel` is
    /// the part of the value of each side that was in the kernel.
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
