//! `dipc dump analyze`: a core dump, or the memory of a process, read without .NET.

pub(crate) mod awaits;
mod channels;
pub(crate) mod dotnet_dump;
mod exceptions;
mod finalizers;
mod generations;
mod heap;
pub(crate) mod locks;
mod modules;
mod names;
mod object;
mod objects;
mod overview;
mod prompt;
mod requests;
mod roots;
pub(crate) mod stacks;
mod strings;
mod tasks;
mod threadpool;
mod threads;
mod timers;
pub(crate) mod variables;
mod wait_words;

use std::cell::OnceCell;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueHint};
use clr_dump::{Address, CoreFile, Runtime};

use self::awaits::AsyncArgs;
use self::channels::ChannelsArgs;
use self::finalizers::FinalizersArgs;
use self::generations::GenerationsArgs;
use self::object::ObjectArgs;
use self::objects::ObjectsArgs;
use self::requests::RequestsArgs;
use self::roots::{HandlesArgs, StaticsArgs};
use self::stacks::Shown;
use self::strings::StringsArgs;
use self::tasks::TasksArgs;
use self::threadpool::ThreadPoolArgs;
use self::timers::TimersArgs;
use crate::args::format::Format;
use crate::args::heap_paths::{HeapPathsArgs, parse_address};
use crate::args::heap_view::{HeapViewArgs, MemoryFormat};
use crate::args::lines::SymbolPathArgs;
use crate::args::target::{TARGETS, TargetArgs};
use crate::command::memory::{self, PartsArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::core_advice;
use crate::inspect::core_reads::CoreReads;
use crate::inspect::core_source::{Source, check_described};
use crate::interrupt;
use crate::render::messages;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("analyzed").required(true).arg("core").args(TARGETS), disable_help_subcommand = true)]
pub(crate) struct AnalyzeArgs {
    /// The core dump; - is standard input
    #[arg(value_name = "CORE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Format of the output: table or json; for the view 'heap' also csv, one line per group, and html, a
    /// page
    #[arg(
        id = "memory_format",
        long = "format",
        value_name = "FORMAT",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        global = true
    )]
    format: MemoryFormat,
    /// Show a view, or run a command of dotnet-dump, such as 'clrstack -all'; can be repeated
    #[arg(short, long = "command", value_name = "COMMAND")]
    commands: Vec<String>,
    /// Ask for views and commands, one a line, and keep what was read of a core dump; 'help' lists them
    #[arg(short, long, conflicts_with = "commands")]
    interactive: bool,
    #[command(flatten)]
    symbols: SymbolPathArgs,
    #[command(subcommand)]
    view: Option<View>,
}

/// The words of a view.
#[derive(Debug, Parser)]
#[command(name = "dump analyze CORE", no_binary_name = true, disable_help_subcommand = true)]
struct ViewLine {
    #[arg(id = "memory_format", long = "format", value_enum, global = true, hide_possible_values = true)]
    format: Option<MemoryFormat>,
    #[command(subcommand)]
    view: View,
}

