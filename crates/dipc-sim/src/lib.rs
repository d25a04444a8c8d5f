//! A simulated .NET diagnostic server: answers as a runtime does, replays recordings, misbehaves on request.
//!
//! For tests and demonstrations of tools that attach to .NET processes, on machines that have no .NET, and for what no
//! real runtime does on command: answer late, answer nonsense, die in the middle of a stream.
//!
//! A [`Runtime`] listens on a real Unix socket with the name that a real one would have, so that a tool finds it as it
//! finds any other process. It answers ProcessInfo 1–3, ProcessEnvironment, ResumeRuntime, CollectTracing 1–4 and
//! StopTracing, with replies of exactly the shape that the simulated [`Version`] gives. A session's stream is a recording made
//! before, at full speed or spread over time ([`Speed`]); when the session is stopped the rest of the recording follows at
//! once, as the rundown does, so that the client ends up with the recording byte for byte. A [`Fault`] makes it misbehave.
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
//! * Dumps, profilers, perf maps and the other commands not named above: they are unknown to every version here.
//! * A real runtime serves one client at a time, so that a silent client stalls all others; here each has its own thread.
//! * What a session asks for has no influence on the recording that is replayed.

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
