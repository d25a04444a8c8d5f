//! Notes as English sentences, for pages and overviews.

use std::fmt;
use std::time::Duration;

use clr_activity::SpanRole;
use clr_events::code::CodeOrigin;
use clr_events::escape_controls;

use super::{MethodShares, Note, WaitingThreads, WorkSource};
use crate::method_name;
use crate::report::blocked::Starvation;
use crate::report::session_cost::SessionCost;
use crate::report::user_caller::UserCallerName;
use crate::units::{bytes, count, counted, nanoseconds, percent, share, short_percent, time};

/// Describes time known only from samples that do not distinguish running from waiting: all samples of .NET 9
/// and early 10.0, and all samples of native code.
pub const RUNNING_OR_WAITING: &str = "of it running or waiting, which these samples do not tell apart";

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { lost, lost_samples, is_lower_bound, percent } => {
                let at_least = if *is_lower_bound { "At least " } else { "" };
                let of_samples = match lost_samples {
                    0 => String::new(),
                    _ => format!(" ({} of them the kernel's samples and switches)", count(*lost_samples)),
                };
                let mend = if lost_samples < lost { "larger --buffersize" } else { "lower --frequency" };
                write!(
                    f,
                    "{at_least}{} lost{of_samples}, {} of all, and all numbers are too low by theirs: record with a {mend}",
                    counted(*lost, "event was", "events were"),
                    short_percent(*percent)
                )
            }
            Self::Unnamed { percent, is_cpu_time: true } => write!(
                f,
                "{} of the CPU time is in native code whose symbols the recording does not have",
                short_percent(*percent)
            ),
            Self::Unnamed { percent, is_cpu_time: false } => write!(
                f,
                "{} of the time is in methods without a name: native code, or a recording that ended without its rundown, \
                 which dipc repair --names-from gives the names of another. Without names idle threads count as work",
                short_percent(*percent)
            ),
            Self::Starvation(starvation) => write!(f, "{starvation}"),
            Self::PoolGrowth { times, most_threads } => write!(
                f,
                "The pool had too few threads {}, and added up to {most_threads}: work waited while all others were blocked",
                counted(*times, "time", "times")
            ),
            Self::PoolQueue { work_items, median, p99 } => write!(
                f,
                "{} waited: median {}, p99 {}",
                counted(*work_items, "work item", "work items"),
                time(*median),
                time(*p99)
            ),
            Self::FailedRequests { role, name, failed, count: all } => {
                let [one, many] = nouns(*role);
                write!(f, "{} of {} {name} failed", count(*failed), counted(*all, one, many))
            }
            Self::SlowestRequests { role, name, p99, median, count, lock_waits } => {
                let [one, many] = nouns(*role);
                write!(
                    f,
                    "Slowest by p99: {name}, p99 {}, median {} of {}",
                    time(*p99),
                    time(*median),
                    counted(*count, one, many)
                )?;
                lock_waits.map_or(Ok(()), |(waits, percent)| {
                    let waits = counted(waits, "lock wait", "lock waits");
                    write!(f, "; {} of their time in {waits}", short_percent(percent))
                })
            }
            Self::Pauses { .. }
            | Self::Allocations { .. }
            | Self::Exceptions { .. }
            | Self::LockWaits { .. }
            | Self::Compilation { .. } => self.fmt_runtime_work(f),
            Self::NoWork
            | Self::Work { .. }
            | Self::ProcessorTime { .. }
            | Self::Blocked { .. }
            | Self::WaitedThroughout { .. }
            | Self::Ready { .. }
            | Self::Asleep { .. }
            | Self::Session(_) => self.fmt_time_of_threads(f),
        }
    }
}

