//! Bytes that would be free without sets of objects.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "all numbers here are those of nodes of a graph that is whole, given out by its dominators"
)]

use crate::dominator_tree::{Children, TreeVisitor};
use crate::dominators::Dominators;
use crate::graph::{NodeId, Object};
use crate::node_set::{NodeSet, RankedSet};

/// The number of a node outside all sets.
const NONE: u32 = u32::MAX;
/// The number of sets that are processed together: each is a bit.
const TOGETHER: usize = u64::BITS as usize;
/// Maximum number of visits of nodes by [`RetainedSets::sizes`], which take some 5 ns each.
const MAX_VISITS: u64 = 1 << 30;

/// The bytes that would be free without all objects of a set: their own bytes, and the bytes of the nodes
/// that would become unreachable.
///
/// They are at least the sum of the bytes that each object [retains](Dominators::retained) alone. They are
/// more if several objects of the set hold another one that none of them holds alone. Such an object is a
/// *join*: its dominator does not reference it, so that at least two others do. Only joins, the nodes that
/// reference them, and what dominates any of these have to be looked at: 8 bytes each, and 12 more while
/// sizes are computed; a join takes 8 and 8 more. Besides, it takes 8 bytes for each node in the algorithm of
/// the dominators, up to 16 more while it is built, and 4 for each reference to a join.
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// use gcdump::{Dominators, RetainedSets};
///
/// let dominators = Dominators::new(&graph);
/// // Set 0 is the objects of 32 bytes and more: the table, which alone holds its row.
/// let sizes = RetainedSets::new(&dominators).sizes(1, |object| (object.size() >= 32).then_some(0));
/// assert_eq!((sizes[0].bytes, sizes[0].is_exact), (56, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RetainedSets<'g> {
    dominators: &'g Dominators<'g>,
    children: Children,
    /// The nodes that have to be looked at, in reverse postorder, in which a node follows the nodes that
    /// reference it, except in cycles, and its dominator always.
    steps: Vec<Step>,
    /// The joins among the numbers of nodes.
    is_join: RankedSet,
    /// The joins, in that order.
    joins: Vec<Join>,
    /// The places in `steps` of the nodes that reference joins, one after the other.
    sources: Vec<u32>,
    /// True if a node references a join before it in the order.
    has_cycles: bool,
}

/// A node that has to be looked at.
#[derive(Debug, Clone, Copy)]
struct Step {
    number: u32,
    /// The place of its dominator.
    holder: u32,
}

#[derive(Debug, Clone, Copy)]
struct Join {
    /// The place of the set in the order.
    place: u32,
    /// The end of its sources.
    end: u32,
}

/// The retained bytes of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RetainedBytes {
    /// Bytes.
    pub bytes: u64,
    /// True if the number is exact. If not, it is the sum of the bytes that the objects retain alone: there
    /// were too many sets for exact sizes.
    pub is_exact: bool,
}

impl<'g> RetainedSets<'g> {
    /// Prepares the graph.
    pub fn new(dominators: &'g Dominators<'g>) -> Self {
        let references = dominators.references();
        let parents = dominators.parents();
        let is_join = RankedSet::new(joins(dominators));
        let mut sets = Self {
            dominators,
            children: Children::new(parents),
            steps: Vec::new(),
            is_join,
            joins: Vec::new(),
            sources: Vec::new(),
            has_cycles: false,
        };
        if sets.is_join.count() == 0 {
            return sets;
        }
        // The nodes to look at, and the number of sources of each join.
        let mut looked_at = NodeSet::new(parents.len());
        let mut counts = vec![0_u32; sets.is_join.count() as usize];
        references.each(|from, to| {
            if let Some(rank) = sets.is_join.rank(to) {
                looked_at.insert(from);
                looked_at.insert(to);
                counts[rank as usize] += 1;
            }
        });
        looked_at.insert(0);
        for number in (0..u32::try_from(parents.len()).unwrap_or(NONE)).rev() {
            if looked_at.contains(number) {
                looked_at.insert(parents[number as usize]);
            }
        }
        let looked_at = RankedSet::new(looked_at);
        let mut places = vec![NONE; looked_at.count() as usize];
        let place_of =
            |places: &[u32], number| looked_at.rank(number).map_or(0, |rank| places[rank as usize]);
        sets.steps.reserve_exact(places.len());
        let mut sum = 0_u32;
        for number in reverse_postorder(references.walked_from()) {
            let Some(rank) = looked_at.rank(number) else { continue };
            let place = u32::try_from(sets.steps.len()).unwrap_or(NONE);
            places[rank as usize] = place;
            let holder = place_of(&places, parents[number as usize]);
            sets.steps.push(Step { number, holder });
            if let Some(rank) = sets.is_join.rank(number) {
                // From here on, the index of its next source.
                let count = std::mem::replace(&mut counts[rank as usize], sum);
                sum += count;
                sets.joins.push(Join { place, end: sum });
            }
        }
        sets.sources.resize(sum as usize, 0);
        references.each(|from, to| {
            if let Some(rank) = sets.is_join.rank(to) {
                let next = &mut counts[rank as usize];
                let (from, to) = (place_of(&places, from), place_of(&places, to));
                sets.sources[*next as usize] = from;
                *next += 1;
                sets.has_cycles |= from >= to;
            }
        });
        sets
    }

