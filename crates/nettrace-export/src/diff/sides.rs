//! The units of a side: runs, or stretches of runs.

use std::ops::Range;

use serde::Serialize;

use crate::diff::estimate::{Draws, UnitSums};
use crate::diff::run::Run;
use crate::diff::subject::{Basis, Statistic, Subject};

/// The units of each side from which noise is known: runs, or stretches of one run.
const MIN_RUNS: usize = 2;
const MIN_STRETCHES: usize = 5;

/// The source of the noise of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Noise {
    /// The differences between the runs of a side.
    Runs,
    /// The differences between stretches of a run. The differences between runs are unknown.
    Stretches,
    /// None: the recordings are too short.
    Unknown,
}

/// A side: its units by kind of basis, and the runs that they are of.
#[derive(Debug)]
pub(super) struct SideUnits<'r> {
    pub(super) runs: &'r [Run],
    /// The stretches that are units, with the index of their run.
    pub(super) stretches: Vec<(usize, Range<usize>)>,
    pub(super) draws: Draws,
}

impl<'r> SideUnits<'r> {
    /// Returns the units of both sides, and the noise estimated from them.
    pub(super) fn of(base: &'r [Run], new: &'r [Run]) -> ([Self; 2], Noise) {
        let by_run = base.len() >= MIN_RUNS && new.len() >= MIN_RUNS;
        let sides = [Self::new(base, by_run, 0), Self::new(new, by_run, 1)];
        let has_stretches = sides.iter().all(|side| side.stretches.len() >= MIN_STRETCHES);
        let noise = match (by_run, has_stretches) {
            (true, _) => Noise::Runs,
            (false, true) => Noise::Stretches,
            (false, false) => Noise::Unknown,
        };
        (sides, noise)
    }

    fn new(runs: &'r [Run], by_run: bool, side: u64) -> Self {
        let of_run = |(index, run): (usize, &Run)| {
            let all = 0..run.seconds.len();
            let stretches = if by_run { vec![all] } else { run.stretches() };
            stretches.into_iter().map(move |stretch| (index, stretch)).collect::<Vec<_>>()
        };
        let stretches: Vec<_> = runs.iter().enumerate().flat_map(of_run).collect();
        let draws = Draws::new(stretches.len(), side);
        Self { runs, stretches, draws }
    }

    pub(super) fn units(&self, subject: &Subject, statistic: Statistic, basis: Basis) -> Vec<UnitSums> {
        let unit = |(run, stretch): &(usize, Range<usize>)| {
            let run = &self.runs[*run];
            UnitSums {
                cell: run.cell(subject, stretch),
                base: run.base(subject.kind, statistic, basis, stretch),
            }
        };
        self.stretches.iter().map(unit).collect()
    }
}
