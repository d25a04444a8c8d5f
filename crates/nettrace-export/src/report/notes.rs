//! Notes: the facts of a recording to know first, as data. They are not causes: clr-findings judges an
//! [`Overview`].
//!
//! A [`Note`] has its [name](Note::id) and its [numbers](Note::numbers), and is formatted as a sentence.
//!
//! [`Overview`]: super::Overview
//!
//! ```no_run
//! use nettrace_export::report::{
//!     OverviewBuilder, OverviewCallers, StreamFacts, callers_options, overview_profile_options,
//! };
//! use nettrace_export::{Metric, ProfileReader, Selection};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
//! let options = overview_profile_options(Metric::of_work_and_waits(recording.info()));
//! let callers = OverviewCallers::METRICS.map(|metric| callers_options(metric, Selection::default(), Vec::new()));
//! let mut overview = OverviewBuilder::default();
//! let reader = ProfileReader::new(options).with_others(callers.into());
//! let read = reader.read(recording, |event| overview.add(event))?;
//! let stream = StreamFacts::of(&read.events, &read.counts, read.last_time.unwrap_or_default());
//! let callers = OverviewCallers::of(read.others.iter().map(|(profile, _)| profile));
//! let overview = overview.finish(read.profile, &read.omissions, callers, stream);
//! for note in overview.notes() {
//!     println!("{}: {note}", note.id());
//! }
//! # Ok(())
//! # }
//! ```

mod selection;
mod sentence;
#[cfg(all(test, feature = "default"))]
mod tests;

use std::time::Duration;

use clr_activity::SpanRole;
use clr_events::code::CodeOrigin;
use serde::Serialize;

use crate::profile::kernel_wait::KernelWait;
use crate::report::blocked::Starvation;
use crate::report::session_cost::SessionCost;
use crate::report::user_caller::UserCallerName;
use crate::units;
pub use selection::{MIN_LOCK_SHARE, MIN_LOSS, MIN_METHOD_SHARE, MIN_UNNAMED, MIN_UNVERIFIED, unnamed_share};
pub use sentence::RUNNING_OR_WAITING;

/// A number of a note. [Its name](Note::numbers) has the unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum NoteNumber {
    /// A count, a number of bytes, or nanoseconds.
    Integer(u64),
    /// A share, in percent.
    Percent(f64),
    /// The recording lacks the number.
    Unknown,
}

/// A method and its share of a time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MethodShare {
    /// The method, as tables show it, without parameters.
    pub method: String,
    /// The user's method that led to it, if it is the framework's.
    pub caller: Option<String>,
    /// The share, in percent.
    pub percent: f64,
}

/// The methods with the largest shares of a time, the largest first: three at most, of at least
/// [`MIN_METHOD_SHARE`].
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct MethodShares {
    /// The methods.
    pub methods: Vec<MethodShare>,
    /// The user's method that led to all of them, if that is a single one.
    pub common_caller: Option<String>,
}

/// A method that threads waited in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingThreads {
    /// The number of threads.
    pub threads: u64,
    /// The method, as tables show it, without parameters.
    pub method: String,
    /// The framework's method that it called to wait.
    pub called: Option<String>,
}

/// The evidence for the time that threads worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkSource {
    /// This many samples of running threads by the kernel: CPU time.
    CpuSamples(u64),
    /// Samples of threads by the runtime, corrected by the kernel's samples: CPU time.
    KernelSamples,
    /// Samples of threads by the runtime. `unverified` is the part that may have been waits, or zero if it is
    /// less than [`MIN_UNVERIFIED`].
    ThreadSamples {
        /// That part of the time.
        unverified: Duration,
    },
}

