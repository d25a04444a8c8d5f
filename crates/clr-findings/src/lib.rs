//! The causes of the problems of a .NET process, with their evidence.
//!
//! **Use it** to say what a program should look at first. **Not for** the numbers of a recording:
//! [`nettrace-export`](nettrace_export::report) has the reports that it judges, and [`clr-dump`](clr_dump)
//! the threads.
//!
//! Features: `page`, causes at the top of a page of nettrace-export. Rust 1.89 or later.
//!
//! [`diagnose`] judges [`Evidence`]: an overview of a recording, one or two readings of memory, and three or
//! more of the kernel's account and of [`MemoryCounts`], which show what grows. Each [`Finding`] has its
//! kind, its cause as a sentence in the user's own code, numbers, and the place that shows more. Findings are
//! ordered by what they cost, and effects are evidence of their causes. [`Activity`] has what a program
//! without findings does. A [`Diagnosis`] has all of it, with what was looked at and what was missing, also
//! for JSON. [`RecordingFindings`] has the causes of a recording with its other facts, for reports.
//! [`Readings`] have what was read of a process beside its events, and [`RecordedReadings`] takes them from
//! its recording.
//!
//! ```no_run
//! use clr_dump::{CoreFile, Dump};
//! use clr_findings::{Evidence, MemoryFacts, diagnose};
//!
//! let core = CoreFile::open(std::fs::File::open("core")?)?;
//! let dump = Dump::open(&core)?;
//! let stacks = dump.threads().stacks(&core.thread_registers())?;
//! let memory = [MemoryFacts::of_core(&core, &dump, stacks)];
//! for finding in diagnose(&Evidence::default().with_memory(&memory)) {
//!     println!("{}: {}", finding.kind.id(), finding.cause);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Thresholds
//! They are shares of time and of what is possible: see [`thresholds`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![allow(clippy::cast_precision_loss, reason = "shares and averages have two or three digits")]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap
    )
)]

mod activity;
mod diagnosis;
mod finding;
mod growth;
mod memory_counts;
mod memory_facts;
mod names;
mod of_end;
mod of_free;
mod of_growth;
mod of_memory;
mod of_recording;
mod of_timers;
mod of_usage;
mod places;
mod process;
mod readings;
mod recording_findings;
mod result;
mod running;
mod server_collector;
mod text;
pub mod thresholds;
mod waiting;

pub use activity::Activity;
pub use diagnosis::{Evidence, diagnose};
pub use finding::{Confidence, Details, Finding, FindingKind, Number};
pub use memory_counts::{CollectionCount, FragmentedGeneration, LateTimerCount, MemoryCounts};
pub use memory_facts::{
    AwaitFacts, AwaitSearch, AwaitedFor, ElapsedDelays, FrameworkAwaits, MemoryFacts, SemaphoreFacts,
    SuspendedFacts, ThreadFacts, WaitFacts,
};
pub use of_memory::pool::BlockedWorkers;
pub use process::{ProcessEnd, ProcessIdentity};
pub use readings::{Readings, ReadingsTooLarge, RecordedReadings};
pub use recording_findings::RecordingFindings;
pub use result::{Diagnosis, DiagnosisReport, FindingReport};
pub use running::RunningMethod;
pub use waiting::WaitingPlace;
