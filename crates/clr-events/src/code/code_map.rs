//! The code of a recording by address.

use hashbrown::HashMap;
use nettrace::{Event, ThreadId, Ticks};

use crate::code::il_matcher::IlMatcher;
use crate::code::method_record::MethodRecord;
use crate::code::native;
use crate::code::process::Process;
use crate::code::ranges::Ranges;
use crate::code::string_table::StringTable;
use crate::sets;
use crate::view::{self, ClrEvent, IlToNativeMap, ProcessMapping, ProcessSymbol};

/// The code of a recording by address: methods and symbols.
///
/// Collects descriptions of code from the events of a recording, in any order: methods that were loaded and
/// unloaded, methods present when the session began or ended (rundown), modules, and in V6 the mappings of
/// processes, and symbols. Most methods are named only at the end of a recording, so names are available
/// after a full read: [`symbolizer`](Self::symbolizer).
///
/// An address may have been used more than once: dynamic methods are unloaded, methods are compiled again.
/// Time decides then.
///
/// # Memory
/// A map takes about 80 bytes for a range of code, and stores each string once: 500,000 methods take less
/// than 100 MB. The [limit](Self::with_limit) bounds it, and omitted entries are [counted](Self::left_out).
/// [IL offsets](Self::with_il_offsets) add 8 bytes for each entry of each map of the recording: some 200 for
/// a compiled method. Where more than 64 ranges of code overlap, [`symbolizer`](Self::symbolizer) takes up to
/// 16 bytes more for each of these and each doubling of their number.
///
/// ```
/// # use nettrace_synth::clr::{Method, Recording};
/// # let signature = "instance void  (int32)";
/// # let pay = Method { signature, ..Method::new(0x1000, "Shop.Cart", "Pay") };
/// # let recording = Recording::new().at(5).method(&pay).bytes();
/// use clr_events::CodeMap;
/// use nettrace::{SliceReader, Ticks};
///
/// let mut code = CodeMap::default();
/// SliceReader::new(&recording)?.for_each(|event| code.add(&event))?;
/// let symbolizer = code.symbolizer();
/// let name = symbolizer.resolve(Some(4242), 0x1010, Ticks(9)).to_string();
/// assert!(name.ends_with("Shop.Cart.Pay(int32)"), "{name}");
/// assert!(!symbolizer.resolve(Some(4242), 0x9000, Ticks(9)).is_named());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CodeMap {
    pub(crate) processes: HashMap<u64, Process>,
    /// V6: the symbols of each mapping.
    pub(crate) symbols: HashMap<u64, Ranges<native::Entry>>,
    /// The number of symbols added so far.
    symbols_added: u32,
    pub(crate) texts: StringTable,
    /// The maps from code to IL, if the caller asked for them.
    pub(crate) il: Option<IlMatcher>,
    limit: usize,
    /// Bytes of all ranges when they were last added up.
    range_bytes: usize,
    /// Events until they are added up again.
    until_measured: u32,
    left_out: u64,
}

impl Default for CodeMap {
    fn default() -> Self {
        Self::with_limit(Self::LIMIT)
    }
}

/// Events between two additions of the bytes of all ranges.
const MEASURE_INTERVAL: u32 = 4096;

impl CodeMap {
    /// The default limit of memory, in bytes.
    pub const LIMIT: usize = 512 << 20;

    /// Creates a map of at most `bytes` bytes, give or take some megabytes.
    pub fn with_limit(bytes: usize) -> Self {
        Self {
            processes: HashMap::new(),
            symbols: HashMap::new(),
            symbols_added: 0,
            texts: StringTable::default(),
            il: None,
            limit: bytes,
            range_bytes: 0,
            until_measured: MEASURE_INTERVAL,
            left_out: 0,
        }
    }

    /// Also keeps the maps from code to IL: [`Method::il_offset`](crate::code::Method::il_offset).
    #[must_use]
    pub fn with_il_offsets(mut self) -> Self {
        self.il = Some(IlMatcher::default());
        self
    }

