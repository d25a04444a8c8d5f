//! Dominators: for each object the one without which no root would reach it, and the bytes it retains.
#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "all numbers here are those of nodes of a graph that is whole, given out in this file"
)]

use std::sync::OnceLock;

use crate::dominator_tree::{Children, DominatorTree, NONE, TreeVisitor};
use crate::graph::{HeapGraph, NodeId, Object};
use crate::group_references::GroupReferences;
use crate::hanging_trees::{HangingTrees, each_node};
use crate::large_vec::push;
use crate::node_set::NodeSet;

/// The dominator tree of a graph, with the bytes that each node retains.
///
/// A node dominates another if every path from the roots to that node leads through it. It retains the nodes
/// that it dominates: their bytes would be free without it. Built by the Lengauer–Tarjan algorithm with path
/// compression in O(references × log nodes) time, without recursion.
///
/// Objects that only one reference leads to, and that reference only such objects, are most objects of most
/// heaps. They are left out of the algorithm and take 2.5 bits each. Every other node takes 28 bytes and 4
/// for each reference to it while the tree is built, up to 8 more if they are one long list, and 20 bytes
/// afterwards. [`immediate_dominator`](Self::immediate_dominator) and [`retained`](Self::retained) of an
/// object that was left out build a table of all of these when they are called for the first time: 4 bytes
/// and 8 bytes an object.
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
/// use gcdump::Dominators;
///
/// let dominators = Dominators::new(&graph);
/// let table = graph.object_at(0x1000).expect("an object");
/// // Without the table the row would be collected, too.
/// assert_eq!((table.size(), dominators.retained(table.id())), (32, Some(56)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// T. Lengauer, R. E. Tarjan, *A Fast Algorithm for Finding Dominators in a Flowgraph*, 1979.
#[derive(Debug)]
pub struct Dominators<'g> {
    graph: &'g HeapGraph,
    groups: GroupReferences,
    /// The objects that were left out of the algorithm.
    trees: HangingTrees,
    /// Left-out objects that a root reaches.
    reached: NodeSet,
    /// The number of each other node in the order of a depth-first walk from the root.
    numbers: Vec<u32>,
    /// The nodes in that order.
    nodes: Vec<u32>,
    /// The number of each node's immediate dominator, by the node's number.
    parents: Vec<u32>,
    /// Bytes that each node retains, by the node's number.
    retained: Vec<u64>,
    /// The immediate dominators of the objects that were left out, by rank.
    tree_parents: OnceLock<Vec<u32>>,
    /// Bytes that these retain.
    tree_retained: OnceLock<Vec<u64>>,
}

impl<'g> Dominators<'g> {
    /// Builds the dominator tree.
    pub fn new(graph: &'g HeapGraph) -> Self {
        let groups = GroupReferences::new(graph);
        let trees = HangingTrees::new(graph, &groups);
        let Walk { numbers, nodes, parents } = Walk::new(graph, &groups, &trees);
        let references = References { graph, groups: &groups, trees: &trees, numbers: &numbers };
        let parents = dominators(&references, nodes.len(), parents);
        let mut retained: Vec<u64> = nodes.iter().map(|node| graph.size(*node)).collect();
        let mut reached = NodeSet::new(graph.node_count() as usize);
        let mut waiting = Vec::new();
        each_node(graph, &groups, &mut |node, targets| {
            let Some(number) = references.number(node) else { return };
            let retained = &mut retained[number as usize];
            waiting.extend(targets.iter().filter(|target| trees.contains(**target)));
            while let Some(node) = waiting.pop() {
                reached.insert(node);
                *retained = retained.saturating_add(graph.size(node));
                waiting.extend(graph.edges_of(node));
            }
        });
        for number in (1..nodes.len()).rev() {
            let dominator = parents[number] as usize;
            retained[dominator] = retained[dominator].saturating_add(retained[number]);
        }
        let (tree_parents, tree_retained) = (OnceLock::new(), OnceLock::new());
        Self { graph, groups, trees, reached, numbers, nodes, parents, retained, tree_parents, tree_retained }
    }

