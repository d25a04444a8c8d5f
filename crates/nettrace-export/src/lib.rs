//! Profiles and reports out of .NET EventPipe recordings.
//!
//! **Use it** to make profiles, flame graphs, reports and pages of recordings. **Not for** recordings as
//! they are (`nettrace`) and requests one by one (`clr-activity`).
//!
//! Features: one for each format, all of them by default. Rust 1.89 or later.
//!
//! # A flame graph of what a program allocates
//!
//! ```no_run
//! use nettrace_export::{Format, WriteOptions, Metric, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = std::fs::File::open("app.nettrace")?;
//! let (profile, omissions) = nettrace_export::profile(recording, Options::new(Metric::Alloc))?;
//! println!("{} frames were left out", omissions.frames);
//! let mut page = std::fs::File::create("app.html")?;
//! nettrace_export::write(&profile, Format::Flamegraph, WriteOptions::new("app", "mine"), &mut page)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Event by event
//!
//! [`ProfileBuilder`] takes events from any source, such as a live session.
//!
//! ```no_run
//! use nettrace_export::{Metric, Options, ProfileBuilder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pieces: [&[u8]; 0] = [];
//! let mut events = nettrace::Decoder::new().in_time_order();
//! let mut builder = ProfileBuilder::new(Options::new(Metric::Wall));
//! for bytes in pieces {
//!     events.feed(bytes);
//!     events.for_each(|event| builder.add(&event))?;
//! }
//! events.end_of_input();
//! events.for_each(|event| builder.add(&event))?;
//! let (profile, omissions) = builder.finish(events.info())?;
//! # Ok(())
//! # }
//! ```
//!
//! # From events to a file
//!
//! * [`profile`](fn@profile) reads a recording, in file order or, if that is not enough, in time order;
//!   [`ProfileReader`] does the same for inputs that can be read only once, and with [source
//!   lines](SourceLines).
//! * [`ProfileBuilder`] takes all events of a recording. It weighs some of them ([`Metric`]) and keeps the
//!   descriptions of code from others.
//! * [`Profile`] is the result: [stacks](Profile::stacks) of named [frames](Frames), their weight on each
//!   thread ([`StackTotal`]), and on request their times ([`Track`]).
//! * [`StackProfileBuilder`] makes a profile of samples of any other metric.
//! * [`write`](fn@write) writes a profile in a [`Format`].
//!
//! [`events`] writes events one by one, as JSON or text. [`report`] has everything other than profiles:
//! tables of collections, allocations, exceptions and so on.
//!
//! # Time of threads
//!
//! Every few milliseconds the sampler records the stack of each managed thread. A sample counts from its time
//! until the thread's next one; no other event contributes time. A thread's last sample counts nothing,
//! because its duration is unknown. A sample only shows whether a thread was in managed code: native code,
//! system calls and waits look alike.
//!
//! # Tasks and requests
//!
//! Work that one thread causes and another does can be shown [below](CausalGrouping) the stack that created
//! its task, and below its request. Only the frames above a stack change: time stays with the thread that
//! spent it. Requests are activities that an EventSource starts, as ASP.NET's does for each request that it
//! gets; TplEventSource carries the id along with the work.
//!
//! # Features
//!
//! Each [`Format`], [`events`] and [`report`] are Cargo features, all of them on by default. A program that
//! only writes pprof compiles half as many packages:
//!
//! ```toml
//! nettrace-export = { version = "0.1", default-features = false, features = ["pprof"] }
//! ```
//!
//! # Limitations
//!
//! It never opens a file or prints. It reads only symbols in the recording, and asks the caller's source for
//! the lines of frames, if these are wanted: [`SourceLines`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "default"),
    allow(dead_code, unused_imports, unused_variables, reason = "parts of formats that are not compiled")
)]

pub use clr_activity;
pub use clr_events;
pub use nettrace;

mod bounds;
#[cfg(feature = "report")]
mod decode;
#[cfg(feature = "report")]
pub mod diff;
#[cfg(feature = "report")]
mod event_counts;
#[cfg(feature = "events")]
pub mod events;
mod format;
#[cfg(feature = "report")]
pub mod method_name;
#[cfg(feature = "flamegraph")]
pub mod page;
mod profile;
#[cfg(feature = "report")]
pub mod report;
mod text;
#[cfg(any(feature = "report", feature = "svg"))]
mod tree;
pub mod units;
mod write_options;

pub use bounds::{MAX_NAME_LENGTH, TooLarge, most_output, push_name};
#[cfg(feature = "report")]
pub use event_counts::{EventCount, EventCounts, EventTypeCount};
pub use format::{Format, write};
#[cfg(feature = "otlp")]
pub use format::{OtlpRequest, otlp_request, otlp_request_by_process};
pub use profile::builder::{Omissions, ProfileBuilder};
pub use profile::frame::{FrameId, Frames};
pub use profile::frame_kind::FrameKind;
pub use profile::index::{ProcessIndex, ThreadIndex, TotalIndex};
pub use profile::kernel_times::{KernelTimes, ThreadUse};
pub use profile::kernel_wait::KernelWait;
pub use profile::lines::{LineCounts, SourceLine, SourceLines};
pub use profile::liveness::{Liveness, NativeLiveness};
pub use profile::measure::{Measure, Unit};
pub use profile::metric::Metric;
pub use profile::metrics::Samples;
pub use profile::options::{CausalGrouping, NameForm, NeedsTimeOrder, Options, Order};
pub use profile::pattern::Pattern;
pub use profile::read::{ProfileReader, ProfiledRecording, profile};
pub use profile::selection::Selection;
pub use profile::stack_filter::StackFilter;
pub use profile::stack_profile_builder::StackProfileBuilder;
pub use profile::track::{Span, Track};
pub use profile::{Process, Profile, ProfileSum, StackTotal, Thread, pseudo_frames};
pub use write_options::WriteOptions;

/// The examples of the README are compiled.
#[cfg(all(doctest, feature = "default"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// A compile-time check: types that hold data are `Send`, so a server can use them in any thread.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(Profile, ProfileBuilder, ProfileReader<'_>, ProfiledRecording<u8>, StackProfileBuilder)>();
    };
}