/// A part of what a core dump has.
#[derive(Debug, Subcommand)]
enum View {
    /// List the managed threads
    Threads(ThreadsArgs),
    /// Show the managed stacks of all threads, each stack once
    Stacks(StacksArgs),
    /// Show the exceptions of threads, with their causes
    Exceptions(ExceptionsArgs),
    /// Show the objects of the heap by type, module or namespace, with retained sizes
    Heap(HeapArgs),
    /// Show objects and free memory by generation, and the largest free blocks with what pins them
    Generations(GenerationsArgs),
    /// Show the objects with finalizers by type: those that wait to be finalized, and all others
    Finalizers(FinalizersArgs),
    /// Show what keeps the objects of a type alive: the shortest paths from roots
    Paths(HeapPathsArgs),
    /// List the objects of a type
    Objects(ObjectsArgs),
    /// Show an object: the values of its fields, its elements or its characters, and what keeps it alive
    Object(ObjectArgs),
    /// Show the distinct strings of the heap, with their number and bytes
    Strings(StringsArgs),
    /// Show the static fields of types with their values
    Statics(StaticsArgs),
    /// Show the handles that keep objects alive for code outside the heap
    Handles(HandlesArgs),
    /// Show the memory of the process by its owners: heaps, stacks, code, files, as dipc memory
    Memory(PartsArgs),
    /// Show held monitors, the threads that wait for them, and deadlocks
    Locks,
    /// Show the async methods that have not ended, what each waits for, and what waits for it
    Async(AsyncArgs),
    /// Show the requests that have not ended: those that ASP.NET Core serves, those of HttpClient, and
    /// commands of SQL Server's clients
    Requests(RequestsArgs),
    /// Show the thread pool: its workers, the work that waits for them, and starvation
    #[command(name = "threadpool")]
    ThreadPool(ThreadPoolArgs),
    /// Show the timers by what they call, with the time at which the next is due
    Timers(TimersArgs),
    /// Show the tasks of the heap by state and by what they run
    Tasks(TasksArgs),
    /// Show the channels of the heap: their items, and what waits to write to them and to read from them
    Channels(ChannelsArgs),
    /// Commands of dotnet-dump
    #[command(external_subcommand)]
    Other(Vec<String>),
    /// List the loaded assemblies that have code or objects
    Modules,
}

#[derive(Debug, Args)]
struct StacksArgs {
    /// Show native frames along with managed ones, and the threads that have never run managed code
    #[arg(long)]
    native: bool,
    /// Show the arguments of each frame, and `this`
    #[arg(long)]
    arguments: bool,
    /// Show the local variables of each frame, by the names of a PDB or by number
    #[arg(long)]
    locals: bool,
}

impl StacksArgs {
    const fn has_variables(&self) -> bool {
        self.arguments || self.locals
    }
}

#[derive(Debug, Args)]
struct HeapArgs {
    #[command(flatten)]
    view: HeapViewArgs,
}

#[derive(Debug, Args)]
struct ThreadsArgs {
    /// Leave out threads that have ended or not started
    #[arg(long)]
    live: bool,
}

#[derive(Debug, Args)]
struct ExceptionsArgs {
    /// The address of an exception, in hexadecimal [default: the exceptions of all threads]
    #[arg(value_name = "ADDRESS", value_parser = parse_address)]
    address: Option<u64>,
}

pub(crate) fn run(args: &AnalyzeArgs) -> Outcome {
    analyze(args).inspect_err(|failure| args.format.print_failure(failure))
}

fn analyze(args: &AnalyzeArgs) -> Outcome {
    // Wrong words fail before anything is read.
    let lines: Vec<ViewLine> = args
        .commands
        .iter()
        .map(|command| words(command))
        .filter(|words| !words.is_empty())
        .take_while(|words| !matches!(&*words[0].to_lowercase(), "exit" | "quit" | "q"))
        .map(|words| parse(&words))
        .collect::<Result<_, _>>()?;
    if !args.commands.is_empty() && args.view.is_some() {
        return Err(Failure::usage("dump analyze: --command and a view exclude each other"));
    }
    if args.interactive {
        return interact(args);
    }
    let line = match &args.view {
        Some(View::Other(words)) => Some(parse(words)?),
        _ => None,
    };
    let source = args.source()?;
    let runtime = OnceCell::new();
    let reads = CoreReads::new(&source, &runtime, &args.symbols.symbol_path);
    let shown = |view: &View, format: Option<MemoryFormat>| {
        let shown = show(args, view, format.unwrap_or(args.format), &reads);
        shown.map_err(|failure| with_shortfall(failure, &source)).inspect_err(|failure| {
            // The caller prints failures of the whole command.
            if args.format != MemoryFormat::Json {
                format.unwrap_or_default().print_failure(failure);
            }
        })
    };
    if !args.commands.is_empty() {
        let mut exit = Exit::Done;
        for line in &lines {
            exit = exit.join(shown(&line.view, line.format)?);
        }
        return Ok(exit);
    }
    match (&line, &args.view) {
        (Some(line), _) => shown(&line.view, line.format),
        (None, Some(view)) => shown(view, None),
        (None, None) => {
            overview::show(&source, args.written(), &args.symbols.symbol_path, table_or_json(args.format)?)
        }
    }
}

