//! Stacks of addresses, as events have them.

use std::hash::BuildHasher as _;

use clr_events::{StackId, StackTree};
use hashbrown::DefaultHashBuilder;
use nettrace::Event;

/// How many stacks are found without looking at each frame. A power of two.
const CACHE: usize = 4096;

/// Frames that are kept: some 200 MB.
const LIMIT: u32 = 1 << 23;

/// Longer stacks are not worth comparing whole.
const LONGEST: usize = 4096;

/// All stacks of addresses that were met.
#[derive(Debug)]
pub(crate) struct AddressStacks {
    tree: StackTree<u64>,
    cache: Vec<(Vec<u8>, StackId)>,
    hasher: DefaultHashBuilder,
}

impl Default for AddressStacks {
    fn default() -> Self {
        Self {
            tree: StackTree::with_limit(LIMIT),
            cache: vec![(Vec::new(), StackId::EMPTY); CACHE],
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl AddressStacks {
    /// The stack of an event.
    #[inline]
    pub(crate) fn of(&mut self, event: &Event<'_>) -> StackId {
        let stack = event.stack();
        let bytes = stack.as_bytes();
        let Self { tree, cache, hasher } = self;
        #[allow(clippy::cast_possible_truncation, reason = "only low bits are wanted")]
        let place = hasher.hash_one(bytes) as usize & (CACHE - 1);
        let Some((known, id)) = cache.get_mut(place) else { return StackId::EMPTY };
        if known == bytes {
            return *id;
        }
        let found = tree.add(stack.rev());
        if bytes.len() <= LONGEST {
            known.clear();
            known.extend_from_slice(bytes);
            *id = found;
        }
        found
    }

    pub(crate) const fn tree(&self) -> &StackTree<u64> {
        &self.tree
    }

    /// Frames that were left out.
    pub(crate) const fn cut(&self) -> u64 {
        self.tree.cut()
    }
}
