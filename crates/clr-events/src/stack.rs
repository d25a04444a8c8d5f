//! Stacks as a tree, which keeps common parts once.

use alloc::vec::Vec;
use core::hash::{BuildHasher as _, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// A stack in a [`StackTree`]; equal stacks have equal ids. The default is the empty one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(u32);

impl StackId {
    /// The stack without frames.
    pub const EMPTY: Self = Self(0);

    /// A number for tables by stack: 0 for the empty one, then without gaps in the order in which stacks were
    /// met.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy)]
struct Node<F> {
    caller: u32,
    frame: F,
}

/// Call stacks, in which each frame refers to its caller. The program chooses the type of a frame: an
/// address, or a [`CodeFrameId`](crate::CodeFrameId).
///
/// Takes 12 to 24 bytes for each frame of its own that a stack has, with a frame of 4 bytes. Once it has as
/// many as it was [allowed](Self::with_limit) a stack ends where it would need another, which is
/// [counted](Self::cut).
///
/// ```
/// use clr_events::StackTree;
///
/// let mut tree = StackTree::default();
/// let [load, pay] = ["Load", "Pay"].map(|method| tree.add(["Main", method]));
/// assert_eq!(tree.caller(load), tree.caller(pay));
/// assert!(tree.frames(pay).eq(["Pay", "Main"]));
/// // "Main" is stored once.
/// assert_eq!(tree.len(), 3);
/// ```
#[derive(Debug)]
pub struct StackTree<F> {
    /// Node `n` belongs to stack `n + 1`.
    nodes: Vec<Node<F>>,
    /// An index set would also keep the hash of each node, 8 bytes more; this table has only ids.
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    limit: u32,
    cut: u64,
}

impl<F: Copy + Eq + Hash> Default for StackTree<F> {
    fn default() -> Self {
        Self::with_limit(1 << 26)
    }
}

impl<F: Copy + Eq + Hash> StackTree<F> {
    /// A tree with a limit of frames.
    pub fn with_limit(frames: u32) -> Self {
        Self {
            nodes: Vec::new(),
            ids: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            limit: frames.min(u32::MAX - 1),
            cut: 0,
        }
    }

    /// The stack of these frames, root first.
    pub fn add(&mut self, frames: impl IntoIterator<Item = F>) -> StackId {
        frames.into_iter().fold(StackId::EMPTY, |caller, frame| self.push(caller, frame))
    }

    /// The stack of a frame that `caller` called.
    pub fn push(&mut self, caller: StackId, frame: F) -> StackId {
        let Self { nodes, ids, hasher, limit, cut } = self;
        let hash = hasher.hash_one((caller.0, frame));
        let same =
            |id: &u32| node(nodes, *id).is_some_and(|node| node.caller == caller.0 && node.frame == frame);
        if let Some(id) = ids.find(hash, same) {
            return StackId(*id);
        }
        let id = u32::try_from(nodes.len())
            .ok()
            .filter(|count| count < limit)
            .and_then(|count| count.checked_add(1));
        let Some(id) = id else {
            *cut = cut.saturating_add(1);
            return caller;
        };
        nodes.push(Node { caller: caller.0, frame });
        ids.insert_unique(hash, id, |id| {
            node(nodes, *id).map_or(0, |node| hasher.hash_one((node.caller, node.frame)))
        });
        StackId(id)
    }

    /// The frames of a stack, leaf first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = F> {
        core::iter::successors(node(&self.nodes, stack.0), |below| node(&self.nodes, below.caller))
            .map(|node| node.frame)
    }

    /// The leaf of a stack.
    pub fn leaf(&self, stack: StackId) -> Option<F> {
        node(&self.nodes, stack.0).map(|node| node.frame)
    }

    /// The stack without its leaf; `None` for the empty one.
    pub fn caller(&self, stack: StackId) -> Option<StackId> {
        node(&self.nodes, stack.0).map(|node| StackId(node.caller))
    }

    /// Returns the number of stacks without the empty one. Callers precede their callees.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if only the empty stack is known.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All stacks but the empty one, callers before their callees.
    pub fn stacks(&self) -> impl DoubleEndedIterator<Item = StackId> + use<F> {
        (1..=u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(StackId)
    }

    /// Returns the number of frames left out because the limit was reached.
    pub const fn cut(&self) -> u64 {
        self.cut
    }
}

#[inline]
fn node<F>(nodes: &[Node<F>], id: u32) -> Option<&Node<F>> {
    nodes.get(usize::try_from(id).ok()?.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_frames_of_stacks_are_stored_once() {
        let mut tree = StackTree::default();
        let one = tree.add(["main", "work", "sleep"]);
        let other = tree.add(["main", "work", "spin"]);
        assert_eq!(tree.len(), 4);
        assert_eq!(tree.add(["main", "work", "sleep"]), one);
        assert_eq!(tree.frames(other).collect::<Vec<_>>(), ["spin", "work", "main"]);
        assert_eq!((tree.leaf(one), tree.caller(one)), (Some("sleep"), tree.caller(other)));
        assert_eq!(tree.add([]), StackId::EMPTY);
        assert_eq!((tree.leaf(StackId::EMPTY), tree.caller(StackId::EMPTY)), (None, None));
        assert_eq!(tree.frames(StackId::EMPTY).count(), 0);
        assert_eq!(tree.stacks().map(StackId::index).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    #[test]
    fn a_full_tree_cuts_stacks_and_says_so() {
        let mut tree = StackTree::with_limit(2);
        let stack = tree.add([1, 2, 3, 4]);
        assert_eq!(tree.frames(stack).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((tree.len(), tree.cut()), (2, 2));
        assert_eq!(tree.add([1, 2]), stack);
        assert_eq!(tree.cut(), 2);
    }
}
