//! Reports of recordings, as tables: a module each.
//!
//! Each report takes the events of a recording in time order (`add`), as [`read`] gives them, and returns the
//! result (`finish`). Most need few kinds of events (`needs`), which [`read_kinds`] gives faster. When
//! several reports are made at once, events are decoded once for all: `add_decoded`.
//!
//! An [`Overview`] has most of them, and what to know first of them: [`Note`].
//!
//! ```no_run
//! use nettrace_export::report::{self, Collections};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
//! let mut collections = Collections::default();
//! report::read(recording, |event| collections.add(event))?;
//! println!("{:?} of pauses", collections.finish().pauses.total);
//! # Ok(())
//! # }
//! ```

mod allocations;
pub(crate) mod blocked;
mod by_process;
mod call_tree;
mod callers;
mod calls;
mod code_tiers;
mod contention;
pub(crate) mod distribution;
mod event_counts;
mod event_group;
mod exceptions;
mod gc;
mod jit;
mod lock_wait;
pub(crate) mod nanoseconds;
mod notes;
mod overview;
mod processor_time;
mod read;
pub(crate) mod requests;
mod runtime_gauges;
mod session_cost;
pub(crate) mod span_name;
mod startup;
#[cfg(test)]
pub(crate) mod test_profile;
mod thread_pool;
mod timeline;
mod top;
mod top_report;
pub(crate) mod type_table;
mod user_caller;

pub use allocations::{Allocations, AllocationsReport, TypeRow};
pub use blocked::{
    BlockedPart, BlockedTime, Starvation, WaitingMethod, allocating_methods, blocked_methods, blocked_time,
    blocked_waits, ready_methods, starvation, working_methods,
};
pub use by_process::{ContainerWeight, ProcessReport, ProcessWeight, TopCode};
pub use call_tree::{CallNode, CallTree, call_tree};
pub use callers::{CallerRow, callers};
pub use calls::{CallRow, Calls, CallsReport};
pub use code_tiers::{CodeTiers, CodeTiersReport};
pub use contention::{Contention, ContentionReport, LockRow};
pub use distribution::{Bucket, Distribution, Durations};
pub use event_counts::{EventCounts, EventCountsReport, EventRow};
pub use event_group::EventGroup;
pub use exceptions::{ExceptionRow, Exceptions, ExceptionsReport};
pub use gc::{Collection, Collections, GcPause, GcReport, GenerationRow};
pub use jit::{Jit, JitReport, MethodRow, TierRow};
pub use lock_wait::{Deadlock, LockWait};
pub use notes::{
    MIN_LOCK_SHARE, MIN_LOSS, MIN_METHOD_SHARE, MIN_UNNAMED, MIN_UNVERIFIED, MethodShare, MethodShares, Note,
    NoteNumber, RUNNING_OR_WAITING, WaitingThreads, WorkSource, unnamed_share,
};
pub use overview::{
    Overview, OverviewBuilder, OverviewCallers, OverviewReports, StreamFacts, callers_options,
    overview_profile_options,
};
pub use processor_time::processor_time;
pub use read::{read, read_by, read_kinds};
pub use requests::{
    Latencies, Requests, RequestsOptions, RequestsReport, SlowSpan, SlowStack, SpanEnd, SpanRole, SpanRow,
    SpanSource, StatusRow, ThreadParts, TimeParts,
};
pub use runtime_gauges::{GaugeValues, RuntimeGaugeValues, RuntimeGauges};
pub use session_cost::SessionCost;
pub use startup::{Startup, StartupReport, Step};
pub use thread_pool::{ReasonRow, ThreadPool, ThreadPoolReport};
pub use timeline::Timeline;
pub use top::{TopRow, top};
pub use top_report::{LiveFacts, NativeFacts, TopMethod, TopOptions, TopReport, sort_top};
pub use user_caller::{UserCaller, UserCallerName, user_callers};
