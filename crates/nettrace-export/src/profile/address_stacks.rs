//! Stacks of addresses, as events have them.

use std::hash::BuildHasher as _;

use clr_events::{StackId, StackTree};
use hashbrown::DefaultHashBuilder;
use nettrace::Event;

/// Entries of the cache of whole stacks. A power of two.
const CACHE: usize = 4096;

/// Frames that are kept: some 200 MB.
const LIMIT: u32 = 1 << 23;

/// Frames of a stack that are kept, from the leaf on. Runtimes take 100.
const MAX_DEPTH: usize = 1024;

/// All stacks of addresses that were met.
#[derive(Debug)]
pub(crate) struct AddressStacks {
    tree: StackTree<u64>,
    cache: Vec<(Vec<u8>, StackId)>,
    hasher: DefaultHashBuilder,
    /// The stack at hand.
    leaf_first: Vec<u64>,
    /// Frames that lay deeper than is kept.
    deeper: u64,
}

impl Default for AddressStacks {
    fn default() -> Self {
        Self {
            tree: StackTree::with_limit(LIMIT),
            cache: vec![(Vec::new(), StackId::EMPTY); CACHE],
            hasher: DefaultHashBuilder::default(),
            leaf_first: Vec::new(),
            deeper: 0,
        }
    }
}

impl AddressStacks {
    /// The stack of an event.
    #[inline]
    pub(crate) fn of(&mut self, event: &Event<'_>) -> StackId {
        let stack = event.stack();
        let bytes = stack.as_bytes();
        // Only the kept part is compared.
        let bytes = bytes.get(..MAX_DEPTH * usize::from(event.pointer_size())).unwrap_or(bytes);
        let Self { tree, cache, hasher, leaf_first, deeper } = self;
        #[allow(clippy::cast_possible_truncation, reason = "only low bits are wanted")]
        let place = hasher.hash_one(bytes) as usize & (CACHE - 1);
        let Some((known, id)) = cache.get_mut(place) else { return StackId::EMPTY };
        if known == bytes {
            return *id;
        }
        let left_out = stack.len().saturating_sub(MAX_DEPTH);
        *deeper = deeper.saturating_add(left_out as u64);
        leaf_first.clear();
        leaf_first.extend(stack.take(MAX_DEPTH));
        *id = tree.add(leaf_first.iter().rev().copied());
        known.clear();
        known.extend_from_slice(bytes);
        *id
    }

    /// Adds a stack, root first.
    pub(crate) fn add(&mut self, frames: impl IntoIterator<Item = u64>) -> StackId {
        self.tree.add(frames)
    }

    /// Adds a stack of another table.
    pub(crate) fn add_of(&mut self, other: &Self, stack: StackId) -> StackId {
        let leaf_first: Vec<_> = other.tree.frames(stack).collect();
        self.tree.add(leaf_first.into_iter().rev())
    }

    pub(crate) const fn tree(&self) -> &StackTree<u64> {
        &self.tree
    }

    /// Frames that were left out.
    pub(crate) const fn cut(&self) -> u64 {
        self.tree.cut().saturating_add(self.deeper)
    }
}
