//! A core dump, or the memory of a process, with its managed threads and the names of their frames.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use clr_dump::{
    CoreFile, CoreThread, Error, Exception, ExceptionFrame, ExceptionState, Frame, FramePosition, MappedFile,
    Memory, Method, Monitor, MonitorWait, Monitors, Names, NativeImage, NativeImages, ReadAt, Registers,
    Runtime, Stack, Thread, WaitKind, deadlocks,
};
use clr_events::csharp::{Detail, RuntimeName, type_name};

use crate::exit::{Exit, Failure};
use crate::inspect::native_symbols::NativeSymbols;
use crate::inspect::unpacked_core;
use crate::render::units;

/// The number of times that the exceptions of a running thread are read, and the time between.
const EXCEPTION_ATTEMPTS: u32 = 20;
const EXCEPTION_WAIT: Duration = Duration::from_millis(5);

/// The memory that is analyzed.
pub(crate) enum Source {
    Core(Box<CoreFile>),
    #[cfg(target_os = "linux")]
    Process(clr_dump::ProcessMemory),
}

impl Source {
    /// Opens a core dump, also a compressed one.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()))
        };
        let file = if is_open_stream(path) {
            unpacked_core::open_stream(path)?
        } else {
            // Opening a pipe would wait for its writer.
            if !path.metadata().map_err(|error| failed(&error))?.is_file() {
                return Err(failed(&"it is not a regular file").with_help(
                    "a core dump from a pipe is read from standard input: dipc dump analyze - < PIPE",
                ));
            }
            unpacked_core::open(path)?
        };
        let mut core = CoreFile::open(file).map_err(|error| match error {
            Error::TruncatedHeader { .. } => {
                Failure::new(Exit::Incomplete, format_args!("{}: {error}", path.display()))
            }
            error => failed(&error),
        })?;
        core.add_files(|path| {
            // Opening a pipe would wait for its writer.
            let is_file = std::fs::metadata(path).is_ok_and(|file| file.is_file());
            let file = is_file.then(|| File::open(path).ok()).flatten()?;
            Some(Box::new(file) as Box<dyn ReadAt>)
        });
        Ok(Self::Core(Box::new(core)))
    }

    /// Opens the memory of a process.
    pub(crate) fn attach(pid: u32) -> Result<Self, Failure> {
        #[cfg(target_os = "linux")]
        return clr_dump::ProcessMemory::open(pid).map(Self::Process).map_err(|error| {
            Failure::new(Exit::NotReachable, format_args!("dump analyze: process {pid}: {error}"))
                .with_help("this takes the permission to trace the process: be its user, or root")
        });
        #[cfg(not(target_os = "linux"))]
        Err(Failure::usage(format_args!("dump analyze: process {pid}: only on Linux"))
            .with_help("analyze a core dump: dipc dump -p PID writes one"))
    }

    pub(crate) fn memory(&self) -> &dyn Memory {
        match self {
            Self::Core(core) => &**core,
            #[cfg(target_os = "linux")]
            Self::Process(memory) => memory,
        }
    }

    /// The process that is read; `None` of a core dump.
    pub(crate) const fn pid(&self) -> Option<u32> {
        match self {
            Self::Core(_) => None,
            #[cfg(target_os = "linux")]
            Self::Process(memory) => Some(memory.pid()),
        }
    }

    /// The core dump; `None` for a process.
    pub(crate) fn core(&self) -> Option<&CoreFile> {
        match self {
            Self::Core(core) => Some(core),
            #[cfg(target_os = "linux")]
            Self::Process(_) => None,
        }
    }

    /// Finds the runtime.
    pub(crate) fn runtime(&self) -> Result<Runtime, Failure> {
        let files = match self {
            Self::Core(core) => Ok(core.files().to_vec()),
            #[cfg(target_os = "linux")]
            Self::Process(memory) => memory.files(),
        };
        let runtime = files.and_then(|files| Runtime::find(self.memory(), &files));
        runtime.map_err(|error| {
            let failure = Failure::new(Exit::Failed, format_args!("dump analyze: {error}"));
            match error {
                Error::UnknownRuntime { .. } | Error::WrongLayout { .. } => {
                    failure.with_help(
                        "dipc has the structures of .NET 9, 10, NativeAOT 9 and .NET Core 3.1.23 on x86-64: those of the threads, code, \
                         frames, types and heap of others are missing; dotnet-dump analyze reads them",
                    )
                }
                Error::NoRuntime => failure.with_help("dipc reads .NET 9, 10, NativeAOT 9 and .NET Core 3.1.23 on x86-64"),
                _ => failure,
            }
        })
    }

    /// The exit code: a truncated core was read as far as it goes.
    pub(crate) fn exit(&self) -> Exit {
        match self.core() {
            Some(core) if core.is_truncated() => Exit::Incomplete,
            _ => Exit::Done,
        }
    }

    /// The truncation of a core dump in words; `None` of a whole one, and of a process.
    pub(crate) fn truncation(&self) -> Option<String> {
        let core = self.core().filter(|core| core.is_truncated())?;
        let [has, promised] = [core.file_bytes(), core.promised_bytes()].map(units::count);
        Some(format!("it has {has} of the {promised} bytes that its headers promise"))
    }
}

