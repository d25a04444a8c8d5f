//! Process ids of many recordings, each of one process.

use alloc::collections::BTreeMap;

/// The distance of the replacement ids of processes with an id that is taken. Linux ids do not exceed
/// 4,194,304.
const STEP: u64 = 10_000_000;

/// The process ids of a new recording.
#[derive(Debug, Default)]
pub(crate) struct ProcessIds {
    /// By the number of the group of recordings and the id there.
    given: BTreeMap<(usize, u64), u64>,
    /// The group of each id of the new recording.
    taken: BTreeMap<u64, usize>,
}

impl ProcessIds {
    /// Returns the id of a process in the new recording: its own, unless another group has a process with
    /// that id.
    pub(crate) fn give(&mut self, group: usize, process_id: u64) -> u64 {
        if let Some(given) = self.given.get(&(group, process_id)) {
            return *given;
        }
        let mut free = process_id;
        let mut step = (group as u64).saturating_mul(STEP);
        while self.taken.contains_key(&free) {
            free = process_id.wrapping_add(step);
            step = step.wrapping_add(STEP);
        }
        self.taken.insert(free, group);
        self.given.insert((group, process_id), free);
        free
    }

    /// The processes of a group: the id there, and the new one.
    pub(crate) fn of_group(&self, group: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.given.range((group, 0)..=(group, u64::MAX)).map(|((_, process_id), given)| (*process_id, *given))
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessIds;

    #[test]
    fn an_id_that_another_group_has_is_replaced() {
        let mut ids = ProcessIds::default();
        assert_eq!([ids.give(0, 1), ids.give(1, 1), ids.give(2, 1)], [1, 10_000_001, 20_000_001]);
        assert_eq!([ids.give(0, 1), ids.give(1, 1), ids.give(1, 2)], [1, 10_000_001, 2]);
        assert_eq!(ids.of_group(1).collect::<Vec<_>>(), [(1, 10_000_001), (2, 2)]);
    }
}
