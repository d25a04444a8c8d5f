//! Reports of recordings, as tables: a module each.
//!
//! Each report is shown the events of a recording in time order (`add`), and then asked what they say (`finish`).

mod allocations;
mod call_tree;
mod contention;
mod distribution;
mod event_counts;
mod exceptions;
mod gc;
mod jit;
mod startup;
mod thread_pool;
mod timeline;
mod top;

pub use allocations::{Allocations, AllocationsReport, TypeRow};
pub use call_tree::{CallNode, CallTree, call_tree};
pub use contention::{Contention, ContentionReport, LockRow};
pub use distribution::{Bucket, Distribution, Durations};
pub use event_counts::{EventCounts, EventCountsReport, EventRow};
pub use exceptions::{ExceptionRow, Exceptions, ExceptionsReport};
pub use gc::{Collection, Collections, GcReport, GenerationRow};
pub use jit::{Jit, JitReport, MethodRow, TierRow};
pub use startup::{Startup, StartupReport, Step};
pub use thread_pool::{ReasonRow, ThreadPool, ThreadPoolReport};
pub use timeline::Timeline;
pub use top::{TopRow, top};
