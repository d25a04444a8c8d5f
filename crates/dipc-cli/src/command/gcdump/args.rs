//! Arguments that several of the commands share.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use dipc_collect::heap;
use gcdump::{HeapGraph, file};

use crate::args::source::{SOURCES, SourceArgs};
use crate::duration;
use crate::exit::{Exit, Failure};
use crate::inspect::heap::{GraphOfEvents, Heap};
use crate::interrupt::Interrupts;
use crate::record::heap::HeapRequest;
use crate::record::source::{Child, PortWatcher, Source};
use crate::render::destination::Destination;

/// The number of bytes collected for one write.
const BUFFER: usize = 1 << 18;
/// The time that a program just started runs before its heap is dumped.
const AFTER_START: Duration = Duration::from_secs(1);

/// The process whose heap is dumped, and the settings of the dump.
#[derive(Debug, Clone, Args)]
pub(super) struct DumpArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Dump the heap after this time [default: at once; for a program started by dipc, after 1s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    after: Option<Duration>,
    /// Size of the buffer in the process, in megabytes; the whole dump has to fit, at 48 bytes per object
    #[arg(long, value_name = "MB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    buffersize: u32,
    /// Time limit for the collection, and for the runtime's silence afterwards; a dump that keeps arriving
    /// has no limit
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, default_value = "30s")]
    pub(super) timeout: Duration,
    /// Let the started program use this terminal
    #[arg(long, requires = "command")]
    show_child_io: bool,
    #[command(flatten)]
    dependent: DependentArgs,
}

/// The treatment of dependent handles.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct DependentArgs {
    /// Let the keys of a ConditionalWeakTable hold their values; by default the values are roots, as in
    /// dotnet-gcdump. Not for .gcdump files, which lack the keys
    #[arg(long = "dependent-edges")]
    edges: bool,
}

impl DependentArgs {
    pub(super) const fn graph(self, pid: Option<u64>) -> GraphOfEvents {
        GraphOfEvents { pid, dependent_edges: self.edges }
    }

    /// The request for the heap of a process, with this size of the runtime's buffer.
    const fn request(self, buffer_mb: u32) -> heap::HeapRequest {
        let request = heap::HeapRequest::new(buffer_mb);
        if self.edges { request.with_dependent_references() } else { request }
    }
}

/// A time; a number alone is seconds, as in dotnet-gcdump.
fn parse_timeout(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_secs).or_else(|_| duration::parse(text))
}

/// A process to dump the heap of, once or repeatedly.
pub(super) struct DumpedProcess {
    pub(super) source: Source,
    pub(super) interrupts: Interrupts,
    child: Option<Child>,
    /// Kept to the end: no runtime may wait forever, and commands for this one go through the port.
    _watcher: Option<PortWatcher>,
    request: HeapRequest,
}

impl DumpedProcess {
    /// Finds or starts the process, and waits until it is time to dump its heap.
    pub(super) fn open(args: &DumpArgs) -> Result<Self, Failure> {
        let interrupts = Interrupts::watch()?;
        let mut source = Source::open(&args.source.selector(args.show_child_io)?, args.timeout, &interrupts)?;
        source.announce();
        let child = source.child.take();
        let request = HeapRequest {
            heap: args.dependent.request(args.buffersize),
            timeout: args.timeout,
            interrupts: interrupts.clone(),
        };
        let after = args.after.unwrap_or(if child.is_some() { AFTER_START } else { Duration::ZERO });
        HeapRequest::resume(&source)?;
        request.wait(after)?;
        let watcher = source.port.take().map(PortWatcher::resuming);
        Ok(Self { source, interrupts, child, _watcher: watcher, request })
    }

    /// Dumps the heap. If that fails, a program that was started for the dump is killed.
    pub(super) fn dump(&mut self) -> Result<Heap, Failure> {
        let dumped = self.request.dump(&self.source);
        self.kill_without(dumped)
    }

    /// Waits. If the user interrupts the wait, a program that was started for the dump is killed.
    pub(super) fn wait(&mut self, time: Duration) -> Result<(), Failure> {
        let waited = self.request.wait(time);
        self.kill_without(waited)
    }

    /// Kills the program after a failure. Its exit code means nothing then.
    fn kill_without<T>(&mut self, result: Result<T, Failure>) -> Result<T, Failure> {
        if result.is_err() {
            self.child = None;
        }
        result
    }

    /// Waits for the end of a program that was started for the dump. Returns the exit code of the command.
    pub(super) fn end(self, exit: Exit) -> Result<Exit, Failure> {
        let code = self.child.map(|child| child.wait(&self.interrupts)).transpose()?;
        Ok(exit.or_program(code))
    }
}

/// A heap: that of a file, or of a process.
#[derive(Debug, Clone, Args)]
pub(super) struct HeapArgs {
    /// A .gcdump file, or a recording with a heap dump; '-' is a recording from standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,
    /// Only the heap of this process, in recordings of many
    #[arg(long, value_name = "PID", requires = "file", conflicts_with_all = SOURCES)]
    pid: Option<u64>,
    #[command(flatten)]
    pub(super) dump: DumpArgs,
}

impl HeapArgs {
    /// Reads the file, or dumps the heap of the process, passes the heap on, and returns the exit code.
    pub(super) fn with_heap(&self, show: impl FnOnce(&Heap) -> Result<(), Failure>) -> Result<Exit, Failure> {
        let Some(file) = &self.file else {
            let mut process = DumpedProcess::open(&self.dump)?;
            let heap = process.dump()?;
            process.interrupts.while_computing(|| show(&heap))?;
            return process.end(heap.exit);
        };
        let heap = Heap::open(file, self.dump.dependent.graph(self.pid))?;
        show(&heap)?;
        Ok(heap.exit)
    }
}

/// The output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum HeapFormat {
    /// For people
    #[default]
    Table,
    /// For programs: one object
    Json,
    /// For spreadsheets: one line per row
    Csv,
}

/// The path with the extension of heaps, as dotnet-gcdump has it.
pub(super) fn with_extension(path: &Path) -> PathBuf {
    if path.as_os_str() == "-" || path.extension().is_some_and(|extension| extension == "gcdump") {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".gcdump");
    name.into()
}

/// Writes a graph to a file, replacing its content.
pub(super) fn write(graph: &HeapGraph, mut out: Destination) -> Result<(), Failure> {
    let writer = match file::Writer::new(graph) {
        Ok(writer) => writer,
        Err(error) => {
            out.discard();
            return Err(Failure::new(Exit::Failed, error));
        }
    };
    out.begin()?;
    let mut buffered = BufWriter::with_capacity(BUFFER, out);
    let written = writer.write(&mut buffered).and_then(|()| buffered.flush());
    match (written, buffered.into_parts().0) {
        (Ok(()), out) => out.close(),
        (Err(error), out) => Err(out.failed(&error)),
    }
}
