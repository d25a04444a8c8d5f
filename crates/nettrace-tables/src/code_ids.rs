//! Identities of the frames and stacks of a recording, with a bounded memory.

use clr_events::code::{Code, Symbolizer, UnresolvedReason};
use clr_events::{StackId, StackTree};
use hashbrown::hash_map::Entry;
use hashbrown::{DefaultHashBuilder, HashMap};
use nettrace::Event;
use std::hash::BuildHasher as _;

use crate::error::Error;
use crate::id::{FrameContent, Id, method_key};
use crate::schema::{frames, stacks};
use crate::table_writer::TableWriter;

/// Entries of the cache of whole stacks. A power of two.
const CACHED: usize = 2048;
/// Maximum length of a stack to cache, in bytes.
const MAX_CACHED_LENGTH: usize = 2048;
/// The number of frames of a stack that are kept, from the leaf on. Runtimes take 100.
const MAX_DEPTH: usize = 1024;
/// Maximum number of addresses, frames and stacks that are known at once. Beyond that all are forgotten: ids
/// do not change, and rows may be repeated.
const MAX_ADDRESSES: usize = 1 << 17;
const MAX_FRAMES: usize = 1 << 16;
const MAX_STACKS: usize = 1 << 17;

/// The identities of a recording's stacks, and the table rows of new stacks.
#[derive(Debug)]
pub(crate) struct CodeIds<'m> {
    symbolizer: Symbolizer<'m>,
    known: Known,
    cache: Vec<CachedStack>,
    hasher: DefaultHashBuilder,
    /// The frames of the current stack, root first, and whether each is the same at all times.
    at_hand: Vec<(u32, bool)>,
}

#[derive(Debug, Default, Clone)]
struct CachedStack {
    process: Option<u64>,
    bytes: Vec<u8>,
    id: Id,
}

/// The known addresses, frames and stacks.
#[derive(Debug)]
struct Known {
    /// The frame by process and address, if it is the same at all times.
    addresses: HashMap<(Option<u64>, u64), u32>,
    numbers: HashMap<Id, u32>,
    frames: Vec<Id>,
    tree: StackTree<u32>,
    /// The identity, the depth, and whether it has a row, by stack.
    stacks: Vec<(Id, u32, bool)>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            addresses: HashMap::new(),
            numbers: HashMap::new(),
            frames: Vec::new(),
            // Never full: it is emptied before.
            tree: StackTree::default(),
            stacks: vec![(Id::default(), 0, true)],
        }
    }
}

/// The tables of code.
#[derive(Debug)]
pub(crate) struct CodeTables<'t> {
    pub(crate) stacks: &'t mut TableWriter,
    pub(crate) frames: &'t mut TableWriter,
}

impl<'m> CodeIds<'m> {
    pub(crate) fn new(symbolizer: Symbolizer<'m>) -> Self {
        Self {
            symbolizer,
            known: Known::default(),
            cache: vec![CachedStack::default(); CACHED],
            hasher: DefaultHashBuilder::default(),
            at_hand: Vec::new(),
        }
    }

    /// Returns the identity of an event's stack; `None` without one. Adds rows for new stacks and frames.
    pub(crate) fn stack(
        &mut self,
        event: &Event<'_>,
        tables: &mut CodeTables<'_>,
    ) -> Result<Option<Id>, Error> {
        let stack = event.stack();
        if stack.is_empty() {
            return Ok(None);
        }
        if self.known.is_full() {
            // The cache contains only stacks seen since then, so a hit makes no difference to the rows: its
            // slots are chosen by a hash with another seed in each run.
            self.known = Known::default();
            self.cache.fill(CachedStack::default());
        }
        let (process, bytes) = (event.process_id(), stack.as_bytes());
        #[allow(clippy::cast_possible_truncation, reason = "only low bits are wanted")]
        let place = self.hasher.hash_one(bytes) as usize & (CACHED - 1);
        if let Some(cached) = self.cache.get(place)
            && cached.bytes == bytes
            && cached.process == process
        {
            return Ok(Some(cached.id));
        }
        self.at_hand.clear();
        for address in stack.take(MAX_DEPTH) {
            let frame = if let Some(frame) = self.known.addresses.get(&(process, address)) {
                (*frame, true)
            } else {
                let (code, is_only) = self.symbolizer.find(process, address, event.time());
                let frame = self.known.frame(&code, tables)?;
                if is_only {
                    self.known.addresses.insert((process, address), frame);
                }
                (frame, is_only)
            };
            self.at_hand.push(frame);
        }
        let id = self.known.stack(self.at_hand.iter().rev().map(|(frame, _)| *frame), tables)?;
        if bytes.len() <= MAX_CACHED_LENGTH
            && self.at_hand.iter().all(|(_, is_only)| *is_only)
            && let Some(cached) = self.cache.get_mut(place)
        {
            cached.process = process;
            cached.bytes.clear();
            cached.bytes.extend_from_slice(bytes);
            cached.id = id;
        }
        Ok(Some(id))
    }
}

