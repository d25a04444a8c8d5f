//! The work of .NET programs, and the requests that it is for.
//!
//! **Use it** to attribute threads and events to requests, tasks and pauses. **Not for** sums and tables
//! (`nettrace-export` has reports over it) and counters (`clr-counters`).
//!
//! Features: `spans` (default: requests and other spans). Rust 1.89 or later.
//!
//! Events show which request or task each thread works on, and when the garbage collector stops all threads
//! of a process. This crate has the one definition of pauses, spans and requests; reports, conditions, tables
//! and screens count its results.
//!
//! - [`Pauses`] returns the garbage collection pauses of each process; [`Suspensions`] returns the same with
//!   data of the caller for each.
//! - [`SampledAllocations`] chooses the allocations to follow, and [`LiveObjects`] follows allocated objects
//!   through collections: which of them live.
//! - [`Spans`] pairs the events that start and stop spans, and follows the threads that work for them. A
//!   [`Span`] that is not part of another one is a [request](Span::is_request).
//! - [`SpanEvent`] decodes single events of known libraries' spans, [`DiagnosticEvent`] the events passed on
//!   by the DiagnosticSource bridge.
//! - [`Steps`] are steps of scheduled work. [`Tasks`] carries the cause and the request of each task from the
//!   thread that creates it to the thread that runs it; [`Causes`] keeps the stacks that created tasks.
//! - [`AsyncBuffer`] has the events of .NET 11's asynchronous profiler; [`AsyncStacks`] returns the methods
//!   that waited for the work of a thread at a time.
//! - [`ActivityFinder`] finds the events of chosen requests and activities.
//!
//! # Example
//!
//! ```no_run
//! use clr_activity::{Pauses, Spans};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
//! let (mut spans, mut pauses) = (Spans::default(), Pauses::default());
//! recording.in_time_order().for_each(|event| {
//!     spans.add(&event, |span| println!("{} took {:?}", span.name, span.duration));
//!     if let Some(pause) = pauses.add(&event) {
//!         println!("a pause of {:?}", pause.duration);
//!     }
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! `spans`, a default feature, adds everything about spans and requests. Pauses, steps, tasks and causes are
//! always available.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

pub use clr_events;
pub use nettrace;

#[cfg(feature = "spans")]
mod activity_events;
mod async_profiler;
mod bounded_map;
mod causes;
#[cfg(feature = "spans")]
mod diagnostic;
#[cfg(feature = "spans")]
mod event_kind;
#[cfg(feature = "spans")]
mod fields;
#[cfg(feature = "spans")]
mod live;
mod live_objects;
mod pause;
#[cfg(feature = "spans")]
mod queue;
mod request_witness;
mod sampled_allocation;
#[cfg(feature = "spans")]
mod span;
#[cfg(feature = "spans")]
mod span_event;
#[cfg(feature = "spans")]
mod spans;
mod step;
mod suspension;
mod tasks;
#[cfg(feature = "spans")]
mod threads;
#[cfg(feature = "spans")]
mod time_parts;
mod trace_context;
#[cfg(feature = "spans")]
mod work_interval;

#[cfg(feature = "spans")]
pub use activity_events::{ActivityEvents, ActivityFinder, ActivityPattern};
pub use async_profiler::{
    ASYNC_PROFILER, AsyncBuffer, AsyncBufferError, AsyncCallstack, AsyncEvent, AsyncEventKind, AsyncEvents,
    AsyncFrame, AsyncLayout, AsyncModel, AsyncStacks, AsyncStacksBuilder, has_async_buffer,
};
pub use causes::{Cause, CauseId, Causes};
#[cfg(feature = "spans")]
pub use diagnostic::{DiagnosticEvent, DiagnosticPhase};
pub use live_objects::{LiveObjectCounts, LiveObjects};
pub use pause::{Pause, Pauses};
pub use request_witness::RequestWitness;
pub use sampled_allocation::{SampledAllocation, SampledAllocations};
#[cfg(feature = "spans")]
pub use span::{Span, SpanEnd, SpanId, SpanRole, StartedSpan};
#[cfg(feature = "spans")]
pub use span_event::SpanEvent;
#[cfg(feature = "spans")]
pub use spans::{SpanSource, Spans};
pub use step::{LOGGING_PROVIDER, Step, Steps, WorkId, has_activity, is_of_work};
pub use suspension::{Suspension, Suspensions};
pub use tasks::{Tasks, Worker};
#[cfg(feature = "spans")]
pub use time_parts::{KnownParts, MeasuredParts, TimeParts};
pub use trace_context::TraceContext;
#[cfg(feature = "spans")]
pub use work_interval::{WorkInterval, WorkKind};

/// The examples of the README are compiled.
#[cfg(all(doctest, feature = "spans"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// A compile-time check: types that hold data are `Send`, so a server can use them in any thread.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(ActivityFinder, AsyncStacks, AsyncStacksBuilder, Causes, MeasuredParts, Pauses)>();
        is_send::<(LiveObjects<u8>, RequestWitness, Spans, Steps, Suspensions<u8>, Tasks)>();
    };
}
