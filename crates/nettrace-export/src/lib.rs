//! Profiles and reports out of .NET EventPipe recordings.
//!
//! # A flame graph of what a program allocates
//!
//! ```no_run
//! use nettrace_export::{Format, Labels, Metric, Options, ProfileBuilder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?.in_time_order();
//! let mut builder = ProfileBuilder::new(Options::new(Metric::Alloc));
//! events.for_each(|event| builder.add(&event))?;
//! let (profile, _missing) = builder.finish(events.events().info())?;
//! let labels = Labels { title: "app", exporter: "mine", ..Labels::default() };
//! nettrace_export::write(&profile, Format::Flamegraph, labels, &mut std::fs::File::create("app.html")?)?;
//! # Ok(())
//! # }
//! ```
//!
//! # From events to a file
//!
//! * [`ProfileBuilder`] is shown all events, in time order or, twice as fast, in [file order](Order::File). It weighs some of them ([`Metric`]) and remembers what others tell of code.
//! * [`Profile`] is what it makes of them: [stacks](Profile::stacks) of named [frames](Frames), how much each weighs on which
//!   thread ([`StackTotal`]), and where wanted when ([`Track`]).
//! * [`write`](fn@write) writes a profile in a [`Format`].
//!
//! [`report`] has what is no profile: tables of collections, allocations, exceptions and so on.
//!
//! # Time of threads
//!
//! The sampler says every few milliseconds what each managed thread has on its stack. A sample counts from then until the
//! thread's next one; nothing else makes time. A thread's last sample counts nothing, for how long it held is not known. Only
//! whether a thread was in managed code is known of it: what is in native code, in a system call or waiting looks alike.
//!
//! # Tasks and requests
//!
//! Work that one thread causes and another does can be shown [below](CausalGrouping) the stack that created its task, and below the request
//! that it is for. Nothing but the frames above a stack changes: time stays that of the thread that spent it. Requests are activities
//! that an EventSource starts, as ASP.NET's does for each it gets; that an id goes with the work is told by TplEventSource.
//!
//! # What this crate does not do
//!
//! It opens no file and prints nothing; it reads no symbols that are not in the recording, but asks whoever reads them for the
//! lines of frames, if these are wanted: [`SourceLines`].
#![forbid(unsafe_code)]

mod bounds;
mod builder;
mod escape;
mod format;
mod frame;
mod lines;
mod measure;
mod metric;
mod metrics;
mod pattern;
mod profile;
pub mod pseudo_frames;
pub mod report;
mod stack_filter;
mod suspension;
mod track;
mod tree;

pub use bounds::{LONGEST_NAME, TooLarge, most_output, push_name};
pub use builder::{CausalGrouping, NeedsTimeOrder, Omissions, Options, Order, ProfileBuilder};
pub use escape::{is_control, may_begin_control};
pub use format::{Format, Labels, write};
pub use frame::{FrameId, Frames};
pub use lines::{LineCounts, SourceLine, SourceLines};
pub use measure::{Measure, Unit};
pub use metric::Metric;
pub use metrics::Samples;
pub use pattern::Pattern;
pub use profile::{Process, Profile, StackTotal, Thread};
pub use stack_filter::StackFilter;
pub use track::{Span, Track};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
