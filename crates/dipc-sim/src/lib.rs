//! A simulated .NET diagnostic server, which answers as a runtime does, replays recordings, and has faults on
//! request.
//!
//! **Use it** to test a tool that attaches to .NET processes, without .NET and with faults that no runtime
//! shows on request. **Not for** tests of what a runtime does: it replays and pretends.
//!
//! Features: none. Rust 1.89 or later.
//!
//! ```
//! use dipc_sim::{Fault, Runtime, Version};
//! # let folder = tempfile::tempdir()?;
//! # let recording = b"Nettrace".to_vec();
//!
//! let runtime = Runtime::builder()
//!     .version(Version::NET9)
//!     .replay(recording)
//!     .fault(Fault::CloseInStream { after: 4 })
//!     .start_in(folder.path())?;
//! println!("attach to {}", runtime.endpoint_path().display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It serves tests and demonstrations of tools that attach to .NET processes, on machines without .NET, and
//! tests of faults that no real runtime shows on request: late answers, malformed answers, a process that
//! dies in the middle of a stream.
//!
//! A [`Runtime`] listens on a real Unix socket, or on Windows a named pipe, with the name that a real runtime
//! would give it, so that tools discover it like any process; or it connects to a port on which the tool
//! listens, and advertises itself. It answers every command of the protocol as the simulated [`Version`]
//! does, with that version's errors. Clients and the test can read back the [`State`] that commands have set:
//! environment, perf maps, profilers, startup hooks, dumps, suspension.
//!
//! A session's stream is
//! * a recording, at its original speed, at any other, or as fast as it is read ([`Speed`]). When the session
//!   is stopped, the rest follows at once, with the rundown, so that the client has the recording byte for
//!   byte;
//! * the recording in a loop ([`Builder::looped`]), as one recording in which times and sequence numbers
//!   continue;
//! * synthetic events, at any rate ([`Builder::rate`]).
//!
//! A [`Fault`] changes an answer or a stream, for all requests or for some ([`ScopedFault`]). Types of
//! `dipc-wire` and `dipc-transport` that appear in signatures are re-exported.
//!
//! # Limits
//!
//! * A real runtime serves one client at a time, so that a silent client stalls all others; here each has its
//!   own thread, unless [`Builder::serial`] is set.
//! * The parameters of a session, including its format, do not change a replayed recording; synthetic events
//!   are always nettrace V4.
//! * Sessions that write to user_events are refused, as on a kernel without them, unless
//!   [`Builder::user_events`] is set. Even then no kernel is involved.
//! * A dump is a small text file, and any file is a valid profiler.
//! * A runtime that connects to a port does not create a socket of its own.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
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

mod answer;
mod builder;
mod client;
mod config;
mod error;
mod fault;
mod identity;
mod listener;
mod port;
mod runtime;
mod scoped_fault;
mod server;
mod session;
mod speed;
mod state;
mod stream;
mod version;

pub use dipc_transport::{Address, Error as TransportError};
pub use dipc_wire::{
    AttachProfiler, CommandId, EncodeError, HResult, PerfMapType, PortConfig, Request, SessionId,
    StartupProfiler,
};
pub use uuid::Uuid;

pub use builder::Builder;
pub use error::Error;
pub use fault::{Fault, FaultSyntax, ParseFaultError};
pub use identity::Identity;
pub use runtime::Runtime;
pub use scoped_fault::ScopedFault;
pub use speed::Speed;
pub use state::State;
pub use version::{ParseVersionError, Version};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