/// A fact of a recording. Formatted, it is an English sentence; control characters of names are escaped
/// as in JSON.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// Events were lost: a fault of the recording from a share of [`MIN_LOSS`] on.
    Lost {
        /// The number of lost events.
        lost: u64,
        /// The part of them that is samples and records of the kernel.
        lost_samples: u64,
        /// True if more may have been lost.
        is_lower_bound: bool,
        /// The share of all events, in percent.
        percent: f64,
    },
    /// Much time is in methods without a name: a fault of the recording, except for CPU time.
    Unnamed {
        /// The share of the time, in percent.
        percent: f64,
        /// True for CPU time, where native code without symbols is usual.
        is_cpu_time: bool,
    },
    /// All workers of the thread pool were blocked.
    Starvation(Starvation),
    /// The pool added threads because all others were blocked.
    PoolGrowth {
        /// The number of times.
        times: u64,
        /// Maximum number of threads.
        most_threads: u32,
    },
    /// Work waited in the queue of the pool.
    PoolQueue {
        /// The number of work items.
        work_items: u64,
        /// Median wait.
        median: Duration,
        /// 99th percentile of the waits.
        p99: Duration,
    },
    /// Requests failed.
    FailedRequests {
        /// The kind of span.
        role: SpanRole,
        /// Route, path or address, or the provider with its task.
        name: String,
        /// The number of failed requests.
        failed: u64,
        /// The number of all requests of that name.
        count: u64,
    },
    /// The requests with the highest 99th percentile.
    SlowestRequests {
        /// The kind of span.
        role: SpanRole,
        /// Route, path or address, or the provider with its task.
        name: String,
        /// 99th percentile of the durations.
        p99: Duration,
        /// Median duration.
        median: Duration,
        /// The number of requests of that name.
        count: u64,
        /// The number of waits for locks, and their share of the requests' time in percent, from
        /// [`MIN_LOCK_SHARE`] on.
        lock_waits: Option<(u64, f64)>,
    },
    /// No thread worked: all waited for work.
    NoWork,
    /// Time in which threads worked.
    Work {
        /// The time.
        time: Duration,
        /// The evidence for it.
        source: WorkSource,
        /// The methods at the leaf.
        methods: MethodShares,
        /// The number of rows of a table of methods by working time that include these.
        rows: usize,
        /// True if [`SessionCost`] was taken out.
        leaves_out_session: bool,
    },
    /// The code that ran on the processors, from the kernel's samples.
    ProcessorTime {
        /// The time.
        total: Duration,
        /// The shares of at least [`MIN_METHOD_SHARE`], in percent.
        parts: Vec<(CodeOrigin, f64)>,
    },
    /// Threads were blocked in the midst of work.
    Blocked {
        /// The time.
        time: Duration,
        /// The part in which they were runnable but lacked a processor.
        without_processor: Duration,
        /// The methods that waited.
        methods: MethodShares,
        /// Kinds of waits in the kernel with their shares in percent, three at most.
        waits: Vec<(KernelWait, f64)>,
        /// True if [`SessionCost`] was taken out.
        leaves_out_session: bool,
    },
    /// Threads that waited in one place as long as the recording lasted.
    WaitedThroughout {
        /// The number of threads.
        threads: u64,
        /// The methods, three at most.
        methods: Vec<WaitingThreads>,
        /// True if [`SessionCost`] was taken out.
        leaves_out_session: bool,
    },
    /// Threads were ready to run, without a processor, from the kernel's samples.
    Ready {
        /// The time.
        time: Duration,
        /// Their methods.
        methods: MethodShares,
        /// True if [`SessionCost`] was taken out.
        leaves_out_session: bool,
    },
    /// Threads slept.
    Asleep {
        /// The time.
        time: Duration,
        /// The number of threads.
        threads: u64,
        /// The methods that slept.
        methods: MethodShares,
        /// True if [`SessionCost`] was taken out.
        leaves_out_session: bool,
    },
    /// Time spent for the recording itself, and for compilation in the background.
    Session(SessionCost),
    /// Collections paused the program.
    Pauses {
        /// The share of the time, in percent.
        percent: f64,
        /// The number of collections.
        collections: u64,
        /// The number of collections that the program asked for.
        induced: u64,
        /// Duration of the longest pause.
        longest: Duration,
    },
    /// The program allocated.
    Allocations {
        /// The bytes.
        bytes: u64,
        /// The type with the most bytes, in C# form.
        first_type: String,
        /// The bytes of that type.
        first_type_bytes: u64,
        /// The user's method that allocated most of that type.
        from: Option<UserCallerName>,
    },
    /// Exceptions were thrown.
    Exceptions {
        /// The number of exceptions.
        count: u64,
        /// The most frequent type, in C# form.
        first_type: String,
        /// The number of exceptions of that type.
        first_type_count: u64,
        /// The user's method that threw most of that type.
        from: Option<UserCallerName>,
    },
    /// Waits for locks.
    LockWaits {
        /// The number of waits.
        waits: u64,
        /// The sum of the waits.
        total: Duration,
        /// Duration of the longest wait.
        longest: Duration,
        /// The user's method that waited the longest.
        from: Option<UserCallerName>,
    },
    /// Methods were compiled.
    Compilation {
        /// The number of methods.
        methods: u64,
        /// The time, if the runtime reports it.
        duration: Option<Duration>,
    },
}

