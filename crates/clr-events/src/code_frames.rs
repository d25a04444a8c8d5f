//! The frames of stacks, each once.

use alloc::vec::Vec;

use hashbrown::HashMap;
use nettrace::{Event, Ticks};

use crate::code::{Code, StringId, Symbolizer};
use crate::stack::{StackId, StackTree};

/// A frame in [`CodeFrames`]. All code of a method is one frame: each of its versions and every address in
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeFrameId(u32);

impl CodeFrameId {
    /// A number for tables by frame: without gaps, in the order in which frames were met.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The identity of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Method { module: StringId, namespace: StringId, name: StringId, signature: StringId },
    Symbol { path: StringId, name: StringId },
    Address(Option<u64>, u64),
}

/// The frames of stacks, each once: a cache over [`Symbolizer`].
///
/// Memory: about 40 bytes for each distinct address, and as much again for each distinct frame.
///
/// ```
/// # use nettrace_synth::clr::{Method, Recording};
/// # let signature = "instance void  (int32)";
/// # let pay = Method { signature, ..Method::new(0x1000, "Shop.Cart", "Pay") };
/// # let recording = Recording::new().at(5).method(&pay).bytes();
/// # let mut code = clr_events::CodeMap::default();
/// # nettrace::SliceReader::new(&recording)?.for_each(|event| code.add(&event))?;
/// use clr_events::CodeFrames;
/// use nettrace::Ticks;
///
/// let mut frames = CodeFrames::new(code.symbolizer());
/// // Two addresses of a method are one frame.
/// let [first, second] = [0x1010, 0x1020].map(|address| frames.resolve(Some(4242), address, Ticks(9)));
/// assert_eq!((first, frames.frames().len()), (second, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CodeFrames<'m> {
    symbolizer: Symbolizer<'m>,
    /// By process and address, if the answer is the same for all times.
    known: HashMap<(Option<u64>, u64), CodeFrameId>,
    ids: HashMap<Key, CodeFrameId>,
    frames: Vec<Code<'m>>,
}

impl<'m> CodeFrames<'m> {
    /// Creates an empty table.
    pub fn new(symbolizer: Symbolizer<'m>) -> Self {
        Self { symbolizer, known: HashMap::new(), ids: HashMap::new(), frames: Vec::new() }
    }

    /// The frame of an address of a process at a time.
    pub fn resolve(&mut self, process: Option<u64>, address: u64, time: Ticks) -> CodeFrameId {
        if let Some(id) = self.known.get(&(process, address)) {
            return *id;
        }
        let (code, is_only) = self.symbolizer.find(process, address, time);
        let key = match &code {
            Code::Method(method) => method.key(),
            Code::Symbol(symbol) => symbol.key(),
            Code::Unresolved(_) => Key::Address(process, address),
        };
        let id = *self.ids.entry(key).or_insert_with(|| {
            debug_assert!(u32::try_from(self.frames.len()).is_ok(), "each frame takes some 40 bytes");
            let id = CodeFrameId(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
            self.frames.push(code);
            id
        });
        if is_only {
            self.known.insert((process, address), id);
        }
        id
    }

    /// Adds the stack of an event to a tree.
    pub fn add_stack(&mut self, event: &Event<'_>, tree: &mut StackTree<CodeFrameId>) -> StackId {
        let (process, time) = (event.process_id(), event.time());
        event.stack().rev().fold(StackId::EMPTY, |caller, address| {
            let frame = self.resolve(process, address, time);
            tree.push(caller, frame)
        })
    }

    /// Returns the code of a frame, at the address by which it was first added.
    pub fn get(&self, frame: CodeFrameId) -> Option<&Code<'m>> {
        self.frames.get(frame.index())
    }

    /// All frames, in the order of their numbers.
    pub fn frames(&self) -> &[Code<'m>] {
        &self.frames
    }
}

impl crate::code::Method<'_> {
    fn key(&self) -> Key {
        let (module, namespace, name, signature) = self.identity();
        Key::Method { module, namespace, name, signature }
    }
}

impl crate::code::Symbol<'_> {
    const fn key(&self) -> Key {
        let (path, name) = self.identity();
        Key::Symbol { path, name }
    }
}
