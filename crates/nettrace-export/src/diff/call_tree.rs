//! The stacks of a run by the names of their frames, with weights by slices of time.

use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashMap};
use indexmap::IndexSet;

/// Maximum number of nodes of a tree: the lightest further stacks count for their callers.
pub(super) const MAX_NODES: usize = 1 << 14;
/// Maximum number of frames of a stack: further frames count for their callers.
pub(super) const MAX_DEPTH: usize = 512;

/// Stacks of names as a tree. Callers precede their callees; node 0 is the root.
#[derive(Debug, Clone)]
pub(super) struct CallTree {
    names: IndexSet<Box<str>, DefaultHashBuilder>,
    nodes: Vec<CallNode>,
    places: HashMap<(u32, u32), u32>,
    /// Maximum number of nodes below the root.
    most: usize,
    /// The amount of a typical sample.
    pub(super) typical: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct CallNode {
    pub(super) parent: u32,
    name: u32,
    depth: u16,
    /// The amount of the stack alone, by slice, in the order of slices.
    own: Vec<(u32, f64)>,
}

impl Default for CallTree {
    fn default() -> Self {
        Self {
            names: IndexSet::default(),
            nodes: vec![CallNode::default()],
            places: HashMap::new(),
            most: MAX_NODES,
            typical: 1.0,
        }
    }
}

impl CallTree {
    /// A tree of more nodes than by default.
    pub(super) fn with_most(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub(super) fn nodes(&self) -> &[CallNode] {
        &self.nodes
    }

    /// The name of a node; empty for the root.
    pub(super) fn name(&self, node: &CallNode) -> &str {
        let is_root = node.depth == 0;
        self.names.get_index(node.name as usize).filter(|_| !is_root).map_or("", |name| name)
    }

    /// Returns true if no stack has a weight.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| node.own.is_empty())
    }

    /// Returns the node of a callee, which is added if it is new and neither too deep nor one too many: else
    /// the caller itself.
    pub(super) fn child(&mut self, parent: u32, name: &str) -> u32 {
        let Some(depth) = self.nodes.get(parent as usize).map(|node| node.depth) else { return 0 };
        let known = self.names.get_index_of(name).and_then(|name| u32::try_from(name).ok());
        if let Some(node) = known.and_then(|name| self.places.get(&(parent, name))) {
            return *node;
        }
        if usize::from(depth) >= MAX_DEPTH || self.nodes.len() > self.most {
            return parent;
        }
        let index = known.map_or_else(|| self.names.insert_full(name.into()).0, |name| name as usize);
        let (Ok(name), Ok(node)) = (u32::try_from(index), u32::try_from(self.nodes.len())) else {
            return parent;
        };
        self.nodes.push(CallNode { parent, name, depth: depth + 1, own: Vec::new() });
        self.places.insert((parent, name), node);
        node
    }

    /// Adds an amount to a stack. Calls must be in the order of the slices.
    pub(super) fn add(&mut self, node: u32, slice: usize, amount: f64) {
        let (Some(node), Ok(slice)) = (self.nodes.get_mut(node as usize), u32::try_from(slice)) else {
            return;
        };
        match node.own.last_mut() {
            Some((last, sum)) if *last == slice => *sum += amount,
            _ => node.own.push((slice, amount)),
        }
    }
}

impl CallNode {
    /// The amount of the stack alone in a stretch of slices.
    pub(super) fn own_in(&self, stretch: &Range<usize>) -> f64 {
        let is_in = |slice: u32| stretch.contains(&(slice as usize));
        // A sum of nothing is -0.
        self.own.iter().filter(|(slice, _)| is_in(*slice)).map(|(_, amount)| amount).sum::<f64>() + 0.0
    }
}

/// Returns the least weight of a stack that is kept, so that at most [`MAX_NODES`] are.
pub(super) fn least_weight(inclusive: &[u64]) -> u64 {
    let mut weights: Vec<u64> = inclusive.iter().copied().filter(|weight| *weight > 0).collect();
    if weights.len() <= MAX_NODES {
        return 1;
    }
    let (_, weight, _) = weights.select_nth_unstable_by(MAX_NODES, |a, b| b.cmp(a));
    weight.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_one_name_are_one_node() {
        let mut tree = CallTree::default();
        let main = tree.child(0, "Main");
        let [a, b] = ["A", "A"].map(|name| tree.child(main, name));
        assert_eq!((a, tree.nodes().len()), (b, 3));
        assert!(tree.is_empty());
        tree.add(a, 1, 2.0);
        tree.add(a, 1, 3.0);
        tree.add(a, 4, 1.0);
        let node = &tree.nodes()[a as usize];
        assert_eq!((tree.name(node), tree.name(&tree.nodes()[0])), ("A", ""));
        let own = [0..1, 1..2, 0..5, 2..9].map(|range| node.own_in(&range).to_string());
        assert_eq!(own, ["0", "5", "6", "1"]);
        assert!(!tree.is_empty());
    }

    #[test]
    fn trees_are_bounded_in_depth_and_size() {
        let mut deep = CallTree::default();
        let leaf = (0..MAX_DEPTH * 2).fold(0, |node, number| deep.child(node, &number.to_string()));
        assert_eq!((deep.nodes().len(), leaf as usize), (MAX_DEPTH + 1, MAX_DEPTH));
        let mut wide = CallTree::default();
        for number in 0..MAX_NODES + 5 {
            wide.child(0, &number.to_string());
        }
        assert_eq!((wide.nodes().len(), wide.child(0, "one more")), (MAX_NODES + 1, 0));
        assert_eq!(wide.child(0, "7"), 8);
    }

    #[test]
    fn the_heaviest_stacks_are_kept() {
        assert_eq!(least_weight(&[0, 5, 1, 0]), 1);
        let weights: Vec<u64> = (0..=MAX_NODES as u64 * 2).collect();
        let least = least_weight(&weights);
        assert_eq!(weights.iter().filter(|weight| **weight >= least).count(), MAX_NODES);
        let equal = vec![7; MAX_NODES + 1];
        assert_eq!(least_weight(&equal), 8);
    }
}
