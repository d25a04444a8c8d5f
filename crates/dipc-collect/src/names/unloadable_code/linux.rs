//! The methods at addresses in the memory of a process, as a recording of events that name them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Seek as _};
use std::time::{Duration, Instant, SystemTime};

use clr_dump::{Address, Code, Dump, Machine, Method, Module, ProcessMemory, Runtime};
use clr_events::enums::MethodFlags;
use clr_events::{Provider, ids};
use linux_sampler::Sampler;
use nettrace::{Ticks, TraceInfo, TypeCode};
use nettrace_writer::{EventKind, EventKindId, EventWriter, FieldKind, ThreadIndex};

use super::StackAddresses;

/// Maximum number of UTF-16 code units of a name: three are in an event.
const MAX_TEXT: usize = 8 << 10;
/// Bytes of events after which they are written.
const MAX_PENDING: usize = 1 << 20;
/// The default context, which code is not unloaded from.
const DEFAULT_CONTEXTS: u64 = 1;

/// The code of a process that can unload code.
#[derive(Debug)]
pub struct UnloadableCode {
    memory: ProcessMemory,
    runtime: Runtime,
}

impl UnloadableCode {
    /// Returns the code of a process that has made load contexts of assemblies, from which it can unload
    /// code. `None` for other processes, and if the memory cannot be read.
    pub fn find(pid: u32) -> Option<Self> {
        Self::of_process(pid).filter(|code| {
            let made = Dump::new(&code.memory, &code.runtime).statics().made_load_contexts();
            made.is_some_and(|made| made > DEFAULT_CONTEXTS)
        })
    }

    /// Returns the code of any process of .NET; `None` for other processes, and if the memory cannot be read.
    pub fn of_process(pid: u32) -> Option<Self> {
        let memory = ProcessMemory::open(pid).ok()?;
        memory.machine().map_or(Ok(()), Machine::check).ok()?;
        let runtime = Runtime::find(&memory, &memory.files().ok()?).ok()?;
        Some(Self { memory, runtime })
    }

    /// Returns a recording with the names of the methods on the stacks of the events of a process that they
    /// do not name themselves.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn names_for(&self, process: Option<u64>, stacks: StackAddresses) -> io::Result<File> {
        let mut functions = BTreeMap::<u64, (Code, u64)>::new();
        for (address, is_return) in stacks.unnamed() {
            // The code of a return address can end there.
            let inside = Address::new(address.saturating_sub(is_return.into()));
            if let Ok(Some(found)) = self.runtime.code().find(&self.memory, inside) {
                let (_, last) = functions.entry(found.function.begin).or_insert((found, address));
                *last = address.max(*last);
            }
        }
        let dump = Dump::new(&self.memory, &self.runtime);
        let file = tempfile::tempfile()?;
        let mut names = NamesWriter::new(process.unwrap_or_default(), file).map_err(io::Error::other)?;
        for (begin, (found, last)) in functions {
            if let Some(method) = dump.types().method(&found) {
                // The size is not known: the code goes at least to the last known address.
                names.add(&method, begin..last.saturating_add(1)).map_err(io::Error::other)?;
            }
        }
        let mut file = names.finish().map_err(io::Error::other)?;
        file.rewind()?;
        Ok(file)
    }
}

/// Names of sampled methods, read from the memory of processes while they run: those that end early have no
/// others.
#[derive(Debug, Default)]
pub struct SampledNames {
    /// By the id in the recording.
    processes: HashMap<u64, SampledMethods>,
}

/// Maximum number of processes to read.
const MAX_PROCESSES: usize = 256;
/// Maximum number of methods of a process.
const MAX_METHODS: usize = 1 << 14;

/// Maximum number of addresses that wait for the runtime of a process to be found.
const MAX_WAITING: usize = 1 << 14;
/// Maximum number of searches for the runtime of a process, which may not be loaded yet.
const MAX_SEARCHES: u32 = 8;
/// The time between the first two searches; it doubles.
const FIRST_DELAY: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct SampledMethods {
    pid: u32,
    /// `None` before its runtime is found.
    code: Option<UnloadableCode>,
    searches: u32,
    next_search: Instant,
    /// The addresses that were not looked up yet.
    waiting: Vec<u64>,
    /// The methods and the last known address of each, by the first.
    methods: BTreeMap<u64, (Method, u64)>,
}

impl SampledMethods {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            code: None,
            searches: 0,
            next_search: Instant::now(),
            waiting: Vec::new(),
            methods: BTreeMap::new(),
        }
    }

    /// Looks up the addresses that wait, if the runtime is found.
    fn read(&mut self) {
        let now = Instant::now();
        if self.code.is_none() && self.searches < MAX_SEARCHES && now >= self.next_search {
            self.code = UnloadableCode::of_process(self.pid);
            self.next_search = now + FIRST_DELAY * 2_u32.pow(self.searches);
            self.searches += 1;
        }
        let Some(UnloadableCode { memory, runtime }) = &self.code else { return };
        let dump = Dump::new(memory, runtime);
        for address in self.waiting.drain(..) {
            let Ok(Some(found)) = runtime.code().find(memory, Address::new(address)) else { continue };
            let begin = found.function.begin;
            if let Some((_, last)) = self.methods.get_mut(&begin) {
                *last = address.max(*last);
            } else if self.methods.len() < MAX_METHODS
                && let Some(method) = dump.types().method(&found)
            {
                self.methods.insert(begin, (method, address));
            }
        }
    }
}