    /// Adds the record of an event about code. Most events do not have one.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        let metadata = event.metadata();
        if sets::CODE.contains(metadata) || self.il.is_some() && sets::IL_MAPS.contains(metadata) {
            self.add_code(event);
        }
    }

    #[inline(never)]
    fn add_code(&mut self, event: &Event<'_>) {
        // A cut payload does not have a record.
        if let Ok(Some(view)) = ClrEvent::of(event) {
            self.add_decoded(event, &view);
        }
    }

    /// Adds the record of an event that was decoded already. Uses the events of
    /// [`sets::CODE`](crate::sets::CODE), and with [IL offsets](Self::with_il_offsets) also of
    /// [`sets::IL_MAPS`](crate::sets::IL_MAPS).
    pub fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        self.update_size();
        let pid = event.process_id().unwrap_or(0);
        let time = event.time();
        let thread = event.capture_thread_id();
        match view {
            ClrEvent::MethodIlToNativeMap(map)
            | ClrEvent::MethodIlToNativeMapDcStart(map)
            | ClrEvent::MethodIlToNativeMapDcStop(map) => self.add_il_map(pid, map, thread),
            ClrEvent::ModuleLoad(module)
            | ClrEvent::ModuleUnload(module)
            | ClrEvent::ModuleDcStart(module)
            | ClrEvent::ModuleDcStop(module) => self.add_module(pid, module),
            ClrEvent::ProcessMapping(mapping) => self.add_mapping(pid, mapping, time),
            ClrEvent::ProcessSymbol(symbol) => self.add_symbol(pid, symbol),
            other => {
                if let Some(record) = MethodRecord::by(other) {
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
        if !self.admit(pid) {
            return;
        }
        let module = self.process(pid).modules.index_of(record.module_id);
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
        if !self.admit(pid) {
            return;
        }
        // The same code with its map: `Ranges` merges both entries.
        if let Some(entry) = self.il.as_mut().and_then(|il| il.add((pid, thread), map)) {
            self.process(pid).methods.add(entry);
        }
    }

    fn add_module(&mut self, pid: u64, module: &view::Module<'_>) {
        if self.admit(pid) {
            self.processes.entry(pid).or_default().modules.add(&mut self.texts, module);
        }
    }

    fn add_mapping(&mut self, pid: u64, mapping: &ProcessMapping<'_>, from: Ticks) {
        if !self.admit(pid) {
            return;
        }
        let path = self.texts.add_utf8(mapping.file_name);
        let &ProcessMapping { id, start_address: start, end_address: last, .. } = mapping;
        self.process(pid).mappings.add(native::Mapping { start, last, from, id, path });
    }

    fn add_symbol(&mut self, pid: u64, symbol: &ProcessSymbol<'_>) {
        if !self.admit(pid) {
            return;
        }
        let name = self.texts.add_utf8(symbol.name);
        let number = self.symbols_added;
        self.symbols_added = number.saturating_add(1);
        let &ProcessSymbol { start_address: start, end_address: last, .. } = symbol;
        self.symbols.entry(symbol.mapping_id).or_default().add(native::Entry { start, last, name, number });
    }

    /// Returns true if the limit allows an event of a process to be added; counts it as left out if not.
    fn admit(&mut self, pid: u64) -> bool {
        let il = self.il.as_ref().map_or(0, IlMatcher::bytes);
        let has_room = self.texts.bytes().saturating_add(self.range_bytes).saturating_add(il) < self.limit;
        if !has_room {
            self.left_out = self.left_out.saturating_add(1);
            if let Some(process) = self.processes.get_mut(&pid) {
                process.is_cut = true;
            }
        }
        has_room
    }

    /// Counts an event, and adds up the bytes of all ranges once every [`MEASURE_INTERVAL`] events.
    fn update_size(&mut self) {
        self.until_measured = self.until_measured.saturating_sub(1);
        if self.until_measured == 0 {
            self.until_measured = MEASURE_INTERVAL;
            self.range_bytes = self.range_bytes();
        }
    }

    fn range_bytes(&self) -> usize {
        let processes = self.processes.values().map(Process::bytes);
        let symbols = self.symbols.values().map(|ranges| ranges.bytes().saturating_add(size_of_val(ranges)));
        processes.chain(symbols).fold(0, usize::saturating_add)
    }

    /// Returns the number of bytes that are held, approximately.
    pub fn bytes(&self) -> usize {
        let il = self.il.as_ref().map_or(0, IlMatcher::bytes);
        self.texts.bytes().saturating_add(self.range_bytes()).saturating_add(il)
    }

    /// Returns the number of code events that were left out because the limit was reached.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the number of known code ranges of methods.
    pub fn methods(&self) -> usize {
        self.processes.values().map(|process| process.methods.len()).fold(0, usize::saturating_add)
    }
}
