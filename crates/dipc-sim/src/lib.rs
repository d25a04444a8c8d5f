//! A simulated .NET diagnostic server: answers as a runtime does, replays recordings, misbehaves on request.
//!
//! For tests and demonstrations of tools that attach to .NET processes, on machines that have no .NET, and for what no
//! real runtime does on command: answer late, answer nonsense, die in the middle of a stream.
//!
//! A [`Runtime`] listens on a real Unix socket with the name that a real one would have, so that a tool finds it as it
//! finds any other process; or it connects to a port on which the tool listens, and advertises. It answers every command of the protocol,
//! each as the simulated [`Version`] does, or with the error that this version has for it. What a client sets, it can read back, and the
//! test sees it too ([`State`]): environment, perf maps, profilers, startup hooks, dumps, whether the runtime is suspended.
//!
//! A session's stream is
//! * a recording made before, at the speed at which it happened, any other, or as fast as it is read ([`Speed`]). When the session is stopped the
//!   rest follows at once, with the rundown, so that the client ends up with the recording byte for byte;
//! * the recording over and over ([`Builder::looped`]), as one recording in which time and all counts go on;
//! * events that are made up, at any rate ([`Builder::rate`]).
//!
//! A [`Fault`] makes it misbehave.
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
//! # What is not simulated
//!
//! * A real runtime serves one client at a time, so that a silent client stalls all others; here each has its own thread.
//! * What a session asks for has no influence on a recording that is replayed, its format included; made-up events are always nettrace V4.
//! * Sessions that write to user_events are refused, as by a runtime on a kernel that has none.
//! * A dump is a small text, a profiler any file that exists.
//! * A runtime that connects to a port has no socket of its own besides.

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

mod identity;
mod version;

mod fault;
mod speed;

mod state;

mod builder;
mod runtime;

mod port;
mod server;

mod answer;
mod client;

mod session;
mod stream;

mod error;

pub use builder::Builder;
pub use error::Error;
pub use fault::{Fault, ParseFaultError};
pub use identity::Identity;
pub use runtime::Runtime;
pub use speed::Speed;
pub use state::State;
pub use version::{ParseVersionError, Version};
