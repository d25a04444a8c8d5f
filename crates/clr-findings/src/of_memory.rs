//! Causes that memory shows.

mod death;
mod locks;
mod pool;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::memory_facts::MemoryFacts;

/// Returns the causes that all readings show. A single reading of a running process can be of a moment.
pub(crate) fn findings(readings: &[MemoryFacts]) -> Vec<Finding> {
    let Some((last, earlier)) = readings.split_last() else { return Vec::new() };
    let mut findings: Vec<_> = death::death(last).into_iter().collect();
    findings.extend(locks::deadlocks(last, earlier));
    findings.extend(locks::held_locks(last, earlier));
    findings.extend(pool::starvation(last, earlier));
    findings
}

/// The most frequent of some names, with its number.
pub(crate) fn most_frequent(names: &[String]) -> Option<(&str, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for name in names {
        let count = counts.entry(name).or_default();
        *count = count.saturating_add(1);
    }
    counts.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)))
}
