//! Blocks of malloc with mappings of their own.

use std::time::Instant;

use crate::memory::{Memory, PAGE, offset};

/// Maximum number of pages that are looked at in search of a block.
const MAX_PAGES: u64 = 1 << 16;
/// The lowest bits of the size of such a block: a mapping of its own, and no neighbours.
const FLAGS: u64 = 7;
const MAPPED: u64 = 2;

/// Finds blocks of malloc that have mappings of their own, in ranges of memory that nothing else is known to
/// own. The kernel joins neighbouring mappings, so a range can have many of them, one after another. Passes
/// each run of blocks, start and end, to `found`. The search ends when `expected` bytes were found.
pub(crate) fn find(
    memory: &dyn Memory,
    ranges: impl IntoIterator<Item = (u64, u64)>,
    expected: Option<u64>,
    until: Option<Instant>,
    mut found: impl FnMut(u64, u64),
) {
    let mut left = MAX_PAGES;
    let mut missing = expected.unwrap_or(u64::MAX);
    for (start, end) in ranges {
        let mut at = start;
        while at < end {
            if missing == 0 || left == 0 || until.is_some_and(|until| Instant::now() >= until) {
                return;
            }
            let run = at;
            while let Some(bytes) = block(memory, at, end) {
                at = offset(at, bytes);
                missing = missing.saturating_sub(bytes);
            }
            if at > run {
                found(run, at);
            } else {
                left = left.saturating_sub(1);
                at = offset(at, PAGE);
            }
        }
    }
}

/// The bytes of the block that begins at a page.
fn block(memory: &dyn Memory, at: u64, end: u64) -> Option<u64> {
    let left = end.checked_sub(at).filter(|left| *left >= PAGE)?;
    let [before, word] = memory.words(at).ok()?;
    let bytes = word & !FLAGS;
    let is_block = before == 0 && word & FLAGS == MAPPED && bytes.is_multiple_of(PAGE);
    (is_block && (PAGE..=left).contains(&bytes)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    fn runs(memory: &TestMemory, ranges: &[(u64, u64)], expected: Option<u64>) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        find(memory, ranges.iter().copied(), expected, None, |start, end| runs.push((start, end)));
        runs
    }

    #[test]
    fn blocks_that_follow_one_another_are_one_run() {
        let mut memory = TestMemory::default();
        // A page of something else, two blocks, and a page that is none.
        for (at, size) in [(0x1000, 7), (0x2000, 0x2002), (0x4000, 0x1002), (0x5000, 0x9002)] {
            memory.put_words(at, &[0, size]);
        }
        let range = [(0x1000, 0x6000)];
        assert_eq!(runs(&memory, &range, None), [(0x2000, 0x5000)]);
        assert_eq!(runs(&memory, &range, Some(0)), []);
        // A block that is larger than its range, and one that is not of whole pages.
        assert_eq!(runs(&memory, &[(0x2000, 0x3000)], None), []);
        memory.put_words(0x2000, &[0, 0x1012]).put_words(0x4000, &[1, 0x1002]);
        assert_eq!(runs(&memory, &range, None), []);
    }

    #[test]
    fn a_search_without_blocks_ends() {
        let memory = TestMemory::default();
        assert_eq!(runs(&memory, &[(0, u64::MAX), (0x1000, u64::MAX)], None), []);
        let mut memory = TestMemory::default();
        memory.put_words(0x1000, &[0, !5]);
        assert_eq!(runs(&memory, &[(0x1000, u64::MAX)], None), []);
    }
}
