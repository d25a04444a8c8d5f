//! The strings of the heap, equal ones once.

use hashbrown::HashMap;

use crate::dump::Dump;
use crate::heap::{Amount, Heap, HeapObject, HeapVisitor, HeapWalk};
use crate::memory::MemoryResult;
use crate::memory::address::Address;

/// Maximum number of distinct strings, and of their bytes: further ones are only counted.
const MAX_STRINGS: usize = 1 << 20;
const MAX_BYTES: usize = 64 << 20;

/// The strings of a heap.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapStrings {
    /// The distinct strings, those with the most bytes first.
    pub strings: Vec<DistinctString>,
    /// The number of all strings of the heap.
    pub count: u64,
    /// The strings that were asked for.
    pub matching: Amount,
    /// The number of these that are not among the distinct ones, of which there are too many.
    pub not_compared: u64,
    /// The number of strings that could not be read.
    pub unreadable: u64,
    /// The walk through the heap, with its gaps.
    pub walk: HeapWalk,
}

/// A string, and the objects that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DistinctString {
    /// The string, up to the characters that were compared.
    pub text: String,
    /// The number of its UTF-16 units.
    pub length: u32,
    /// The objects.
    pub amount: Amount,
    /// The address of the first object.
    pub example: Address,
}

impl HeapStrings {
    /// Returns the bytes that would be free with each distinct string stored once.
    pub fn duplicate_bytes(&self) -> u64 {
        let amounts = self.strings.iter().map(|string| string.amount);
        let of_one = |of: Amount| of.bytes.checked_div(of.objects).unwrap_or_default();
        amounts.map(|of| of.bytes.saturating_sub(of_one(of))).fold(0, u64::saturating_add)
    }
}

impl Heap<'_> {
    /// Compares the strings of the heap by their first `max_length` UTF-16 units and their lengths. Strings
    /// for which `is_wanted` returns false are only counted.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for string in dump.heap().strings(4096, |text| text.starts_with("SELECT "))?.strings {
    ///     println!("{} times: {}", string.amount.objects, string.text);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn strings(self, max_length: u32, is_wanted: impl Fn(&str) -> bool) -> MemoryResult<HeapStrings> {
        let (found, distinct, kept) = (HeapStrings::default(), HashMap::new(), 0);
        let mut strings =
            Strings { dump: self.dump, max_length, is_wanted: &is_wanted, distinct, kept, found };
        let walk = self.walk(&mut strings)?;
        let distinct = strings
            .distinct
            .into_iter()
            .map(|((text, length), (amount, example))| DistinctString { text, length, amount, example });
        let mut distinct: Vec<_> = distinct.collect();
        distinct.sort_by(|a, b| {
            let by_text = || (&a.text, a.length).cmp(&(&b.text, b.length));
            b.amount.bytes.cmp(&a.amount.bytes).then_with(by_text)
        });
        Ok(HeapStrings { strings: distinct, walk, ..strings.found })
    }
}

struct Strings<'d> {
    dump: &'d Dump<'d>,
    max_length: u32,
    is_wanted: &'d dyn Fn(&str) -> bool,
    /// The objects and the first of them, keyed by string and length.
    distinct: HashMap<(String, u32), (Amount, Address)>,
    /// Bytes of the distinct strings.
    kept: usize,
    found: HeapStrings,
}

impl HeapVisitor for Strings<'_> {
    fn object(&mut self, object: &HeapObject) {
        if !self.dump.types().is_string(object.type_handle) {
            return;
        }
        let found = &mut self.found;
        found.count = found.count.saturating_add(1);
        let Ok(text) = self.dump.heap().string(object, self.max_length) else {
            found.unreadable = found.unreadable.saturating_add(1);
            return;
        };
        if !(self.is_wanted)(&text) {
            return;
        }
        found.matching.add(object.size);
        let key = (text, object.length());
        let kept = self.kept.saturating_add(key.0.len());
        let has_room = self.distinct.len() < MAX_STRINGS && kept <= MAX_BYTES;
        match self.distinct.get_mut(&key) {
            Some((amount, _)) => amount.add(object.size),
            None if has_room => {
                self.kept = kept;
                self.distinct.insert(key, (Amount { objects: 1, bytes: object.size }, object.address));
            }
            None => found.not_compared = found.not_compared.saturating_add(1),
        }
    }
}