impl Known {
    fn is_full(&self) -> bool {
        self.addresses.len() > MAX_ADDRESSES || self.frames.len() > MAX_FRAMES || self.tree.len() > MAX_STACKS
    }

    /// Returns the number of a frame. Equal content has one number, however many addresses it has.
    fn frame(&mut self, code: &Code<'_>, tables: &mut CodeTables<'_>) -> Result<u32, Error> {
        let content = content(code);
        let id = Id::of_frame(&content);
        match self.numbers.entry(id) {
            Entry::Occupied(number) => Ok(*number.get()),
            Entry::Vacant(vacant) => {
                let number = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
                self.frames.push(*vacant.insert_entry(number).key());
                write_frame(tables.frames, id, &content)?;
                Ok(number)
            }
        }
    }

    /// Returns the identity of a stack of these frames, root first.
    fn stack(&mut self, frames: impl Iterator<Item = u32>, tables: &mut CodeTables<'_>) -> Result<Id, Error> {
        let mut stack = StackId::EMPTY;
        for frame in frames {
            let caller = stack;
            stack = self.tree.push(caller, frame);
            if stack.index() == self.stacks.len() {
                let (caller, depth, _) = self.stacks.get(caller.index()).copied().unwrap_or_default();
                let frame = self.frames.get(frame as usize).copied().unwrap_or_default();
                self.stacks.push((Id::of_stack(caller, frame), depth.saturating_add(1), false));
            }
        }
        let Some((id, depth, is_written)) = self.stacks.get_mut(stack.index()) else {
            return Ok(Id::default());
        };
        let id = *id;
        if !*is_written {
            *is_written = true;
            let frame = |number: u32| self.frames.get(number as usize).copied().unwrap_or_default();
            let mut row = tables.stacks.row(0, 0);
            row.id(stacks::STACK_ID, id);
            row.int(stacks::DEPTH, i32::try_from(*depth).unwrap_or(i32::MAX));
            if let Some(leaf) = self.tree.leaf(stack) {
                row.id(stacks::LEAF, frame(leaf));
            }
            row.ids(stacks::FRAMES, self.tree.frames(stack).map(frame));
            tables.stacks.end_row()?;
        }
        Ok(id)
    }
}

fn write_frame(table: &mut TableWriter, id: Id, content: &FrameContent<'_>) -> Result<(), Error> {
    let mut row = table.row(0, 0);
    row.id(frames::FRAME_ID, id);
    row.text(frames::KIND, content.kind);
    row.text(frames::MODULE, content.module);
    row.text(frames::TYPE, content.type_name);
    row.text(frames::METHOD, content.method);
    row.text(frames::SIGNATURE, content.signature);
    row.text(frames::METHOD_KEY, &method_key(content.module, content.type_name, content.method));
    table.end_row()
}

/// The content of a frame: names as the runtime has them. Unnamed code is identified by its file and the
/// reason for the missing name.
fn content<'m>(code: &Code<'m>) -> FrameContent<'m> {
    let module = code.module();
    let (kind, type_name, method, signature) = match (code, code.runtime_name()) {
        (_, Some(name)) => ("managed", name.namespace, name.name, name.signature),
        (Code::Symbol(symbol), None) => ("native", "", symbol.name(), ""),
        (Code::Unresolved(unresolved), None) => ("nameless", "", reason(unresolved.reason), ""),
        (Code::Method(method), None) => ("managed", method.namespace(), method.name(), method.signature()),
    };
    FrameContent { kind, module, type_name, method, signature }
}

/// The word for a reason. It is part of identities and never changes.
const fn reason(reason: UnresolvedReason) -> &'static str {
    match reason {
        UnresolvedReason::NoCode => "no-code",
        UnresolvedReason::NoRundown => "no-rundown",
        UnresolvedReason::Unnamed => "unnamed",
        UnresolvedReason::NoMethod => "no-method",
        UnresolvedReason::NoSymbol => "no-symbol",
        UnresolvedReason::LeftOut => "left-out",
        _ => "unknown",
    }
}
