//! The arguments of `trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, ArgGroup, Args, ValueEnum, ValueHint};
use dipc_client::BufferMode;

use super::machine_args::MachineArgs;
use crate::args::flight::FlightArgs;
use crate::args::format::ConvertFormat;
use crate::args::names::NameArgs;
use crate::args::selection::SelectionArgs;
use crate::args::source::{ManyProcesses, SOURCES, SourceArgs};
use crate::args::stopping::StoppingArgs;
use crate::duration;
use crate::exit::Failure;
use crate::record::kernel_samples::{NativeAllocationSettings, RUNTIME_SAMPLER, SampleSettings};
use crate::record::source::SourceSelector;
use crate::render::messages;
use crate::size;

/// The part of a process's processor time that probes may take, in percent.
pub(crate) const DEFAULT_LIMIT_PERCENT: u32 = 20;

/// The samples of a thread for each second that it runs.
const DEFAULT_FREQUENCY: u32 = 997;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).multiple(true).args(SOURCES).args(["all", "cgroup"]))]
#[command(group = ArgGroup::new("recorded").args(SOURCES))]
#[command(group = ArgGroup::new("files").args(["keep", "rotate"]).multiple(true))]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs<ManyProcesses>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Path of the recording; '-' is standard output [default: APPNAME_PID_yyyyMMdd_HHmmss.nettrace, with _2
    /// and so on where that exists]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Stop after this time: 30s, 1m30s, 500ms or dd:hh:mm:ss
    ///
    /// The time starts with the session, or, with --cpu -- COMMAND and a program without .NET, when the
    /// program starts.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Size of the buffer in the traced process, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) buffersize: u32,
    /// Policy when the buffer is full; waiting needs .NET 11
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    pub(crate) buffering_mode: Buffering,
    /// Whether the runtime lists methods and modules at the end, needed to name stack frames
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) rundown: Option<bool>,
    /// Do not save the names of methods in case the process dies
    ///
    /// Runtimes list their methods at the end of a recording. For recordings that end with their process
    /// (kill -9, a crash), a second session makes the runtime list its methods as soon as the first one runs,
    /// into NAME.names.nettrace next to NAME.nettrace. The file is removed when the recording ends normally;
    /// otherwise it stays, and the commands that read the recording use it. For a recording with the keyword
    /// jit, such as the default one, a third session makes the runtime report each method that it compiles
    /// from then on; other recordings lack those names. Precompiled methods that first run later have no
    /// names. The recording itself requests nothing more.
    ///
    /// The list cost a small program of .NET 9 20 ms of processor time and 0.3 MB, and a server of .NET 10
    /// with 10,000 methods 140 ms and 4.6 MB. There is no list with -o -, with --rundown false, with profiles
    /// that need no names, or for NativeAOT. For a program started suspended, the list is taken after 3
    /// seconds.
    #[arg(long)]
    pub(crate) no_names: bool,
    /// Do not save the kernel's accounting of threads next to the recording (OUTPUT.threads.nettrace), which
    /// distinguishes running threads from waiting ones
    ///
    /// Samples do not show whether a thread ran. On Linux the processor time of each thread is read at the
    /// start, at the end and once a second, and kept in a separate recording; OUTPUT.nettrace has only what
    /// the runtime sent. Without this accounting, lock waits on .NET 8 and 9, and waits that were compiled
    /// into their callers, may count as work. It is missing with -o -, with --keep and --rotate, without
    /// samples of threads, and for processes with threads that dipc may not see.
    #[arg(long)]
    pub(crate) no_thread_times: bool,
    /// Whether to resume a runtime that waits at its start once the session runs
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "true", default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) resume_runtime: bool,
    /// Let the kernel sample running threads, with native and kernel frames, instead of the runtime's sampler
    /// (Linux)
    ///
    /// Samples show where a thread ran, not where it waited, and do not stop threads: 997 samples per second
    /// cost a running thread 2 %, 99 next to nothing. They become part of the recording, which then has
    /// format V6; dipc report FILE topN --by cpu and PerfView show them. Programs without .NET are sampled as
    /// well. With -- COMMAND, the program is sampled from its first instruction on.
    ///
    /// Where permitted (root, CAP_PERFMON or kernel.perf_event_paranoid of at most 0), and if the machine has
    /// at most 16,000 samples a second, each processor samples whatever runs, and samples of other processes
    /// are dropped: this shows even threads that live for milliseconds. The line Samples shows the kind of
    /// sampling.
    ///
    /// --profile cpu takes whichever kind of sampling the machine permits, and shows which and why; dipc
    /// doctor -p PID shows it beforehand.
    #[arg(long)]
    pub(crate) cpu: bool,
    /// Let the runtime write its events to the kernel's user_events instead of a stream, as dotnet-trace
    /// collect-linux does (Linux with CONFIG_USER_EVENTS, .NET 10, as root)
    ///
    /// Events have the stack that the kernel sees, with native and managed callers, and are not kept in the
    /// process: one that is killed has lost none. Where the requested events include samples of threads, as
    /// the default does, the kernel takes them, as with --cpu. A session without events has the runtime list
    /// its methods at the end. The kernel leaves out events of more than 8 KB, without a count.
    #[arg(long, conflicts_with = "files")]
    pub(crate) user_events: bool,
    /// Let the kernel record when threads are off the processors, with the stacks at which they left (Linux)
    #[arg(long)]
    pub(crate) off_cpu: bool,
    /// Samples for each second that a thread runs, with --cpu or --profile cpu or all [default: 997]
    ///
    /// Frequencies in step with the kernel's ticks, such as 1000 and 100, are lowered a little: on a busy
    /// machine they would always sample the same moment of each thread's time slice.
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) frequency: Option<u32>,
    /// Follow the memory that malloc and mmap return until it is freed: what is in use, by stack (Linux, as
    /// root or with CAP_PERFMON and CAP_BPF)
    ///
    /// dipc report FILE topN --by native-alloc, stacks and convert show it. Allocations of SIZE and more are
    /// all followed, and of smaller ones a random part, each of which represents SIZE; 1B follows all. Each
    /// call of malloc, free and their like takes longer, whatever SIZE is: the cost is measured and stated
    /// beforehand, and --native-alloc-limit ends it. Other processes are not affected. See dipc help
    /// native-alloc.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, num_args = 0..=1, require_equals = true, default_missing_value = "16KiB")]
    pub(crate) native_alloc: Option<u64>,
    /// Remove the probes of --native-alloc if they take more than this part of the process's processor time
    /// in two seconds one after the other
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_LIMIT_PERCENT, requires = "native_alloc", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) native_alloc_limit: u32,
    #[command(flatten)]
    pub(crate) stopping: StoppingArgs,
    #[command(flatten)]
    pub(crate) flight: FlightArgs,
    /// Also record every other .NET process that connects to the port or is started by the program, each in
    /// its own file
    #[arg(long)]
    pub(crate) follow: bool,
    /// Let the started program use this terminal; Ctrl-C then reaches it too
    #[arg(long, requires = "command")]
    pub(crate) show_child_io: bool,
    /// Also convert the recording to this format, in a file next to it; see convert
    #[arg(long, value_enum, ignore_case = true)]
    pub(crate) format: Option<ConvertFormat>,
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// True to record exceptions in a session of their own, which ends once they are many.
    #[arg(skip)]
    pub(crate) some_exceptions: bool,
    /// True to take the names of methods from memory if the runtime could end while it lists them.
    #[arg(skip)]
    pub(crate) spares_unloading: bool,
    /// The use of readings of the process beside its events. Without any, nothing is read.
    #[arg(skip)]
    pub(crate) readings: Option<ReadingsUse>,
    /// Exit with 7 if the runtime lost events
    #[arg(long)]
    pub(crate) fail_on_loss: bool,
    /// Time limit for each of the runtime's answers, and for its silence after the stop
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "20s")]
    pub(crate) timeout: Duration,
}

