//! Words of the runtime's own data on a stack that can be references: of explicit frames, which have the
//! arguments of a call that is on its way and objects that native code uses, and of the runtime's lists of
//! such objects.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/frames.h` (`TransitionFrame`, `HelperMethodFrame_1OBJ`, `GCFrame`),
//! `vm/callingconvention.h` (`TransitionBlock`).

use std::ops::Range;

use hashbrown::HashSet;

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

/// Returns the words that can be references. `managed` are the parts of the stack of managed frames, which
/// rise.
pub(crate) fn words(
    memory: &dyn Memory,
    runtime: &Runtime,
    thread: &Thread,
    managed: &[Range<u64>],
) -> Vec<Address> {
    let mut words = Words { memory, found: Vec::new() };
    if matches!(runtime.layout.frames.inlined_call, FrameKind::Transition) {
        return Vec::new();
    }
    let inlined = runtime.frame_kind(Some(runtime.layout.frames.inlined_call));
    let mut at = thread.frame.get();
    for _ in 0..MAX_FRAMES {
        if at == 0 || at == u64::MAX {
            break;
        }
        let Ok([kind, next]) = memory.words(at) else { break };
        if Some(kind) != inlined {
            words.frame(runtime, at);
        }
        if next <= at {
            break;
        }
        at = next;
    }
    for native in between(managed, thread.frame.get()) {
        words.lists(thread.address.get(), native);
    }
    words.found
}

/// The parts of the stack between managed frames, and the part below them up to the innermost explicit frame
/// or the stack pointer, whichever is lower.
fn between(managed: &[Range<u64>], frame: u64) -> Vec<Range<u64>> {
    let Some(first) = managed.first() else { return Vec::new() };
    let start = first.start.saturating_sub(MAX_NATIVE.min(REACH)).min(frame);
    let below = start.max(first.start.saturating_sub(REACH))..first.start;
    let pairs = managed.iter().zip(managed.iter().skip(1));
    let gaps = pairs.map(|(one, next)| one.end..next.start);
    std::iter::once(below).chain(gaps.filter(|gap| gap.start < gap.end)).collect()
}

struct Words<'m> {
    memory: &'m dyn Memory,
    found: Vec<Address>,
}

impl Words<'_> {
    /// Adds the words of an explicit frame, the words that it points to nearby, and the arguments of its
    /// transition block.
    fn frame(&mut self, runtime: &Runtime, at: u64) {
        let frames = &runtime.layout.frames;
        let first = if frames.has_helpers { MACHINE_STATE } else { 16 };
        for word in self.range(offset(at, first)..offset(at, FRAME_SIZE)) {
            self.found.push(Address::new(word));
            if word.abs_diff(at) < REACH && word.is_multiple_of(8) {
                self.found.extend(self.memory.pointer(word).ok());
            }
        }
        let Ok(block) = self.memory.u64(offset(at, 16)) else { return };
        if block.abs_diff(at) >= REACH {
            return;
        }
        let [before, after] = ARGUMENTS;
        let end = offset(block, frames.transition_block.size);
        for range in [block.saturating_sub(before)..block, end..offset(end, after)] {
            let words = self.range(range);
            self.found.extend(words.into_iter().map(Address::new));
        }
    }

    /// Adds the references of lists in native frames: a list has the address of its thread, that of the
    /// references, and their number.
    fn lists(&mut self, thread: u64, native: Range<u64>) {
        let mut seen = HashSet::new();
        let range = native.start & !7..native.end.min(offset(native.start, MAX_NATIVE));
        let words = self.range(range.clone());
        for (own, fields) in range.step_by(8).zip(words.windows(3)) {
            let [of, at, count] = fields else { continue };
            let count = count & 0xffff_ffff;
            if *of != thread || at.abs_diff(own) >= REACH || !at.is_multiple_of(8) || count > MAX_LISTED {
                continue;
            }
            if seen.insert(*at) {
                let listed = self.range(*at..offset(*at, count.wrapping_mul(8)));
                self.found.extend(listed.into_iter().map(Address::new));
            }
        }
    }

    /// The words of a part of the stack, up to one that is missing.
    fn range(&self, range: Range<u64>) -> Vec<u64> {
        range.step_by(8).map_while(|at| self.memory.u64(at).ok()).collect()
    }
}
