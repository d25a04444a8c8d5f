//! Profiles of recordings.

mod diagnostics;

use std::path::Path;

use nettrace::Reader;
use nettrace_export::{
    CausalGrouping, Metric, NeedsTimeOrder, Omissions, Options, Order, Profile, ProfileBuilder, StackFilter,
};

use crate::exit::{Exit, Failure};
use crate::inspect::filter::{Criteria, Looked};
use crate::inspect::lines::{LineOptions, PdbLines};
use crate::inspect::recording::{Input, Recording};
use diagnostics::{Share, no_causality, no_managed_samples, no_samples, warn_of_omissions};

/// The part of a recording that becomes a profile, and the changes to its stacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfileOptions {
    /// Events at or after this time, in nanoseconds since the recording's start.
    pub(crate) from: Option<i64>,
    /// Events before this time.
    pub(crate) to: Option<i64>,
    /// Events of these threads; of all if empty.
    pub(crate) threads: Vec<u64>,
    /// Events of these processes; of all if empty.
    pub(crate) processes: Vec<u64>,
    pub(crate) filter: StackFilter,
    pub(crate) grouping: CausalGrouping,
    pub(crate) lines: LineOptions,
}

impl ProfileOptions {
    /// Whether stacks do not stay as they are.
    pub(crate) fn changes_stacks(&self) -> bool {
        let StackFilter { roots, hidden, fold_recursion } = &self.filter;
        !roots.is_empty() || !hidden.is_empty() || *fold_recursion || self.grouping.any()
    }

    /// Whether events are left out.
    fn are_filtered(&self) -> bool {
        self.from.is_some() || self.to.is_some() || !self.threads.is_empty() || !self.processes.is_empty()
    }

    fn builder_options(&self, metric: Metric, wanted: Wanted) -> Options {
        Options {
            tracks: wanted.tracks,
            kinds: wanted.kinds,
            from: self.from,
            to: self.to,
            threads: self.threads.clone(),
            processes: self.processes.clone(),
            filter: self.filter.clone(),
            lines: self.lines.are_wanted,
            grouping: self.grouping,
            ..Options::new(metric)
        }
    }
}

/// The name of a metric on the command line.
pub(crate) const fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Cpu => "cpu",
        Metric::Wall => "wall",
        Metric::Alloc => "alloc",
        Metric::Contention => "contention",
        Metric::Exception => "exception",
        Metric::Wait => "wait",
        Metric::Gc => "gc",
    }
}

/// The options that a command passes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The metric; by default thread time, or CPU samples if a recording has these instead.
    pub(crate) metric: Option<Metric>,
    /// When things happened.
    pub(crate) tracks: bool,
    /// Which time was managed code's.
    pub(crate) kinds: bool,
}

/// A profile, and the exit code that its recording deserves.
pub(crate) struct Read {
    pub(crate) metric: Metric,
    pub(crate) profile: Profile,
    pub(crate) exit: Exit,
}

/// Reads a recording: in the order of the file, which is faster, and again in that of time where the first does not do.
pub(crate) fn read(file: &Path, options: &ProfileOptions, wanted: Wanted) -> Result<Read, Failure> {
    // What is no file can be read but once.
    let is_file = std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file());
    let mut lines = options.lines.source();
    // Who caused what is known in the order of time alone.
    let in_file_order = if is_file && !options.grouping.any() {
        read_in(Order::File, file, options, wanted, lines.as_mut())?
    } else {
        None
    };
    let read = match in_file_order {
        Some(read) => Some(read),
        None => read_in(Order::Time, file, options, wanted, lines.as_mut())?,
    };
    let Some((metric, profile, omissions, exit)) = read else {
        return Err(Failure::new(Exit::Failed, NeedsTimeOrder));
    };
    warn_of_omissions(&omissions);
    if let Some(failure) = no_causality(file, omissions.grouping, exit.or_failed()) {
        return Err(failure);
    }
    let share = Share::of(omissions.samples);
    if profile.samples() == 0 {
        return Err(match share {
            Share::None(samples) if metric == Metric::Cpu => {
                no_managed_samples(file, samples, exit.or_failed())
            }
            _ => {
                let are_filtered = !profile.sites.is_empty() || options.are_filtered();
                no_samples(file, metric, are_filtered, exit.or_failed())
            }
        });
    }
    if metric == Metric::Cpu || (metric == Metric::Wall && wanted.kinds) {
        share.warn();
    }
    options.lines.tell(omissions.lines);
    Ok(Read { metric, profile, exit })
}

/// Reads a recording once; `None` if the order was not the right one.
fn read_in(
    order: Order,
    file: &Path,
    options: &ProfileOptions,
    wanted: Wanted,
    lines: Option<&mut PdbLines>,
) -> Result<Option<(Metric, Profile, Omissions, Exit)>, Failure> {
    let (mut events, origin) = Recording::open(file)?.into_parts();
    let metric = wanted.metric.unwrap_or_else(|| {
        // Recordings of a whole machine have no sampler in the process.
        let is_machine = events.info().is_some_and(|info| info.process_id.is_none());
        if is_machine { Metric::Cpu } else { Metric::Wall }
    });
    let mut looked = Looked::new(Criteria {
        threads: options.threads.clone(),
        processes: options.processes.clone(),
        from: options.from,
        to: options.to,
        ..Criteria::default()
    });
    let mut builder = ProfileBuilder::new(Options { order, ..options.builder_options(metric, wanted) });
    let finish = |builder: ProfileBuilder, events: &Reader<Input>, looked: &Looked| {
        let (profile, omissions) = match lines {
            Some(lines) => builder.finish_with_lines(events.info(), lines).ok()?,
            None => builder.finish(events.info()).ok()?,
        };
        looked.tell_misses(events.metadata());
        Some((metric, profile, omissions, origin.verdict(events)))
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
