//! Names, each kept once.

use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use nettrace::Utf16;

/// A string in [`StringTable`]; equal strings have equal ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StringId(u32);

impl StringId {
    /// The empty text.
    pub(crate) const EMPTY: Self = Self(0);
}

/// Bytes of a chunk. Chunks never move, so that growing copies nothing. A power of two.
const CHUNK: usize = 1 << 20;

/// The bytes of a string's length prefix: three characters of 7 bits, so that a chunk is UTF-8.
const LENGTH_LEN: usize = 3;

/// Maximum length of a string in bytes; longer strings are cut between characters.
const MAX_LEN: usize = 1 << 16;

/// Strings in chunks. The id of a string is the offset of its length, all chunks counted as full.
///
/// A set of boxed strings would take an allocation, a pointer and a length for each text, and some 8 bytes
/// for its hash; here that is 3 bytes and a 4-byte id.
#[derive(Debug)]
pub(crate) struct StringTable {
    chunks: Vec<String>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The text that is being added, in UTF-8.
    scratch: String,
}

impl Default for StringTable {
    fn default() -> Self {
        let mut texts = Self {
            chunks: Vec::new(),
            ids: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            scratch: String::new(),
        };
        texts.add("");
        texts
    }
}

impl StringTable {
    /// Adds a string and returns its id.
    pub(crate) fn add_utf16(&mut self, text: Utf16<'_>) -> StringId {
        let mut bytes = core::mem::take(&mut self.scratch).into_bytes();
        bytes.clear();
        let units = text.as_bytes().as_chunks::<2>().0;
        let units = units.get(..MAX_LEN / 4).unwrap_or(units);
        // Nearly all names are ASCII, which does not need decoding.
        let is_ascii = units.iter().fold(0, |bits, unit| bits | u16::from_le_bytes(*unit)) < 0x80;
        if is_ascii {
            bytes.extend(units.iter().map(|[low, _]| *low));
        }
        let mut scratch = String::from_utf8(bytes).unwrap_or_default();
        if !is_ascii {
            scratch.extend(text.chars().take(MAX_LEN / 4));
        }
        let id = self.add(&scratch);
        self.scratch = scratch;
        id
    }

    /// Adds a string that should be UTF-8 and returns its id.
    pub(crate) fn add_utf8(&mut self, text: &[u8]) -> StringId {
        let text = text.get(..MAX_LEN).unwrap_or(text);
        self.add(&String::from_utf8_lossy(text))
    }

    /// Adds a string and returns its id; once 4 GB are full, the id of the empty string.
    pub(crate) fn add(&mut self, text: &str) -> StringId {
        let text = cut(text);
        let hash = self.hasher.hash_one(text);
        let Self { chunks, ids, hasher, .. } = self;
        if let Some(id) = ids.find(hash, |id| get(chunks, *id) == text) {
            return StringId(*id);
        }
        let needed = text.len().saturating_add(LENGTH_LEN);
        if chunks.last().is_none_or(|chunk| chunk.capacity().saturating_sub(chunk.len()) < needed) {
            chunks.push(String::with_capacity(CHUNK));
        }
        let place = chunks.len().checked_sub(1).and_then(|index| Some((index, chunks.get_mut(index)?)));
        let id = place.and_then(|(index, chunk)| {
            let id = u32::try_from(index.checked_mul(CHUNK)?.checked_add(chunk.len())?).ok()?;
            for shift in [0, 7, 14] {
                let bits = u8::try_from(text.len() >> shift & 0x7f).ok()?;
                chunk.push(char::from(bits));
            }
            chunk.push_str(text);
            Some(id)
        });
        let Some(id) = id else { return StringId::EMPTY };
        ids.insert_unique(hash, id, |id| hasher.hash_one(get(chunks, *id)));
        StringId(id)
    }

    /// Returns the text of an id.
    #[inline]
    pub(crate) fn get(&self, id: StringId) -> &str {
        get(&self.chunks, id.0)
    }

    /// Returns the number of bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        // Each id takes 4 bytes and a control byte, in a table that is 7/8 full at most.
        self.chunks.len().saturating_mul(CHUNK).saturating_add(self.ids.capacity().saturating_mul(6))
    }
}

/// Returns the part of a string that is kept. It does not end inside a character.
fn cut(text: &str) -> &str {
    (0..4).find_map(|back| text.get(..MAX_LEN.saturating_sub(back))).unwrap_or(text)
}

fn get(chunks: &[String], id: u32) -> &str {
    let found = || {
        let at = usize::try_from(id).ok()?;
        let rest = chunks.get(at.checked_div(CHUNK)?)?.get(at & (CHUNK - 1)..)?;
        let (length, text) = rest.split_at_checked(LENGTH_LEN)?;
        let length = length.bytes().rev().fold(0, |length: usize, bits| length << 7 | usize::from(bits));
        text.get(..length)
    };
    found().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned as _;
    use alloc::format;
    use alloc::vec;

    use super::*;

    #[test]
    fn equal_texts_are_kept_once() {
        let mut texts = StringTable::default();
        // Miri is some thousand times slower.
        let count = if cfg!(miri) { 1000 } else { 100_000 };
        let ids: Vec<_> = (0..count).map(|number| texts.add(&format!("text {number}"))).collect();
        let held = texts.bytes();
        for (number, id) in ids.iter().enumerate() {
            let text = format!("text {number}");
            assert_eq!(texts.add(&text), *id);
            assert_eq!(texts.get(*id), text);
        }
        assert_eq!(texts.bytes(), held);
        assert_eq!(texts.add(""), StringId::EMPTY);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut texts = StringTable::default();
        let long = "ü".repeat(MAX_LEN);
        let id = texts.add(&long);
        assert_eq!(texts.get(id).len(), MAX_LEN);
        let id = texts.add_utf8(&vec![0xff; 2 * MAX_LEN]);
        assert!(texts.get(id).chars().all(|c| c == char::REPLACEMENT_CHARACTER) && !texts.get(id).is_empty());
    }

    #[test]
    fn utf16_is_the_same_text_with_and_without_ascii() {
        let mut texts = StringTable::default();
        let mut add = |units: &[u16]| {
            let bytes: Vec<u8> = units.iter().chain(&[0]).copied().flat_map(u16::to_le_bytes).collect();
            let id = texts.add_utf16(nettrace::raw::Cursor::new(&bytes).utf16().unwrap());
            texts.get(id).to_owned()
        };
        for text in ["", "a", "Program.Main", "Ünï.G`1", "a\u{7f}b", "a\u{80}b", "𝔘.x"] {
            assert_eq!(add(&text.encode_utf16().collect::<Vec<_>>()), text);
        }
        // A lone surrogate, and an ASCII text that is too long.
        assert_eq!(add(&[0x41, 0xd800]), "A\u{fffd}");
        assert_eq!(add(&vec![0x61; MAX_LEN]), "a".repeat(MAX_LEN / 4));
    }
}
