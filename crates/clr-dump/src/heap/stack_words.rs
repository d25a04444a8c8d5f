//! Words of stacks that refer to objects, with their places.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::code::map::Code;
use crate::dump::Dump;
use crate::heap::Heap;
use crate::heap::regions::HeapLayout;
use crate::memory::address::Address;
use crate::threads::all_stacks::ThreadStacks;
use crate::threads::roots::{RootPlace, StackRoot};

/// Maximum number of places with a name of their own.
const MAX_PLACES: usize = 1 << 18;
/// Minimum number of words of which the equal ones are removed before all threads are read.
const MIN_WORDS: usize = 1 << 20;

/// The words of all stacks that can be addresses of objects.
pub(crate) struct StackWords {
    /// The words in rising order, with the numbers of their places.
    pub(crate) words: Vec<(Address, u32)>,
    pub(crate) places: StackPlaces,
    /// Threads with stacks that could not be searched.
    pub(crate) stacks_without_roots: u64,
    /// Threads with more references than are read.
    pub(crate) truncated_stacks: u64,
}

impl StackWords {
    pub(crate) fn read(heap: Heap<'_>, stacks: &ThreadStacks, layout: &HeapLayout) -> Self {
        let mut all = Self {
            words: Vec::new(),
            places: StackPlaces::default(),
            stacks_without_roots: 0,
            truncated_stacks: 0,
        };
        let mut room = MIN_WORDS;
        for of in &stacks.managed {
            let roots = heap.dump.threads().stack_roots(&of.thread, of.registers.as_ref());
            for root in roots.roots.iter().filter(|root| layout.contains(root.word.get())) {
                let place = all.places.number(root);
                all.words.push((root.word, place));
            }
            all.truncated_stacks = all.truncated_stacks.saturating_add(roots.is_truncated.into());
            if roots.is_incomplete {
                let words = heap.stack_words_in(layout, &of.thread, &of.stack, of.registers.as_ref());
                all.words.extend(words.into_iter().map(|word| (word, StackPlaces::WHOLE)));
            }
            // Threads can share a stack in a damaged dump: the words do not outgrow those that differ.
            if all.words.len() >= room {
                room = keep_distinct(&mut all.words).saturating_mul(2).max(MIN_WORDS);
            }
            // The thread runs managed code, in which only registers locate its frames.
            if of.registers.is_none() && of.thread.is_cooperative {
                all.stacks_without_roots = all.stacks_without_roots.saturating_add(1);
            }
        }
        keep_distinct(&mut all.words);
        all
    }
}

/// Sorts words and removes equal ones. Returns their number.
fn keep_distinct(words: &mut Vec<(Address, u32)>) -> usize {
    words.sort_unstable();
    words.dedup();
    words.len()
}

/// The places of words of stacks, by number.
#[derive(Debug, Default)]
pub(crate) struct StackPlaces {
    places: Vec<Place>,
    /// The numbers by the start of the code and the place in its frame.
    numbers: HashMap<(Option<u64>, RootPlace), u32>,
}

#[derive(Debug)]
struct Place {
    code: Option<Code>,
    in_frame: RootPlace,
    name: Option<Arc<str>>,
}

impl StackPlaces {
    /// The number of any word of a stack whose frames are incomplete.
    const WHOLE: u32 = u32::MAX;

    fn number(&mut self, root: &StackRoot) -> u32 {
        let key = (root.code.map(|code| code.function.begin), root.place);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.places.len() >= MAX_PLACES {
            return Self::WHOLE;
        }
        let number = u32::try_from(self.places.len()).unwrap_or(Self::WHOLE);
        self.places.push(Place { code: root.code, in_frame: root.place, name: None });
        self.numbers.insert(key, number);
        number
    }

    fn place(&self, number: u32) -> Option<&Place> {
        self.places.get(usize::try_from(number).ok()?)
    }

    /// Returns true if code uses the reference.
    pub(crate) fn is_exact(&self, number: u32) -> bool {
        self.place(number).is_some_and(|place| place.in_frame.is_exact())
    }

    /// Counts the objects that have only words that need not be used. Equal objects follow one another.
    pub(crate) fn count_conservative(&self, objects: &[(Address, u32)]) -> u64 {
        let of_object = objects.chunk_by(|one, next| one.0 == next.0);
        let conservative = of_object.filter(|places| places.iter().all(|(_, place)| !self.is_exact(*place)));
        u64::try_from(conservative.count()).unwrap_or(u64::MAX)
    }

    /// The name of a place: the method of the frame, and the register or the place on the stack.
    pub(crate) fn name(&mut self, dump: &Dump<'_>, number: u32) -> Arc<str> {
        let Some(place) = usize::try_from(number).ok().and_then(|number| self.places.get_mut(number)) else {
            return Arc::from("[stack: conservative]");
        };
        Arc::clone(place.name.get_or_insert_with(|| {
            let Some(code) = &place.code else { return Arc::from("[frames of the runtime: conservative]") };
            let method = dump.types().method(code).and_then(|method| method.name);
            let name = match method {
                Some(name) => format!("{}.{}", name.type_name, name.name),
                None => format!("{:#x}", code.function.begin),
            };
            format!("[frame {name}: {}]", place.in_frame).into()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_their_numbers_when_there_is_no_room_for_others() {
        let mut places = StackPlaces::default();
        let mut number = |offset: usize| {
            let place = RootPlace::Stack { base: None, offset: i32::try_from(offset).unwrap() };
            places.number(&StackRoot { word: Address::new(8), code: None, place })
        };
        for offset in 0..MAX_PLACES {
            assert_eq!(usize::try_from(number(offset)).unwrap(), offset);
        }
        assert_eq!(number(MAX_PLACES), StackPlaces::WHOLE);
        assert_eq!([number(0), number(7)], [0, 7]);
    }

    #[test]
    fn equal_words_are_kept_once() {
        let word = |at, place| (Address::new(at), place);
        let mut words = vec![word(16, 1), word(8, 2), word(16, 1), word(8, 3)];
        assert_eq!(keep_distinct(&mut words), 3);
        assert_eq!(words, [word(8, 2), word(8, 3), word(16, 1)]);
    }
}
