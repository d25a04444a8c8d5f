//! Loader heaps: memory of the runtime for its descriptions of types and methods, and for stubs. Each kind
//! has a heap of its own in the allocator of the load contexts that are never unloaded, and in that of each
//! other context.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/loaderallocator.hpp` (`LoaderAllocator`), `inc/loaderheap.h`
//! (`UnlockedLoaderHeap`, `LoaderHeapBlock`).

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::claims::Claims;
use super::owner::MemoryOwner;
use super::parts::PartName;
use crate::dump::Dump;
use crate::memory::address::Address;
use crate::memory::{Memory, PAGE, offset};
use crate::runtime::module::follow;

/// Maximum number of allocators: one for each load context that can be unloaded.
const MAX_ALLOCATORS: usize = 1 << 14;
/// Maximum number of blocks of all heaps.
const MAX_BLOCKS: u64 = 1 << 18;
/// The offset of the first heap in an allocator, which all versions have. The pointers to the heaps, of which
/// the first is to it, follow the heaps.
const FIRST_HEAP: u64 = 16;
/// Bounds of the size of a heap.
const MIN_HEAP: u64 = 96;
const MAX_HEAP: u64 = 192;
/// The number of words of an allocator in which the pointers are looked for.
const WORDS: usize = 512;
/// The number of the pointers, with one that is not to a loader heap.
const POINTERS: usize = 9;
/// Maximum distance of a heap from its allocator.
const MAX_DISTANCE: u64 = 8192;
/// The offset of the pointer to the first block in a heap.
const FIRST_BLOCK: u64 = 8;
/// Maximum size of a block.
const MAX_BLOCK: u64 = 1 << 32;
/// The offset in the description of a heap of code of four words, of which one is the pointer to the
/// allocator.
const OF_CODE_HEAP: u64 = 48;
/// Minimum value of an address.
const MIN_ADDRESS: u64 = 1 << 16;
/// The contexts of an allocator that no known module leads to.
const UNLOADABLE: &str = "load contexts that can be unloaded";

/// The kind of a loader heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    LowFrequency,
    HighFrequency,
    Statics,
    Stubs,
    Precode,
    Executable,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::LowFrequency => "low-frequency heap",
            Self::HighFrequency => "high-frequency heap",
            Self::Statics => "heap of static fields",
            Self::Stubs => "stub heap",
            Self::Precode => "precode heaps",
            Self::Executable => "executable heap",
        }
    }
}

/// Claims the blocks of all loader heaps. Allocators are found by the modules that are known, and by the
/// descriptions of the heaps of code: those of contexts that can be unloaded have code of their own.
pub(super) fn claim(dump: &Dump<'_>, code_heaps: &[Address], claims: &mut Claims) {
    let (memory, runtime) = (dump.memory(), dump.runtime());
    let path = runtime.layout.module.native_loader_allocator;
    if path.is_empty() {
        return;
    }
    let mut allocators: HashMap<u64, Arc<str>> = HashMap::new();
    let mut add = |module: Address, name: &str| {
        let allocator = follow(memory, module.get(), path).unwrap_or_default();
        if allocator != 0 && allocators.len() < MAX_ALLOCATORS {
            allocators.entry(allocator).or_insert_with(|| name.into());
        }
    };
    // The module of strings is never unloaded. In a single file it has no code of its own.
    let strings = runtime.string_type(memory).and_then(|of| dump.types().module_of(of));
    if let Ok(module) = strings {
        add(module, "");
    }
    for module in dump.types().modules() {
        add(module.address, module.file_name());
    }
    let unloadable: Arc<str> = UNLOADABLE.into();
    let mut rejected = HashSet::new();
    for heap in code_heaps {
        let words = memory.words::<4>(heap.at(OF_CODE_HEAP)).unwrap_or_default();
        for allocator in words.into_iter().filter(|word| *word >= MIN_ADDRESS && word.is_multiple_of(8)) {
            let is_known = allocators.contains_key(&allocator) || rejected.contains(&allocator);
            if is_known || allocators.len() >= MAX_ALLOCATORS {
                continue;
            }
            if heaps(memory, allocator).is_empty() {
                rejected.insert(allocator);
            } else {
                allocators.insert(allocator, Arc::clone(&unloadable));
            }
        }
    }
    let mut left = MAX_BLOCKS;
    let mut parts: HashMap<(Kind, Arc<str>), usize> = HashMap::new();
    for (allocator, module) in allocators {
        for (kind, heap) in heaps(memory, allocator) {
            let mut part = None;
            each_block(memory, heap, &mut left, |start, end| {
                let part = *part.get_or_insert_with(|| {
                    let new = || claims.part(PartName::new(part_name(kind, &module)));
                    *parts.entry((kind, Arc::clone(&module))).or_insert_with(new)
                });
                claims.add(start, end, MemoryOwner::LoaderHeaps, Some(part));
            });
        }
    }
}

