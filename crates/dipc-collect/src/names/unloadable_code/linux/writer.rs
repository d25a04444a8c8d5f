//! The events that name methods, as a runtime lists them at the end of a session.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek as _};
use std::ops::Range;
use std::time::SystemTime;

use clr_dump::{Address, Method, Module};
use clr_events::enums::MethodFlags;
use clr_events::{Provider, ids};
use linux_sampler::{RecordingWriter, Sampler};
use nettrace::{Ticks, TraceInfo, TypeCode};
use nettrace_writer::{Error, EventKind, EventKindId, EventWriter, FieldKind, ThreadIndex};

/// Maximum number of UTF-16 code units of a name: three are in an event.
const MAX_TEXT: usize = 8 << 10;
/// Bytes of events after which they are written.
const MAX_PENDING: usize = 1 << 20;

/// A recording that takes names.
pub(super) trait NamesRecording {
    fn define(&mut self, kind: &EventKind<'_>) -> Result<EventKindId, Error>;

    /// Adds a thread of a process.
    fn thread(&mut self, process: u64) -> Result<ThreadIndex, Error>;

    fn event(&mut self, kind: EventKindId, thread: ThreadIndex, payload: &[u8]) -> Result<(), Error>;
}

impl NamesRecording for RecordingWriter {
    fn define(&mut self, kind: &EventKind<'_>) -> Result<EventKindId, Error> {
        Self::define(self, kind)
    }

    fn thread(&mut self, process: u64) -> Result<ThreadIndex, Error> {
        self.process_thread(process)
    }

    fn event(&mut self, kind: EventKindId, thread: ThreadIndex, payload: &[u8]) -> Result<(), Error> {
        self.process_description(thread, kind, payload)
    }
}

/// A file with a recording of names alone.
pub(super) struct NamesFile {
    file: File,
    writer: EventWriter,
    time: Ticks,
}

impl NamesFile {
    /// Begins the recording of a process.
    pub(super) fn new(process: u64, file: File) -> Result<Self, Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time = Ticks(Sampler::now_ns());
        let pairs = vec![("ProcessId".to_owned(), process.to_string())];
        let info = TraceInfo::new_v6(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), time, pairs);
        Ok(Self { file, writer: EventWriter::new(&info)?, time })
    }

    /// Ends the recording, and returns the file at its beginning.
    pub(super) fn finish(mut self) -> io::Result<File> {
        self.writer.finish().map_err(io::Error::other)?;
        self.writer.drain_to(0, &mut self.file).map_err(io::Error::other)?;
        self.file.rewind()?;
        Ok(self.file)
    }
}

impl NamesRecording for NamesFile {
    fn define(&mut self, kind: &EventKind<'_>) -> Result<EventKindId, Error> {
        self.writer.define(kind)
    }

    fn thread(&mut self, process: u64) -> Result<ThreadIndex, Error> {
        // The runtime's thread is not known; the recording has no events of this one otherwise.
        self.writer.thread(process, process, None)
    }

    fn event(&mut self, kind: EventKindId, thread: ThreadIndex, payload: &[u8]) -> Result<(), Error> {
        self.writer.event(kind, self.time, thread, None, &[], payload)?;
        self.writer.drain_to(MAX_PENDING, &mut self.file)
    }
}

/// The writer of the names of methods, one process after the other.
pub(super) struct NamesWriter<'r, R> {
    recording: &'r mut R,
    module: EventKindId,
    method: EventKindId,
    thread: Option<ThreadIndex>,
    /// The modules of the process that are written.
    modules: HashSet<Address>,
}

impl<'r, R: NamesRecording> NamesWriter<'r, R> {
    pub(super) fn new(recording: &'r mut R) -> Result<Self, Error> {
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
            recording.define(&EventKind::new(provider, id, name, fields).with_level(4).with_version(1))
        };
        let module = define(ids::rundown::MODULE_DC_STOP, "ModuleDCEnd", &module)?;
        let method = define(ids::rundown::METHOD_DC_STOP_VERBOSE, "MethodDCEndVerbose", &method)?;
        Ok(Self { recording, module, method, thread: None, modules: HashSet::new() })
    }

    /// Begins the names of a process.
    pub(super) fn begin(&mut self, process: u64) -> Result<(), Error> {
        self.thread = Some(self.recording.thread(process)?);
        self.modules.clear();
        Ok(())
    }

    /// Adds the code of a method.
    pub(super) fn add(&mut self, method: &Method, code: Range<u64>) -> Result<(), Error> {
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

    fn add_module(&mut self, module: &Module) -> Result<(), Error> {
        let mut payload = Payload::default();
        payload.long(module.address.get()).long(0).int(0).int(0);
        payload.text(&module.path).text("").short(0);
        self.write(self.module, &payload)
    }

    fn write(&mut self, kind: EventKindId, payload: &Payload) -> Result<(), Error> {
        let Some(thread) = self.thread else { return Ok(()) };
        self.recording.event(kind, thread, &payload.0)
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
