//! Messages for recordings that lack the events of a profile.

use std::path::Path;

use clr_events::code::UnresolvedReason;
use nettrace_export::{CausalGrouping, MAX_NAME_LENGTH, Metric, Omissions, Pattern, Samples};

use crate::exit::{Exit, Failure};
use crate::inspect::needs::{self, Needs};
use crate::render::messages;

/// Returns the failure for a recording without the samples of a metric.
pub(in crate::inspect) fn no_samples(file: &Path, metric: Metric, are_filtered: bool, exit: Exit) -> Failure {
    let Needs { what, command } = needs(metric);
    if are_filtered {
        Failure::new(exit, format_args!("{}: the filters exclude all of its {what}", file.display()))
            .with_help(format_args!(
                "leave out --from, --to, --tid, --pid or --root; if the recording has none at all: {command}"
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
        Metric::OffCpu => needs::OFF_CPU,
        Metric::Alloc => needs::ALLOCATIONS,
        Metric::LiveAlloc => needs::LIVE_ALLOCATIONS,
        Metric::NativeAlloc => needs::NATIVE_ALLOCATIONS,
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
    /// Fewer than a working program has, or none.
    Few(Samples),
    /// The sampler of the runtime took none at all.
    NotSampled,
}

/// A program that does any work is in managed code in at least one of this many samples. Runtimes that mark
/// no samples as managed may still mark a thread's first sample.
const SEEN_IN_ONE_OF: u64 = 100;

const FAULT: &str = ".NET 9 and early 10.0 mark none (a fault of theirs: dotnet/runtime#123996)";

impl Share {
    pub(super) fn of(samples: Samples) -> Self {
        match samples {
            Samples { managed: 0, other: 0, .. } => Self::NotSampled,
            Samples { managed, other, .. } if managed < other.div_ceil(SEEN_IN_ONE_OF) => Self::Few(samples),
            Samples { .. } => Self::Some,
        }
    }

    /// Suggests how to see only managed code, if the samples distinguish it from waits.
    pub(super) fn propose_cpu(self) {
        if matches!(self, Self::Some) {
            messages::note("The samples mark managed code: --by cpu shows only that.");
        }
    }

    /// Warns if there is too little managed code.
    pub(super) fn warn(self) {
        if let Self::Few(samples) = self {
            let how_many = if samples.managed == 0 { "none" } else { "so few" };
            messages::warning(format_args!(
                "{}: an idle program has {how_many}, but {FAULT}",
                marked_as_managed(samples, "samples")
            ));
        }
    }
}

fn marked_as_managed(Samples { managed, other, .. }: Samples, what: &str) -> String {
    match managed {
        0 => format!("none of {other} {what} is marked as managed code"),
        _ => format!("only {managed} of {} {what} are marked as managed code", managed.saturating_add(other)),
    }
}

/// Returns the failure for a recording with too few samples of managed code for a profile of it.
pub(super) fn no_managed_samples(file: &Path, samples: Samples, exit: Exit) -> Failure {
    let marked = marked_as_managed(samples, "samples of threads");
    Failure::new(exit, format_args!("{}: {marked}", file.display()))
        .with_help(format_args!("--by wall weighs them all; {FAULT}"))
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

/// Notes that callers of continuations are unknown, if a recording lacks the events about them.
pub(in crate::inspect) fn note_of_unknown_callers(missing: CausalGrouping) {
    if missing.awaits {
        messages::note(
            "--async: the recording does not show who awaits whom: after an await, a method begins its own stack. \
             dipc trace --profile async records it, and on .NET Core 3.1, which does not have these events, \
             --profile tasks",
        );
    }
}

/// Warns of methods given as waiting for work in which no thread was seen.
pub(in crate::inspect) fn warn_of_unmatched_waits(waits: &[Pattern], omissions: &Omissions, metric: Metric) {
    if !matches!(metric, Metric::Wall | Metric::Cpu | Metric::OffCpu) && !waits.is_empty() {
        messages::warning(format_args!("--wait has no effect on {}", metric.measure().name));
    }
    for wait in omissions.unmatched_waits.iter().filter_map(|index| waits.get(*index)) {
        messages::warning(format_args!(
            "--wait {wait}: no thread waited in a method with this text in its name; dipc report FILE stacks shows the names"
        ));
    }
}

/// States what a profile of bytes in use is based on, and warns if it is uncertain. `lost` is the number of
/// lost events.
pub(in crate::inspect) fn describe_liveness(omissions: &Omissions, lost: u64) {
    if let Some(native) = &omissions.native {
        if let Some(doubt) = native.doubt(lost) {
            messages::warning(doubt);
        }
        messages::note(format_args!("Native bytes   : {}", native.basis()));
    }
    let Some(liveness) = &omissions.live else { return };
    if let Some(doubt) = liveness.doubt(lost) {
        messages::warning(doubt);
    }
    messages::note(format_args!("Live bytes     : {}", liveness.basis()));
}

/// Warns of the omissions of a profile.
pub(crate) fn warn_of_omissions(missing: &Omissions) {
    for (why, addresses) in &missing.unresolved {
        let text = format_args!("{addresses} addresses have no name: {why}");
        if !matches!(why, UnresolvedReason::NoCode | UnresolvedReason::NoRundown) {
            messages::detail(text);
            continue;
        }
        messages::warning(text);
        if !messages::is_quiet() {
            messages::help(
                "a runtime lists its methods when a recording is stopped; for one that ends with its process, dipc trace leaves their names in a file next to it",
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
            "{} names of methods are longer than {MAX_NAME_LENGTH} bytes and are cut: they end in '…'",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stray_samples_of_managed_code_are_few() {
        let share = |managed, other| {
            let mut samples = Samples::default();
            (samples.managed, samples.other) = (managed, other);
            Share::of(samples)
        };
        // .NET 9.0.1 marks the first samples of some threads.
        assert!(matches!(share(2, 2553), Share::Few(_)));
        assert!(matches!(share(0, 1), Share::Few(_)));
        assert!(matches!(share(30, 2000), Share::Some));
        assert!(matches!(share(0, 0), Share::NotSampled));
    }
}