/// The name of a heap of the contexts that load a module first; empty for those that are never unloaded.
fn part_name(kind: Kind, module: &str) -> String {
    match module {
        "" => kind.name().to_owned(),
        module => [kind.name(), " of ", module].concat(),
    }
}

/// The heaps of an allocator, with their kinds.
fn heaps(memory: &dyn Memory, allocator: u64) -> Vec<(Kind, u64)> {
    let mut words: Vec<u64> = Vec::with_capacity(WORDS);
    // The memory after an allocator need not be there.
    while words.len() < WORDS {
        let at = u64::try_from(words.len()).unwrap_or_default().wrapping_mul(8);
        let Ok(bytes) = memory.array::<512>(offset(allocator, at)) else { break };
        words.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
    }
    let Some(first) = first_pointer(allocator, &words) else { return Vec::new() };
    let place = offset(allocator, u64::try_from(first).unwrap_or_default().wrapping_mul(8));
    let pointers = words.get(first..).and_then(|words| words.first_chunk::<POINTERS>());
    let pointers = pointers.copied().unwrap_or_default();
    let [low, high, third, fourth, ..] = pointers;
    // Heaps lie in this order in all versions: stubs, precode, statics. Their pointers do not.
    let has_statics = third > fourth || third == high;
    let mut heaps = vec![(Kind::HighFrequency, high)];
    if low != high {
        heaps.push((Kind::LowFrequency, low));
    }
    if has_statics && third != high {
        heaps.push((Kind::Statics, third));
    }
    heaps.push((Kind::Stubs, if has_statics { fourth } else { third }));
    let others = pointers.iter().skip(if has_statics { 4 } else { 3 });
    // The allocator of all contexts has the executable heap after everything else.
    heaps.extend(
        others.map(|heap| if *heap > place { (Kind::Executable, *heap) } else { (Kind::Precode, *heap) }),
    );
    let is_own = |heap: u64| heap > allocator && heap.saturating_sub(allocator) < MAX_DISTANCE;
    heaps.retain(|(_, heap)| is_own(*heap));
    heaps
}

/// The index of the first pointer to a heap in the words of an allocator. Contexts that can be unloaded have
/// one heap for both frequencies and for static fields, which is the second one, and equal pointers to it.
fn first_pointer(allocator: u64, words: &[u64]) -> Option<usize> {
    let first = offset(allocator, FIRST_HEAP);
    let second = offset(first, MIN_HEAP)..=offset(first, MAX_HEAP);
    let is_pair = |pair: &[u64]| matches!(pair, [one, other] if one == other && second.contains(one));
    words.iter().position(|word| *word == first).or_else(|| words.windows(2).position(is_pair))
}

