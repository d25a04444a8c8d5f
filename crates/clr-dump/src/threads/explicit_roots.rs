//! Words of the runtime's own data on a stack that can be references: of explicit frames, which have the
//! arguments of a call that is on its way and objects that native code uses, and of the runtime's lists of
//! such objects.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/frames.h` (`TransitionFrame`, `HelperMethodFrame_1OBJ`, `GCFrame`),
//! `vm/callingconvention.h` (`TransitionBlock`).

use std::ops::Range;

use crate::memory::address::Address;
use crate::memory::{Memory, offset};
use crate::runtime::Runtime;
use crate::runtime::layout::FrameKind;
use crate::threads::thread::Thread;

/// Maximum number of explicit frames of a thread.
const MAX_FRAMES: usize = 8096;
/// Maximum distance in bytes between an explicit frame and its data.
const REACH: u64 = 0x1_0000;
/// The bytes of a helper method's frame before its references: they have registers of its caller.
const MACHINE_STATE: u64 = 0xe8;
/// The bytes of an explicit frame that can have references.
const FRAME_SIZE: u64 = 0x140;
/// The bytes before the registers of a transition block that have arguments, and those after it.
const ARGUMENTS: [u64; 2] = [0x40, 0x80];
/// Maximum number of bytes of native frames to search for lists of references.
const MAX_NATIVE: u64 = 1 << 20;
/// Maximum number of references of a list.
const MAX_LISTED: u64 = 64;
/// Maximum number of words of a thread.
const MAX_FOUND: usize = 1 << 20;

/// Returns the addresses of a thread's explicit frames in rising order, but for calls of native code: those
/// have no references of their own.
pub(crate) fn frames(memory: &dyn Memory, runtime: &Runtime, thread: &Thread) -> Vec<u64> {
    let mut frames = Vec::new();
    let inlined = runtime.layout.frames.inlined_call;
    let (is_listed, inlined) = (inlined != FrameKind::Transition, runtime.frame_kind(Some(inlined)));
    let mut at = thread.frame.get();
    while is_listed && frames.len() < MAX_FRAMES && at != 0 && at != u64::MAX {
        let Ok([kind, next]) = memory.words(at) else { break };
        if Some(kind) != inlined {
            frames.push(at);
        }
        if next <= at {
            break;
        }
        at = next;
    }
    frames
}

/// Returns the words of a part of a thread's stack that can be references, given the explicit frames.
/// `managed` are the parts of managed frames, which rise.
pub(crate) fn words(
    memory: &dyn Memory,
    runtime: &Runtime,
    thread: &Thread,
    explicit: &[u64],
    (stack, managed): (Range<u64>, &[Range<u64>]),
) -> Vec<Address> {
    let mut words = Words { memory, stack: stack.clone(), managed, found: Vec::new() };
    for at in explicit {
        if words.is_full() {
            break;
        }
        words.frame(runtime, *at);
    }
    for native in between(stack, managed) {
        if words.is_full() {
            break;
        }
        words.lists(thread.address.get(), native);
    }
    words.found
}

/// The parts of a stack that are not of managed frames.
fn between(stack: Range<u64>, managed: &[Range<u64>]) -> Vec<Range<u64>> {
    let starts = std::iter::once(stack.start).chain(managed.iter().map(|part| part.end));
    let ends = managed.iter().map(|part| part.start).chain([stack.end]);
    starts.zip(ends).map(|(start, end)| start..end.min(stack.end)).filter(|gap| gap.start < gap.end).collect()
}

struct Words<'m> {
    memory: &'m dyn Memory,
    /// The part of the stack that is searched: a copy without numbers has its addresses.
    stack: Range<u64>,
    /// The parts of managed frames, whose own slots are known.
    managed: &'m [Range<u64>],
    found: Vec<Address>,
}

impl Words<'_> {
    fn add(&mut self, words: impl IntoIterator<Item = u64>) {
        let room = MAX_FOUND.saturating_sub(self.found.len());
        self.found.extend(words.into_iter().take(room).map(Address::new));
    }

    const fn is_full(&self) -> bool {
        self.found.len() >= MAX_FOUND
    }

    /// Adds the words of an explicit frame, the words that it points to nearby, and the arguments of its
    /// transition block.
    fn frame(&mut self, runtime: &Runtime, at: u64) {
        let frames = &runtime.layout.frames;
        self.list(at, offset(at, 16));
        let first = if frames.has_helpers { MACHINE_STATE } else { 16 };
        for word in self.range(offset(at, first)..offset(at, FRAME_SIZE)) {
            self.add([word]);
            if word.abs_diff(at) < REACH && word.is_multiple_of(8) {
                self.add(self.range(word..offset(word, 8)));
            }
        }
        let Ok(block) = self.memory.u64(offset(at, 16)) else { return };
        if block.abs_diff(at) >= REACH {
            return;
        }
        let [before, after] = ARGUMENTS;
        let end = offset(block, frames.transition_block.size);
        for range in [block.saturating_sub(before)..block, end..offset(end, after)] {
            self.add(self.range(range));
        }
    }

    /// Adds the references of lists in native frames: a list has the address of its thread before that of its
    /// references.
    fn lists(&mut self, thread: u64, native: Range<u64>) {
        let end = native.end.min(offset(native.start, MAX_NATIVE));
        for at in (native.start & !7..end).step_by(8) {
            if self.is_full() {
                break;
            }
            match self.memory.u64(at) {
                Ok(word) if word == thread => self.list(at, offset(at, 8)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }

    /// Adds the references of a list: `at` has the address of the first one, followed by their number.
    fn list(&mut self, near: u64, at: u64) {
        let Ok([first, count]) = self.memory.words(at) else { return };
        // A copy without numbers can lack it.
        let count = (count & 0xffff_ffff).max(1);
        if first.abs_diff(near) < REACH && first.is_multiple_of(8) && count <= MAX_LISTED {
            self.add(self.range(first..offset(first, count.wrapping_mul(8))));
        }
    }

    /// The words of a part of the stack outside managed frames, up to a word that is missing.
    fn range(&self, range: Range<u64>) -> Vec<u64> {
        let is_managed = |at: &u64| {
            let next = self.managed.partition_point(|part| part.start <= *at);
            let part = next.checked_sub(1).and_then(|index| self.managed.get(index));
            part.is_some_and(|part| part.contains(at))
        };
        let places = range.step_by(8).filter(|at| self.stack.contains(at) && !is_managed(at));
        places.map_while(|at| self.memory.u64(at).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    #[test]
    fn words_of_a_thread_have_a_limit() {
        let memory = TestMemory::default();
        let mut words = Words { memory: &memory, stack: 0..0x1000, managed: &[], found: Vec::new() };
        words.add(0..u64::MAX);
        assert!(words.is_full());
        words.add([1]);
        assert_eq!(words.found.len(), MAX_FOUND);
    }
}
