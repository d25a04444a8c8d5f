//! The references of groups of roots.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "all numbers here are those of nodes of a graph that is whole"
)]

use crate::graph::{HeapGraph, Root};

/// The groups and objects that each group of roots refers to.
#[derive(Debug)]
pub(crate) struct GroupReferences {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl GroupReferences {
    pub(crate) fn new(graph: &HeapGraph) -> Self {
        let first = graph.first_group();
        let children =
            (0..).zip(&graph.groups).filter_map(|(number, group)| Some((group.parent?, first + number)));
        let roots = graph.roots.iter().filter(|root| root.target != Root::NONE);
        let all = || children.clone().chain(roots.clone().map(|root| (root.group, root.target)));
        let mut starts = vec![0; graph.groups.len() + 1];
        all().for_each(|(group, _)| starts[group as usize + 1] += 1);
        for group in 1..starts.len() {
            starts[group] += starts[group - 1];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; starts[graph.groups.len()] as usize];
        for (group, target) in all() {
            targets[next[group as usize] as usize] = target;
            next[group as usize] += 1;
        }
        Self { starts, targets }
    }

    /// The references of a group.
    pub(crate) fn of(&self, group: u32) -> &[u32] {
        &self.targets[self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize]
    }

    /// The references of all groups.
    pub(crate) fn all(&self) -> &[u32] {
        &self.targets
    }
}

impl HeapGraph {
    /// Returns the nodes that a node of any kind references.
    pub(crate) fn successors<'a>(&'a self, groups: &'a GroupReferences, node: u32) -> &'a [u32] {
        match node.checked_sub(self.first_group()) {
            Some(group) => groups.of(group),
            None => self.edges_of(node),
        }
    }
}
