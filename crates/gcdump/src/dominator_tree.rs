//! Walks through dominator trees.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "all numbers here are those of nodes of a graph that is whole, given out by its dominators"
)]

use std::slice;

use crate::graph::{HeapGraph, NodeId, Object};
use crate::group_references::GroupReferences;
use crate::hanging_trees::HangingTrees;
use crate::large_vec::push;

/// A number that does not belong to any node.
pub(crate) const NONE: u32 = u32::MAX;

/// A dominator tree: nodes with numbers, in which every dominator is lower, and the trees that hang from
/// them.
#[derive(Clone, Copy)]
pub(crate) struct DominatorTree<'d> {
    pub(crate) graph: &'d HeapGraph,
    pub(crate) groups: &'d GroupReferences,
    pub(crate) trees: &'d HangingTrees,
    /// Nodes by number.
    pub(crate) nodes: &'d [u32],
    /// The numbers of their immediate dominators.
    pub(crate) parents: &'d [u32],
    /// The bytes that they retain.
    pub(crate) retained: &'d [u64],
}

/// The nodes with numbers that each of them immediately dominates.
#[derive(Debug)]
pub(crate) struct Children {
    /// The first below each.
    below: Vec<u32>,
    /// The next with the same dominator.
    next: Vec<u32>,
}

/// A receiver of the nodes of a dominator tree.
pub(crate) trait TreeVisitor {
    /// Receives a node before the nodes that it dominates. Returns true if these are wanted; the trees that
    /// hang from the graph are passed whole.
    fn enter(&mut self, node: u32, number: Option<u32>) -> bool;

    /// Receives the same node after the nodes that it dominates, with the bytes that it retains.
    fn leave(&mut self, node: u32, retained: u64);
}

/// An object of a tree that hangs from the graph.
struct Open<'d> {
    node: u32,
    rest: slice::Iter<'d, u32>,
    /// The bytes so far.
    retained: u64,
}

impl Children {
    /// Takes the numbers of immediate dominators.
    pub(crate) fn new(parents: &[u32]) -> Self {
        let mut below = vec![NONE; parents.len()];
        let mut next = vec![NONE; parents.len()];
        for number in (1..parents.len()).rev() {
            let dominator = parents[number] as usize;
            next[number] = below[dominator];
            below[dominator] = u32::try_from(number).unwrap_or(NONE);
        }
        Self { below, next }
    }
}

impl<'d> DominatorTree<'d> {
    /// Walks through the nodes that a number dominates, itself included.
    pub(crate) fn walk(&self, children: &Children, from: u32, visitor: &mut impl TreeVisitor) {
        let mut way = Vec::new();
        let mut number = from;
        loop {
            let node = self.nodes[number as usize];
            if visitor.enter(node, Some(number)) {
                self.walk_hanging(node, &mut way, visitor);
                let below = children.below[number as usize];
                if below != NONE {
                    number = below;
                    continue;
                }
            }
            loop {
                visitor.leave(self.nodes[number as usize], self.retained[number as usize]);
                if number == from {
                    return;
                }
                let next = children.next[number as usize];
                if next != NONE {
                    number = next;
                    break;
                }
                number = self.parents[number as usize];
            }
        }
    }

    /// Walks through the trees that hang from a node.
    fn walk_hanging(&self, node: u32, way: &mut Vec<Open<'d>>, visitor: &mut impl TreeVisitor) {
        way.push(Open { node, rest: self.graph.successors(self.groups, node).iter(), retained: 0 });
        while let Some(open) = way.last_mut() {
            if let Some(node) = open.rest.find(|node| self.trees.contains(**node)) {
                visitor.enter(*node, None);
                let size = self.graph.size(*node);
                match self.graph.edges_of(*node) {
                    [] => {
                        visitor.leave(*node, size);
                        open.retained = open.retained.saturating_add(size);
                    }
                    edges => push(way, Open { node: *node, rest: edges.iter(), retained: size }),
                }
                continue;
            }
            let (node, retained) = (open.node, open.retained);
            way.pop();
            if let Some(above) = way.last_mut() {
                above.retained = above.retained.saturating_add(retained);
                visitor.leave(node, retained);
            }
        }
    }

    /// Sums up the bytes that the objects of each of `count` classes retain, each for the outermost object of
    /// its class.
    pub(crate) fn retained_by_class(
        &self,
        children: &Children,
        count: usize,
        class: impl Fn(Object<'_>) -> Option<usize>,
    ) -> Vec<u64> {
        let graph = self.graph;
        let class = |node: u32| graph.object(NodeId(node)).and_then(&class);
        let mut visitor = ByClass { class, sums: vec![0; count], depths: vec![0; count] };
        self.walk(children, 0, &mut visitor);
        visitor.sums
    }
}

struct ByClass<F> {
    class: F,
    sums: Vec<u64>,
    /// The number of objects of each class that dominate the current node.
    depths: Vec<u32>,
}

impl<F: Fn(u32) -> Option<usize>> TreeVisitor for ByClass<F> {
    fn enter(&mut self, node: u32, _number: Option<u32>) -> bool {
        if let Some(class) = (self.class)(node) {
            self.depths[class] += 1;
        }
        true
    }

    fn leave(&mut self, node: u32, retained: u64) {
        if let Some(class) = (self.class)(node) {
            self.depths[class] -= 1;
            if self.depths[class] == 0 {
                self.sums[class] = self.sums[class].saturating_add(retained);
            }
        }
    }
}
