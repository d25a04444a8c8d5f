//! Client of .NET diagnostic ports: every command of the protocol, with a deadline on every step.
//!
//! **Use it** to attach to .NET processes from a program: commands, recording sessions, ports for many
//! runtimes. **Not for** files that exist already (`nettrace` reads them) and programs with I/O of their
//! own (`dipc-wire`).
//!
//! Features: `nettrace` (`Session::events`: the events of a session as they arrive). Rust 1.89 or later.
//!
//! A [`Target`] is a runtime that commands can be sent to, found by pid or given by path. It has a method for
//! each command:
//!
//! | purpose | methods of [`Target`] |
//! |---|---|
//! | the process | [`info`](Target::info), [`info_when_started`](Target::info_when_started), [`environment`](Target::environment), [`startup`](Target::startup) |
//! | before the program begins | [`set_environment_variable`](Target::set_environment_variable), [`apply_startup_hook`](Target::apply_startup_hook), [`startup_profiler`](Target::startup_profiler), [`resume`](Target::resume) |
//! | while it runs | [`start_session`](Target::start_session), [`stop`](Target::stop), [`dump`](Target::dump), [`attach_profiler`](Target::attach_profiler), [`enable_perf_map`](Target::enable_perf_map), [`disable_perf_map`](Target::disable_perf_map) |
//!
//! ```no_run
//! use dipc_client::Target;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! println!("{:?}", Target::from_pid(4711)?.info()?.clr_version);
//! # Ok(()) }
//! ```
//!
//! # Sessions
//!
//! [`Target::start_session`] starts a [`Session`]. Its stream is a recording in the nettrace format. It is
//! stopped over a second connection *while its stream is read*; the reads take care of that
//! ([`Session::stop_after`], [`Session::request_stop`]). `Session::events` (feature `nettrace`) returns the
//! events as they arrive.
//!
//! ```no_run
//! use std::{fs::File, io, time::Duration};
//! use dipc_client::{Providers, SessionConfig, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let providers = Providers::parse("Microsoft-Windows-DotNETRuntime:0x1:4")?;
//! let mut session = Target::from_pid(4711)?.start_session(&SessionConfig::new(providers))?;
//! session.stop_after(Duration::from_secs(10));
//! io::copy(&mut session.reader(), &mut File::create("app.nettrace")?)?;
//! # Ok(()) }
//! ```
//!
//! Names of methods are sent at the end of a session. [`Target::list_methods`] requests the list at any time,
//! and [`LiveNames`] while a session runs.
//!
//! # Ports
//!
//! A [`PortServer`] is a diagnostic port of this process, to which any number of runtimes connect; each of
//! them is an ordinary [`Target`] ([`PortRuntime::target`]).
//!
//! ```no_run
//! use std::process::Command;
//! use dipc_client::{Deadline, PortEvent, PortServer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let port = PortServer::private()?;
//! let mut program = Command::new("./app");
//! port.configure(&mut program); // It connects to the port, and waits there.
//! program.spawn()?;
//! while let PortEvent::Connected(runtime) = port.next(Deadline::never())? {
//!     println!("{:?}", runtime.target().info()?);
//!     runtime.target().resume()?;
//! }
//! # Ok(()) }
//! ```
//!
//! # Old runtimes
//!
//! Commands with several forms are tried from the newest to the oldest, and a command that a runtime does not
//! know is sent only once. An option that the known form lacks is an error ([`Error::UnsupportedOption`]), or
//! is dropped if the caller allows it ([`OptionalFeature`]) and listed in the result; it is never left out
//! silently.
//!
//! # Safeguards
//!
//! Some commands end some runtimes, or make them unreachable. Commands that were observed to do so are
//! blocked ([`Error::Blocked`], [`Hazard`]) unless the caller insists ([`Target::without_safeguards`]).
//!
//! # Limits of this crate
//!
//! The calls block, each for at most its [`Timeouts`] or until its [`Deadline`]. The streams of sessions do
//! not end by themselves: [`SessionReader`] documents how long its reads wait, and a [`Canceller`] ends a
//! read ([`Session::canceller`]) or a wait at a port ([`PortServer::canceller`]) from another thread. Only a
//! [`PortServer`], [`LiveNames`] and a [`Renewal`] use threads. Async programs use `dipc-wire` and `nettrace`
//! alone, as in `examples/async_tokio.rs` (a session) and `examples/async_port.rs` (a port).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod error;
mod timeouts;

mod hazard;
mod optional_feature;

mod process_view;

mod link;
mod port_error;
mod route;

mod exchange;
mod process_info;
mod target;

mod command;

mod crash_files;

mod session;
mod session_config;

mod renewal;

mod live_names;
#[cfg(feature = "nettrace")]
mod live_reader;
mod method_list;
#[cfg(unix)]
mod user_events;

mod port;

mod profile;
mod providers;

pub use command::{Dump, WrittenDump};
pub use crash_files::{CrashFiles, KernelCore, PathPattern, RuntimeFiles};
pub use error::{Error, ErrorKind};
pub use hazard::Hazard;
pub use live_names::{ListPiece, LiveNames, LiveNamesOptions};
#[cfg(feature = "nettrace")]
#[cfg_attr(docsrs, doc(cfg(feature = "nettrace")))]
pub use live_reader::LiveReader;
pub use method_list::{MethodList, NAME_KEYWORDS};
pub use optional_feature::OptionalFeature;
pub use port::{PortEvent, PortRuntime, PortServer};
pub use port_error::PortError;
pub use process_info::{ProcessInfo, entry_assembly};
pub use process_view::{KernelThread, ProcessView, Startup, ThreadTime, ThreadTimes, ThreadTimesReader};
pub use profile::{
    ALL_PROFILE, CLR_KEYWORDS, CPU_PROFILE, DEFAULT_PROFILES, LIVE_ALLOCATION_KEYWORDS, PROFILES, Profile,
    ProfileProvider, RUNTIME_PROVIDER, SAMPLE_PROFILER, clr_keyword,
};
pub use providers::{
    ConflictingArguments, DEFAULT_KEYWORDS, DEFAULT_LEVEL, ParseProvidersError, Providers, level_names,
    parse_level,
};
pub use renewal::{Renewal, RenewalState};
pub use session::{Session, SessionReader, Stopper};
pub use session_config::{Rundown, SessionConfig};
pub use target::Target;
pub use timeouts::Timeouts;
#[cfg(unix)]
pub use user_events::UserEvents;

pub use dipc_transport::{
    Address, Canceller, Deadline, Discovery, Endpoint, ProcessState, SkipReason, Skipped, discover, find,
};
pub use dipc_wire::{
    BufferMode, CommandId, DumpFlags, DumpType, EventFilter, FilteredProviderConfig, Format, HResult,
    Keywords, Level, PerfMapType, ProviderConfig, SessionId,
};
#[cfg(feature = "nettrace")]
pub use nettrace;
pub use uuid::Uuid;
pub use {dipc_transport, dipc_wire};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A compile-time check: types that hold data are `Send`, so a server can use them in any thread.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(
            MethodList,
            PortRuntime,
            PortServer,
            ProcessView,
            Renewal,
            Session,
            SessionConfig,
            Stopper,
            Target,
        )>();
    };
}
