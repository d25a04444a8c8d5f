//! The methods at addresses in the memory of a process, as a recording of events that name them.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Seek as _};
use std::time::SystemTime;

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
