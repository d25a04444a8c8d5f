//! The managed threads of a core dump, or of the memory of a process, with the names of their frames.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clr_dump::{
    Address, CoreFile, Dump, Exception, ExceptionFrame, ExceptionState, Frame, FramePosition, Method,
    MonitorWait, NativeFrames, NativeSymbols, Registers, Runtime, Stack, ThreadSnapshot, ThreadStacks,
    WaitKind,
};
use portable_pdb::LocalVariables;

use crate::exit::{Exit, Failure};
use crate::inspect::core_lines::{CoreLines, FrameLine};
use crate::inspect::core_source::Source;
use crate::inspect::core_text::{FrameText, frame_text, native_frame_text};

/// The managed threads of a dump or process, with their stacks.
pub(crate) struct Analysis<'s> {
    pub(crate) source: &'s Source,
    pub(crate) dump: Dump<'s>,
    symbols: NativeSymbols<'s>,
    lines: CoreLines,
    /// Frames as text, by address and whether it is a return address: stacks share most frames.
    texts: RefCell<HashMap<(Address, bool), FrameText>>,
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
    /// Reads the threads with their stacks, and the names and lines of their frames. PDBs are searched in the
    /// folders of `symbol_path` first.
    pub(crate) fn new(
        source: &'s Source,
        runtime: &'s Runtime,
        symbol_path: &[PathBuf],
    ) -> Result<Self, Failure> {
        let dump = source.dump(runtime);
        let stacks = stacks(source, &dump)?;
        Ok(Self::with_stacks(source, dump, stacks, symbol_path))
    }

    /// Reads the names of the frames of stacks that have been walked.
    pub(crate) fn with_stacks(
        source: &'s Source,
        dump: Dump<'s>,
        stacks: ThreadStacks,
        symbol_path: &[PathBuf],
    ) -> Self {
        let mut analysis = Self {
            source,
            dump,
            symbols: native_symbols(source.pid()),
            lines: CoreLines::new(symbol_path),
            texts: RefCell::default(),
            threads: Vec::new(),
            native_threads: Vec::new(),
        };
        let managed = stacks.managed.into_iter();
        analysis.threads = managed
            .map(|of| {
                let snapshot = analysis.dump.threads().snapshot(of.thread, of.stack, of.registers.as_ref());
                analysis.thread(snapshot)
            })
            .collect();
        let native = stacks.native.into_iter();
        analysis.native_threads = native
            .map(|of| NativeThread { tid: of.tid, frames: analysis.frames(&of.stack), stack: of.stack })
            .collect();
        analysis
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
        let read = &snapshot.exceptions;
        if self.source.pid().is_some() && (read.is_uncertain || read.missing.is_some()) {
            snapshot.exceptions = self.dump.exceptions().of_running_thread(&snapshot.thread);
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
        let exceptions = self.dump.exceptions();
        let frame = |frame: &ExceptionFrame| {
            self.managed_text(frame.ip, exceptions.method(frame).as_ref(), exceptions.il_offset(frame))
        };
        ExceptionText { frames: exception.stack.iter().map(frame).collect(), exception }
    }

    fn managed_text(&self, ip: Address, method: Option<&Method>, il_offset: Option<u32>) -> FrameText {
        let line = method.zip(il_offset).and_then(|(method, il_offset)| self.line_of(method, il_offset));
        FrameText { line, ..frame_text(ip, method, il_offset) }
    }

    /// The line of the IL of a method, if a PDB has it.
    pub(crate) fn line_of(&self, method: &Method, il_offset: u32) -> Option<FrameLine> {
        self.lines.find(self.source, &self.dump, method, il_offset)
    }

    /// The local variables of a method, if a PDB has them.
    pub(crate) fn variables_of(&self, method: &Method) -> Option<Arc<LocalVariables>> {
        self.lines.variables(self.source, &self.dump, method)
    }

    /// The exception at an address, and its causes.
    pub(crate) fn exceptions_at(&self, address: Address) -> Vec<ExceptionText> {
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
        let text = self.managed_text(frame.ip, named.method.as_deref(), named.il_offset);
        if frame.code.is_some() && (text.name.is_some() || !self.dump.runtime().is_native_aot()) {
            return text;
        }
        let native = native_frame_text(frame, &named, &self.symbols);
        // Compiler-generated code is unnamed but for a symbol.
        if frame.code.is_some() {
            return FrameText { name: native.name, ..frame_text(frame.ip, None, None) };
        }
        native
    }

    /// The threads as the dump has them.
    pub(crate) fn snapshots(&self) -> Vec<&ThreadSnapshot> {
        self.threads.iter().map(|thread| &thread.snapshot).collect()
    }

    /// The thread with an address.
    pub(crate) fn thread_at(&self, address: Address) -> Option<&ManagedThread> {
        self.threads.iter().find(|thread| thread.thread.address == address)
    }

    /// The threads that wait to enter a monitor.
    pub(crate) fn waiting_for(&self, monitor: Address) -> impl Iterator<Item = &ManagedThread> {
        let waits = move |wait: &MonitorWait| wait.monitor == monitor && wait.kind == WaitKind::Enter;
        self.threads.iter().filter(move |thread| thread.monitor_waits.iter().any(waits))
    }
}

/// Walks the stacks of all threads. A core dump has their registers.
pub(crate) fn stacks(source: &Source, dump: &Dump<'_>) -> Result<ThreadStacks, Failure> {
    stacks_with(source, dump, &source.core().map(CoreFile::thread_registers).unwrap_or_default())
}

/// Walks the stacks of all threads, given the registers of threads, keyed by thread id.
pub(crate) fn stacks_with(
    source: &Source,
    dump: &Dump<'_>,
    registers: &BTreeMap<u32, Registers>,
) -> Result<ThreadStacks, Failure> {
    let threads = dump.threads();
    let stacks = match source.core() {
        Some(_) => threads.stacks(registers),
        None => threads.running_stacks(registers),
    };
    stacks.map_err(|missing| {
        Failure::new(Exit::Failed, format_args!("{}: the list of threads: {missing}", source.subject()))
    })
}

/// The symbols of the files of a process, or, for `None`, of the files that a core dump names.
fn native_symbols(pid: Option<u32>) -> NativeSymbols<'static> {
    let open = |path: &str| dipc_transport::open_untrusted(Path::new(path)).ok();
    pid.map_or_else(|| NativeSymbols::of_core(open), NativeSymbols::of_process)
}

/// The threads of a core dump with native frames only: the runtime's data is missing, or the process ran
/// without a runtime.
pub(crate) fn native_threads(core: &CoreFile) -> Vec<NativeThread> {
    let symbols = native_symbols(None);
    let thread = |thread: NativeFrames| {
        let frames = thread.stack.frames.iter().zip(&thread.frames);
        let frames = frames.map(|(frame, named)| native_frame_text(frame, named, &symbols)).collect();
        NativeThread { tid: thread.tid, frames, stack: thread.stack }
    };
    core.native_frames().into_iter().map(thread).collect()
}
