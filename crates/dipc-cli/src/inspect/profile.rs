//! Recordings as profiles: the flags that all who make one share, and what is said when there is nothing to make one of.

mod lack;

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nettrace::Reader;
use nettrace_export::{
    CausalGrouping, NeedsTimeOrder, Omissions, Options, Order, Pattern, Profile, ProfileBuilder, StackFilter,
};

use crate::duration;
use crate::exit::{Exit, Failure};
use crate::inspect::filter::{Criteria, Looked};
use crate::inspect::lines::{LineArgs, PdbLines};
use crate::inspect::recording::{Input, Recording};
use lack::{Share, nothing, tell, unjoined, unmarked};

/// Which part of a recording becomes a profile, and what becomes of its stacks.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProfileArgs {
    /// Only what happened at or after this time since the recording's start
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) from: Option<Duration>,
    /// Only what happened before this time since the recording's start
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) to: Option<Duration>,
    /// Only this thread; may be given several times
    #[arg(long, value_name = "TID")]
    pub(crate) tid: Vec<u64>,
    /// Only this process, in recordings of many; may be given several times
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<u64>,
    /// Only stacks with a frame whose name has this text, from that frame on; '*' stands for any text; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) root: Vec<String>,
    /// Without frames whose name has this text: what they weigh goes to their callers; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) hide: Vec<String>,
    /// A method that calls itself is one frame
    #[arg(long)]
    pub(crate) fold_recursion: bool,
    /// Work of tasks stands below the stack that created the task
    #[arg(long)]
    pub(crate) by_task: bool,
    /// Everything stands below the request, or other activity of an EventSource, that it was done for
    #[arg(long)]
    pub(crate) by_request: bool,
    #[command(flatten)]
    pub(crate) lines: LineArgs,
}

/// The metric of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Time of managed code, by the sampler; of recordings of a whole machine its CPU samples
    Cpu,
    /// Time of threads, waiting or not, by the sampler
    Wall,
    /// Allocated bytes
    Alloc,
    /// Time spent waiting for locks
    Contention,
    /// Exceptions thrown
    Exception,
    /// Time spent waiting for handles and monitors (.NET 9)
    Wait,
    /// Time for which the garbage collector stopped everything
    Gc,
}

impl By {
    const fn weight(self) -> nettrace_export::Metric {
        match self {
            Self::Cpu => nettrace_export::Metric::Cpu,
            Self::Wall => nettrace_export::Metric::Wall,
            Self::Alloc => nettrace_export::Metric::Alloc,
            Self::Contention => nettrace_export::Metric::Contention,
            Self::Exception => nettrace_export::Metric::Exception,
            Self::Wait => nettrace_export::Metric::Wait,
            Self::Gc => nettrace_export::Metric::Gc,
        }
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the events that a recording must have, and the command that records them.
    const fn needs(self) -> (&'static str, &'static str) {
        match self {
            Self::Cpu | Self::Wall => {
                ("samples of threads", "dipc trace -p PID --profile dotnet-sampled-thread-time")
            }
            Self::Alloc => ("allocation events", "dipc trace -p PID --profile gc-verbose"),
            Self::Contention => ("events of lock contention", "dipc trace -p PID --clrevents contention"),
            Self::Exception => ("exception events", "dipc trace -p PID --clrevents exception"),
            Self::Wait => (
                "events of waits, which .NET 9 and later have",
                "dipc trace -p PID --clrevents waithandle --clreventlevel verbose",
            ),
            Self::Gc => ("pauses of the garbage collector", "dipc trace -p PID --profile gc-collect"),
        }
    }
}

impl ProfileArgs {
    /// Whether stacks do not stay as they are.
    pub(crate) fn changes_stacks(&self) -> bool {
        !self.root.is_empty() || !self.hide.is_empty() || self.fold_recursion || self.join().any()
    }

    const fn join(&self) -> CausalGrouping {
        CausalGrouping { tasks: self.by_task, requests: self.by_request }
    }

