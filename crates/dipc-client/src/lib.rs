//! Client of .NET diagnostic ports: process information and EventPipe sessions, with a deadline on every step.
//!
//! A [`Target`] is a runtime that commands can be sent to, found by pid or given by path. [`Target::info`],
//! [`Target::environment`] and [`Target::resume`] ask one thing; [`Target::collect`] starts a [`Session`], whose stream
//! is a recording in the nettrace format. Commands that have several forms are tried from the newest to the oldest, and
//! what the form that a runtime knows cannot say is an error, never left out.
//!
//! The calls block, each at most for its [`Timeouts`]. This crate starts no thread, and does not look into the stream:
//! that is for the crate `nettrace`.
//!
//! ```no_run
//! use dipc_client::{Collect, Deadline, Providers, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::from_pid(4711)?;
//! println!("{:?}", target.info()?.clr_version);
//!
//! let providers = Providers::parse("Microsoft-Windows-DotNETRuntime:0x1:4")?;
//! let mut session = target.collect(&Collect::new(providers))?;
//! let mut buffer = [0; 65_536];
//! let count = session.read(&mut buffer, Deadline::never())?;
//! println!("the recording begins with {:?}", &buffer[..count]);
//! # Ok(()) } // Dropping the session stops it.
//! ```

#![forbid(unsafe_code)]

mod error;
mod timeouts;

mod danger;
mod wish;

mod process_view;
mod target;

mod exchange;
mod process_info;

mod command;

mod collect;
mod session;

mod port;

mod profile;
mod providers;

pub mod doctor;

pub use collect::{Collect, Rundown};
pub use command::{Dump, WrittenDump};
pub use danger::Danger;
pub use error::{Error, ErrorKind};
pub use port::{PortError, PortEvent, PortRuntime, PortServer};
pub use process_info::ProcessInfo;
pub use process_view::Startup;
pub use profile::{
    CLR_KEYWORDS, DEFAULT_PROFILES, PROFILES, Profile, ProfileProvider, RUNTIME_PROVIDER, SAMPLE_PROFILER,
    clr_keyword,
};
pub use providers::{
    DEFAULT_KEYWORDS, DEFAULT_LEVEL, LEVEL_NAMES, ParseProvidersError, Providers, parse_level,
};
pub use session::{Session, Stopper};
pub use target::Target;
pub use timeouts::Timeouts;
pub use wish::Wish;

pub use dipc_transport::{Address, Canceller, Deadline, Endpoint, discover, find};
pub use dipc_wire::{
    BufferMode, CommandId, DumpFlags, DumpType, EventFilter, FilteredProviderConfig, Format, HResult,
    PerfMapType, ProviderConfig, SessionId,
};
pub use uuid::Uuid;
pub use {dipc_transport, dipc_wire};
