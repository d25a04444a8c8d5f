//! The managed threads of a core dump, or of the memory of a process, with the names of their frames.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use clr_dump::{
    CoreFile, CoreThread, Dump, Exception, ExceptionFrame, ExceptionState, Frame, FramePosition, MappedFile,
    Memory, MonitorWait, NativeImages, Registers, Runtime, Stack, ThreadSnapshot, WaitKind,
};

use crate::exit::{Exit, Failure};
use crate::inspect::core_source::Source;
use crate::inspect::core_text::{FrameKind, FrameText, frame_text, native_frame_text};
use crate::inspect::native_symbols::NativeSymbols;

/// The number of times that the exceptions of a running thread are read, and the time between.
const EXCEPTION_ATTEMPTS: u32 = 20;
const EXCEPTION_WAIT: Duration = Duration::from_millis(5);

/// The managed threads of a dump or process, with their stacks.
pub(crate) struct Analysis<'s> {
    pub(crate) source: &'s Source,
    pub(crate) dump: Dump<'s>,
    symbols: NativeSymbols,
    /// Frames as text, by address and whether it is a return address: stacks share most frames.
    texts: RefCell<HashMap<(u64, bool), FrameText>>,
    pub(crate) threads: Vec<ManagedThread>,
    /// The threads that have registers and that the runtime does not know.
    pub(crate) native_threads: Vec<NativeThread>,
}

/// A thread that the runtime does not know: it has never run managed code.
pub(crate) struct NativeThread {
    pub(crate) tid: u32,
    pub(crate) stack: Stack,
    pub(crate) frames: Vec<FrameText>,
}

/// A managed thread with its stack.
pub(crate) struct ManagedThread {
    snapshot: ThreadSnapshot,
    pub(crate) frames: Vec<FrameText>,
    /// The exceptions that it handles or has thrown last, each with its causes.
    pub(crate) exceptions: Vec<(ExceptionState, Vec<ExceptionText>)>,
    /// The reason why the exceptions are incomplete or uncertain.
    pub(crate) exceptions_doubt: Option<String>,
}

impl std::ops::Deref for ManagedThread {
    type Target = ThreadSnapshot;

    fn deref(&self) -> &ThreadSnapshot {
        &self.snapshot
    }
}

impl ManagedThread {
    /// Returns true if it throws or handles an exception.
    pub(crate) fn throws(&self) -> bool {
        self.exceptions.iter().any(|(state, _)| *state == ExceptionState::Current)
    }
}

/// An exception in words.
pub(crate) struct ExceptionText {
    pub(crate) exception: Exception,
    pub(crate) frames: Vec<FrameText>,
}

impl<'s> Analysis<'s> {
    /// Reads the threads with their stacks, and the names of their frames.
    pub(crate) fn new(source: &'s Source, runtime: &'s Runtime) -> Result<Self, Failure> {
        let threads = source.core().map(CoreFile::threads).unwrap_or_default().iter();
        let registers = threads.filter_map(|thread| Some((thread.tid, thread.registers?))).collect();
        Self::with_registers(source, runtime, &registers, || {})
    }

    /// Like `new`, with the registers of threads, keyed by thread id. `walked` is called once the stacks are
    /// walked; names are read later.
    pub(crate) fn with_registers(
        source: &'s Source,
        runtime: &'s Runtime,
        registers: &BTreeMap<u32, Registers>,
        walked: impl FnOnce(),
    ) -> Result<Self, Failure> {
        let memory = source.memory();
        let dump = Dump::new(memory, runtime);
        let threads = dump.threads().list().map_err(|missing| {
            Failure::new(Exit::Failed, format_args!("{}: the list of threads: {missing}", source.subject()))
        })?;
        let symbols = NativeSymbols::new(source.pid());
        let is_known = |tid: &u32| threads.iter().any(|thread| thread.os_id == u64::from(*tid));
        let natives: Vec<_> = registers
            .iter()
            .filter(|(tid, _)| !is_known(tid))
            .map(|(tid, registers)| (*tid, dump.threads().native_stack(registers)))
            .collect();
        let stacks: Vec<_> = threads
            .into_iter()
            .map(|thread| {
                let registers = u32::try_from(thread.os_id).ok().and_then(|tid| registers.get(&tid));
                if source.pid().is_some() && registers.is_none() {
                    let (thread, stack) = dump.threads().running_stack(thread);
                    return (thread, stack, None);
                }
                let stack = dump.threads().stack(&thread, registers);
                (thread, stack, registers)
            })
            .collect();
        walked();
        let mut analysis = Self {
            source,
            dump,
            symbols,
            texts: RefCell::default(),
            threads: Vec::new(),
            native_threads: Vec::new(),
        };
        analysis.threads = stacks
            .into_iter()
            .map(|(thread, stack, registers)| {
                analysis.thread(analysis.dump.threads().snapshot(thread, stack, registers))
            })
            .collect();
        analysis.native_threads = natives
            .into_iter()
            .map(|(tid, stack)| NativeThread { tid, frames: analysis.frames(&stack), stack })
            .collect();
        Ok(analysis)
    }

    fn frames(&self, stack: &Stack) -> Vec<FrameText> {
        stack.frames.iter().map(|frame| self.frame(frame)).collect()
    }

    fn thread(&self, mut snapshot: ThreadSnapshot) -> ManagedThread {
        let (exceptions, exceptions_doubt) = self.exceptions(&mut snapshot);
        ManagedThread { frames: self.frames(&snapshot.stack), exceptions, exceptions_doubt, snapshot }
    }

