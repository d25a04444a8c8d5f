//! Causes of work: the stack that created a task, and the cause of that stack.

use clr_events::StackId;
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use nettrace::Ticks;

/// A cause; the default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CauseId(u32);

impl CauseId {
    /// No cause.
    pub const NONE: Self = Self(0);
}

/// A stack that created something, and the cause of that stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs, reason = "made by those who have work of their own")]
pub struct Cause {
    /// The cause of that stack.
    pub by: CauseId,
    /// The stack, of addresses.
    pub stack: StackId,
    /// The generation of its addresses: code can be unloaded, and its addresses used again.
    pub generation: u32,
}

/// Maximum number of causes to distinguish: some 40 MB.
const MAX_CAUSES: usize = 1 << 20;

/// Maximum length of a chain of causes to follow.
const MAX_DEPTH: usize = 32;

/// All causes seen so far with their first times, as a tree in which no branch has a stack twice: loops of
/// tasks that each create the next one end.
///
/// ```
/// use clr_activity::{Cause, CauseId, Causes};
/// use clr_events::StackTree;
/// use nettrace::Ticks;
///
/// let (mut stacks, mut causes) = (StackTree::default(), Causes::default());
/// let [main, worker] = [[0x1000, 0x1010], [0x1000, 0x2020]].map(|addresses| stacks.add(addresses));
/// let first = causes.of(Cause { by: CauseId::NONE, stack: main, generation: 0 }, Ticks(5));
/// let second = causes.of(Cause { by: first, stack: worker, generation: 0 }, Ticks(9));
/// // A loop of tasks ends at its first cause.
/// assert_eq!(causes.of(Cause { by: second, stack: main, generation: 0 }, Ticks(12)), first);
/// ```
#[derive(Debug, Default)]
pub struct Causes {
    all: IndexMap<Cause, Ticks, DefaultHashBuilder>,
    left_out: u64,
}

impl Causes {
    /// Returns the id of a cause, first seen at `time`. A cause deeper than the limit becomes its parent.
    pub fn of(&mut self, cause: Cause, time: Ticks) -> CauseId {
        if cause.stack == StackId::EMPTY {
            return cause.by;
        }
        let mut depth = 0usize;
        let mut above = cause.by;
        while let Some((one, _)) = self.get(above) {
            if (one.stack, one.generation) == (cause.stack, cause.generation) {
                return above;
            }
            above = one.by;
            depth = depth.saturating_add(1);
        }
        let place = match self.all.get_index_of(&cause) {
            None if depth < MAX_DEPTH && self.all.len() < MAX_CAUSES => self.all.insert_full(cause, time).0,
            Some(place) => place,
            None => {
                self.left_out = self.left_out.saturating_add(1);
                return cause.by;
            }
        };
        debug_assert!(place < MAX_CAUSES, "more causes than are kept");
        u32::try_from(place.saturating_add(1)).map_or(cause.by, CauseId)
    }

    /// Returns a cause, and the time at which it was first seen.
    pub fn get(&self, id: CauseId) -> Option<(&Cause, Ticks)> {
        let (cause, time) = self.all.get_index((id.0 as usize).checked_sub(1)?)?;
        Some((cause, *time))
    }

    /// Returns the number of causes that became their parents.
    pub const fn left_out(&self) -> u64 {
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
        let cause = |by, stack| Cause { by, stack, generation: 0 };
        let first = causes.of(cause(CauseId::NONE, stack[0]), Ticks(0));
        let second = causes.of(cause(first, stack[1]), Ticks(1));
        for _ in 0..1000 {
            assert_eq!(causes.of(cause(second, stack[0]), Ticks(2)), first);
            assert_eq!(causes.of(cause(first, stack[1]), Ticks(1)), second);
            assert_eq!(causes.of(cause(second, StackId::EMPTY), Ticks(2)), second);
        }
        let mut at = CauseId::NONE;
        for stack in &stack {
            at = causes.of(cause(at, *stack), Ticks(3));
        }
        assert_eq!(causes.get(at).map(|(cause, _)| cause.stack), Some(stack[31]));
        assert_eq!(causes.left_out(), 8);
        // The same addresses had another meaning before.
        let later = causes.of(Cause { generation: 1, ..cause(first, stack[0]) }, Ticks(4));
        assert_ne!(later, first);
    }
}
