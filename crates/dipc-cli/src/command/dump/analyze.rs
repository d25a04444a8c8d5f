//! `dipc dump analyze`: a core dump, or the memory of a process, read without .NET.

mod exceptions;
mod heap;
mod locks;
mod modules;
mod overview;
mod stacks;
mod threads;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueHint};

use crate::args::format::Format;
use crate::args::heap_paths::HeapPathsArgs;
use crate::args::heap_view::{HeapViewArgs, MemoryFormat};
use crate::args::target::{TARGETS, TargetArgs};
use crate::exit::{Failure, Outcome};
use crate::inspect::core_dump::{Analysis, Source};
use crate::inspect::heap::Heap;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("analyzed").required(true).arg("core").args(TARGETS), disable_help_subcommand = true)]
pub(crate) struct AnalyzeArgs {
    /// The core dump
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Format of the output
    #[arg(
        id = "memory_format",
        long = "format",
        value_name = "FORMAT",
        value_enum,
        default_value_t,
        global = true
    )]
    format: MemoryFormat,
    #[command(subcommand)]
    view: Option<View>,
}

/// A part of what a core dump has.
#[derive(Debug, Subcommand)]
enum View {
    /// List the managed threads
    #[command(alias = "clrthreads")]
    Threads,
    /// Show the managed stacks of all threads, each stack once
    #[command(alias = "clrstack", alias = "parallelstacks", alias = "pstacks")]
    Stacks,
    /// Show the exceptions of threads, with their causes
    #[command(alias = "pe", alias = "printexception")]
    Exceptions,
    /// Show the objects of the heap by type, module or namespace, with retained sizes
    #[command(alias = "dumpheap")]
    Heap(HeapArgs),
    /// Show what keeps the objects of a type alive: the shortest paths from roots
    Paths(HeapPathsArgs),
    /// Show held monitors, the threads that wait for them, and deadlocks
    #[command(alias = "syncblk")]
    Locks,
    /// List the loaded assemblies that have code or objects
    #[command(alias = "clrmodules")]
    Modules,
}

#[derive(Debug, Args)]
struct HeapArgs {
    #[command(flatten)]
    view: HeapViewArgs,
    /// For compatibility with the commands of dotnet-dump: -stat
    #[arg(hide = true, allow_hyphen_values = true, value_parser = ["-stat"])]
    statistics: Option<String>,
}

pub(crate) fn run(args: &AnalyzeArgs) -> Outcome {
    let source = args.source()?;
    if let Some(View::Heap(heap)) = &args.view {
        let read = Heap::of_memory(&source, heap.view.stop)?;
        heap.view.show(&read.graph, &args.title(), args.format)?;
        return Ok(read.exit);
    }
    let format = args.table_or_json()?;
    if let Some(View::Paths(paths)) = &args.view {
        let read = Heap::of_memory(&source, None)?;
        paths.show(&read.graph, format)?;
        return Ok(read.exit);
    }
    let runtime = source.runtime()?;
    let analysis = Analysis::new(&source, &runtime)?;
    match &args.view {
        None => overview::print(&analysis, args.written(), format)?,
        Some(View::Threads) => threads::print(&analysis, format)?,
        Some(View::Stacks) => stacks::print(&analysis, format)?,
        Some(View::Exceptions) => exceptions::print(&analysis, format)?,
        Some(View::Locks) => locks::print(&analysis, format)?,
        Some(View::Modules) => modules::print(&analysis, format)?,
        Some(View::Heap(_) | View::Paths(_)) => {}
    }
    Ok(source.exit())
}

impl AnalyzeArgs {
    /// The local time at which the core dump was written.
    fn written(&self) -> Option<String> {
        let modified = self.core.as_ref()?.metadata().ok()?.modified().ok()?;
        let time = jiff::Timestamp::try_from(modified).ok()?.to_zoned(jiff::tz::TimeZone::system());
        Some(time.strftime("%Y-%m-%d %H:%M:%S").to_string())
    }

    /// The name of the file or the process.
    fn title(&self) -> String {
        match &self.core {
            Some(core) => core.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            None => "memory of a process".to_owned(),
        }
    }

    /// The format, for views that have no others.
    fn table_or_json(&self) -> Result<Format, Failure> {
        match self.format {
            MemoryFormat::Table => Ok(Format::Table),
            MemoryFormat::Json => Ok(Format::Json),
            MemoryFormat::Csv | MemoryFormat::Html => {
                Err(Failure::usage("dump analyze: --format csv and --format html are for the view 'heap'"))
            }
        }
    }

    fn source(&self) -> Result<Source, Failure> {
        if let Some(core) = &self.core {
            return Source::open(core);
        }
        let pid = match self.target.process_id {
            Some(pid) => Some(pid),
            None => self.target.find(super::REQUEST_TIMEOUT)?.target.pid(),
        };
        match pid {
            Some(pid) => Source::attach(pid),
            None => Err(Failure::usage("dump analyze: the process at this address has no process id here")),
        }
    }
}
