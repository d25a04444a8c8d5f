//! `dipc top`: the live activity of processes, on a screen, or as lines without a terminal.

mod counter;
mod flame_graph;
mod history;
mod interval;
mod lines;
mod model;
mod processes;
mod screen;
mod session;
mod view;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum, ValueHint};

use crate::args::names::NameArgs;
use crate::args::sources::SourcesArgs;
use crate::duration;
use crate::exit::Outcome;
use crate::interrupt::Interrupts;
use crate::record::kernel_samples::SamplerChoice;
use crate::render::escape::escape_controls;
use crate::render::output;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    sources: SourcesArgs,
    /// Seconds of an interval: 0.1 at least
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = duration::parse_seconds)]
    refresh_interval: Duration,
    /// Show allocated types, too; costs one event for about every 100 KB that the program allocates
    #[arg(long)]
    alloc: bool,
    /// The sampler of running methods and threads
    ///
    /// The kernel takes 99 samples for each second that a thread runs, of managed, native and kernel code,
    /// and stops no thread for them. If it does not permit that (dipc doctor says why), the runtime samples
    /// itself, and a warning says so: that shows threads that wait, too, and costs the process more.
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
    /// Number of methods, threads and types that lines show [default: 10, with --format jsonl 100]
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
    /// By the time in which a method itself ran
    #[default]
    #[value(name = "self")]
    Exclusive,
    /// By the time in which a method was on the stack
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

/// A process that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    /// Its number among the watched processes, from 0.
    number: usize,
    name: Option<String>,
    pid: Option<u32>,
}

impl Process {
    /// Its name and pid for people: `web (4711)`.
    fn title(&self) -> String {
        let name = escape_controls(self.name.as_deref().unwrap_or("process"));
        match self.pid {
            Some(pid) => format!("{name} ({pid})"),
            None => name.into_owned(),
        }
    }
}

/// The state that the sessions of the command share.
struct Shared<'s> {
    args: &'s TopArgs,
    interrupts: &'s Interrupts,
    /// Ends all sessions.
    over: AtomicBool,
    /// The beginning of the first session.
    begun: Mutex<Option<Instant>>,
}

impl Shared<'_> {
    /// Ends all sessions.
    fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether all sessions have to end.
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.interrupts.count() > 0
    }

    /// The time left, counted from the beginning of the first session; `None` without a limit.
    fn time_left(&self) -> Option<Duration> {
        let limit = self.args.duration.filter(|duration| !duration.is_zero())?;
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        Some(limit.saturating_sub(begun.get_or_insert_with(Instant::now).elapsed()))
    }
}

/// The display of what the sessions send. All calls come from one thread.
trait Display {
    /// Called when the session of a process runs, or runs again.
    fn begin(&mut self, process: &Process, features: session::Features) -> Result<(), crate::exit::Failure>;

    fn interval(&mut self, number: usize, interval: interval::Interval) -> Result<(), crate::exit::Failure>;

    /// Called when the session of a process has ended.
    fn end(&mut self, number: usize);

    /// Called ten times a second, and after each update.
    fn flush(&mut self) -> Result<(), crate::exit::Failure>;

    /// Whether the user has seen enough.
    fn is_done(&self) -> bool;

    /// Writes the flame graphs that the user asked for with the command.
    fn finish(&mut self) -> Result<(), crate::exit::Failure>;
}

pub(crate) fn run(args: &TopArgs) -> Outcome {
    let is_plain = args.plain || args.format == TopFormat::Jsonl || !output::stream().is_terminal();
    if is_plain {
        return processes::run(args, &mut lines::Lines::new(args));
    }
    let mut screen = screen::TopScreen::new(args);
    let outcome = processes::run(args, &mut screen);
    drop(screen);
    outcome
}
