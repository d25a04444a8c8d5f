//! The dominator tree of a heap by types.

use hashbrown::HashMap;

use crate::dominators::Dominators;
use crate::graph::{HeapGraph, NodeId};
use crate::paths::PathStep;

/// Maximum depth: deeper objects count for the node at this depth.
const MAX_DEPTH: u32 = 200;
/// The place of a graph's node that is not known yet.
const UNKNOWN: u32 = u32::MAX;

/// The dominator tree of a heap, in which objects of one type below the same types are merged into one node.
///
/// Objects of one type that hold each other, such as the nodes of a list, are also one node. Takes 4 bytes
/// for each object while it is built, and some 80 for each of its own nodes. It has at most the
/// [allowed](Self::new) number of nodes: further objects count for the node that holds them.
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
/// use gcdump::{Dominators, TypeTree};
///
/// let tree = TypeTree::new(&graph, &Dominators::new(&graph), 1000);
/// let retained: Vec<_> = tree.nodes().iter().map(|node| node.retained_bytes).collect();
/// assert!(retained.contains(&56) && retained.contains(&24), "{retained:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TypeTree {
    nodes: Vec<TypeNode>,
    folded: u64,
}

/// A node of a [`TypeTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeNode {
    /// The index of the parent node; the first node is its own parent.
    pub holder: usize,
    /// The type of the node; `None` for objects that no root reaches.
    pub step: Option<PathStep>,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of these objects, and of all that only they hold.
    pub retained_bytes: u64,
}

impl TypeTree {
    /// Builds the tree, with at most `most` nodes.
    pub fn new(graph: &HeapGraph, dominators: &Dominators<'_>, most: usize) -> Self {
        let mut maker = Maker {
            graph,
            most,
            tree: Self { nodes: vec![TypeNode::new(0, Some(PathStep::Group(0)))], folded: 0 },
            depths: vec![0],
            numbers: HashMap::new(),
            places: vec![UNKNOWN; graph.node_count() as usize],
        };
        if let Some(root) = maker.places.get_mut(graph.first_group() as usize) {
            *root = 0;
        }
        let unreachable = maker.child(0, None);
        let mut path = Vec::new();
        for object in graph.objects() {
            let place = if dominators.is_reachable(object.id()) {
                maker.place(dominators, object.id(), &mut path)
            } else {
                unreachable
            };
            if let Some(node) = maker.tree.nodes.get_mut(place as usize) {
                node.objects = node.objects.saturating_add(1);
                node.bytes = node.bytes.saturating_add(object.size());
            }
        }
        let mut tree = maker.tree;
        tree.sum_up();
        tree
    }

    /// The nodes: the first holds all others, and each follows its parent.
    pub fn nodes(&self) -> &[TypeNode] {
        &self.nodes
    }

    /// The number of the graph's nodes that count for their parent, because the tree is full or too deep.
    pub const fn folded(&self) -> u64 {
        self.folded
    }

    fn sum_up(&mut self) {
        for node in &mut self.nodes {
            node.retained_bytes = node.bytes;
        }
        for index in (1..self.nodes.len()).rev() {
            let Some(&TypeNode { holder, retained_bytes, .. }) = self.nodes.get(index) else { continue };
            if let Some(holder) = self.nodes.get_mut(holder) {
                holder.retained_bytes = holder.retained_bytes.saturating_add(retained_bytes);
            }
        }
    }
}

impl TypeNode {
    const fn new(holder: usize, step: Option<PathStep>) -> Self {
        Self { holder, step, objects: 0, bytes: 0, retained_bytes: 0 }
    }
}

/// The state of the construction.
struct Maker<'g> {
    graph: &'g HeapGraph,
    most: usize,
    tree: TypeTree,
    /// The depth of each node of the tree.
    depths: Vec<u32>,
    /// The nodes of the tree by holder and step.
    numbers: HashMap<(u32, Option<PathStep>), u32>,
    /// The node of the tree for each node of the graph.
    places: Vec<u32>,
}

impl Maker<'_> {
    fn known_place(&self, node: NodeId) -> Option<u32> {
        self.places.get(node.0 as usize).copied().filter(|place| *place != UNKNOWN)
    }

    /// Returns the place of a node of the graph; the places of all its dominators are found as well.
    fn place(&mut self, dominators: &Dominators<'_>, node: NodeId, path: &mut Vec<NodeId>) -> u32 {
        path.clear();
        let mut at = node;
        let mut place = loop {
            if let Some(place) = self.known_place(at) {
                break place;
            }
            path.push(at);
            match dominators.immediate_dominator(at) {
                Some(dominator) => at = dominator,
                None => break 0,
            }
        };
        while let Some(node) = path.pop() {
            let root = self.graph.first_group();
            let step = match (node.0.checked_sub(root), self.graph.object(node)) {
                (Some(group), _) => PathStep::Group(group as usize),
                (None, Some(object)) => PathStep::Type(object.type_id()),
                (None, None) => PathStep::Type(crate::graph::TypeId(0)),
            };
            place = self.child(place, Some(step));
            if let Some(known) = self.places.get_mut(node.0 as usize) {
                *known = place;
            }
        }
        place
    }

    /// Returns the tree's node for a step below another node; that node itself if it has the same step, or if
    /// the tree is full.
    fn child(&mut self, holder: u32, step: Option<PathStep>) -> u32 {
        let holds_itself = self.tree.nodes.get(holder as usize).is_some_and(|node| node.step == step);
        if holds_itself {
            return holder;
        }
        if let Some(number) = self.numbers.get(&(holder, step)) {
            return *number;
        }
        let depth = self.depths.get(holder as usize).copied().unwrap_or_default().saturating_add(1);
        let number = u32::try_from(self.tree.nodes.len()).unwrap_or(UNKNOWN);
        if self.tree.nodes.len() >= self.most || depth > MAX_DEPTH || number == UNKNOWN {
            self.tree.folded = self.tree.folded.saturating_add(1);
            return holder;
        }
        self.tree.nodes.push(TypeNode::new(holder as usize, step));
        self.depths.push(depth);
        self.numbers.insert((holder, step), number);
        number
    }
}