/// Whether a path is standard input, or a pipe that this process was started with.
fn is_open_stream(path: &Path) -> bool {
    let is_descriptor = path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    path.as_os_str() == "-" || (is_descriptor && path.metadata().is_ok_and(|file| !file.is_file()))
}

/// Fails for a program that was compiled ahead of time, whose runtime does not say what a view is about.
pub(crate) fn check_described(runtime: &Runtime, what: &str) -> Result<(), Failure> {
    if !runtime.is_native_aot() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Failed,
        format_args!("dump analyze: {what} are not known: the runtime of a program that was compiled ahead of time does not describe them"),
    )
    .with_help("of such programs threads, stacks, exceptions, modules, heap, paths, objects, strings and handles are known"))
}

/// Whether a file is a core dump, by its first bytes. A pipe is not looked into.
pub(crate) fn is_core(path: &Path) -> bool {
    const TYPE: usize = 16;
    const CORE: u8 = 4;
    let mut beginning = [0; TYPE + 1];
    let is_file = path.metadata().is_ok_and(|file| file.is_file());
    let read = is_file && File::open(path).and_then(|mut file| file.read_exact(&mut beginning)).is_ok();
    read && beginning.starts_with(b"\x7fELF") && beginning[TYPE] == CORE
}

/// The managed threads of a dump or process, with their stacks.
pub(crate) struct Analysis<'s> {
    pub(crate) source: &'s Source,
    pub(crate) runtime: &'s Runtime,
    pub(crate) names: Names<'s>,
    symbols: NativeSymbols,
    /// The texts of frames by their address and whether it is a return address: stacks share most frames.
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
    pub(crate) thread: Thread,
    pub(crate) name: Option<String>,
    pub(crate) stack: Stack,
    pub(crate) frames: Vec<FrameText>,
    /// The exceptions that it handles or has thrown last, each with its causes.
    pub(crate) exceptions: Vec<(ExceptionState, Vec<ExceptionText>)>,
    /// The reason why what is known of them is incomplete or uncertain.
    pub(crate) exceptions_doubt: Option<String>,
    /// The monitors that it waits for, the innermost first.
    pub(crate) waits: Vec<MonitorWait>,
}

impl ManagedThread {
    /// Whether it throws or handles an exception.
    pub(crate) fn throws(&self) -> bool {
        self.exceptions.iter().any(|(state, _)| *state == ExceptionState::Current)
    }
}

/// An exception in words.
pub(crate) struct ExceptionText {
    pub(crate) exception: Exception,
    pub(crate) frames: Vec<FrameText>,
}

