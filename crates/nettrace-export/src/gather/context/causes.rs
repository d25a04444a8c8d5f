//! What made somebody do something: the place where a task was created, and what had made somebody create it.

use std::hash::BuildHasher as _;

use clr_events::StackId;
use hashbrown::{DefaultHashBuilder, HashTable};
use nettrace::Ticks;

/// A cause; the default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::gather) struct CauseId(u32);

impl CauseId {
    pub(in crate::gather) const NONE: Self = Self(0);
}

/// A stack that created something, and what that stack was caused by itself.
#[derive(Debug, Clone, Copy)]
pub(in crate::gather) struct Cause {
    pub(in crate::gather) by: CauseId,
    /// Of addresses.
    pub(in crate::gather) stack: StackId,
    /// When it was met first.
    pub(in crate::gather) time: Ticks,
    /// Of which time its addresses are.
    pub(in crate::gather) generation: u32,
}

/// Causes that are told apart: some 40 MB.
const MOST: usize = 1 << 20;

/// Causes of causes that are followed.
const DEEPEST: usize = 32;

/// All causes that were met, as a tree in which no branch has a stack twice: loops of tasks that create the next one end.
#[derive(Debug, Default)]
pub(super) struct Causes {
    all: Vec<Cause>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    left_out: u64,
}

impl Causes {
    /// The cause that this is. One that is deeper than is followed is what caused it.
    pub(super) fn of(&mut self, cause: Cause) -> CauseId {
        if cause.stack == StackId::EMPTY {
            return cause.by;
        }
        let mut depth = 0;
        let mut above = cause.by;
        while let Some(one) = self.get(above) {
            if (one.stack, one.generation) == (cause.stack, cause.generation) {
                return above;
            }
            above = one.by;
            depth += 1;
        }
        let Self { all, ids, hasher, left_out } = self;
        let hash_of = |cause: &Cause| hasher.hash_one((cause.by, cause.stack, cause.generation));
        let of = |id: &u32| all.get((*id as usize).wrapping_sub(1));
        let same =
            |one: &Cause| (one.by, one.stack, one.generation) == (cause.by, cause.stack, cause.generation);
        if let Some(id) = ids.find(hash_of(&cause), |id| of(id).is_some_and(same)) {
            return CauseId(*id);
        }
        let id = all.len() + 1;
        let (Ok(id), true) = (u32::try_from(id), id <= MOST && depth < DEEPEST) else {
            *left_out = left_out.saturating_add(1);
            return cause.by;
        };
        ids.insert_unique(hash_of(&cause), id, |id| of(id).map_or(0, hash_of));
        all.push(cause);
        CauseId(id)
    }

    pub(super) fn get(&self, id: CauseId) -> Option<&Cause> {
        self.all.get((id.0 as usize).wrapping_sub(1))
    }

    /// Causes that became those above them.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use clr_events::StackTree;

    use super::*;

    #[test]
    fn a_loop_of_causes_ends_and_so_does_a_chain() {
        let mut stacks = StackTree::default();
        let mut causes = Causes::default();
        let stack: Vec<_> = (0u64..40).map(|address| stacks.add([address])).collect();
        let cause = |by, stack| Cause { by, stack, time: Ticks(0), generation: 0 };
        let first = causes.of(cause(CauseId::NONE, stack[0]));
        let second = causes.of(cause(first, stack[1]));
        for _ in 0..1000 {
            assert_eq!(causes.of(cause(second, stack[0])), first);
            assert_eq!(causes.of(cause(first, stack[1])), second);
            assert_eq!(causes.of(cause(second, StackId::EMPTY)), second);
        }
        let mut at = CauseId::NONE;
        for stack in &stack {
            at = causes.of(cause(at, *stack));
        }
        assert_eq!(causes.get(at).map(|cause| cause.stack), Some(stack[31]));
        assert_eq!(causes.left_out(), 8);
        // The same addresses meant something else before.
        let later = causes.of(Cause { generation: 1, ..cause(first, stack[0]) });
        assert_ne!(later, first);
    }
}