    /// Bytes that a node retains: its own bytes and the bytes of the nodes it dominates. `None` for an
    /// unreachable node.
    pub fn retained(&self, node: NodeId) -> Option<u64> {
        if !self.is_reachable(node) {
            return None;
        }
        match self.trees.rank(node.0) {
            Some(rank) => {
                self.tree_retained.get_or_init(|| self.find_tree_retained()).get(rank as usize).copied()
            }
            None => self.number_of(node).map(|number| self.retained[number as usize]),
        }
    }

    /// The immediate dominator of a node, without which no root would reach it; `None` for the root of all
    /// and for unreachable nodes.
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
    /// use gcdump::Dominators;
    ///
    /// let [table, row] = [0x1000, 0x1020].map(|address| graph.object_at(address).expect("an object").id());
    /// // The row is garbage once the table is.
    /// assert_eq!(Dominators::new(&graph).immediate_dominator(row), Some(table));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn immediate_dominator(&self, node: NodeId) -> Option<NodeId> {
        if !self.is_reachable(node) {
            return None;
        }
        if let Some(rank) = self.trees.rank(node.0) {
            let parents = self.tree_parents.get_or_init(|| self.find_tree_parents());
            return parents.get(rank as usize).map(|node| NodeId(*node));
        }
        let number = self.number_of(node).filter(|number| *number > 0)?;
        Some(NodeId(self.nodes[self.dominator_of(number) as usize]))
    }

    /// Returns true if a root reaches a node.
    ///
    /// ```
    /// use gcdump::{Dominators, MemoryGraphBuilder, MemoryType};
    ///
    /// let mut builder = MemoryGraphBuilder::new(8, None);
    /// let name = "Shop.Row";
    /// builder.add_type(MemoryType { id: 2, module_id: 1, name, whole_name: name, is_array: false });
    /// builder.add_object(0x1000, 2, 24);
    /// let graph = builder.finish()?;
    /// let garbage = graph.object_at(0x1000).expect("an object").id();
    /// assert!(!Dominators::new(&graph).is_reachable(garbage));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_reachable(&self, node: NodeId) -> bool {
        node.0 < self.graph.node_count() && (self.reached.contains(node.0) || self.number_of(node).is_some())
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
    pub fn retained_by_class(&self, count: usize, class: impl Fn(Object<'_>) -> Option<usize>) -> Vec<u64> {
        self.tree().retained_by_class(&Children::new(&self.parents), count, class)
    }

    pub(crate) const fn graph(&self) -> &'g HeapGraph {
        self.graph
    }

    /// The numbered nodes as a tree, and the nodes below them.
    pub(crate) fn tree(&self) -> DominatorTree<'_> {
        DominatorTree {
            graph: self.graph,
            groups: &self.groups,
            trees: &self.trees,
            nodes: &self.nodes,
            parents: &self.parents,
            retained: &self.retained,
        }
    }

    /// Returns the references between nodes that have numbers.
    pub(crate) fn references(&self) -> References<'_> {
        References { graph: self.graph, groups: &self.groups, trees: &self.trees, numbers: &self.numbers }
    }

    /// Numbered nodes, by number: the nodes that a root reaches, without objects that were left out of the
    /// algorithm.
    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns the number of a node; `None` for nodes that are not numbered.
    fn number_of(&self, node: NodeId) -> Option<u32> {
        self.references().number(node.0)
    }

    /// Returns the number of the immediate dominator, by number; 0 for the root of all.
    pub(crate) fn dominator_of(&self, number: u32) -> u32 {
        self.parents[number as usize]
    }

    /// The numbers of immediate dominators.
    pub(crate) fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// Bytes that a node retains, by number.
    pub(crate) fn retained_by_number(&self, number: u32) -> u64 {
        self.retained[number as usize]
    }

    fn find_tree_parents(&self) -> Vec<u32> {
        let mut parents = vec![NONE; self.trees.count() as usize];
        each_node(self.graph, &self.groups, &mut |node, targets| {
            targets.iter().filter_map(|target| self.trees.rank(*target)).for_each(|rank| {
                parents[rank as usize] = node;
            });
        });
        parents
    }

    fn find_tree_retained(&self) -> Vec<u64> {
        struct Retained<'d>(&'d HangingTrees, Vec<u64>);
        impl TreeVisitor for Retained<'_> {
            fn enter(&mut self, _node: u32, _number: Option<u32>) -> bool {
                true
            }

            fn leave(&mut self, node: u32, retained: u64) {
                if let Some(rank) = self.0.rank(node) {
                    self.1[rank as usize] = retained;
                }
            }
        }
        let mut visitor = Retained(&self.trees, vec![0; self.trees.count() as usize]);
        self.tree().walk(&Children::new(&self.parents), 0, &mut visitor);
        visitor.1
    }
}