/// A frame in words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FrameText {
    pub(crate) ip: u64,
    /// The C# name; `None` if the memory lacks it.
    pub(crate) name: Option<FrameName>,
    /// The file of the module.
    pub(crate) module: Option<String>,
    pub(crate) token: Option<u32>,
    /// Whether the method was made in memory, and has no name.
    pub(crate) is_dynamic: bool,
    pub(crate) kind: FrameKind,
}

/// A kind of frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FrameKind {
    Managed,
    Native {
        /// The offset in the image.
        offset: Option<u64>,
    },
}

impl FrameText {
    pub(crate) fn is_managed(&self) -> bool {
        self.kind == FrameKind::Managed
    }
}

/// The name of a method.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FrameName {
    /// The name in C# form with its namespace.
    pub(crate) text: String,
    /// The bytes of the namespace and the dot after it.
    pub(crate) namespace_len: usize,
}

impl FrameName {
    /// The name without its namespace.
    pub(crate) fn short(&self) -> &str {
        self.text.get(self.namespace_len..).unwrap_or(&self.text)
    }
}

impl<'s> Analysis<'s> {
    /// Reads the threads with their stacks, and the names of their frames.
    pub(crate) fn new(source: &'s Source, runtime: &'s Runtime) -> Result<Self, Failure> {
        let threads = source.core().map(CoreFile::threads).unwrap_or_default().iter();
        let registers = threads.filter_map(|thread| Some((thread.tid, thread.registers?))).collect();
        Self::with_registers(source, runtime, &registers, || {})
    }

    /// The same with the registers of threads by their ids. `walked` is called once the stacks are walked;
    /// names are read later.
    pub(crate) fn with_registers(
        source: &'s Source,
        runtime: &'s Runtime,
        registers: &BTreeMap<u32, Registers>,
        walked: impl FnOnce(),
    ) -> Result<Self, Failure> {
        let memory = source.memory();
        let names = Names::new(memory, runtime);
        let threads = runtime.threads(memory).map_err(|missing| {
            Failure::new(Exit::Failed, format_args!("dump analyze: the list of threads: {missing}"))
        })?;
        let symbols = NativeSymbols::new(source.pid());
        let is_known = |tid: &u32| threads.iter().any(|thread| thread.os_id == u64::from(*tid));
        let natives: Vec<_> = registers
            .iter()
            .filter(|(tid, _)| !is_known(tid))
            .map(|(tid, registers)| (*tid, runtime.native_stack(memory, registers)))
            .collect();
        let stacks: Vec<_> = threads
            .into_iter()
            .map(|thread| {
                let registers = u32::try_from(thread.os_id).ok().and_then(|tid| registers.get(&tid));
                (runtime.stack(memory, &thread, registers), thread)
            })
            .collect();
        walked();
        let mut analysis = Self {
            source,
            runtime,
            names,
            symbols,
            texts: RefCell::default(),
            threads: Vec::new(),
            native_threads: Vec::new(),
        };
        analysis.threads = stacks.into_iter().map(|(stack, thread)| analysis.thread(thread, stack)).collect();
        analysis.native_threads = natives
            .into_iter()
            .map(|(tid, stack)| NativeThread { tid, frames: analysis.frames(&stack), stack })
            .collect();
        Ok(analysis)
    }

    fn frames(&self, stack: &Stack) -> Vec<FrameText> {
        stack.frames.iter().map(|frame| self.frame(frame)).collect()
    }

    fn thread(&self, thread: Thread, stack: Stack) -> ManagedThread {
        let memory = self.source.memory();
        let (exceptions, exceptions_doubt) = self.exceptions(&thread);
        ManagedThread {
            frames: self.frames(&stack),
            name: self.runtime.thread_name(memory, &thread).ok().flatten(),
            exceptions,
            exceptions_doubt,
            waits: self.runtime.monitor_waits(memory, &thread).unwrap_or_default(),
            stack,
            thread,
        }
    }

