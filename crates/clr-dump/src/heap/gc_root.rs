//! Roots, which keep objects alive.

use std::ops::Range;

use hashbrown::HashSet;

use crate::aot::sections::section;
use crate::heap::Heap;
use crate::heap::regions::HeapLayout;
use crate::memory::MemoryResult;
use crate::memory::address::Address;
use crate::threads::stack::Stack;
use crate::threads::thread::Thread;
use crate::unwind::registers::Registers;

/// Maximum number of bytes of a stack to search.
const MAX_STACK_SIZE: u64 = 64 << 20;
/// The bytes above the stack pointer of the outermost frame that can be of it.
const OUTERMOST_FRAME: u64 = 4096;

/// Maximum number of bytes of a stack to search for strings.
const MAX_TEXT_BYTES: u64 = 1 << 16;
/// Minimum value of a word that can be an address.
const MIN_ADDRESS: u64 = 1 << 16;

impl Heap<'_> {
    /// Returns the address range of a NativeAOT program's frozen objects, which never move.
    pub fn frozen_objects(self) -> Option<Range<Address>> {
        let range = self.runtime().native_aot()?.sections.range(section::FROZEN_OBJECTS)?;
        Some(Address::new(range.start)..Address::new(range.end))
    }

    /// Returns the words of a thread's stack and registers that can be addresses of objects, without knowing
    /// which of them are: a search for the objects that they point into is conservative.
    ///
    /// The stack is searched from the stack pointer, or from the innermost explicit frame if the registers
    /// are not known, to the outermost managed frame.
    ///
    /// # Errors
    /// If the memory lacks the stack.
    pub fn stack_words(
        self,
        thread: &Thread,
        stack: &Stack,
        registers: Option<&Registers>,
    ) -> MemoryResult<Vec<Address>> {
        let layout = HeapLayout::read(self.memory(), self.runtime())?;
        Ok(self.stack_words_in(&layout, thread, stack, registers))
    }

    /// Returns the words of a thread's stack and registers that are addresses in a layout, as
    /// [`stack_words`](Self::stack_words).
    pub(crate) fn stack_words_in(
        self,
        layout: &HeapLayout,
        thread: &Thread,
        stack: &Stack,
        registers: Option<&Registers>,
    ) -> Vec<Address> {
        let Some(range) = stack_range(thread, stack, registers) else { return Vec::new() };
        let memory = self.memory();
        let mut words = HashSet::new();
        let mut add = |word: u64| {
            if layout.contains(word) {
                words.insert(word);
            }
        };
        if let Some(registers) = registers {
            registers.values().for_each(&mut add);
        }
        let mut at = range.start & !7;
        while at < range.end {
            // The part above the outermost frame can be missing.
            let Ok(word) = memory.u64(at) else { break };
            add(word);
            at = at.saturating_add(8);
        }
        let mut words: Vec<_> = words.into_iter().map(Address::new).collect();
        words.sort_unstable();
        words
    }
}

/// The offset of a string's characters.
const CHARACTERS: u64 = 12;

impl Heap<'_> {
    /// Returns the distinct words of a part of a stack that are addresses of objects, in order. The code
    /// there need not still use the objects.
    pub fn objects_between(self, start: Address, end: Address) -> Vec<Address> {
        let memory = self.memory();
        let Ok(layout) = HeapLayout::read(memory, self.runtime()) else { return Vec::new() };
        let mut seen = HashSet::new();
        let is_object = |word: &Address| {
            layout.contains(word.get()) && seen.insert(*word) && self.object_at(*word).is_some()
        };
        self.words_between(start, end).filter(is_object).collect()
    }

    /// Returns the strings that words of a part of a stack refer to, each object once. The code there need
    /// not still use them.
    pub fn strings_between(self, start: Address, end: Address) -> Vec<String> {
        self.string_objects_between(start, end).into_iter().map(|(_, text)| text).collect()
    }

    /// Returns those of the [strings](Self::strings_between) that a native function was called with: other
    /// words there are the addresses of their characters.
    pub fn native_arguments_between(self, start: Address, end: Address) -> Vec<String> {
        let words: HashSet<Address> = self.words_between(start, end).collect();
        let mut strings = self.string_objects_between(start, end);
        strings.retain(|(object, _)| words.contains(&object.saturating_add(CHARACTERS)));
        strings.into_iter().map(|(_, text)| text).collect()
    }

    fn string_objects_between(self, start: Address, end: Address) -> Vec<(Address, String)> {
        let memory = self.memory();
        let mut seen = HashSet::new();
        let words = self.words_between(start, end);
        let objects = words
            .filter(|word| word.get() >= MIN_ADDRESS && word.get().is_multiple_of(8) && seen.insert(*word));
        objects.filter_map(|object| Some((object, self.runtime().string(memory, object).ok()?))).collect()
    }

    /// The words of a part of a stack, up to a word that is missing.
    fn words_between(self, start: Address, end: Address) -> impl Iterator<Item = Address> {
        let (start, end) = (start.get(), end.get());
        let memory = self.memory();
        let last = end.min(start.saturating_add(MAX_TEXT_BYTES));
        let places = (start & !7..last).step_by(8);
        places.map_while(move |at| memory.pointer(at).ok())
    }
}

/// The part of a stack that managed frames can have references in.
pub(crate) fn stack_range(
    thread: &Thread,
    stack: &Stack,
    registers: Option<&Registers>,
) -> Option<Range<u64>> {
    let frame = Some(thread.frame.get()).filter(|frame| *frame != 0 && *frame != u64::MAX);
    let (first, last) = (stack.managed().next()?.0.sp.get(), stack.managed().last()?.0.sp.get());
    // A signal handler can have a stack of its own.
    let is_near = |sp: &u64| first.checked_sub(*sp).is_some_and(|bytes| bytes < MAX_STACK_SIZE);
    let start = registers.map(|registers| registers.sp).or(frame).filter(is_near).unwrap_or(first);
    let end = last.saturating_add(OUTERMOST_FRAME);
    (start < end).then(|| start..end.min(start.saturating_add(MAX_STACK_SIZE)))
}
