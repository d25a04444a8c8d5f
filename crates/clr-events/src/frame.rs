//! Frames of stacks: what addresses mean, each once.

use alloc::vec::Vec;

use hashbrown::HashMap;
use nettrace::{Event, Ticks};

use crate::code::{Code, Names, TextId};
use crate::stack::{StackId, StackTree};

/// A frame in [`Frames`]. All code of a method is one frame: each of its versions and every address in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(u32);

impl FrameId {
    /// A number for tables by frame: without gaps, in the order in which frames were met.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The identity of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Method { module: TextId, namespace: TextId, name: TextId, signature: TextId },
    Symbol { path: TextId, name: TextId },
    Address(Option<u64>, u64),
}

/// Looks addresses of stacks up, and remembers what it found.
///
/// Memory: about 40 bytes for each distinct address, and as much again for each distinct frame.
#[derive(Debug)]
pub struct Frames<'m> {
    names: Names<'m>,
    /// By process and address, where the answer is the same for all times.
    known: HashMap<(Option<u64>, u64), FrameId>,
    ids: HashMap<Key, FrameId>,
    all: Vec<Code<'m>>,
}

impl<'m> Frames<'m> {
    /// No frames yet.
    pub fn new(names: Names<'m>) -> Self {
        Self { names, known: HashMap::new(), ids: HashMap::new(), all: Vec::new() }
    }

    /// The frame of an address of a process at a time.
    pub fn at(&mut self, process: Option<u64>, address: u64, time: Ticks) -> FrameId {
        if let Some(id) = self.known.get(&(process, address)) {
            return *id;
        }
        let (code, is_settled) = self.names.find(process, address, time);
        let key = match &code {
            Code::Method(method) => method.key(),
            Code::Symbol(symbol) => symbol.key(),
            Code::Unresolved(_) => Key::Address(process, address),
        };
        let id = *self.ids.entry(key).or_insert_with(|| {
            let id = FrameId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
            self.all.push(code);
            id
        });
        if is_settled {
            self.known.insert((process, address), id);
        }
        id
    }

    /// The stack of an event.
    pub fn stack_of(&mut self, event: &Event<'_>, tree: &mut StackTree<FrameId>) -> StackId {
        let (process, time) = (event.process_id(), event.time());
        event.stack().rev().fold(StackId::EMPTY, |caller, address| {
            let frame = self.at(process, address, time);
            tree.push(caller, frame)
        })
    }

    /// Returns the code of a frame, at the address by which it was first added.
    pub fn get(&self, frame: FrameId) -> Option<&Code<'m>> {
        self.all.get(frame.index())
    }

    /// All frames, in the order of their numbers.
    pub fn all(&self) -> &[Code<'m>] {
        &self.all
    }
}

impl crate::code::Method<'_> {
    fn key(&self) -> Key {
        let (module, namespace, name, signature) = self.texts();
        Key::Method { module, namespace, name, signature }
    }
}

impl crate::code::Symbol<'_> {
    const fn key(&self) -> Key {
        let (path, name) = self.texts();
        Key::Symbol { path, name }
    }
}
