//! Client of .NET diagnostic ports: every command of the protocol, with a deadline on every step.
//!
//! A [`Target`] is a runtime that commands can be sent to, found by pid or given by path. It has a method for each command:
//!
//! | what | methods of [`Target`] |
//! |---|---|
//! | what the process is | [`info`](Target::info), [`info_when_started`](Target::info_when_started), [`environment`](Target::environment), [`startup`](Target::startup) |
//! | before the program begins | [`set_environment_variable`](Target::set_environment_variable), [`apply_startup_hook`](Target::apply_startup_hook), [`startup_profiler`](Target::startup_profiler), [`resume`](Target::resume) |
//! | while it runs | [`start_session`](Target::start_session), [`stop`](Target::stop), [`dump`](Target::dump), [`attach_profiler`](Target::attach_profiler), [`enable_perf_map`](Target::enable_perf_map), [`disable_perf_map`](Target::disable_perf_map) |
//!
//! [`Target::start_session`] starts a [`Session`], whose stream is a recording in the nettrace format.
//!
//! # Runtimes that come to us
//!
//! A [`PortServer`] is a diagnostic port of our own, on which any number of runtimes may connect; each of them is a [`Target`] like any
//! other ([`PortRuntime::target`]).
//!
//! # Old runtimes
//!
//! Commands that have several forms are tried from the newest to the oldest, and what a runtime does not know is asked once.
//! What the form that it knows cannot say is an error ([`Error::UnsupportedOption`]), or is given up where the caller said that it
//! may be ([`OptionalFeature`]), and told; it is never left out silently.
//!
//! # Safeguards
//!
//! Some commands end some runtimes, or cut them off. What was seen to do so is held back ([`Error::Blocked`], [`Hazard`]) unless the
//! caller insists ([`Target::without_safeguards`]).
//!
//! # What this crate does not do
//!
//! The calls block, each at most for its [`Timeouts`]. No thread is started but that of a [`PortServer`], and the stream is not looked
//! into: that is for the crate `nettrace`. Async programs take `dipc-wire` and `nettrace` alone, as `examples/async_tokio.rs` does.
//!
//! ```no_run
//! use dipc_client::{SessionConfig, Deadline, Providers, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::from_pid(4711)?;
//! println!("{:?}", target.info()?.clr_version);
//!
//! let providers = Providers::parse("Microsoft-Windows-DotNETRuntime:0x1:4")?;
//! let mut session = target.start_session(&SessionConfig::new(providers))?;
//! let mut buffer = [0; 65_536];
//! let count = session.read(&mut buffer, Deadline::never())?;
//! println!("the recording begins with {:?}", &buffer[..count]);
//! # Ok(()) } // Dropping the session stops it.
//! ```

#![forbid(unsafe_code)]

mod error;
mod timeouts;

mod hazard;
mod optional_feature;

mod process_view;
mod target;

mod exchange;
mod process_info;

mod command;

mod session;
mod session_config;
#[cfg(unix)]
mod user_events;

mod port;

mod profile;
mod providers;

pub use command::{Dump, WrittenDump};
pub use error::{Error, ErrorKind};
pub use hazard::Hazard;
pub use optional_feature::OptionalFeature;
pub use port::{PortError, PortEvent, PortRuntime, PortServer};
pub use process_info::ProcessInfo;
pub use process_view::{ProcessView, Startup};
pub use profile::{
    CLR_KEYWORDS, DEFAULT_PROFILES, PROFILES, Profile, ProfileProvider, RUNTIME_PROVIDER, SAMPLE_PROFILER,
    clr_keyword,
};
pub use providers::{
    DEFAULT_KEYWORDS, DEFAULT_LEVEL, LEVEL_NAMES, ParseProvidersError, Providers, parse_level,
};
pub use session::{Session, Stopper};
pub use session_config::{Rundown, SessionConfig};
pub use target::Target;
pub use timeouts::Timeouts;
#[cfg(unix)]
pub use user_events::UserEvents;

pub use dipc_transport::{Address, Canceller, Deadline, Endpoint, discover, find};
pub use dipc_wire::{
    BufferMode, CommandId, DumpFlags, DumpType, EventFilter, FilteredProviderConfig, Format, HResult,
    PerfMapType, ProviderConfig, SessionId,
};
pub use uuid::Uuid;
pub use {dipc_transport, dipc_wire};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