/// A depth-first walk outside of the trees.
struct Walk {
    numbers: Vec<u32>,
    nodes: Vec<u32>,
    /// For each number, the number from which it was reached.
    parents: Vec<u32>,
}

impl Walk {
    fn new(graph: &HeapGraph, groups: &GroupReferences, trees: &HangingTrees) -> Self {
        let count = (graph.node_count() - trees.count()) as usize;
        let mut walk = Self { numbers: vec![NONE; count], nodes: Vec::new(), parents: Vec::new() };
        walk.nodes.reserve_exact(count);
        walk.parents.reserve_exact(count);
        let root = graph.first_group();
        walk.enter(root, trees.rank_outside(root).unwrap_or(NONE), 0);
        // Each node on the current path, with its references that were not visited yet.
        let mut way = vec![(0_u32, graph.successors(groups, root).iter())];
        while let Some((number, rest)) = way.last_mut() {
            let from = *number;
            let next = rest.find_map(|node| {
                let rank = trees.rank_outside(*node)?;
                (walk.numbers[rank as usize] == NONE).then_some((*node, rank))
            });
            match next {
                Some((node, rank)) => {
                    let number = walk.enter(node, rank, from);
                    let successors = graph.successors(groups, node);
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

    fn enter(&mut self, node: u32, rank: u32, parent: u32) -> u32 {
        let number = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        self.numbers[rank as usize] = number;
        self.nodes.push(node);
        self.parents.push(parent);
        number
    }
}

/// The numbers of the immediate dominators, by number.
fn dominators(references: &References<'_>, count: usize, parents: Vec<u32>) -> Vec<u32> {
    let predecessors = Predecessors::new(references, count);
    let all = 0..u32::try_from(count).unwrap_or(NONE);
    let mut forest = Forest {
        ancestors: parents,
        labels: vec![NONE; count],
        semidominators: all.clone().collect(),
        way: Vec::new(),
    };
    // Until the dominator of a number is known, the next number with the same semidominator. The first of
    // each such list is the label of the semidominator, which does not need a label before it is in a tree;
    // by then its list is empty.
    let mut dominators = vec![NONE; count];
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
    fn new(references: &References<'_>, count: usize) -> Self {
        // At first the end of each node's sources, which is counted down to their start.
        let mut starts = vec![0_u32; count + 1];
        references.each(|_, to| starts[to as usize] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut sources = vec![0; sum as usize];
        references.each(|from, to| {
            starts[to as usize] -= 1;
            sources[starts[to as usize] as usize] = from;
        });
        Self { starts, sources }
    }

    fn of(&self, number: u32) -> &[u32] {
        &self.sources[self.starts[number as usize] as usize..self.starts[number as usize + 1] as usize]
    }
}

/// The references between nodes that have numbers.
#[derive(Clone, Copy)]
pub(crate) struct References<'d> {
    graph: &'d HeapGraph,
    groups: &'d GroupReferences,
    trees: &'d HangingTrees,
    /// By rank outside of the trees.
    numbers: &'d [u32],
}

impl References<'_> {
    /// Returns the number of a node; `None` for nodes that are not numbered.
    pub(crate) fn number(&self, node: u32) -> Option<u32> {
        let rank = self.trees.rank_outside(node)?;
        Some(self.numbers[rank as usize]).filter(|number| *number != NONE)
    }

    /// Passes each reference to `visit`: the numbers of both nodes.
    pub(crate) fn each(&self, mut visit: impl FnMut(u32, u32)) {
        each_node(self.graph, self.groups, &mut |node, targets| {
            if targets.is_empty() {
                return;
            }
            let Some(from) = self.number(node) else { return };
            targets.iter().filter_map(|target| self.number(*target)).for_each(|to| visit(from, to));
        });
    }

    /// Walks the nodes as the numbers were given out. Returns, for each, the number from which it was
    /// reached.
    pub(crate) fn walked_from(&self) -> Vec<u32> {
        Walk::new(self.graph, self.groups, self.trees).parents
    }
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
    /// Numbers from `linked` on are in trees, and the number has to be in this range.
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