impl SampledNames {
    /// Adds sampled addresses of a process, which has an id in the recording.
    pub fn add(&mut self, pid: u32, id: u64, addresses: &[u64]) {
        if !self.processes.contains_key(&id) && self.processes.len() >= MAX_PROCESSES {
            return;
        }
        let process = self.processes.entry(id).or_insert_with(|| SampledMethods::new(pid));
        let room = MAX_WAITING.saturating_sub(process.waiting.len());
        process.waiting.extend(addresses.iter().take(room));
    }

    /// Reads the names of the methods at the added addresses, as far as their runtimes are found.
    pub fn read(&mut self) {
        let waiting = self.processes.values_mut().filter(|process| !process.waiting.is_empty());
        waiting.for_each(SampledMethods::read);
    }

    /// Returns a recording with the names of the methods of a process; `None` without any.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn of(&self, id: u64) -> io::Result<Option<File>> {
        let Some(process) = self.processes.get(&id).filter(|process| !process.methods.is_empty()) else {
            return Ok(None);
        };
        let mut names = NamesWriter::new(id, tempfile::tempfile()?).map_err(io::Error::other)?;
        for (begin, (method, last)) in &process.methods {
            names.add(method, *begin..last.saturating_add(1)).map_err(io::Error::other)?;
        }
        let mut file = names.finish().map_err(io::Error::other)?;
        file.rewind()?;
        Ok(Some(file))
    }

    /// The ids of the processes that were read.
    pub fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.processes.keys().copied()
    }
}

/// The writer of the recording.
struct NamesWriter {
    file: File,
    writer: EventWriter,
    thread: ThreadIndex,
    time: Ticks,
    module: EventKindId,
    method: EventKindId,
    modules: HashSet<Address>,
}

impl NamesWriter {
    fn new(process: u64, file: File) -> Result<Self, nettrace_writer::Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time = Ticks(Sampler::now_ns());
        let pairs = vec![("ProcessId".to_owned(), process.to_string())];
        let info = TraceInfo::new_v6(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), time, pairs);
        let mut writer = EventWriter::new(&info)?;
        let [byte8, byte4, byte2] = [TypeCode::U64, TypeCode::U32, TypeCode::U16].map(FieldKind::Scalar);
        let text = FieldKind::Scalar(TypeCode::STRING16);
        let provider = Provider::Rundown.name();
        let module = [
            ("ModuleID", byte8),
            ("AssemblyID", byte8),
            ("ModuleFlags", byte4),
            ("Reserved1", byte4),
            ("ModuleILPath", text),
            ("ModuleNativePath", text),
            ("ClrInstanceID", byte2),
        ];
        let method = [
            ("MethodID", byte8),
            ("ModuleID", byte8),
            ("MethodStartAddress", byte8),
            ("MethodSize", byte4),
            ("MethodToken", byte4),
            ("MethodFlags", byte4),
            ("MethodNamespace", text),
            ("MethodName", text),
            ("MethodSignature", text),
            ("ClrInstanceID", byte2),
        ];
        let mut define = |id, name, fields: &[(&str, FieldKind)]| {
            writer.define(&EventKind::new(provider, id, name, fields).with_level(4).with_version(1))
        };
        let module = define(ids::rundown::MODULE_DC_STOP, "ModuleDCEnd", &module)?;
        let method = define(ids::rundown::METHOD_DC_STOP_VERBOSE, "MethodDCEndVerbose", &method)?;
        // The runtime's thread is not known; the recording has no events of this one otherwise.
        let thread = writer.thread(process, process, None)?;
        Ok(Self { file, writer, thread, time, module, method, modules: HashSet::new() })
    }

    /// Adds the code of a method.
    fn add(&mut self, method: &Method, code: std::ops::Range<u64>) -> Result<(), nettrace_writer::Error> {
        let Some(name) = &method.name else { return Ok(()) };
        let module = method.module.as_ref().map_or(Address::new(0), |module| module.address);
        if let Some(module) = &method.module
            && self.modules.insert(module.address)
        {
            self.add_module(module)?;
        }
        let mut payload = Payload::default();
        let size = u32::try_from(code.end.saturating_sub(code.start)).unwrap_or(u32::MAX);
        payload.long(code.start).long(module.get()).long(code.start);
        payload.int(size).int(method.token.unwrap_or_default()).int(MethodFlags::JITTED.0);
        payload.text(&name.type_name).text(&name.name).text(&name.signature).short(0);
        self.write(self.method, &payload)
    }

    fn add_module(&mut self, module: &Module) -> Result<(), nettrace_writer::Error> {
        let mut payload = Payload::default();
        payload.long(module.address.get()).long(0).int(0).int(0);
        payload.text(&module.path).text("").short(0);
        self.write(self.module, &payload)
    }

    fn write(&mut self, kind: EventKindId, payload: &Payload) -> Result<(), nettrace_writer::Error> {
        self.writer.event(kind, self.time, self.thread, None, &[], &payload.0)?;
        self.writer.drain_to(MAX_PENDING, &mut self.file)
    }

    fn finish(mut self) -> Result<File, nettrace_writer::Error> {
        self.writer.finish()?;
        self.writer.drain_to(0, &mut self.file)?;
        Ok(self.file)
    }
}

/// The bytes of an event's fields.
#[derive(Default)]
struct Payload(Vec<u8>);

impl Payload {
    fn long(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn int(&mut self, number: u32) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn short(&mut self, number: u16) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Appends a text up to a NUL.
    fn text(&mut self, text: &str) -> &mut Self {
        let units = text.encode_utf16().filter(|unit| *unit != 0).take(MAX_TEXT).chain([0]);
        self.0.extend(units.flat_map(u16::to_le_bytes));
        self
    }
}
