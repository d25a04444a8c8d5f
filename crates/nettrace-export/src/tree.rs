//! Stacks as a tree: a stack is a node, its caller's stack is the node's parent.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::frame::FrameId;

/// A stack: a node of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The stack without frames.
    pub const ROOT: Self = Self(0);
}

/// A node: its frame, and the stack that called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The frame nearest the leaf.
    pub frame: FrameId,
    /// The rest of the stack.
    pub parent: NodeId,
}

/// All stacks of a profile. A parent's number is smaller than its children's.
#[derive(Debug, Default)]
pub struct Tree {
    /// Node 1 and those that follow.
    nodes: Vec<Node>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Tree {
    /// The stack that has one frame more, towards the leaf.
    pub fn push(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        let hash = self.hasher.hash_one((parent, frame));
        let Self { nodes, ids, hasher } = self;
        let node = |id: u32| nodes.get(id.wrapping_sub(1) as usize).copied();
        if let Some(id) = ids.find(hash, |id| node(*id) == Some(Node { frame, parent })) {
            return NodeId(*id);
        }
        let id = u32::try_from(nodes.len().saturating_add(1)).unwrap_or(u32::MAX);
        ids.insert_unique(hash, id, |id| hasher.hash_one(node(*id).map_or((NodeId::ROOT, FrameId(0)), |node| (node.parent, node.frame))));
        nodes.push(Node { frame, parent });
        NodeId(id)
    }

    /// What a node is; `None` for the root.
    pub fn get(&self, id: NodeId) -> Option<Node> {
        self.nodes.get(id.0.wrapping_sub(1) as usize).copied()
    }

    /// The nodes of a stack, leaf first, without the root.
    pub fn path(&self, leaf: NodeId) -> impl Iterator<Item = (NodeId, Node)> {
        let mut at = leaf;
        std::iter::from_fn(move || {
            let node = self.get(at)?;
            let id = std::mem::replace(&mut at, node.parent);
            Some((id, node))
        })
    }

    /// How many nodes there are, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len().saturating_add(1)
    }

    /// Whether there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All nodes but the root, parents before children.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| {
            (NodeId(u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)), *node)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_node() {
        let mut tree = Tree::default();
        let mut push = |frames: &[u32]| frames.iter().fold(NodeId::ROOT, |at, f| tree.push(at, FrameId(*f)));
        let (ab, ac, ab2) = (push(&[1, 2]), push(&[1, 3]), push(&[1, 2]));
        assert_eq!(ab, ab2);
        assert_ne!(ab, ac);
        for number in 0..10_000 {
            push(&[5, number]);
        }
        assert_eq!(push(&[1, 3]), ac);
        assert_eq!(tree.len(), 1 + 3 + 1 + 10_000);
        let path: Vec<_> = tree.path(ac).map(|(_, node)| node.frame.0).collect();
        assert_eq!(path, [3, 1]);
        assert!(tree.iter().all(|(id, node)| node.parent < id));
    }
}
