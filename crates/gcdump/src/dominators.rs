//! Dominators: for each object the one without which no root would reach it, and the bytes it retains.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "all numbers here are those of nodes of a graph that is whole, given out in this file"
)]

use crate::graph::{HeapGraph, NodeId, Root};
use crate::large_vec::push;

/// The number of an unreachable node.
const NONE: u32 = u32::MAX;

/// The dominator tree of a graph, with the bytes that each node retains.
///
/// A node dominates another if every path from the roots to that node leads through it. It retains the nodes
/// that it dominates: their bytes would be free without it. Built by the Lengauer–Tarjan algorithm with path
/// compression in O(references × log nodes) time, without recursion. Takes 28 bytes a node and 4 a reference
/// while it is built, up to 8 more a node if the graph is one long list, and 20 bytes a node afterwards.
///
/// # Source
/// T. Lengauer, R. E. Tarjan, *A Fast Algorithm for Finding Dominators in a Flowgraph*, 1979.
#[derive(Debug)]
pub struct Dominators {
    /// The number of each node in the order of a depth-first walk from the root.
    numbers: Vec<u32>,
    /// The nodes in that order.
    nodes: Vec<u32>,
    /// The number of each node's immediate dominator, by the node's number.
    parents: Vec<u32>,
    /// Bytes that each node retains, by the node's number.
    retained: Vec<u64>,
}

