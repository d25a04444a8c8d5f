//! Objects that form trees below the rest of a graph. Their holders are known without an algorithm.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "all numbers here are those of nodes of a graph that is whole"
)]

use std::slice;

use crate::graph::HeapGraph;
use crate::group_references::GroupReferences;
use crate::large_vec::push;
use crate::node_set::{NodeSet, RankedSet};

/// The objects that exactly one reference leads to, and that reference only such objects: a string in a
/// field, a list that only its owner knows.
///
/// The only node that references such an object is its immediate dominator, and no path to other objects
/// leads through it. In most heaps these are most of the objects. Takes 1.5 bits a node, and half a bit more
/// while it is built.
#[derive(Debug)]
pub(crate) struct HangingTrees {
    members: RankedSet,
}

/// A node with references that were not followed yet.
struct Open<'g> {
    node: u32,
    rest: slice::Iter<'g, u32>,
    /// True if all followed references lead to members.
    is_tree: bool,
}

impl HangingTrees {
    pub(crate) fn new<'g>(graph: &'g HeapGraph, groups: &'g GroupReferences) -> Self {
        let single = referenced_once(graph, groups);
        let mut members = NodeSet::new(graph.node_count() as usize);
        let mut way: Vec<Open<'g>> = Vec::new();
        let mut follow = |node: u32, references: &'g [u32]| {
            if references.is_empty() || single.contains(node) {
                return;
            }
            way.clear();
            way.push(Open { node, rest: references.iter(), is_tree: true });
            while let Some(open) = way.last_mut() {
                match open.rest.next() {
                    Some(target) if single.contains(*target) => match graph.edges_of(*target) {
                        [] => {
                            members.insert(*target);
                        }
                        edges => push(&mut way, Open { node: *target, rest: edges.iter(), is_tree: true }),
                    },
                    Some(_) => open.is_tree = false,
                    None => {
                        let (node, is_tree) = (open.node, open.is_tree);
                        way.pop();
                        match way.last_mut() {
                            Some(_) if is_tree => {
                                members.insert(node);
                            }
                            Some(above) => above.is_tree = false,
                            None => {}
                        }
                    }
                }
            }
        };
        each_node(graph, groups, &mut follow);
        Self { members: RankedSet::new(members) }
    }

    /// The number of members.
    pub(crate) const fn count(&self) -> u32 {
        self.members.count()
    }

    pub(crate) fn contains(&self, node: u32) -> bool {
        self.members.contains(node)
    }

    /// Returns the rank of a node among the members; `None` for another.
    pub(crate) fn rank(&self, node: u32) -> Option<u32> {
        self.members.rank(node)
    }

    /// Returns the rank of a node among the nodes that are not members; `None` for a member.
    pub(crate) fn rank_outside(&self, node: u32) -> Option<u32> {
        (!self.members.contains(node)).then(|| node - self.members.count_below(node))
    }
}

/// The objects to which exactly one reference leads.
fn referenced_once(graph: &HeapGraph, groups: &GroupReferences) -> NodeSet {
    let count = graph.node_count() as usize;
    let (mut once, mut again) = (NodeSet::new(count), NodeSet::new(count));
    let first_group = graph.first_group();
    // Groups are few, and are not objects.
    let targets = graph.edges.iter().chain(groups.all()).filter(|target| **target < first_group);
    for target in targets {
        if !once.insert(*target) {
            again.insert(*target);
        }
    }
    once.remove_all(&again);
    once
}

/// Passes each node with its references to `visit`.
pub(crate) fn each_node<'g>(
    graph: &'g HeapGraph,
    groups: &'g GroupReferences,
    visit: &mut impl FnMut(u32, &'g [u32]),
) {
    graph.objects().for_each(|object| visit(object.id().0, object.edges()));
    let first = graph.first_group();
    (first..graph.node_count()).for_each(|group| visit(group, groups.of(group - first)));
}
