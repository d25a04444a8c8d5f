//! Bytes that would be free without sets of objects.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "all numbers here are those of nodes of a graph that is whole, given out by its dominators"
)]

use crate::dominators::{Dominators, GroupReferences, Walk};
use crate::graph::{HeapGraph, Object};

/// The number of a node outside all sets.
const NONE: u32 = u32::MAX;
/// The number of sets that are processed together: each is a bit.
const TOGETHER: usize = u64::BITS as usize;
/// The most visits of nodes by [`RetainedSets::sizes`], which take some 5 ns each. The sets of a heap of ten
/// million objects and some thousand types take most of them.
const MOST_VISITS: u64 = 1 << 30;

/// The bytes that would be free without all objects of a set: their own, and those of the nodes that would
/// become unreachable.
///
/// They are at least the sum of the bytes that each object [retains](Dominators::retained) alone. They are
/// more if several objects of the set hold another one that none of them holds alone. Takes 4 bytes a node
/// and 4 for each reference to an object that its dominator does not reference, and 12 more a node while
/// sizes are computed.
#[derive(Debug)]
pub struct RetainedSets<'g> {
    graph: &'g HeapGraph,
    dominators: &'g Dominators,
    /// The numbers of the nodes in reverse postorder, in which a node follows the nodes that reference it,
    /// except in cycles.
    order: Vec<u32>,
    /// The nodes that their dominators do not reference, in that order. All others are freed with their
    /// dominators and only then.
    joins: Vec<Join>,
    /// The numbers of the nodes that reference those, one after the other.
    sources: Vec<u32>,
    /// Whether a node references a join before it in the order.
    has_cycles: bool,
}

/// A node that its dominator does not reference, so that at least two others do.
#[derive(Debug, Clone, Copy)]
struct Join {
    number: u32,
    /// The end of its sources.
    end: u32,
}

/// The retained bytes of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RetainedBytes {
    /// Bytes.
    pub bytes: u64,
    /// Whether the number is exact. If not, it is the sum of the bytes that the objects retain alone: there
    /// were too many sets for exact sizes.
    pub is_exact: bool,
}

impl<'g> RetainedSets<'g> {
    /// Prepares the graph.
    pub fn new(graph: &'g HeapGraph, dominators: &'g Dominators) -> Self {
        let groups = GroupReferences::new(graph);
        let order = reverse_postorder(&Walk::new(graph, &groups).into_parents());
        let mut positions = vec![0_u32; order.len()];
        (0..).zip(&order).for_each(|(position, number)| positions[*number as usize] = position);
        // The number of sources of each node, 0 if its dominator is one.
        let mut counts = vec![0_u32; order.len()];
        dominators.each_reference(graph, &groups, |_, to| {
            counts[to as usize] += 1;
        });
        dominators.each_reference(graph, &groups, |from, to| {
            if dominators.dominator_of(to) == from {
                counts[to as usize] = 0;
            }
        });
        let mut joins = Vec::new();
        let mut sum = 0_u32;
        for number in order.iter().copied().filter(|number| *number > 0) {
            let count = counts[number as usize];
            // From here on, the index of its next source.
            counts[number as usize] = if count == 0 { NONE } else { sum };
            if count > 0 {
                sum += count;
                joins.push(Join { number, end: sum });
            }
        }
        counts.iter_mut().take(1).for_each(|root| *root = NONE);
        let mut sources = vec![0_u32; sum as usize];
        let mut has_cycles = false;
        dominators.each_reference(graph, &groups, |from, to| {
            let place = counts[to as usize];
            if place != NONE {
                sources[place as usize] = from;
                counts[to as usize] += 1;
                has_cycles |= positions[from as usize] >= positions[to as usize];
            }
        });
        Self { graph, dominators, order, joins, sources, has_cycles }
    }

