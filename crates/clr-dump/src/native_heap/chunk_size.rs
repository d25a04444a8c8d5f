//! The word before the content of a chunk of glibc's malloc, with its size and flags.

/// The lowest bits of a chunk's size.
const FLAGS: u64 = 7;

/// The size of a chunk, by the word that has it.
pub(super) const fn size(word: u64) -> u64 {
    word & !FLAGS
}