    /// The exceptions of a thread, and the doubt about them. A running process is read until nothing has
    /// changed meanwhile.
    fn exceptions(
        &self,
        snapshot: &mut ThreadSnapshot,
    ) -> (Vec<(ExceptionState, Vec<ExceptionText>)>, Option<String>) {
        for _ in 1..EXCEPTION_ATTEMPTS {
            let read = &snapshot.exceptions;
            if self.source.pid().is_none() || (!read.is_uncertain && read.missing.is_none()) {
                break;
            }
            std::thread::sleep(EXCEPTION_WAIT);
            snapshot.exceptions = self.dump.exceptions().of_thread(&snapshot.thread);
        }
        let read = &snapshot.exceptions;
        let text = |exception: &Exception| self.exception_text(exception.clone());
        if let Some(missing) = read.missing {
            return (Vec::new(), Some(format!("its exceptions are not known: {missing}")));
        }
        if read.is_uncertain && self.source.pid().is_some() {
            // The exceptions have changed.
            return (
                Vec::new(),
                Some("its exceptions are not known: they changed, or were moved, in each attempt".to_owned()),
            );
        }
        let doubt = read.is_uncertain.then(|| {
            "a collection was moving objects: its exceptions can be others than those that are shown"
                .to_owned()
        });
        let chains = read.exceptions.iter();
        (chains.map(|(state, chain)| (*state, chain.iter().map(text).collect())).collect(), doubt)
    }

    fn exception_text(&self, exception: Exception) -> ExceptionText {
        let frame =
            |frame: &ExceptionFrame| frame_text(frame.ip, self.dump.exceptions().method(frame).as_ref());
        ExceptionText { frames: exception.stack.iter().map(frame).collect(), exception }
    }

    /// The exception at an address, and its causes.
    pub(crate) fn exceptions_at(&self, address: u64) -> Vec<ExceptionText> {
        let exceptions = self.dump.exceptions().chain(address).into_iter();
        exceptions.map(|exception| self.exception_text(exception)).collect()
    }

    fn frame(&self, frame: &Frame) -> FrameText {
        let key = (frame.ip, frame.position == FramePosition::Caller);
        if let Some(text) = self.texts.borrow().get(&key) {
            return text.clone();
        }
        let text = self.read_frame(frame);
        self.texts.borrow_mut().insert(key, text.clone());
        text
    }

    fn read_frame(&self, frame: &Frame) -> FrameText {
        let named = self.dump.threads().named(frame);
        let text = frame_text(frame.ip, named.method.as_deref());
        if frame.code.is_some() && (text.name.is_some() || !self.dump.runtime().is_native_aot()) {
            return text;
        }
        let native = native_frame_text(frame, named.image.as_deref(), &self.symbols);
        // Compiler-generated code is unnamed but for a symbol.
        if frame.code.is_some() {
            return FrameText { name: native.name, ..frame_text(frame.ip, None) };
        }
        native
    }

    /// The threads as the dump has them.
    pub(crate) fn snapshots(&self) -> Vec<&ThreadSnapshot> {
        self.threads.iter().map(|thread| &thread.snapshot).collect()
    }

    /// The thread with an address.
    pub(crate) fn thread_at(&self, address: u64) -> Option<&ManagedThread> {
        self.threads.iter().find(|thread| thread.thread.address == address)
    }

    /// The threads that wait to enter a monitor.
    pub(crate) fn waiting_for(&self, monitor: u64) -> impl Iterator<Item = &ManagedThread> {
        let waits = move |wait: &MonitorWait| wait.monitor == monitor && wait.kind == WaitKind::Enter;
        self.threads.iter().filter(move |thread| thread.monitor_waits.iter().any(waits))
    }
}

/// Reads all that the views of threads, stacks, exceptions and modules need, for a small core dump that has
/// it.
pub(crate) fn touch(memory: &dyn Memory, files: &[MappedFile], registers: &[(u64, Option<Registers>)]) {
    let Ok(dump) = Dump::find(memory, files) else { return };
    for thread in dump.threads().list().unwrap_or_default() {
        let registers = registers.iter().find(|(tid, _)| *tid == thread.os_id);
        let registers = registers.and_then(|(_, registers)| registers.as_ref());
        for code in dump.threads().stack(&thread, registers).frames.iter().filter_map(|it| it.code.as_ref()) {
            dump.types().method(code);
        }
        let _ = dump.threads().name(&thread);
        let _ = dump.locks().waits(&thread);
        for (_, chain) in dump.exceptions().of_thread(&thread).exceptions {
            for frame in chain.iter().flat_map(|exception| &exception.stack) {
                dump.exceptions().method(frame);
            }
        }
    }
    dump.locks().monitors();
    dump.types().modules();
}

/// The threads of a core dump with native frames only: the runtime's data is missing, or the process ran
/// without a runtime.
pub(crate) fn native_threads(core: &CoreFile) -> Vec<NativeThread> {
    let (images, symbols) = (NativeImages::new(core.files()), NativeSymbols::new(None));
    let thread = |thread: &CoreThread| {
        let stack = thread.registers.map(|registers| images.stack(core, &registers)).unwrap_or_default();
        let frame = |frame: &Frame| {
            let address = frame.position.lookup_address(frame.ip);
            let image = images.at(core, address);
            let mut text = native_frame_text(frame, image.as_deref(), &symbols);
            // The list of files outlives the headers of images.
            if let Some(file) = core.files().iter().find(|file| file.start <= address && address < file.end)
                && image.is_none()
            {
                let offset = frame.ip.wrapping_sub(file.start).wrapping_add(file.file_offset);
                text.module = file.path.rsplit('/').next().map(ToOwned::to_owned);
                text.kind = FrameKind::Native { offset: Some(offset) };
            }
            text
        };
        NativeThread { tid: thread.tid, frames: stack.frames.iter().map(frame).collect(), stack }
    };
    core.threads().iter().map(thread).collect()
}