    /// Computes the bytes of `count` sets, where `set` returns the set of an object.
    ///
    /// # Panics
    /// If a set is not below `count`.
    pub fn sizes(&self, count: usize, set: impl Fn(Object<'_>) -> Option<usize>) -> Vec<RetainedBytes> {
        let alone = self.dominators.retained_by_class(self.graph, count, &set);
        let mut sizes: Vec<_> =
            alone.into_iter().map(|bytes| RetainedBytes { bytes, is_exact: true }).collect();
        let Members { members, mut several } = self.members(count, set);
        if self.joins.is_empty() {
            return sizes;
        }
        // The largest first: time may not suffice for all.
        several.sort_by_key(|set| std::cmp::Reverse(sizes[*set as usize].bytes));
        let mut visits = 0;
        let mut ranks = vec![NONE; count];
        for sets in several.chunks(TOGETHER) {
            (0..).zip(sets).for_each(|(rank, set)| ranks[*set as usize] = rank);
            let together = self.sizes_together(&members, &ranks, &mut visits);
            for (rank, set) in sets.iter().enumerate() {
                ranks[*set as usize] = NONE;
                match &together {
                    Some(bytes) => sizes[*set as usize].bytes = bytes[rank],
                    None => sizes[*set as usize].is_exact = false,
                }
            }
        }
        sizes
    }

    /// Finds the set of each node, by its number, and the sets of several objects.
    fn members(&self, count: usize, set: impl Fn(Object<'_>) -> Option<usize>) -> Members {
        let mut members = vec![NONE; self.order.len()];
        let mut counts = vec![0_u8; count];
        for object in self.graph.objects() {
            let Some(number) = self.dominators.number_of(object.id()) else { continue };
            let Some(set) = set(object) else { continue };
            counts[set] = counts[set].saturating_add(1);
            members[number as usize] = u32::try_from(set).unwrap_or(NONE);
        }
        let several = (0..).zip(counts).filter(|(_, count)| *count > 1).map(|(set, _)| set).collect();
        Members { members, several }
    }

    /// Computes the bytes of the sets with ranks; `None` if that takes too many visits.
    ///
    /// In the end, each node has the sets without which no root reaches it. A node that its dominator
    /// references has the sets of the dominator, and the one that contains the dominator. A join has the sets
    /// that all its sources have. In a cycle it starts with all sets, and loses some.
    fn sizes_together(&self, members: &[u32], ranks: &[u32], visits: &mut u64) -> Option<[u64; TOGETHER]> {
        let bit = |number: u32| match members[number as usize] {
            NONE => 0,
            set => 1_u64.checked_shl(ranks[set as usize]).unwrap_or_default(),
        };
        let mut held = vec![u64::MAX; self.order.len()];
        loop {
            *visits += (self.order.len() + self.sources.len()) as u64;
            if *visits > MOST_VISITS {
                return None;
            }
            let mut is_stable = true;
            let mut joins = self.joins.iter();
            let mut join = joins.next();
            let mut start = 0_usize;
            held[0] = 0;
            for number in self.order.iter().copied().skip(1) {
                let by = match join {
                    Some(found) if found.number == number => {
                        let sources = &self.sources[start..found.end as usize];
                        start = found.end as usize;
                        join = joins.next();
                        let by = sources.iter().fold(u64::MAX, |by, source| by & held[*source as usize]);
                        is_stable &= held[number as usize] == by | bit(number);
                        by
                    }
                    _ => held[self.dominators.dominator_of(number) as usize],
                };
                held[number as usize] = by | bit(number);
            }
            if is_stable || !self.has_cycles {
                break;
            }
        }
        let mut sums = [0_u64; TOGETHER];
        for number in self.order.iter().copied().skip(1) {
            // Nodes freed with their dominator are in the dominator's bytes.
            let mut outermost = held[number as usize] & !held[self.dominators.dominator_of(number) as usize];
            while outermost != 0 {
                let rank = outermost.trailing_zeros() as usize;
                sums[rank] = sums[rank].saturating_add(self.dominators.retained_by_number(number));
                outermost &= outermost - 1;
            }
        }
        Some(sums)
    }
}

/// The set of each node, and the sets with several objects.
struct Members {
    members: Vec<u32>,
    several: Vec<u32>,
}

/// Orders the numbers of a depth-first walk so that each follows those from which it was reached, and the
/// branches that were walked last come first.
fn reverse_postorder(parents: &[u32]) -> Vec<u32> {
    // For each node, the number of nodes below it that have no position yet, plus itself.
    let mut below = vec![1_u32; parents.len()];
    for number in (1..parents.len()).rev() {
        below[parents[number] as usize] += below[number];
    }
    let mut places = vec![0_u32; parents.len()];
    let mut order = vec![0_u32; parents.len()];
    for (number, parent) in (0_u32..).zip(parents.iter().map(|parent| *parent as usize)).skip(1) {
        // Its branch gets the last free positions below its parent.
        let all = below[number as usize];
        places[number as usize] = places[parent] + below[parent] - all;
        below[parent] -= all;
        order[places[number as usize] as usize] = number;
    }
    order
}
