//! A core dump, or the memory of a process, that is analyzed.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clr_dump::{CoreFile, Dump, Error, ReadAt, Runtime};

use crate::exit::{Exit, Failure};
use crate::inspect::unpacked_core;
use crate::render::units;

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
        let file =
            if is_open_stream(path) { unpacked_core::open_stream(path)? } else { unpacked_core::open(path)? };
        let mut core = CoreFile::open(file).map_err(|error| match error {
            Error::TruncatedHeader { .. } => {
                Failure::new(Exit::Incomplete, format_args!("{}: {error}", path.display()))
            }
            error => failed(&error),
        })?;
        core.machine().check().map_err(|error| not_read(&path.display(), &error))?;
        core.add_files(|path| {
            let file = dipc_transport::open_untrusted(Path::new(path)).ok()?;
            Some(Box::new(file) as Box<dyn ReadAt>)
        });
        Ok(Self::Core(Box::new(core)))
    }

    /// Opens the memory of a process.
    pub(crate) fn attach(pid: u32) -> Result<Self, Failure> {
        #[cfg(target_os = "linux")]
        {
            let memory = clr_dump::ProcessMemory::open(pid).map_err(|error| {
                Failure::new(Exit::NotReachable, format_args!("read the memory of process {pid}: {error}"))
                    .with_help(crate::process::tracing_rights::to_attach(pid))
            })?;
            let machine = memory.machine().map_or(Ok(()), clr_dump::Machine::check);
            machine.map_err(|error| not_read(&format_args!("process {pid}"), &error))?;
            Ok(Self::Process(memory.with_kept_files()))
        }
        #[cfg(not(target_os = "linux"))]
        Err(Failure::usage(format_args!("read the memory of process {pid}: only on Linux"))
            .with_help("analyze a core dump: dipc dump -p PID writes one"))
    }

    /// Makes reads fail from the time on at which the flag is set.
    pub(crate) fn stop_reading_at(&mut self, stop: &Arc<AtomicBool>) {
        match self {
            Self::Core(core) => core.stop_reading_at(Arc::clone(stop)),
            #[cfg(target_os = "linux")]
            Self::Process(memory) => memory.stop_reading_at(Arc::clone(stop)),
        }
    }

    /// The reader of its memory.
    pub(crate) fn dump<'s>(&'s self, runtime: &'s Runtime) -> Dump<'s> {
        match self {
            Self::Core(core) => Dump::new(&**core, runtime),
            #[cfg(target_os = "linux")]
            Self::Process(memory) => Dump::new(memory, runtime),
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

    /// The name of the source in messages.
    pub(crate) fn subject(&self) -> String {
        self.pid().map_or_else(|| "core dump".to_owned(), |pid| format!("process {pid}"))
    }

    /// The core dump; `None` for a process.
    pub(crate) fn core(&self) -> Option<&CoreFile> {
        match self {
            Self::Core(core) => Some(core),
            #[cfg(target_os = "linux")]
            Self::Process(_) => None,
        }
    }

    /// The path of the program: the file that is mapped at the lowest address, as that of
    /// position-independent programs is.
    pub(crate) fn program_path(&self) -> Option<String> {
        let path = |files: &[clr_dump::MappedFile]| {
            let first = files.iter().min_by_key(|file| file.start)?;
            Some(first.path.to_string())
        };
        match self {
            Self::Core(core) => path(core.files()),
            #[cfg(target_os = "linux")]
            Self::Process(memory) => path(&memory.files().ok()?),
        }
    }

    /// Finds the runtime.
    pub(crate) fn runtime(&self) -> Result<Runtime, Failure> {
        let runtime = match self {
            Self::Core(core) => Runtime::find(&**core, core.files()),
            #[cfg(target_os = "linux")]
            Self::Process(memory) => memory.files().and_then(|files| Runtime::find(memory, &files)),
        };
        runtime.map_err(|error| {
            let failure = Failure::new(Exit::Failed, format_args!("{}: {error}", self.subject()));
            match error {
                Error::UnknownRuntime { .. } | Error::WrongLayout { .. } => failure.with_help(format_args!(
                    "dipc has the structures of {READ}: those of the threads, code, frames, types and heap of others are \
                     missing; dotnet-dump analyze reads them"
                )),
                Error::UnsupportedMachine(_) => failure.with_help(MACHINE_HELP),
                Error::NoRuntime => failure.with_help(format_args!("dipc reads {READ}")),
                _ => failure,
            }
        })
    }

    /// The exit code: a truncated core was read up to its end.
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

/// The advice for programs of other processors.
/// The runtimes that are read.
const READ: &str = ".NET 8, 9, 10, NativeAOT 8 to 11 and .NET Core 3.1.23 on x86-64, and .NET 10 and NativeAOT 10 and 11 on arm64";

const MACHINE_HELP: &str = "dotnet-dump analyze on a machine of that kind reads it; of a running process, dipc stack, trace, top \
                            and gcdump ask the runtime";

/// The failure for memory of another processor.
fn not_read(what: &dyn std::fmt::Display, error: &Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("read memory: {what}: {error}")).with_help(MACHINE_HELP)
}

/// Returns true if a path is standard input, or a pipe that this process was started with.
fn is_open_stream(path: &Path) -> bool {
    let is_descriptor = path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    path.as_os_str() == "-" || (is_descriptor && path.metadata().is_ok_and(|file| !file.is_file()))
}

/// Fails for a program that was compiled ahead of time, because its runtime does not describe the view's
/// subject.
pub(crate) fn check_described(runtime: &Runtime, what: &str) -> Result<(), Failure> {
    if !runtime.is_native_aot() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Failed,
        format_args!("{what} are not known: the runtime of a program that was compiled ahead of time does not describe them"),
    )
    .with_help("of such programs threads, stacks, exceptions, modules, heap, paths, objects, strings and handles are known"))
}

/// Returns true if the first bytes of a file identify a core dump. Pipes are not read.
pub(crate) fn is_core(path: &Path) -> bool {
    const TYPE: usize = 16;
    const CORE: u8 = 4;
    let mut beginning = [0; TYPE + 1];
    let read =
        dipc_transport::open_regular(path).and_then(|mut file| file.read_exact(&mut beginning)).is_ok();
    read && beginning.starts_with(b"\x7fELF") && beginning[TYPE] == CORE
}