/// Passes the blocks of a heap, start and end, to `found`. A word that is not a block ends the list.
fn each_block(memory: &dyn Memory, heap: u64, left: &mut u64, mut found: impl FnMut(u64, u64)) {
    let mut block = memory.u64(offset(heap, FIRST_BLOCK)).unwrap_or_default();
    while block != 0 && *left > 0 {
        *left = left.saturating_sub(1);
        let Ok([next, start, size]) = memory.words(block) else { return };
        let is_block = start != 0 && start.is_multiple_of(PAGE) && size.is_multiple_of(PAGE);
        if !is_block || !(PAGE..=MAX_BLOCK).contains(&size) {
            return;
        }
        found(start, start.saturating_add(size));
        block = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    const ALLOCATOR: u64 = 0x1_0000;
    const POINTERS_AT: u64 = ALLOCATOR + 0x200;

    /// An allocator with heaps at these offsets, each with a block of one page at its number.
    fn allocator(pointers: [u64; POINTERS]) -> TestMemory {
        let mut memory = TestMemory::default();
        let mut words = vec![0; 0x400 / 8];
        for (index, heap) in pointers.into_iter().enumerate().filter(|(_, heap)| *heap != 0) {
            let place = usize::try_from((POINTERS_AT - ALLOCATOR) / 8).unwrap();
            words[place + index] = ALLOCATOR + heap;
            let block = 0x2_0000 + heap;
            words[usize::try_from(heap / 8).unwrap() + 1] = block;
            memory.put_words(block, &[0, heap << 12, PAGE]);
        }
        memory.put_words(ALLOCATOR, &words);
        memory
    }

    fn blocks(memory: &TestMemory) -> Vec<(Kind, u64)> {
        let mut blocks = Vec::new();
        for (kind, heap) in heaps(memory, ALLOCATOR) {
            let mut left = MAX_BLOCKS;
            each_block(memory, heap, &mut left, |start, _| blocks.push((kind, start >> 12)));
        }
        blocks
    }

    #[test]
    fn heaps_are_known_by_their_order() {
        let [low, high, stubs, fixups, precode, statics, executable] =
            [0x10, 0x50, 0x90, 0xd0, 0x110, 0x150, 0x300];
        // .NET 9 and 10; .NET 8; .NET Core 3.1, which has no pointers to precode.
        assert_eq!(
            blocks(&allocator([low, high, statics, stubs, executable, 0, fixups, precode, 0])),
            [
                (Kind::HighFrequency, high),
                (Kind::LowFrequency, low),
                (Kind::Statics, statics),
                (Kind::Stubs, stubs),
                (Kind::Executable, executable),
                (Kind::Precode, fixups),
                (Kind::Precode, precode)
            ]
        );
        assert_eq!(
            blocks(&allocator([low, high, stubs, fixups, executable, 0, 0, 0, 0])),
            [
                (Kind::HighFrequency, high),
                (Kind::LowFrequency, low),
                (Kind::Stubs, stubs),
                (Kind::Precode, fixups),
                (Kind::Executable, executable)
            ]
        );
    }

    #[test]
    fn contexts_that_can_be_unloaded_have_one_heap_for_both_frequencies() {
        let [high, stubs, precode] = [0x10 + 144, 0x130, 0x170];
        let expected = [(Kind::HighFrequency, high), (Kind::Stubs, stubs), (Kind::Precode, precode)];
        assert_eq!(blocks(&allocator([high, high, stubs, precode, 0, 0, 0, 0, 0])), expected);
        // In versions with a heap of static fields, it is the same one, too.
        assert_eq!(blocks(&allocator([high, high, high, stubs, precode, 0, 0, 0, 0])), expected);
    }

    #[test]
    fn hostile_heaps_end() {
        // No allocator, and one without pointers.
        assert_eq!(heaps(&TestMemory::default(), ALLOCATOR), []);
        assert_eq!(heaps(&TestMemory::default(), u64::MAX - 8), []);
        let mut memory = TestMemory::default();
        memory.put_words(ALLOCATOR, &[0; 1024]);
        assert_eq!(heaps(&memory, ALLOCATOR), []);
        // A ring of blocks, one that is not of whole pages, one that is too large, and one at the end of all
        // addresses.
        let mut memory = TestMemory::default();
        memory.put_words(0x1000, &[0, 0x2000]).put_words(0x2000, &[0x2000, 0x7000, PAGE]);
        let count = |memory: &TestMemory, mut left: u64| {
            let mut count = 0;
            each_block(memory, 0x1000, &mut left, |start, end| count += u64::from(start < end));
            count
        };
        assert_eq!(count(&memory, 1000), 1000);
        for block in [[0, 0x7001, PAGE], [0, 0x7000, PAGE + 8], [0, 0x7000, MAX_BLOCK + PAGE], [0, 0, PAGE]] {
            memory.put_words(0x2000, &block);
            assert_eq!(count(&memory, 1000), 0, "{block:x?}");
        }
        memory.put_words(0x2000, &[0x3000, u64::MAX - 0xfff, MAX_BLOCK]);
        assert_eq!(count(&memory, 1000), 1);
    }
}