/// The use of what is read of a process beside its events, for its causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingsUse {
    /// For the command that follows the recording.
    Following,
    /// For that command, and as events of the recording.
    Recording,
}

impl TraceArgs {
    /// The samples of a running thread per second.
    pub(super) fn sample_frequency(&self) -> u32 {
        self.frequency.unwrap_or(DEFAULT_FREQUENCY)
    }

    /// The samples, and with them the events, to request from the kernel.
    pub(crate) fn kernel_samples(&self) -> Result<Option<SampleSettings>, Failure> {
        let request = self.selection.request();
        let is_in_profile = request.prefers_kernel_samples();
        // The runtime's sampler has no stacks outside a stream.
        let replaces_sampler = self.user_events && (!request.is_some() || request.names_sampler());
        let is_on = self.cpu || is_in_profile || replaces_sampler;
        if self.frequency.is_some() && !is_on {
            return Err(Failure::usage("--frequency applies to the kernel's samples: add --cpu"));
        }
        if self.flight.settings().is_some() || self.flight.rotate.is_some() {
            if self.cpu || self.off_cpu || self.native_alloc.is_some() {
                return Err(Failure::usage(
                    "--cpu, --off-cpu and --native-alloc: the kernel's samples become part of a whole recording, and --keep and --rotate write parts of one",
                )
                .with_help(
                    "--profile cpu with --keep or --rotate has the runtime sample itself; dipc push sends profiles of the kernel's samples time after time",
                ));
            }
            if is_in_profile {
                messages::warning(format_args!(
                    "profiles cpu and all: --keep and --rotate keep parts of the runtime's stream, so the runtime samples itself: {RUNTIME_SAMPLER}"
                ));
            }
            return Ok(None);
        }
        let frequency = if is_on { self.sample_frequency() } else { 0 };
        let native = self.native_alloc.map(|interval| NativeAllocationSettings {
            interval: u32::try_from(interval).unwrap_or(u32::MAX),
            limit_percent: self.native_alloc_limit,
        });
        let settings = SampleSettings::of_processors(frequency, self.off_cpu).with_native_allocations(native);
        Ok((is_on || self.off_cpu || native.is_some() || self.user_events).then_some(settings))
    }

    /// The sources that are recorded: at least one, and several only if all are processes that run.
    pub(crate) fn sources(&self) -> Result<Vec<SourceSelector>, Failure> {
        self.source.selectors(self.show_child_io)
    }
}

/// The policy for a full buffer of the runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffering {
    /// Events are dropped, and counted
    #[default]
    #[value(alias = "0")]
    Drop,
    /// The threads that write events wait
    #[value(alias = "1")]
    Block,
}

impl From<Buffering> for BufferMode {
    fn from(mode: Buffering) -> Self {
        match mode {
            Buffering::Drop => Self::DROP,
            Buffering::Block => Self::BLOCK,
        }
    }
}