    /// The exceptions of a thread, and the doubt about them. A running process is read until nothing has
    /// changed meanwhile.
    fn exceptions(&self, thread: &Thread) -> (Vec<(ExceptionState, Vec<ExceptionText>)>, Option<String>) {
        let mut read = self.names.thread_exceptions(thread);
        for _ in 1..EXCEPTION_ATTEMPTS {
            if self.source.pid().is_none() || (!read.is_uncertain && read.missing.is_none()) {
                break;
            }
            std::thread::sleep(EXCEPTION_WAIT);
            read = self.names.thread_exceptions(thread);
        }
        let text = |exception: Exception| self.exception_text(exception);
        if let Some(missing) = read.missing {
            return (Vec::new(), Some(format!("its exceptions are not known: {missing}")));
        }
        if read.is_uncertain && self.source.pid().is_some() {
            // They are already others.
            return (
                Vec::new(),
                Some("its exceptions are not known: they changed, or were moved, in each attempt".to_owned()),
            );
        }
        let doubt = read.is_uncertain.then(|| {
            "a collection was moving objects: its exceptions can be others than those that are shown"
                .to_owned()
        });
        let chains = read.exceptions.into_iter();
        (chains.map(|(state, chain)| (state, chain.into_iter().map(text).collect())).collect(), doubt)
    }

    fn exception_text(&self, exception: Exception) -> ExceptionText {
        let frame =
            |frame: &ExceptionFrame| frame_text(frame.ip, self.names.exception_method(frame).as_ref());
        ExceptionText { frames: exception.stack.iter().map(frame).collect(), exception }
    }

    /// The exception at an address, and its causes.
    pub(crate) fn exceptions_at(&self, address: u64) -> Vec<ExceptionText> {
        let exceptions = self.names.exceptions(address).into_iter();
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
        if let Some(code) = &frame.code {
            let text = frame_text(frame.ip, self.names.method(code).as_ref());
            if text.name.is_some() || !self.runtime.is_native_aot() {
                return text;
            }
        }
        // A return address can be past the end of the function.
        let address = frame.position.lookup_address(frame.ip);
        let image = self.runtime.native_image(self.source.memory(), address);
        let text = native_frame_text(frame, image.as_deref(), &self.symbols);
        // Code that the compiler has made has no name but a symbol.
        if frame.code.is_some() {
            return FrameText { name: text.name, ..frame_text(frame.ip, None) };
        }
        text
    }

    /// The thread with an address.
    pub(crate) fn thread_at(&self, address: u64) -> Option<&ManagedThread> {
        self.threads.iter().find(|thread| thread.thread.address == address)
    }

    /// The threads that wait to enter a monitor.
    pub(crate) fn waiting_for(&self, monitor: u64) -> impl Iterator<Item = &ManagedThread> {
        let waits = move |wait: &MonitorWait| wait.monitor == monitor && wait.kind == WaitKind::Enter;
        self.threads.iter().filter(move |thread| thread.waits.iter().any(waits))
    }

    /// The threads that wait for one another, by the monitors that they wait to enter.
    pub(crate) fn deadlocks(&self, monitors: &Monitors) -> Vec<Vec<(&ManagedThread, Monitor)>> {
        let wait = |thread: &ManagedThread| {
            let wait = thread.waits.iter().find(|wait| wait.kind == WaitKind::Enter)?;
            monitors.at(wait.monitor).cloned()
        };
        let owner = |thread: &ManagedThread| {
            let owner = wait(thread)?.owner?.thread;
            self.threads.iter().position(|other| other.thread.address == owner)
        };
        let waits_for: Vec<_> = self.threads.iter().map(owner).collect();
        let cycles = deadlocks(&waits_for).into_iter();
        cycles
            .map(|cycle| {
                let threads = cycle.into_iter().filter_map(|index| self.threads.get(index));
                threads.filter_map(|thread| Some((thread, wait(thread)?))).collect()
            })
            .collect()
    }
}

