//! Code by address: methods, and in recordings of a whole machine (V6) files and symbols.

mod il;
mod method;
mod method_record;
mod module;
mod names;
mod native;
mod process;
mod ranges;
mod texts;

use hashbrown::HashMap;
use nettrace::{Event, ThreadId, Ticks};

pub use method::{CodeKind, Method, Tier};
pub use module::Module;
pub use names::{Code, Names, Unresolved, UnresolvedReason};
pub use native::Symbol;
pub(crate) use texts::TextId;

use crate::provider::Provider;
use crate::view::{self, ClrEvent, IlToNativeMap, ProcessMapping, ProcessSymbol};
use il::IlMaps;
use method_record::MethodRecord;
use process::Process;
use ranges::Ranges;
use texts::StringTable;

/// Which method, or which symbol, an address belongs to.
///
/// It is shown the events of a recording, in any order, and keeps what they tell of code: methods that were loaded and unloaded,
/// those that were there when the session began or ended (rundown), modules, and in V6 what is mapped into which process, and
/// symbols. Most methods are named only at the end of a recording, so that names are to be had when all of it was read:
/// [`names`](Self::names).
///
/// An address may have been used more than once: dynamic methods are unloaded, methods are compiled again. Time decides then.
///
/// # Memory
/// About 80 bytes for a stretch of code, and each text once: 500,000 methods take less than 100 MB. No more is kept than the
/// [limit](Self::with_limit) allows; what is left out is [counted](Self::left_out). With [IL offsets](Self::with_il_offsets)
/// there are 8 bytes more for each entry of each map that is told of: some 200 for a compiled method. Where more than 64 stretches of
/// code overlap, [`names`](Self::names) takes up to 16 bytes more for each of these and each doubling of their number.
#[derive(Debug)]
pub struct CodeMap {
    processes: HashMap<u64, Process>,
    /// V6: the symbols of each mapping.
    symbols: HashMap<u64, Ranges<native::Entry>>,
    /// The number of symbols added so far.
    told: u32,
    texts: StringTable,
    /// IL maps, if they are asked for.
    il: Option<IlMaps>,
    limit: usize,
    /// Bytes held by the processes when they were last added up.
    held: usize,
    /// Events until they are added up again.
    until_weighed: u32,
    left_out: u64,
}

impl Default for CodeMap {
    fn default() -> Self {
        Self::with_limit(Self::LIMIT)
    }
}

/// Events between two looks at how much is held.
const WEIGHED_EVERY: u32 = 4096;

impl CodeMap {
    /// The default limit of memory, in bytes.
    pub const LIMIT: usize = 512 << 20;

    /// A map that keeps at most so many bytes, give or take some megabytes.
    pub fn with_limit(bytes: usize) -> Self {
        Self {
            processes: HashMap::new(),
            symbols: HashMap::new(),
            told: 0,
            texts: StringTable::default(),
            il: None,
            limit: bytes,
            held: 0,
            until_weighed: WEIGHED_EVERY,
            left_out: 0,
        }
    }

    /// The same, and it also keeps which IL code was made of: [`Method::il_offset`].
    #[must_use]
    pub fn with_il_offsets(mut self) -> Self {
        self.il = Some(IlMaps::default());
        self
    }