/// The objects that groups of roots refer to.
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

    pub(crate) fn of(&self, group: u32) -> &[u32] {
        &self.targets[self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize]
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

impl Dominators {
    /// Builds the dominator tree.
    pub fn new(graph: &HeapGraph) -> Self {
        let groups = GroupReferences::new(graph);
        let Walk { numbers, nodes, parents } = Walk::new(graph, &groups);
        let dominators = dominators(graph, &groups, &numbers, &nodes, parents);
        let mut retained: Vec<u64> =
            nodes.iter().map(|node| graph.object(NodeId(*node)).map_or(0, |object| object.size())).collect();
        for number in (1..nodes.len()).rev() {
            let dominator = dominators[number] as usize;
            retained[dominator] = retained[dominator].saturating_add(retained[number]);
        }
        Self { numbers, nodes, parents: dominators, retained }
    }

    /// Bytes that a node retains: its own and those of the nodes it dominates. `None` for an unreachable
    /// node.
    pub fn retained(&self, node: NodeId) -> Option<u64> {
        let number = *self.numbers.get(node.0 as usize)?;
        self.retained.get(number as usize).copied()
    }

    /// The immediate dominator of a node, without which no root would reach it; `None` for the root of all
    /// and for unreachable nodes.
    pub fn immediate_dominator(&self, node: NodeId) -> Option<NodeId> {
        let number = *self.numbers.get(node.0 as usize)?;
        let dominator = *self.parents.get(number as usize).filter(|_| number > 0)?;
        self.nodes.get(dominator as usize).map(|node| NodeId(*node))
    }

    /// Whether a root reaches a node.
    pub fn is_reachable(&self, node: NodeId) -> bool {
        self.numbers.get(node.0 as usize).is_some_and(|number| *number != NONE)
    }

    /// Returns the number of a node in the order of the walk; `None` for an unreachable node.
    pub(crate) fn number_of(&self, node: NodeId) -> Option<u32> {
        self.numbers.get(node.0 as usize).copied().filter(|number| *number != NONE)
    }

    /// Returns the number of the immediate dominator, by number; 0 for the root of all.
    pub(crate) fn dominator_of(&self, number: u32) -> u32 {
        self.parents[number as usize]
    }

    /// Bytes that a node retains, by its number.
    pub(crate) fn retained_by_number(&self, number: u32) -> u64 {
        self.retained[number as usize]
    }

    /// Passes each reference of a reachable node to `each`: the numbers of both nodes.
    pub(crate) fn each_reference(
        &self,
        graph: &HeapGraph,
        groups: &GroupReferences,
        visit: impl FnMut(u32, u32),
    ) {
        each_reference(graph, groups, &self.numbers, visit);
    }

    /// Sums up the bytes that the objects of each class retain, where `class` returns which of `count`
    /// classes an object is in.
    ///
    /// The retained bytes of an object count once, for the outermost object of its class. Bytes that several
    /// objects of a class retain only together are not in the sum: [`RetainedSets`](crate::RetainedSets)
    /// includes these, too.
    ///
    /// # Panics
    /// If a class is not below `count`.
    pub fn retained_by_class(
        &self,
        graph: &HeapGraph,
        count: usize,
        class: impl Fn(crate::Object<'_>) -> Option<usize>,
    ) -> Vec<u64> {
        let mut sums = vec![0_u64; count];
        let mut depths = vec![0_u32; count];
        let class = |number: usize| graph.object(NodeId(self.nodes[number])).and_then(&class);
        // The tree from the top: the first child of each node, and its next sibling.
        let mut below = vec![NONE; self.nodes.len()];
        let mut next = vec![NONE; self.nodes.len()];
        for number in (1..self.nodes.len()).rev() {
            let dominator = self.parents[number] as usize;
            next[number] = below[dominator];
            below[dominator] = u32::try_from(number).unwrap_or(NONE);
        }
        let mut number = 0_usize;
        loop {
            if let Some(class) = class(number) {
                if depths[class] == 0 {
                    sums[class] = sums[class].saturating_add(self.retained[number]);
                }
                depths[class] += 1;
            }
            if below[number] != NONE {
                number = below[number] as usize;
                continue;
            }
            loop {
                if let Some(class) = class(number) {
                    depths[class] -= 1;
                }
                if number == 0 {
                    return sums;
                }
                if next[number] != NONE {
                    number = next[number] as usize;
                    break;
                }
                number = self.parents[number] as usize;
            }
        }
    }
}

/// A depth-first walk.
pub(crate) struct Walk {
    numbers: Vec<u32>,
    nodes: Vec<u32>,
    /// For each number, the number from which it was reached.
    parents: Vec<u32>,
}

impl Walk {
    /// Returns, for each number, the number from which it was reached.
    pub(crate) fn into_parents(self) -> Vec<u32> {
        self.parents
    }

    pub(crate) fn new(graph: &HeapGraph, groups: &GroupReferences) -> Self {
        let count = graph.node_count() as usize;
        let mut walk = Self { numbers: vec![NONE; count], nodes: Vec::new(), parents: Vec::new() };
        walk.nodes.reserve_exact(count);
        walk.parents.reserve_exact(count);
        let root = graph.first_group();
        walk.enter(root, 0);
        // Each node on the current path, with its references that were not visited yet.
        let mut way = vec![(0_u32, graph.successors(groups, root).iter())];
        while let Some((number, rest)) = way.last_mut() {
            let from = *number;
            match rest.find(|node| walk.numbers[**node as usize] == NONE) {
                Some(node) => {
                    let number = walk.enter(*node, from);
                    let successors = graph.successors(groups, *node);
                    if !successors.is_empty() {
                        push(&mut way, (number, successors.iter()));
                    }
                }
                None => {
                    way.pop();
                }
            }
        }
        walk
    }

    fn enter(&mut self, node: u32, parent: u32) -> u32 {
        let number = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        self.numbers[node as usize] = number;
        self.nodes.push(node);
        self.parents.push(parent);
        number
    }
}

/// The numbers of the immediate dominators, by number.
fn dominators(
    graph: &HeapGraph,
    groups: &GroupReferences,
    numbers: &[u32],
    nodes: &[u32],
    parents: Vec<u32>,
) -> Vec<u32> {
    let predecessors = Predecessors::new(graph, groups, numbers, nodes.len());
    let all = 0..u32::try_from(nodes.len()).unwrap_or(NONE);
    let mut forest = Forest {
        ancestors: parents,
        labels: vec![NONE; nodes.len()],
        semidominators: all.clone().collect(),
        way: Vec::new(),
    };
    // Until the dominator of a number is known, the next number with the same semidominator. The first of
    // each such list is the label of the semidominator, which does not need a label before it is in a tree;
    // by then its list is empty.
    let mut dominators = vec![NONE; nodes.len()];
    for number in all.clone().skip(1).rev() {
        let linked = number + 1;
        let parent = forest.ancestors[number as usize];
        let least = predecessors.of(number).iter().map(|from| forest.least_semidominator(*from, linked));
        let semidominator = least.min().unwrap_or(parent).min(parent);
        forest.semidominators[number as usize] = semidominator;
        forest.labels[number as usize] = number;
        dominators[number as usize] = std::mem::replace(&mut forest.labels[semidominator as usize], number);
        let mut next = std::mem::replace(&mut forest.labels[parent as usize], NONE);
        while next != NONE {
            let label = forest.evaluate(next, number);
            // Either the semidominator, or a number with the same dominator.
            let is_lower = forest.semidominators[label as usize] < parent;
            let dominator = if is_lower { label } else { parent };
            next = std::mem::replace(&mut dominators[next as usize], dominator);
        }
    }
    for number in all.skip(1) {
        let dominator = dominators[number as usize];
        if dominator != forest.semidominators[number as usize] {
            dominators[number as usize] = dominators[dominator as usize];
        }
    }
    if let Some(root) = dominators.first_mut() {
        *root = 0;
    }
    dominators
}

/// For each node, the numbers of the nodes that reference it.
struct Predecessors {
    starts: Vec<u32>,
    sources: Vec<u32>,
}

impl Predecessors {
    fn new(graph: &HeapGraph, groups: &GroupReferences, numbers: &[u32], count: usize) -> Self {
        let each = |visit: &mut dyn FnMut(u32, u32)| each_reference(graph, groups, numbers, visit);
        // At first the end of each node's sources, which is counted down to their start.
        let mut starts = vec![0_u32; count + 1];
        each(&mut |_, to| starts[to as usize] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut sources = vec![0; sum as usize];
        each(&mut |from, to| {
            starts[to as usize] -= 1;
            sources[starts[to as usize] as usize] = from;
        });
        Self { starts, sources }
    }

    fn of(&self, number: u32) -> &[u32] {
        &self.sources[self.starts[number as usize] as usize..self.starts[number as usize + 1] as usize]
    }
}

/// Passes each reference of a node that has a number to `each`: the numbers of both nodes.
fn each_reference(
    graph: &HeapGraph,
    groups: &GroupReferences,
    numbers: &[u32],
    mut visit: impl FnMut(u32, u32),
) {
    let mut edges = |from: u32, targets: &[u32]| {
        let from = numbers[from as usize];
        if from != NONE {
            for target in targets {
                visit(from, numbers[*target as usize]);
            }
        }
    };
    graph.objects().for_each(|object| edges(object.id().0, object.edges()));
    let first = graph.first_group();
    (first..graph.node_count()).for_each(|group| edges(group, groups.of(group - first)));
}

/// The visited part of the depth-first tree, with its paths compressed.
struct Forest {
    ancestors: Vec<u32>,
    /// The number with the least semidominator on the path to the ancestor.
    labels: Vec<u32>,
    semidominators: Vec<u32>,
    way: Vec<u32>,
}

impl Forest {
    /// Returns the least semidominator on the path from a number to the root of its tree; the number itself
    /// if it is not in a tree.
    fn least_semidominator(&mut self, number: u32, linked: u32) -> u32 {
        if number < linked {
            return number;
        }
        let label = self.evaluate(number, linked);
        self.semidominators[label as usize]
    }

    /// Returns the number with the least semidominator on the path from a number to the root of its tree.
    /// Numbers from `linked` on are in trees, and the number has to be one of them.
    fn evaluate(&mut self, number: u32, linked: u32) -> u32 {
        let mut at = number;
        while self.ancestors[at as usize] >= linked {
            push(&mut self.way, at);
            at = self.ancestors[at as usize];
        }
        let root = self.ancestors[at as usize];
        let mut best = self.labels[at as usize];
        while let Some(at) = self.way.pop() {
            self.ancestors[at as usize] = root;
            let own = self.labels[at as usize];
            if self.semidominators[best as usize] < self.semidominators[own as usize] {
                self.labels[at as usize] = best;
            } else {
                best = own;
            }
        }
        best
    }
}