/// Reads views and commands from standard input and shows them.
fn interact(args: &AnalyzeArgs) -> Outcome {
    if args.view.is_some() {
        return Err(Failure::usage("dump analyze: --interactive and a view exclude each other"));
    }
    if args.core.as_ref().is_some_and(|core| core.as_os_str() == "-") {
        return Err(Failure::usage("dump analyze: --interactive reads commands from standard input")
            .with_help("name the file of the core dump"));
    }
    let cancelled = interrupt::watch_cancellation()?;
    let mut source = args.source()?;
    source.stop_reading_at(&cancelled);
    let runtime = OnceCell::new();
    prompt::run(args, &CoreReads::new(&source, &runtime, &args.symbols.symbol_path), &cancelled)
}

/// The words of a command.
fn words(command: &str) -> Vec<String> {
    let is_joined = command.contains(dotnet_dump::SEPARATOR);
    let is_end = |character: char| {
        if is_joined { character == dotnet_dump::SEPARATOR } else { character.is_whitespace() }
    };
    command.split(is_end).filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
}

/// Parses a view, or a command of dotnet-dump.
fn parse(words: &[String]) -> Result<ViewLine, Failure> {
    ViewLine::try_parse_from(dotnet_dump::translate(words)?).map_err(|error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let line = line.strip_prefix("error: ").unwrap_or(line);
        Failure::usage(format_args!("dump analyze: {}: {line}", words.join(" ")))
    })
}

/// A failure of a view of a core dump that does not have all memory says so.
fn with_shortfall(failure: Failure, source: &Source) -> Failure {
    let lacks_threads = || {
        let runtime = source.runtime().ok();
        runtime.is_none_or(|runtime| source.dump(&runtime).threads().list().is_err())
    };
    match core_advice::shortfall(source) {
        Some(reason) if failure.exit == Exit::Failed && lacks_threads() => {
            Failure::new(Exit::Incomplete, format_args!("dump analyze: {reason}, and the view needs more"))
                .with_help("dump analyze CORE without a view shows the rest: program, signal, threads")
        }
        _ => failure,
    }
}

fn show(args: &AnalyzeArgs, view: &View, view_format: MemoryFormat, reads: &CoreReads<'_>) -> Outcome {
    let source = reads.source;
    if let View::Heap(heap) = view {
        let read = reads.heap(heap.view.stop)?;
        heap.view.show(&read, &args.title(), view_format)?;
        return Ok(read.exit);
    }
    let format = table_or_json(view_format)?;
    if let View::Memory(parts) = view {
        memory::print(source, parts, format)?;
        return Ok(source.exit());
    }
    if let Some(paths) = view.paths() {
        let read = reads.heap(None)?;
        paths.show(&read.graph, format)?;
        return Ok(read.exit);
    }
    let runtime = reads.runtime()?;
    view.check(runtime)?;
    if let Some(exit) = view.print_objects(reads, runtime, format)? {
        return Ok(exit.join(source.exit()));
    }
    let analysis = reads.analysis()?;
    let analysis = &*analysis;
    match view {
        View::Threads(of) => threads::print(analysis, of.live, format)?,
        View::Stacks(of) if of.has_variables() => {
            let variables = variables::Chosen { arguments: of.arguments, locals: of.locals };
            let registers = source.core().map(CoreFile::thread_registers).unwrap_or_default();
            let shown = Shown::with_native(of.native);
            variables::read(analysis, shown, variables, &registers, format).print()?;
        }
        View::Stacks(of) => stacks::print(analysis, Shown::with_native(of.native), format)?,
        View::Exceptions(of) => exceptions::print(analysis, of.address.map(Address::new), format)?,
        View::Locks => locks::print(analysis, format)?,
        View::Modules => modules::print(analysis, format)?,
        View::ThreadPool(args) => return Ok(threadpool::print(analysis, args, format)?.join(source.exit())),
        View::Requests(args) => return Ok(requests::print(analysis, args, format)?.join(source.exit())),
        View::Async(args) => return Ok(awaits::print(analysis, args, format)?.join(source.exit())),
        _ => {}
    }
    Ok(source.exit())
}

