//! Messages for recordings that lack the events of a profile.

use std::path::Path;

use clr_events::code::UnresolvedReason;
use nettrace_export::{CausalGrouping, LONGEST_NAME, Metric, Omissions, Samples};

use crate::exit::{Exit, Failure};
use crate::inspect::needs::{self, Needs};
use crate::render::messages;

/// Returns the failure for a recording without the samples of a metric.
pub(in crate::inspect) fn no_samples(file: &Path, metric: Metric, are_filtered: bool, exit: Exit) -> Failure {
    let Needs { what, command } = needs(metric);
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

/// Returns the events that a recording must have.
pub(in crate::inspect) const fn needs(metric: Metric) -> Needs {
    match metric {
        Metric::Cpu | Metric::Wall => needs::THREAD_SAMPLES,
        Metric::Alloc => needs::ALLOCATIONS,
        Metric::Contention => {
            Needs { what: "events of lock contention", command: "dipc trace -p PID --clrevents contention" }
        }
        Metric::Exception => needs::EXCEPTIONS,
        Metric::Wait => Needs {
            what: "events of waits, which .NET 9 and later have",
            command: "dipc trace -p PID --clrevents waithandle --clreventlevel verbose",
        },
        Metric::Gc => Needs {
            what: "pauses of the garbage collector",
            command: "dipc trace -p PID --profile gc-collect",
        },
        _ => Needs { what: "events of this metric", command: "dipc trace -p PID --profile dotnet-common" },
    }
}

/// The share of thread samples that are of managed code.
#[derive(Debug, Clone, Copy)]
pub(super) enum Share {
    Some,
    /// Fewer than any program has that is at work.
    Few(Samples),
    /// Of so many.
    None(u64),
}

const FAULT: &str = ".NET 9 and early 10.0 mark none (a fault of theirs: dotnet/runtime#123996)";

impl Share {
    pub(super) fn of(samples: Samples) -> Self {
        match samples {
            Samples { managed: 0, other, .. } if other > 0 => Self::None(other),
            Samples { managed, other, .. } if managed < other / 1000 => Self::Few(samples),
            Samples { .. } => Self::Some,
        }
    }

    /// Says how to see managed code alone, where the samples tell it from waits.
    pub(super) fn propose_cpu(self) {
        if matches!(self, Self::Some) {
            messages::note("The samples tell managed code from all else: --by cpu shows it alone.");
        }
    }

    /// Warns if there is too little managed code.
    pub(super) fn warn(self) {
        match self {
            Self::Some => {}
            Self::Few(Samples { managed, other, .. }) => messages::warning(format_args!(
                "only {managed} of {} samples are marked as managed code: an idle program has so few, but {FAULT}",
                managed + other
            )),
            Self::None(other) => messages::warning(format_args!(
                "none of {other} samples is marked as managed code: an idle program has none, but {FAULT}"
            )),
        }
    }
}

/// Returns the failure for a recording none of whose samples is of managed code.
pub(super) fn no_managed_samples(file: &Path, samples: u64, exit: Exit) -> Failure {
    let message =
        format_args!("{}: none of {samples} samples of threads is marked as managed code", file.display());
    Failure::new(exit, message).with_help(format_args!("--by wall weighs them all; {FAULT}"))
}

/// Returns the failure for a recording that lacks the events of a grouping.
pub(in crate::inspect) fn no_causality(file: &Path, missing: CausalGrouping, exit: Exit) -> Option<Failure> {
    let (what, more) = match missing {
        CausalGrouping { tasks: true, .. } => ("events of tasks", ""),
        CausalGrouping { requests: true, .. } => (
            "activities with a beginning and an id",
            " --providers Microsoft.AspNetCore.Hosting:FFFFFFFFFFFFFFFF:4 (or the program's own EventSource)",
        ),
        CausalGrouping { .. } => return None,
    };
    let failure = Failure::new(exit, format_args!("{}: the recording has no {what}", file.display()));
    Some(failure.with_help(format_args!(
        "record them: dipc trace -p PID --profile dotnet-common,dotnet-sampled-thread-time,tasks{more}"
    )))
}

/// Warns of what was left out of a profile.
pub(in crate::inspect) fn warn_of_omissions(missing: &Omissions) {
    for (why, addresses) in &missing.unresolved {
        let text = format_args!("{addresses} addresses have no name: {why}");
        if !matches!(why, UnresolvedReason::NoCode | UnresolvedReason::NoRundown) {
            messages::detail(text);
            continue;
        }
        messages::warning(text);
        if !messages::is_quiet() {
            messages::help(
                "a runtime lists its methods when a recording is stopped; beside one that ends with its process dipc trace leaves their names in a file",
            );
        }
    }
    if missing.frames > 0 {
        messages::warning(format_args!(
            "{} frames were left out: there were too many stacks",
            missing.frames
        ));
    }
    if missing.long_names > 0 {
        messages::warning(format_args!(
            "{} names of methods are longer than {LONGEST_NAME} bytes and are cut: they end in '…'",
            missing.long_names
        ));
    }
    if missing.causes > 0 {
        messages::warning(format_args!(
            "{} times the creator of a task was left out: it lay too deep, or there were too many",
            missing.causes
        ));
    }
    if missing.code > 0 {
        messages::warning(format_args!("{} methods were left out: there were too many", missing.code));
    }
}
