//! Recordings as profiles: the flags that all who make one share, and what is said when there is nothing to make one of.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nettrace::Reader;
use nettrace_export::{
    Gatherer, Join, Missing, NeedsTimeOrder, Options, Order, Pattern, Profile, Samples, Shape,
};

use crate::duration;
use crate::exit::{Exit, Failure};
use crate::recording::{Input, Recording};
use crate::report;

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
}

/// What is weighed.
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
    const fn weight(self) -> nettrace_export::By {
        match self {
            Self::Cpu => nettrace_export::By::Cpu,
            Self::Wall => nettrace_export::By::Wall,
            Self::Alloc => nettrace_export::By::Alloc,
            Self::Contention => nettrace_export::By::Contention,
            Self::Exception => nettrace_export::By::Exception,
            Self::Wait => nettrace_export::By::Wait,
            Self::Gc => nettrace_export::By::Gc,
        }
    }

    /// What a recording must have, and how it is recorded.
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

    const fn join(&self) -> Join {
        Join { tasks: self.by_task, requests: self.by_request }
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
            shape: Shape {
                roots: patterns(&self.root),
                hidden: patterns(&self.hide),
                fold_recursion: self.fold_recursion,
            },
            join: self.join(),
            ..Options::new(by.weight())
        }
    }
}

/// What a command wants to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// What is weighed; by default thread time, or CPU samples where a recording has these instead.
    pub(crate) by: Option<By>,
    /// When things happened.
    pub(crate) tracks: bool,
    /// Which time was managed code's.
    pub(crate) kinds: bool,
}

/// A profile, and the exit code that its recording deserves.
pub(crate) struct Read {
    pub(crate) profile: Profile,
    pub(crate) exit: Exit,
}

/// Reads a recording: in the order of the file, which is faster, and again in that of time where the first does not do.
pub(crate) fn read(file: &Path, args: &ProfileArgs, wanted: Wanted) -> Result<Read, Failure> {
    // What is no file can be read but once.
    let is_file = std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file());
    // Who caused what is known in the order of time alone.
    let in_file_order =
        if is_file && !args.join().any() { read_in(Order::File, file, args, wanted)? } else { None };
    let read = match in_file_order {
        Some(read) => Some(read),
        None => read_in(Order::Time, file, args, wanted)?,
    };
    let Some((by, profile, missing, exit)) = read else {
        return Err(Failure::new(Exit::Failed, NeedsTimeOrder));
    };
    tell(&missing);
    if let Some(failure) = unjoined(file, missing.join, exit) {
        return Err(failure);
    }
    let share = Share::of(missing.samples);
    if profile.samples() == 0 {
        return Err(match share {
            Share::None(samples) if by == By::Cpu => unmarked(file, samples, exit),
            _ => nothing(file, by, !profile.sites.is_empty() || args.filters(), exit),
        });
    }
    if by == By::Cpu || (by == By::Wall && wanted.kinds) {
        share.tell();
    }
    Ok(Read { profile, exit })
}

/// Reads a recording once; `None` if the order was not the right one.
fn read_in(
    order: Order,
    file: &Path,
    args: &ProfileArgs,
    wanted: Wanted,
) -> Result<Option<(By, Profile, Missing, Exit)>, Failure> {
    let (mut events, origin) = Recording::open(file)?.into_parts();
    let by = wanted.by.unwrap_or_else(|| {
        // Recordings of a whole machine have no sampler in the process.
        let is_machine = events.info().is_some_and(|info| info.process_id.is_none());
        if is_machine { By::Cpu } else { By::Wall }
    });
    let mut gatherer = Gatherer::new(Options { order, ..args.options(by, wanted) });
    let finish = |gatherer: Gatherer, events: &Reader<Input>| {
        let (profile, missing) = gatherer.finish(events.info()).ok()?;
        Some((by, profile, missing, origin.verdict(events)))
    };
    match order {
        Order::File => {
            events.for_each(|event| gatherer.add(&event)).map_err(|error| origin.failed(&error))?;
            Ok(finish(gatherer, &events))
        }
        Order::Time => {
            let mut events = events.in_time_order();
            events.for_each(|event| gatherer.add(&event)).map_err(|error| origin.failed(&error))?;
            Ok(finish(gatherer, events.events()))
        }
    }
}