    fn options(&self, by: By, wanted: Wanted) -> Options {
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
        Options {
            tracks: wanted.tracks,
            kinds: wanted.kinds,
            from: self.from.map(duration::nanoseconds),
            to: self.to.map(duration::nanoseconds),
            threads: self.tid.clone(),
            processes: self.pid.clone(),
            filter: StackFilter {
                roots: patterns(&self.root),
                hidden: patterns(&self.hide),
                fold_recursion: self.fold_recursion,
            },
            lines: self.lines.are_wanted(),
            grouping: self.join(),
            ..Options::new(by.weight())
        }
    }
}

/// The options that a command passes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The metric; by default thread time, or CPU samples if a recording has these instead.
    pub(crate) by: Option<By>,
    /// When things happened.
    pub(crate) tracks: bool,
    /// Which time was managed code's.
    pub(crate) kinds: bool,
}

/// A profile, and the exit code that its recording deserves.
pub(crate) struct Read {
    pub(crate) by: By,
    pub(crate) profile: Profile,
    pub(crate) exit: Exit,
}

/// Reads a recording: in the order of the file, which is faster, and again in that of time where the first does not do.
pub(crate) fn read(file: &Path, args: &ProfileArgs, wanted: Wanted) -> Result<Read, Failure> {
    // What is no file can be read but once.
    let is_file = std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file());
    let mut lines = args.lines.source();
    // Who caused what is known in the order of time alone.
    let in_file_order = if is_file && !args.join().any() {
        read_in(Order::File, file, args, wanted, lines.as_mut())?
    } else {
        None
    };
    let read = match in_file_order {
        Some(read) => Some(read),
        None => read_in(Order::Time, file, args, wanted, lines.as_mut())?,
    };
    let Some((by, profile, omissions, exit)) = read else {
        return Err(Failure::new(Exit::Failed, NeedsTimeOrder));
    };
    tell(&omissions);
    if let Some(failure) = unjoined(file, omissions.grouping, exit.or_failed()) {
        return Err(failure);
    }
    let share = Share::of(omissions.samples);
    if profile.samples() == 0 {
        return Err(match share {
            Share::None(samples) if by == By::Cpu => unmarked(file, samples, exit.or_failed()),
            _ => {
                let are_filtered = !profile.sites.is_empty() || args.filters();
                nothing(file, by, are_filtered, exit.or_failed())
            }
        });
    }
    if by == By::Cpu || (by == By::Wall && wanted.kinds) {
        share.tell();
    }
    args.lines.tell(omissions.lines);
    Ok(Read { by, profile, exit })
}

/// Reads a recording once; `None` if the order was not the right one.
fn read_in(
    order: Order,
    file: &Path,
    args: &ProfileArgs,
    wanted: Wanted,
    lines: Option<&mut PdbLines>,
) -> Result<Option<(By, Profile, Omissions, Exit)>, Failure> {
    let (mut events, origin) = Recording::open(file)?.into_parts();
    let by = wanted.by.unwrap_or_else(|| {
        // Recordings of a whole machine have no sampler in the process.
        let is_machine = events.info().is_some_and(|info| info.process_id.is_none());
        if is_machine { By::Cpu } else { By::Wall }
    });
    let mut looked = Looked::new(Criteria {
        threads: args.tid.clone(),
        processes: args.pid.clone(),
        from: args.from.map(duration::nanoseconds),
        to: args.to.map(duration::nanoseconds),
        ..Criteria::default()
    });
    let mut builder = ProfileBuilder::new(Options { order, ..args.options(by, wanted) });
    let finish = |builder: ProfileBuilder, events: &Reader<Input>, looked: &Looked| {
        let (profile, omissions) = match lines {
            Some(lines) => builder.finish_with_lines(events.info(), lines).ok()?,
            None => builder.finish(events.info()).ok()?,
        };
        looked.tell_misses(events.metadata());
        Some((by, profile, omissions, origin.verdict(events)))
    };
    match order {
        Order::File => {
            let outcome = events.for_each(|event| {
                looked.add(&event);
                builder.add(&event);
            });
            outcome.map_err(|error| origin.failed(&error))?;
            Ok(finish(builder, &events, &looked))
        }
        Order::Time => {
            let mut events = events.in_time_order();
            let outcome = events.for_each(|event| {
                looked.add(&event);
                builder.add(&event);
            });
            outcome.map_err(|error| origin.failed(&error))?;
            Ok(finish(builder, events.events(), &looked))
        }
    }
}

impl ProfileArgs {
    fn filters(&self) -> bool {
        self.from.is_some() || self.to.is_some() || !self.tid.is_empty() || !self.pid.is_empty()
    }
}
