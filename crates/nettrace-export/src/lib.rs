//! Profiles and reports out of .NET EventPipe recordings.
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
//! [`ProfileBuilder`] takes events from wherever they come, such as a live session.
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
//! until the thread's next one; time has no other source. A thread's last sample counts nothing, because its
//! duration is unknown. A sample only shows whether a thread was in managed code: native code, system calls
//! and waits look alike.
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
//! # What this crate does not do
//!
//! It opens no file and prints nothing; it reads no symbols that are not in the recording, but asks the
//! caller's source for the lines of frames, if these are wanted: [`SourceLines`].
//!
//! # Modules
//!
//! - `bounds`, `decode`: limits of results, and events that are decoded once.
//! - `profile/read` reads a recording in the order that its events need, twice if necessary, into
//!   `profile/builder`, which looks up the use of each event in `event_interest`.
//! - `profile/metrics`: weights, a module each. `profile/builder/gc_pauses` cuts pauses out of the time of
//!   threads. `profile/kernel_times` is the kernel's account of threads, and its `correction` applies it once
//!   names and states are known. `profile/causality`: the task and the request of each thread.
//! - `profile/stack_totals`, `profile/track`: weights by thread and stack of addresses.
//! - `profile/symbolize`: names, once all code is known; stack filters; `causal_stacks` puts stacks below
//!   their causes; `lines` asks the caller for source lines.
//! - `profile`: the result. `profile/sum` adds up the intervals of a live session;
//!   `profile/stack_profile_builder` takes samples of the caller's own.
//! - `format`: the writers, a Cargo feature each.
//! - `tree`, `report`: tables, which take decoded events themselves. `report/requests` sums up the spans of
//!   `clr-activity`, by `template` where they have no route; `profile/request_stacks` has the stacks of the
//!   slowest. `report/blocked`: methods that were blocked, and thread pools that starve.
//! - `diff`: comparison of recordings. `run_builder` adds up the events of a recording by slices of time
//!   (`series`), `estimate` has values with their errors, and `comparison` judges the differences.
//!   `stack_comparison` does so for the stacks (`call_tree`), `stack_picture` and `stack_page` show them, and
//!   `pprof` reads profiles of other tools.
//! - `events`: single events as JSON and as text.
//! - `page`: the web page. `data` (samples by bin, thread and stack, compressed, within a budget), `reports`
//!   (the other events, in `cells`; counters, in `curves`), and plain files in `assets` that are
//!   concatenated, among them uPlot for the time line. `contents` reads a recording for
//!   it. `page::STYLE` is also the style of the pages of heaps, and with `page::SHARED_SCRIPTS` of the
//!   monitor's.
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
#[cfg(feature = "events")]
pub mod events;
mod format;
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

pub use bounds::{LONGEST_NAME, TooLarge, most_output, push_name};
#[cfg(feature = "otlp")]
pub use format::otlp_request;
pub use format::{Format, write};
pub use profile::builder::{Omissions, ProfileBuilder};
pub use profile::frame::{FrameId, Frames};
pub use profile::frame_kind::{FrameKind, is_framework};
pub use profile::index::{ProcessIndex, ThreadIndex, TotalIndex};
pub use profile::kernel_times::{KernelTimes, ThreadUse};
pub use profile::kernel_wait::KernelWait;
pub use profile::lines::{LineCounts, SourceLine, SourceLines};
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

/// What holds data can be kept by a server and used in any thread: this does not compile otherwise.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(Profile, ProfileBuilder, ProfileReader<'_>, ProfiledRecording<u8>, StackProfileBuilder)>();
    };
}