impl ProfileArgs {
    fn filters(&self) -> bool {
        self.from.is_some() || self.to.is_some() || !self.tid.is_empty() || !self.pid.is_empty()
    }
}

fn nothing(file: &Path, by: By, are_filtered: bool, exit: Exit) -> Failure {
    let (what, command) = by.needs();
    let exit = if exit == Exit::Done { Exit::Failed } else { exit };
    if are_filtered {
        Failure::new(
            exit,
            format_args!("{}: nothing is left of its {what} under the filters given", file.display()),
        )
        .with_help(format_args!(
            "leave out --from, --to, --tid, --pid or --root; if there are none at all: {command}"
        ))
    } else {
        Failure::new(exit, format_args!("{}: the recording has no {what}", file.display()))
            .with_help(format_args!("record them: {command}"))
    }
}

/// How many samples of threads are of managed code.
#[derive(Debug, Clone, Copy)]
enum Share {
    Some,
    /// Fewer than any program has that is at work.
    Few(Samples),
    /// Of so many.
    None(u64),
}

const FAULT: &str = ".NET 9 and early 10.0 mark none (a fault of theirs: dotnet/runtime#123996)";

impl Share {
    fn of(samples: Samples) -> Self {
        match samples {
            Samples { managed: 0, other } if other > 0 => Self::None(other),
            Samples { managed, other } if managed < other / 1000 => Self::Few(samples),
            Samples { .. } => Self::Some,
        }
    }

    fn tell(self) {
        match self {
            Self::Some => {}
            Self::Few(Samples { managed, other }) => report::warning(format_args!(
                "only {managed} of {} samples are marked as managed code: an idle program has so few, but {FAULT}",
                managed + other
            )),
            Self::None(other) => report::warning(format_args!(
                "none of {other} samples is marked as managed code: an idle program has none, but {FAULT}"
            )),
        }
    }
}

fn unmarked(file: &Path, samples: u64, exit: Exit) -> Failure {
    let exit = if exit == Exit::Done { Exit::Failed } else { exit };
    let message =
        format_args!("{}: none of {samples} samples of threads is marked as managed code", file.display());
    Failure::new(exit, message).with_help(format_args!("--by wall weighs them all; {FAULT}"))
}

/// What to say of a recording that does not tell what made threads do what they did.
fn unjoined(file: &Path, missing: Join, exit: Exit) -> Option<Failure> {
    let exit = if exit == Exit::Done { Exit::Failed } else { exit };
    let (what, more) = match missing {
        Join { tasks: true, .. } => ("events of tasks", ""),
        Join { requests: true, .. } => (
            "activities with a beginning and an id",
            " --providers Microsoft.AspNetCore.Hosting:FFFFFFFFFFFFFFFF:4 (or the program's own EventSource)",
        ),
        Join { .. } => return None,
    };
    let failure = Failure::new(exit, format_args!("{}: the recording has no {what}", file.display()));
    Some(failure.with_help(format_args!(
        "record them: dipc trace -p PID --profile dotnet-common,dotnet-sampled-thread-time,tasks{more}"
    )))
}

fn tell(missing: &Missing) {
    for (why, addresses) in &missing.nameless {
        report::detail(format_args!("{addresses} addresses have no name: {why}"));
    }
    if missing.frames > 0 {
        report::warning(format_args!("{} frames were left out: there were too many stacks", missing.frames));
    }
    if missing.causes > 0 {
        report::warning(format_args!(
            "{} times the creator of a task was left out: it lay too deep, or there were too many",
            missing.causes
        ));
    }
    if missing.code > 0 {
        report::warning(format_args!("{} methods were left out: there were too many", missing.code));
    }
}