/// The signal of all threads of a core dump that does not say which one it ended: createdump of .NET Core 3.1 marks
/// all threads of a process that crashes.
pub(crate) fn common_signal(core: &CoreFile) -> Option<i32> {
    let mut threads = core.threads().iter();
    let signal = threads.next()?.signal;
    let is_common = core.signal().is_none() && signal != 0 && threads.all(|other| other.signal == signal);
    is_common.then(|| signal.into())
}

/// The thread that a signal has ended, of a core dump that was written for one.
pub(crate) fn signalled_thread(core: &CoreFile) -> Option<u64> {
    let signal = core.signal()?;
    let own = |thread: &&CoreThread| i32::from(thread.signal) == signal.number;
    // The kernel puts it first; createdump marks none, or all.
    let threads = core.threads();
    let count = threads.iter().filter(own).count();
    let first = threads.iter().find(own).filter(|first| count == 1 || threads.first() == Some(*first));
    first.map(|thread| u64::from(thread.tid))
}

/// Reads all that the views of threads, stacks, exceptions and modules need, for a small core dump that has
/// it.
pub(crate) fn touch(memory: &dyn Memory, files: &[MappedFile], registers: &[(u64, Option<Registers>)]) {
    let Ok(runtime) = Runtime::find(memory, files) else { return };
    let names = Names::new(memory, &runtime);
    for thread in runtime.threads(memory).unwrap_or_default() {
        let registers = registers.iter().find(|(tid, _)| *tid == thread.os_id);
        let registers = registers.and_then(|(_, registers)| registers.as_ref());
        for code in runtime.stack(memory, &thread, registers).frames.iter().filter_map(|it| it.code.as_ref())
        {
            names.method(code);
        }
        let _ = runtime.thread_name(memory, &thread);
        let _ = runtime.monitor_waits(memory, &thread);
        for (_, chain) in names.thread_exceptions(&thread).exceptions {
            for frame in chain.iter().flat_map(|exception| &exception.stack) {
                names.exception_method(frame);
            }
        }
    }
    runtime.monitors(memory);
    names.known_modules();
}

fn native_frame_text(frame: &Frame, image: Option<&NativeImage>, symbols: &NativeSymbols) -> FrameText {
    let address = frame.position.lookup_address(frame.ip);
    let name = image.and_then(|image| symbols.name(image, address));
    FrameText {
        ip: frame.ip,
        name: name.map(|text| FrameName { text, namespace_len: 0 }),
        module: image.map(|image| image.file_name().to_owned()),
        token: None,
        is_dynamic: false,
        kind: FrameKind::Native { offset: image.map(|image| frame.ip.wrapping_sub(image.base)) },
    }
}

/// The threads of a core dump with native frames only: the runtime's data is missing, or there is no runtime.
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

fn frame_text(ip: u64, method: Option<&Method>) -> FrameText {
    let name = method.and_then(|method| method.name.as_ref()).map(|name| {
        let of_runtime =
            RuntimeName { namespace: &name.type_name, name: &name.name, signature: &name.signature };
        match of_runtime.csharp(Detail::Short) {
            Some(csharp) => FrameName { text: csharp.text, namespace_len: csharp.namespace_len },
            None => FrameName { text: [&*name.type_name, ".", &*name.name].concat(), namespace_len: 0 },
        }
    });
    FrameText {
        ip,
        name,
        module: method
            .and_then(|method| method.module.as_ref())
            .map(|module| module.file_name().to_owned())
            .filter(|name| !name.is_empty()),
        token: method.and_then(|method| method.token),
        is_dynamic: method.is_some_and(|method| method.token.is_none() && method.name.is_none()),
        kind: FrameKind::Managed,
    }
}

/// The C# name of a method with its namespace; `None` if it has no name.
pub(crate) fn method_text(method: &Method) -> Option<String> {
    frame_text(0, Some(method)).name.map(|name| name.text)
}

/// The C# name of a type.
pub(crate) fn type_text(name: Option<&str>, address: u64) -> String {
    match name {
        Some(name) => type_name(name).unwrap_or_else(|| name.to_owned()),
        None => format!("{address:#x}"),
    }
}