    /// Computes the bytes of `count` sets, where `set` returns the set of an object.
    ///
    /// # Panics
    /// If a set is not below `count`.
    pub fn sizes(&self, count: usize, set: impl Fn(Object<'_>) -> Option<usize>) -> Vec<RetainedBytes> {
        let alone = self.dominators.tree().retained_by_class(&self.children, count, &set);
        let mut sizes: Vec<_> =
            alone.into_iter().map(|bytes| RetainedBytes { bytes, is_exact: true }).collect();
        if self.joins.is_empty() {
            return sizes;
        }
        let mut several = self.several(count, &set);
        let members: Vec<u32> = self.steps.iter().map(|step| self.set_of(step.number, &set)).collect();
        // Largest first: time may not suffice for all.
        several.sort_by_key(|set| std::cmp::Reverse(sizes[*set as usize].bytes));
        let mut round = Round {
            sets: self,
            set: &set,
            ranks: vec![NONE; count],
            held: vec![0; self.steps.len()],
            joint: vec![0; self.joins.len()],
            visits: 0,
        };
        for sets in several.chunks(TOGETHER) {
            (0..).zip(sets).for_each(|(rank, set)| round.ranks[*set as usize] = rank);
            let more = round.jointly_held(&members);
            for (rank, set) in sets.iter().enumerate() {
                round.ranks[*set as usize] = NONE;
                let size = &mut sizes[*set as usize];
                match &more {
                    Some(bytes) => size.bytes = size.bytes.saturating_add(bytes[rank]),
                    None => size.is_exact = false,
                }
            }
        }
        sizes
    }

    fn set_of(&self, number: u32, set: &impl Fn(Object<'_>) -> Option<usize>) -> u32 {
        let node = NodeId(self.dominators.nodes()[number as usize]);
        let set = self.dominators.graph().object(node).and_then(set);
        set.and_then(|set| u32::try_from(set).ok()).unwrap_or(NONE)
    }

    /// Finds the sets of several objects that roots reach.
    fn several(&self, count: usize, set: &impl Fn(Object<'_>) -> Option<usize>) -> Vec<u32> {
        let mut counts = vec![0_u8; count];
        let objects = self.dominators.graph().objects();
        for object in objects.filter(|object| self.dominators.is_reachable(object.id())) {
            if let Some(set) = set(object) {
                counts[set] = counts[set].saturating_add(1);
            }
        }
        (0..).zip(counts).filter(|(_, count)| *count > 1).map(|(set, _)| set).collect()
    }
}

/// Finds the nodes that their dominators do not reference, by number.
fn joins(dominators: &Dominators<'_>) -> NodeSet {
    let count = dominators.nodes().len();
    let (mut all, mut others) = (NodeSet::new(count), NodeSet::new(count));
    dominators.references().each(|from, to| {
        all.insert(to);
        if dominators.parents()[to as usize] == from {
            others.insert(to);
        }
    });
    others.insert(0);
    all.remove_all(&others);
    all
}

/// The state while the sizes of up to 64 sets are computed.
struct Round<'s, F> {
    sets: &'s RetainedSets<'s>,
    set: &'s F,
    /// The bit of each set; [`NONE`] for sets of other rounds.
    ranks: Vec<u32>,
    /// For each node to look at, the sets without which no root reaches it.
    held: Vec<u64>,
    /// For each join, by rank, the sets that hold it only by several objects together, if they do not hold
    /// its dominator.
    joint: Vec<u64>,
    visits: u64,
}

impl<F: Fn(Object<'_>) -> Option<usize>> Round<'_, F> {
    /// Computes the bytes that the objects of each set hold together, and none of them alone; `None` if that
    /// takes too many visits. `members` has the set of each node to look at.
    ///
    /// In the end, each node has the sets without which no root reaches it. A node that its dominator
    /// references has the sets of the dominator, and the one that contains the node. A join has the sets
    /// that all its sources have. In a cycle it starts with all sets, and loses some.
    fn jointly_held(&mut self, members: &[u32]) -> Option<[u64; TOGETHER]> {
        let sets = self.sets;
        self.held.fill(u64::MAX);
        loop {
            self.visits += (sets.steps.len() + sets.sources.len()) as u64;
            if self.visits > MAX_VISITS {
                return None;
            }
            let mut is_stable = true;
            let mut joins = sets.joins.iter();
            let mut join = joins.next();
            let mut start = 0_usize;
            self.held[0] = 0;
            for (place, (step, member)) in sets.steps.iter().zip(members).enumerate().skip(1) {
                let bit = bit(&self.ranks, *member);
                let by = match join {
                    Some(found) if found.place as usize == place => {
                        let sources = &sets.sources[start..found.end as usize];
                        start = found.end as usize;
                        join = joins.next();
                        let by = sources.iter().fold(u64::MAX, |by, source| by & self.held[*source as usize]);
                        is_stable &= self.held[place] == by | bit;
                        by
                    }
                    _ => self.held[step.holder as usize],
                };
                self.held[place] = by | bit;
            }
            if is_stable || !sets.has_cycles {
                break;
            }
        }
        for join in &sets.joins {
            let step = sets.steps[join.place as usize];
            let own = bit(&self.ranks, members[join.place as usize]);
            let rank = sets.is_join.rank(step.number).unwrap_or(0);
            self.joint[rank as usize] =
                self.held[join.place as usize] & !self.held[step.holder as usize] & !own;
        }
        Some(self.sum_up())
    }

    /// Sums up the bytes of joins that are held by several objects together. Joins that are in the set
    /// themselves are omitted: they were counted alone.
    fn sum_up(&mut self) -> [u64; TOGETHER] {
        let mut below = Below {
            round: self,
            sums: [0; TOGETHER],
            counted: [0; TOGETHER],
            path: Vec::new(),
            seen: NodeSet::new(self.joint.len()),
            visits: 0,
        };
        for join in &self.sets.joins {
            let number = self.sets.steps[join.place as usize].number;
            let Some(rank) = self.sets.is_join.rank(number) else { continue };
            if self.joint[rank as usize] != 0 && !below.seen.contains(rank) {
                self.sets.dominators.tree().walk(&self.sets.children, number, &mut below);
            }
        }
        let Below { mut sums, counted, visits, .. } = below;
        sums.iter_mut().zip(counted).for_each(|(sum, counted)| *sum = sum.saturating_sub(counted));
        self.visits = self.visits.saturating_add(visits);
        sums
    }
}

/// The bit of a set.
fn bit(ranks: &[u32], set: u32) -> u64 {
    match set {
        NONE => 0,
        set => 1_u64.checked_shl(ranks[set as usize]).unwrap_or_default(),
    }
}

/// The nodes below joins that sets hold by several objects together.
struct Below<'r, 's, F> {
    round: &'r Round<'s, F>,
    /// The bytes of these joins.
    sums: [u64; TOGETHER],
    /// The bytes among them that objects of the set retain alone.
    counted: [u64; TOGETHER],
    /// For each node on the path, the sets of which it is an outermost object, and the sets that hold the
    /// nodes below it together, without an object of the set between.
    path: Vec<(u64, u64)>,
    /// The joins that were seen, by rank.
    seen: NodeSet,
    visits: u64,
}

impl<F: Fn(Object<'_>) -> Option<usize>> TreeVisitor for Below<'_, '_, F> {
    fn enter(&mut self, node: u32, number: Option<u32>) -> bool {
        self.visits += 1;
        let above = self.path.last().map_or(0, |(_, below)| *below);
        let sets = self.round.sets;
        let joint = number.and_then(|number| Some((number, sets.is_join.rank(number)?)));
        let joint = joint.map_or(0, |(number, rank)| {
            self.seen.insert(rank);
            let joint = self.round.joint[rank as usize];
            add(&mut self.sums, joint, sets.dominators.retained_by_number(number));
            joint
        });
        let together = above | joint;
        let set = sets.dominators.graph().object(NodeId(node)).and_then(self.round.set);
        let own = set.map_or(0, |set| 1_u64.checked_shl(self.round.ranks[set]).unwrap_or_default());
        self.path.push((own & together, together & !own));
        together & !own != 0
    }

    fn leave(&mut self, _node: u32, retained: u64) {
        if let Some((outermost, _)) = self.path.pop() {
            add(&mut self.counted, outermost, retained);
        }
    }
}

/// Adds bytes to the sums of several sets.
fn add(sums: &mut [u64; TOGETHER], mut sets: u64, bytes: u64) {
    while sets != 0 {
        let sum = &mut sums[sets.trailing_zeros() as usize];
        *sum = sum.saturating_add(bytes);
        sets &= sets - 1;
    }
}

/// Orders the numbers of a depth-first walk so that each follows the numbers from which it was reached, and
/// the branches walked last precede the others.
fn reverse_postorder(parents: Vec<u32>) -> Vec<u32> {
    // For each node, the number of nodes below it without a position, plus itself.
    let mut below = vec![1_u32; parents.len()];
    for number in (1..parents.len()).rev() {
        below[parents[number] as usize] += below[number];
    }
    // The place of each node takes that of its parent's number, which is not needed any more.
    let mut places = parents;
    let mut order = vec![0_u32; places.len()];
    for number in 1..places.len() {
        // The node's branch gets the last free positions below its parent.
        let parent = places[number] as usize;
        let all = below[number];
        places[number] = places[parent] + below[parent] - all;
        below[parent] -= all;
        order[places[number] as usize] = u32::try_from(number).unwrap_or(NONE);
    }
    order
}
