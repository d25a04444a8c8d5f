//! Arguments of the commands that make a profile of a recording.

use std::path::Path;

use clap::{Args, ValueEnum};
use nettrace_export::{CausalGrouping, Metric, Pattern, Selection, StackFilter};

use crate::args::awaits::AwaitArgs;
use crate::args::lines::LineArgs;
use crate::args::names::NameArgs;
use crate::args::times::TimeArgs;
use crate::args::user_code::UserCodeArgs;
use crate::exit::Failure;
use crate::inspect::profile::ProfileOptions;

/// The part of a recording that becomes a profile, and the changes to its stacks.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) times: TimeArgs,
    /// Only this thread; may be given several times
    #[arg(long, value_name = "TID")]
    pub(crate) tid: Vec<u64>,
    /// Only this process, in recordings of many; may be given several times
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<u64>,
    /// Only stacks with a frame that has this text in its name, in either form, from that frame on; '*'
    /// matches any text; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) root: Vec<String>,
    /// Leave out frames with this text in their name, in either form; their weight goes to their callers; may
    /// be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) hide: Vec<String>,
    /// Include the time that threads spent waiting for work, as dotnet-trace does
    #[arg(long)]
    pub(crate) idle: bool,
    /// Treat waits in methods with this text in their name, in either form, as waiting for work, like the
    /// pool's own waits; may be given several times
    #[arg(long, value_name = "TEXT", conflicts_with = "idle")]
    pub(crate) wait: Vec<String>,
    #[command(flatten)]
    pub(crate) user_code: UserCodeArgs,
    /// Leave out the time that threads spent blocked in the middle of work
    #[arg(long, conflicts_with = "idle")]
    pub(crate) no_blocked: bool,
    /// Charge GC pauses to the methods that they interrupted, without the frame 'GC pause'
    #[arg(long)]
    pub(crate) no_gc_frame: bool,
    /// Show a method that calls itself as one frame
    #[arg(long)]
    pub(crate) fold_recursion: bool,
    #[command(flatten)]
    pub(crate) awaits: AwaitArgs,
    /// Show the work of tasks below the stack that created the task
    #[arg(long, conflicts_with = "awaits")]
    pub(crate) by_task: bool,
    /// Group stacks below the request, or other EventSource activity, that they worked for
    #[arg(long)]
    pub(crate) by_request: bool,
    #[command(flatten)]
    pub(crate) names: NameArgs,
    #[command(flatten)]
    pub(crate) lines: LineArgs,
}

/// The metric of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricArg {
    /// Time of managed code, from the runtime's sampler; time on the processors if the recording has samples
    /// by the kernel
    Cpu,
    /// Time that threads spent off the processors, from the kernel: waiting, or ready to run without a
    /// processor
    OffCpu,
    /// Time of threads at work or blocked, from the sampler, or from the kernel on and off the processors;
    /// with --idle also of those that wait for work
    Wall,
    /// Allocated bytes
    Alloc,
    /// Allocated bytes that are still in use, by the collections of the recording (trace --profile
    /// live-alloc)
    LiveAlloc,
    /// Native memory that is still in use, from malloc and mmap (trace --native-alloc)
    NativeAlloc,
    /// Time spent waiting for locks
    Contention,
    /// Exceptions thrown
    Exception,
    /// Time spent waiting for handles and monitors (.NET 9)
    Wait,
    /// Time in which the garbage collector stopped all threads
    Gc,
}

impl MetricArg {
    /// Returns the metric that the argument stands for.
    pub(crate) const fn metric(self) -> Metric {
        match self {
            Self::Cpu => Metric::Cpu,
            Self::OffCpu => Metric::OffCpu,
            Self::Wall => Metric::Wall,
            Self::Alloc => Metric::Alloc,
            Self::LiveAlloc => Metric::LiveAlloc,
            Self::NativeAlloc => Metric::NativeAlloc,
            Self::Contention => Metric::Contention,
            Self::Exception => Metric::Exception,
            Self::Wait => Metric::Wait,
            Self::Gc => Metric::Gc,
        }
    }
}

impl ProfileArgs {
    /// Returns the options that the arguments stand for, for this recording.
    pub(crate) fn options(&self, file: &Path) -> Result<ProfileOptions, Failure> {
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
        let times = self.times.range().resolve_in_part(file)?;
        let (from, to) = times.selected();
        Ok(ProfileOptions {
            requested_times: times.requested,
            selection: Selection::of_time(from, to)
                .with_threads(self.tid.clone())
                .with_processes(self.pid.clone()),
            filter: StackFilter::default()
                .with_roots(patterns(&self.root))
                .with_hidden(patterns(&self.hide))
                .with_fold_recursion(self.fold_recursion),
            idle: self.idle,
            leaves_out_blocked: self.no_blocked,
            charges_gc_pauses: self.no_gc_frame,
            waits_for_work: patterns(&self.wait),
            user_code: self.user_code.patterns(),
            grouping: self
                .awaits
                .grouping(CausalGrouping::NONE.with_tasks(self.by_task).with_requests(self.by_request)),
            locks: false,
            names: self.names.form(),
            lines: self.lines.options(),
        })
    }
}
