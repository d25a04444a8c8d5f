//! A core dump, or the memory of a process, with its managed threads and the names of their frames.

use std::fs::File;
use std::path::Path;

use clr_dump::{CoreFile, Error, Memory, Names, Registers, Runtime, Stack, Thread};
use clr_events::csharp::{Detail, RuntimeName};

use crate::exit::{Exit, Failure};

/// The memory that is analyzed.
pub(crate) enum Source {
    Core(Box<CoreFile>),
    #[cfg(target_os = "linux")]
    Process(clr_dump::ProcessMemory),
}

impl Source {
    /// Opens a core dump.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()))
        };
        let file = File::open(path).map_err(|error| failed(&error))?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(failed(&"it is not a regular file"));
        }
        let core = CoreFile::open(file).map_err(|error| failed(&error))?;
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
                    failure.with_help("dipc reads .NET 9 and 10 on x86-64; dotnet-dump analyze reads others")
                }
                Error::NoRuntime => failure.with_help(
                    "dipc reads .NET 9 and 10 on x86-64; a program of NativeAOT has no runtime that it can read",
                ),
                _ => failure,
            }
        })
    }

    /// The exit code: a truncated core was read as far as it goes.
    pub(crate) fn exit(&self) -> Exit {
        match self.core() {
            Some(core) if core.missing_bytes() > 0 => Exit::Incomplete,
            _ => Exit::Done,
        }
    }
}

/// A managed thread with its stack.
pub(crate) struct ThreadStack {
    pub(crate) thread: Thread,
    pub(crate) name: Option<String>,
    pub(crate) stack: Stack,
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

/// Reads the threads with their stacks, and the names of their frames.
pub(crate) fn thread_stacks(source: &Source, runtime: &Runtime) -> Result<Vec<ThreadStack>, Failure> {
    let memory = source.memory();
    let names = Names::new(memory, runtime);
    let threads = runtime.threads(memory).map_err(|missing| {
        Failure::new(Exit::Failed, format_args!("dump analyze: the list of threads: {missing}"))
    })?;
    Ok(threads
        .into_iter()
        .map(|thread| {
            let stack = runtime.stack(memory, &thread, registers(source, &thread));
            let frames = stack.frames.iter().map(|frame| frame_text(&names, frame)).collect();
            let name = runtime.thread_name(memory, &thread).ok().flatten();
            ThreadStack { thread, name, stack, frames }
        })
        .collect())
}

/// The registers of a thread in a core dump.
fn registers<'s>(source: &'s Source, thread: &Thread) -> Option<&'s Registers> {
    let threads = source.core()?.threads();
    let own = threads.iter().find(|own| u64::from(own.tid) == thread.os_id);
    own.and_then(|own| own.registers.as_ref())
}

fn frame_text(names: &Names<'_>, frame: &clr_dump::Frame) -> FrameText {
    let method = names.method(&frame.code);
    let name = method.as_ref().and_then(|method| method.name.as_ref()).map(|name| {
        let of_runtime =
            RuntimeName { namespace: &name.type_name, name: &name.name, signature: &name.signature };
        match of_runtime.csharp(Detail::Short) {
            Some(csharp) => FrameName { text: csharp.text, namespace_len: csharp.namespace_len },
            None => FrameName { text: [&*name.type_name, ".", &*name.name].concat(), namespace_len: 0 },
        }
    });
    FrameText {
        ip: frame.ip,
        name,
        module: method
            .as_ref()
            .and_then(|method| method.module.as_ref())
            .map(|module| module.file_name().to_owned())
            .filter(|name| !name.is_empty()),
        token: method.as_ref().and_then(|method| method.token),
        is_dynamic: method.is_some_and(|method| method.token.is_none()),
    }
}