impl Note {
    /// Formats the notes on what the runtime does for the program.
    fn fmt_runtime_work(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pauses { percent: paused, collections, induced, longest } => {
                let collections = counted(*collections, "collection", "collections");
                write!(f, "Paused {} of the time by {collections}", percent(*paused))?;
                if *induced > 0 {
                    write!(f, ", {} of them asked for by the program", count(*induced))?;
                }
                write!(f, ", {} at the longest", time(*longest))
            }
            Self::Allocations { bytes: all, first_type, first_type_bytes, from } => write!(
                f,
                "{} allocated, {} of it {first_type}{}",
                bytes(*all),
                percent(share(*first_type_bytes, *all)),
                with_caller("in", from.as_ref())
            ),
            Self::Exceptions { count: all, first_type, first_type_count, from } => {
                write!(f, "{} thrown, ", count(*all))?;
                match first_type_count {
                    of_first if of_first == all => write!(f, "all ")?,
                    of_first => write!(f, "{} of them ", count(*of_first))?,
                }
                write!(f, "{first_type}{}", with_caller("in", from.as_ref()))
            }
            Self::LockWaits { waits, total, longest, from } => write!(
                f,
                "{} for locks{}, {} together, {} at the longest",
                counted(*waits, "wait", "waits"),
                with_caller("most in", from.as_ref()),
                time(*total),
                time(*longest)
            ),
            Self::Compilation { methods, duration } => {
                write!(f, "{} compiled", counted(*methods, "method", "methods"))?;
                duration.map_or(Ok(()), |duration| write!(f, " in {}", time(duration)))
            }
            // The others are formatted above or below.
            _ => Ok(()),
        }
    }

    /// Formats the notes on the time of threads.
    fn fmt_time_of_threads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWork => f.write_str("No thread was at work: all waited for some"),
            Self::Work { time: work, source, methods, .. } => {
                let sum = time(*work);
                match source {
                    WorkSource::CpuSamples(samples) => {
                        write!(f, "{sum} of CPU time in {}", counted(*samples, "sample", "samples"))
                    }
                    WorkSource::KernelSamples => write!(f, "{sum} of CPU time"),
                    WorkSource::ThreadSamples { unverified } if unverified.is_zero() => {
                        write!(f, "{sum} of work")
                    }
                    WorkSource::ThreadSamples { unverified } if unverified >= work => {
                        write!(f, "{sum} of work or waits, which these samples do not tell apart")
                    }
                    WorkSource::ThreadSamples { unverified } => {
                        write!(f, "{sum} of work, {} {RUNNING_OR_WAITING}", time(*unverified))
                    }
                }?;
                write!(f, "{methods}")
            }
            Self::ProcessorTime { parts, .. } => {
                let part = |(origin, percent): &(CodeOrigin, f64)| {
                    format!("{} {}", short_percent(*percent), words_of(*origin))
                };
                let parts = parts.iter().map(part).collect::<Vec<_>>();
                write!(f, "On the processors: {}", parts.join(", "))
            }
            Self::Blocked { time: blocked, without_processor, methods, waits, .. } => {
                write!(f, "{} blocked in the midst of work", time(*blocked))?;
                if !without_processor.is_zero() {
                    write!(f, ", {} of it ready to run, without a processor", time(*without_processor))?;
                }
                write!(f, "{methods}")?;
                let waits = waits.iter().map(|(kind, percent)| format!("{} {kind}", short_percent(*percent)));
                let waits: Vec<_> = waits.collect();
                if waits.is_empty() { Ok(()) } else { write!(f, "; waits: {}", waits.join(", ")) }
            }
            Self::WaitedThroughout { threads, methods, .. } => {
                let method = |wait: &WaitingThreads| {
                    let called = wait.called.as_deref().map(escape_controls);
                    let called = called.map_or_else(String::new, |called| format!(" (in {called})"));
                    format!("{} in {}{called}", count(wait.threads), escape_controls(&wait.method))
                };
                let methods = methods.iter().map(method).collect::<Vec<_>>().join(", ");
                let threads = counted(*threads, "thread", "threads");
                write!(f, "{threads} waited in one place all the time, for work or for each other: {methods}")
            }
            Self::Ready { time: ready, methods, .. } => {
                write!(f, "{} ready to run, without a processor{methods}", time(*ready))
            }
            Self::Asleep { time: asleep, threads, methods, .. } => {
                let threads = counted(*threads, "thread", "threads");
                write!(f, "{} asleep (Thread.Sleep) on {threads}{methods}", time(*asleep))
            }
            Self::Session(cost) => write!(f, "Not the program's work: {cost}"),
            // The others are formatted above.
            _ => Ok(()),
        }
    }
}

impl fmt::Display for MethodShares {
    /// Formats the end of a sentence: a colon and the methods; nothing without methods.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, method) in self.methods.iter().enumerate() {
            let separator = if index == 0 { ": " } else { ", " };
            write!(f, "{separator}{} {}", short_percent(method.percent), escape_controls(&method.method))?;
            if let Some(caller) = method.caller.as_deref().filter(|_| self.common_caller.is_none()) {
                write!(f, " (called from {})", escape_controls(caller))?;
            }
        }
        let Some(caller) = self.common_caller.as_deref() else { return Ok(()) };
        let all = if self.methods.len() > 1 { "all " } else { "" };
        write!(f, ", {all}called from {}", escape_controls(caller))
    }
}

impl fmt::Display for Starvation {
    /// Formats it as a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, total, longest, blocked, task_waits, method, method_time, .. } = self;
        let share = |part: &Duration| percent(share(nanoseconds(*part), nanoseconds(*blocked)));
        write!(
            f,
            "All {workers} workers of the pool were blocked for {}, {} at the longest",
            time(*total),
            time(*longest)
        )?;
        if let Some(method) = method {
            write!(f, ": {} of their waits in {}", share(method_time), escape_controls(method))?;
        }
        if !task_waits.is_zero() {
            let share = share(task_waits);
            write!(f, ", {share} for tasks (synchronous code that waits for asynchronous)")?;
        }
        Ok(())
    }
}

impl fmt::Display for SessionCost {
    /// Formats its parts with their purposes, as a list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.session, "for this recording's session"),
            (self.compilation, "compilation in the background"),
        ];
        let parts = parts.iter().filter(|(weight, _)| *weight > 0);
        let parts = parts.map(|(weight, what)| format!("{} {what}", time(Duration::from_nanos(*weight))));
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

/// The nouns for one span of a role and for many.
const fn nouns(role: SpanRole) -> [&'static str; 2] {
    match role {
        SpanRole::Server => ["request", "requests"],
        SpanRole::Outgoing => ["call", "calls"],
        _ => ["activity", "activities"],
    }
}

const fn words_of(origin: CodeOrigin) -> &'static str {
    match origin {
        CodeOrigin::Managed => "managed code",
        CodeOrigin::Gc => "the garbage collector",
        CodeOrigin::Jit => "the JIT compiler",
        CodeOrigin::Runtime => "the runtime's other code",
        CodeOrigin::Native => "other native code",
        CodeOrigin::Kernel => "the kernel",
        _ => "code of no known file",
    }
}

/// Formats the user's method that led to something, after a preposition; empty if it is unknown.
fn with_caller(preposition: &str, caller: Option<&UserCallerName>) -> String {
    caller.map_or_else(String::new, |caller| {
        let method = method_name::csharp_without_parameters(&caller.short);
        format!(" {preposition} {}", escape_controls(method))
    })
}
