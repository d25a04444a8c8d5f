//! The tests of a comparison that are adjusted together.

use hashbrown::HashMap;

use crate::diff::estimate::UnitSums;
use crate::diff::holm::{self, Adjusted, Member};
use crate::diff::subject::{Kind, Subject};

/// The weight of a test of CPU time with callees, and of bytes by the allocating method. It follows from the
/// tests of the methods themselves, or of the types, so that it must not cost them half of the error rate.
const SECOND_VIEW_WEIGHT: f64 = 0.25;

/// The tests of a comparison. Changes with the same numbers in all units, such as of a method that calls
/// nothing or of a method that only calls another, are one test.
#[derive(Debug, Default)]
pub(super) struct Family {
    members: Vec<Member>,
    by_amounts: HashMap<Vec<u64>, usize>,
    /// The test of each change.
    changes: Vec<(usize, usize)>,
}

impl Family {
    /// Adds the test of a change.
    pub(super) fn add(
        &mut self,
        change: usize,
        subject: &Subject,
        probability: f64,
        units: &[Vec<UnitSums>; 2],
    ) {
        let weight = if subject.kind.is_second_view() { SECOND_VIEW_WEIGHT } else { 1.0 };
        let member = Member { probability, weight };
        let place = self.members.len();
        let place = match subject.kind {
            Kind::Cpu | Kind::CpuInclusive => *self.by_amounts.entry(amounts(units)).or_insert(place),
            _ => place,
        };
        match self.members.get_mut(place) {
            Some(same) => {
                same.weight = same.weight.max(weight);
                same.probability = same.probability.max(probability);
            }
            None => self.members.push(member),
        }
        self.changes.push((change, place));
    }

    /// The number of tests.
    pub(super) fn tests(&self) -> usize {
        self.members.len()
    }

    /// Returns the result of each change.
    pub(super) fn adjust(&self, rate: f64) -> Vec<(usize, Adjusted)> {
        let adjusted = holm::adjust(&self.members, rate);
        let of = |(change, place): &(usize, usize)| Some((*change, *adjusted.get(*place)?));
        self.changes.iter().filter_map(of).collect()
    }
}

/// The amounts of both sides in whole nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
fn amounts(units: &[Vec<UnitSums>; 2]) -> Vec<u64> {
    units.iter().flatten().map(|unit| unit.cell.amount.round() as u64).collect()
}