impl View {
    /// Fails if the runtime does not provide the view's data.
    fn check(&self, runtime: &Runtime) -> Result<(), Failure> {
        match self {
            Self::Statics(_) => check_described(runtime, "static fields"),
            Self::Locks => check_described(runtime, "monitors"),
            Self::Async(_) => check_described(runtime, "the fields of async methods"),
            Self::Requests(_) => check_described(runtime, "the fields of requests"),
            Self::ThreadPool(_) => check_described(runtime, "the fields of the thread pool"),
            Self::Tasks(_) => check_described(runtime, "the fields of tasks"),
            Self::Timers(_) => check_described(runtime, "the fields of timers"),
            Self::Channels(_) => check_described(runtime, "the fields of channels"),
            Self::Stacks(of) if of.has_variables() => check_described(runtime, "the variables of frames"),
            _ => Ok(()),
        }
    }

    /// The paths that the view shows.
    fn paths(&self) -> Option<HeapPathsArgs> {
        match self {
            Self::Paths(paths) => Some(paths.clone()),
            _ => None,
        }
    }

    /// Prints a view of objects, which needs no threads; `None` for other views.
    fn print_objects(
        &self,
        reads: &CoreReads<'_>,
        runtime: &Runtime,
        format: Format,
    ) -> Result<Option<Exit>, Failure> {
        let source = reads.source;
        let dump = source.dump(runtime);
        let shows_values = match self {
            Self::Stacks(of) => of.has_variables(),
            view => matches!(view, Self::Object(_) | Self::Statics(_)),
        };
        if shows_values && source.core().is_some_and(CoreFile::is_without_numbers) {
            messages::note("The numbers of the program were removed from this core dump, and are shown as 0");
        }
        Ok(Some(match self {
            Self::Objects(args) => objects::print(source, &dump, args, format)?,
            Self::Strings(args) => strings::print(source, &dump, args, format)?,
            Self::Statics(args) => roots::print_statics(source, &dump, args, format)?,
            Self::Handles(args) => roots::print_handles(source, &dump, args, format)?,
            Self::Generations(args) => generations::print(source, &dump, args, format)?,
            Self::Finalizers(args) => finalizers::print(source, &dump, args, format)?,
            Self::Tasks(args) => tasks::print(source, &dump, args, format)?,
            Self::Timers(args) => timers::print(source, &dump, args, format)?,
            Self::Channels(args) => channels::print(source, &dump, args, format)?,
            Self::Object(args) if args.no_path => {
                object::print(&dump, args, None, format)?;
                Exit::Done
            }
            Self::Object(args) => {
                let heap = reads.heap(None)?;
                object::print(&dump, args, Some(&heap.graph), format)?;
                heap.exit
            }
            _ => return Ok(None),
        }))
    }
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

    fn source(&self) -> Result<Source, Failure> {
        self.target.core_or_memory(self.core.as_deref())
    }
}

/// The format, for views with table and JSON only.
fn table_or_json(format: MemoryFormat) -> Result<Format, Failure> {
    match format {
        MemoryFormat::Table => Ok(Format::Table),
        MemoryFormat::Json => Ok(Format::Json),
        MemoryFormat::Csv | MemoryFormat::Html => {
            Err(Failure::usage("dump analyze: --format csv and --format html are for the view 'heap'"))
        }
    }
}
