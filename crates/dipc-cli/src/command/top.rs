//! `dipc top`: the live activity of processes, on a screen, or as lines without a terminal.

mod counter;
mod flame_graph;
mod history;
mod lines;
mod model;
mod screen;
mod session;
mod view;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use crate::args::awaits::AwaitArgs;
use crate::args::names::NameArgs;
use crate::args::sources::SourcesArgs;
use crate::duration;
use crate::exit::Outcome;
use crate::interrupt::Interrupts;
use crate::record::kernel_samples::SamplerChoice;
use crate::record::watch::{self, SharedLimits, WatchOptions, WatchView};
use crate::render::output;
use screen::TopScreen;
use session::{SessionEvent, TopSession};

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    sources: SourcesArgs,
    /// Seconds per interval, at least 0.1
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = duration::parse_seconds)]
    refresh_interval: Duration,
    /// Show allocated types, too; costs one event per 100 KB or so that the program allocates
    #[arg(long)]
    alloc: bool,
    /// Show the types of allocations that collections found in use, too; collections take longer
    ///
    /// Of what is allocated since dipc top began: sampled objects are followed through collections, each of
    /// which reports all that survives it.
    #[arg(long)]
    live_alloc: bool,
    /// The sampler of running methods and threads
    ///
    /// The kernel takes 99 samples for each second that a thread runs, of managed, native and kernel code,
    /// without stopping threads; its accounting shows the waiting threads. If the kernel does not permit
    /// samples (dipc doctor shows why), the runtime samples itself, with a warning: this distinguishes
    /// blocked threads from threads that wait for work, but costs the process more.
    #[arg(long, value_enum, default_value_t)]
    sampler: SamplerChoice,
    /// Order of the methods
    #[arg(long, value_enum, default_value_t)]
    sort: MethodOrder,
    /// Stop after this many intervals
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Number of methods, threads and types to print [default: 10; 100 with --format jsonl]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Print lines for each interval, as when standard output is not a terminal
    #[arg(long)]
    plain: bool,
    /// Format of the lines
    #[arg(long, value_enum, default_value_t)]
    format: TopFormat,
    /// Write a flame graph of all samples to this file, at the end and when w is pressed
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    awaits: AwaitArgs,
    #[command(flatten)]
    names: NameArgs,
    /// Time limit for each of the runtime's answers, and for its silence after the stop
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration::parse)]
    timeout: Duration,
    /// Let the started program use this terminal
    #[arg(long)]
    show_child_io: bool,
}

/// The order of methods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum MethodOrder {
    /// By the time that a method itself ran
    #[default]
    #[value(name = "self")]
    Exclusive,
    /// By the time that a method was on the stack
    #[value(name = "total")]
    Inclusive,
}

/// A format of lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum TopFormat {
    /// For people
    #[default]
    Table,
    /// For programs: one object per interval
    Jsonl,
}

/// Maximum number of processes to watch at once.
const MAX_PROCESSES: usize = 100;

pub(crate) fn run(args: &TopArgs) -> Outcome {
    let is_plain = args.plain || args.format == TopFormat::Jsonl || !output::stream().is_terminal();
    if is_plain { watch(args, &mut lines::Lines::new(args)) } else { watch(args, &mut TopScreen::new(args)) }
}

fn watch(args: &TopArgs, view: &mut impl WatchView<SessionEvent>) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let options = WatchOptions {
        sources: args.sources.selector(args.show_child_io)?,
        may_be_many: args.sources.may_be_many(),
        most_processes: MAX_PROCESSES,
        reuses_numbers: false,
        reconnect: None,
        reports_ends: true,
    };
    let limits = SharedLimits::new(&interrupts, args.duration, args.timeout);
    watch::watch(&options, &limits, &TopSession { args, limits: &limits }, view)
}