    /// Takes in what an event tells of code; most events tell nothing of it.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        if let Some(provider) = Provider::of(event.metadata())
            && (tells_of_code(provider, event.id()) || self.il.is_some() && tells_of_il(provider, event.id()))
        {
            self.add_code(event);
        }
    }

    #[inline(never)]
    fn add_code(&mut self, event: &Event<'_>) {
        // A payload that is cut tells nothing.
        let Ok(Some(view)) = ClrEvent::of(event) else { return };
        self.weigh();
        let pid = event.process_id().unwrap_or(0);
        let time = event.time();
        let thread = event.capture_thread_id();
        match view {
            ClrEvent::MethodIlToNativeMap(map)
            | ClrEvent::MethodIlToNativeMapDcStart(map)
            | ClrEvent::MethodIlToNativeMapDcStop(map) => self.add_il_map(pid, &map, thread),
            ClrEvent::ModuleLoad(module)
            | ClrEvent::ModuleUnload(module)
            | ClrEvent::ModuleDcStart(module)
            | ClrEvent::ModuleDcStop(module) => self.add_module(pid, &module),
            ClrEvent::ProcessMapping(mapping) => self.add_mapping(pid, &mapping, time),
            ClrEvent::ProcessSymbol(symbol) => self.add_symbol(pid, &symbol),
            other => {
                if let Some(record) = MethodRecord::by(&other) {
                    self.add_method(pid, &record, time, thread);
                }
            }
        }
    }

    fn process(&mut self, pid: u64) -> &mut Process {
        self.processes.entry(pid).or_default()
    }

    fn add_method(&mut self, pid: u64, record: &MethodRecord<'_>, time: Ticks, thread: ThreadId) {
        self.process(pid).has_rundown |= record.kind.is_rundown();
        if !self.has_room(pid) {
            return;
        }
        let module = self.process(pid).modules.place(record.module_id);
        let mut entry = record.entry(time, module, &mut self.texts);
        if let Some(il) = &mut self.il {
            if record.kind.is_before_il() {
                il.on_load((pid, thread), entry);
            } else {
                entry.il = il.on_unload((pid, thread), record.method_id);
            }
        }
        self.process(pid).methods.add(entry);
    }

    fn add_il_map(&mut self, pid: u64, map: &IlToNativeMap<'_>, thread: ThreadId) {
        if !self.has_room(pid) {
            return;
        }
        // MethodRecord of once more, with its map: both become one.
        if let Some(entry) = self.il.as_mut().and_then(|il| il.add((pid, thread), map)) {
            self.process(pid).methods.add(entry);
        }
    }

    fn add_module(&mut self, pid: u64, module: &view::Module<'_>) {
        if self.has_room(pid) {
            self.processes.entry(pid).or_default().modules.add(&mut self.texts, module);
        }
    }

    fn add_mapping(&mut self, pid: u64, mapping: &ProcessMapping<'_>, from: Ticks) {
        if !self.has_room(pid) {
            return;
        }
        let path = self.texts.add_utf8(mapping.file_name);
        let &ProcessMapping { id, start_address: start, end_address: last, .. } = mapping;
        self.process(pid).mappings.add(native::Mapping { start, last, from, id, path });
    }

    fn add_symbol(&mut self, pid: u64, symbol: &ProcessSymbol<'_>) {
        if !self.has_room(pid) {
            return;
        }
        let name = self.texts.add_utf8(symbol.name);
        let told = self.told;
        self.told = told.saturating_add(1);
        let &ProcessSymbol { start_address: start, end_address: last, .. } = symbol;
        self.symbols.entry(symbol.mapping_id).or_default().add(native::Entry { start, last, name, told });
    }

    /// Whether more may be kept; if not, it is noted that something is left out.
    fn has_room(&mut self, pid: u64) -> bool {
        let il = self.il.as_ref().map_or(0, IlMaps::bytes);
        let has_room = self.texts.bytes().saturating_add(self.held).saturating_add(il) < self.limit;
        if !has_room {
            self.left_out = self.left_out.saturating_add(1);
            if let Some(process) = self.processes.get_mut(&pid) {
                process.is_cut = true;
            }
        }
        has_room
    }

    fn weigh(&mut self) {
        self.until_weighed = self.until_weighed.saturating_sub(1);
        if self.until_weighed == 0 {
            self.until_weighed = WEIGHED_EVERY;
            self.held = self.bytes_of_ranges();
        }
    }

    fn bytes_of_ranges(&self) -> usize {
        let processes = self.processes.values().map(Process::bytes);
        let symbols = self.symbols.values().map(|ranges| ranges.bytes().saturating_add(size_of_val(ranges)));
        processes.chain(symbols).fold(0, usize::saturating_add)
    }

    /// About how many bytes are held.
    pub fn bytes(&self) -> usize {
        let il = self.il.as_ref().map_or(0, IlMaps::bytes);
        self.texts.bytes().saturating_add(self.bytes_of_ranges()).saturating_add(il)
    }

    /// Returns the number of code events that were left out because the limit was reached.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the number of known code ranges of methods.
    pub fn methods(&self) -> usize {
        self.processes.values().map(|process| process.methods.len()).fold(0, usize::saturating_add)
    }

    /// Puts in order what was told since it was last asked, and answers for addresses.
    pub fn names(&mut self) -> Names<'_> {
        self.symbols.values_mut().for_each(Ranges::settle);
        self.processes.values_mut().for_each(Process::settle);
        Names::new(self)
    }
}

/// Whether an event is one that [`CodeMap`] looks at.
#[inline]
const fn tells_of_code(provider: Provider, id: u32) -> bool {
    match provider {
        Provider::Runtime => matches!(id, 141..=144 | 152 | 153),
        Provider::Rundown => matches!(id, 141..=144 | 153 | 154),
        Provider::UniversalSystem => matches!(id, 3 | 4),
        _ => false,
    }
}

/// Whether an event tells which IL code was made of.
#[inline]
const fn tells_of_il(provider: Provider, id: u32) -> bool {
    match provider {
        Provider::Runtime => id == 190,
        Provider::Rundown => matches!(id, 149 | 150),
        _ => false,
    }
}