impl Note {
    /// The kind of fact, for programs: `lock-waits`. A cause with the same name says the same, and more.
    pub const fn id(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "lost-events",
            Self::Unnamed { .. } => "nameless",
            Self::Starvation(_) => "starvation",
            Self::PoolGrowth { .. } => "pool-growth",
            Self::PoolQueue { .. } => "pool-queue",
            Self::FailedRequests { .. } => "failed-requests",
            Self::SlowestRequests { .. } => "slowest-request",
            Self::NoWork | Self::Work { .. } => "work",
            Self::ProcessorTime { .. } => "processor-time",
            Self::Blocked { .. } => "blocked",
            Self::Ready { .. } => "ready",
            Self::WaitedThroughout { .. } | Self::Asleep { .. } | Self::Session(_) => "topN",
            Self::Pauses { .. } => "pauses",
            Self::Allocations { .. } => "allocations",
            Self::Exceptions { .. } => "exceptions",
            Self::LockWaits { .. } => "lock-waits",
            Self::Compilation { .. } => "compilation",
        }
    }

    /// Returns true for a fault of the recording, by the thresholds: its numbers are not those of the
    /// program.
    pub fn is_fault(&self) -> bool {
        match self {
            Self::Lost { percent, .. } => *percent >= MIN_LOSS,
            Self::Unnamed { is_cpu_time, .. } => !is_cpu_time,
            _ => false,
        }
    }

    /// The numbers of the sentence for programs, with units in their names: `longest_ns`.
    pub fn numbers(&self) -> Vec<(&'static str, NoteNumber)> {
        use NoteNumber::{Integer, Percent, Unknown};
        let time = |time: &Duration| Integer(units::nanoseconds(*time));
        match self {
            Self::Lost { lost, lost_samples, .. } => {
                vec![("lost", Integer(*lost)), ("lost_samples", Integer(*lost_samples))]
            }
            Self::Unnamed { percent, .. } => vec![("percent", Percent(*percent))],
            Self::Starvation(starvation) => vec![("total_ns", time(&starvation.total))],
            Self::PoolGrowth { times, most_threads } => {
                vec![("times", Integer(*times)), ("most_threads", Integer(u64::from(*most_threads)))]
            }
            Self::PoolQueue { work_items, median, p99 } => {
                vec![("work_items", Integer(*work_items)), ("median_ns", time(median)), ("p99_ns", time(p99))]
            }
            Self::FailedRequests { failed, count, .. } => {
                vec![("failed", Integer(*failed)), ("count", Integer(*count))]
            }
            Self::SlowestRequests { p99, median, count, .. } => {
                vec![("p99_ns", time(p99)), ("median_ns", time(median)), ("count", Integer(*count))]
            }
            Self::NoWork => vec![("work_ns", Integer(0))],
            Self::Work { time: work, .. } => vec![("work_ns", time(work))],
            Self::ProcessorTime { total, .. } => vec![("cpu_ns", time(total))],
            Self::Blocked { time: blocked, .. } => vec![("blocked_ns", time(blocked))],
            Self::Ready { time: ready, .. } => vec![("ready_ns", time(ready))],
            Self::WaitedThroughout { .. } | Self::Asleep { .. } | Self::Session(_) => Vec::new(),
            Self::Pauses { percent, collections, longest, .. } => vec![
                ("percent", Percent(*percent)),
                ("collections", Integer(*collections)),
                ("longest_ns", time(longest)),
            ],
            Self::Allocations { bytes, first_type_bytes, .. } => {
                vec![("bytes", Integer(*bytes)), ("first_type_bytes", Integer(*first_type_bytes))]
            }
            Self::Exceptions { count, first_type_count, .. } => {
                vec![("count", Integer(*count)), ("first_type_count", Integer(*first_type_count))]
            }
            Self::LockWaits { waits, total, longest, .. } => {
                vec![("waits", Integer(*waits)), ("total_ns", time(total)), ("longest_ns", time(longest))]
            }
            Self::Compilation { methods, duration } => {
                vec![("methods", Integer(*methods)), ("duration_ns", duration.as_ref().map_or(Unknown, time))]
            }
        }
    }
}
