//! What the rest of the crate needs of an operating system. Every platform module has exactly these items, and all
//! unsafe code of the workspace is here:
//!
//! - `Stream`: a connected, non-blocking stream. `read`, `write`, `peer_credentials`, and mio's `Source`.
//! - `connect(&Address, Deadline)`: makes one.
//! - `Acceptor`: a bound, non-blocking listener. `bind`, `accept`, mio's `Source`; dropping it removes its file.
//! - `effective_uid()`: who we are.
//! - `process_ids()`: the processes worth looking at.
//! - `Process`: `read(pid)` (`None` if there is none), `pid`, `namespace_pid`, `uid`, `name()`, `command_line()` and
//!   `start_key()`, which the name of its socket holds.
//! - `Viewpoint`: `new()` and `socket_place(&Process)`, where a runtime in that process puts its socket: `directory`, and
//!   `environment`, why `TMPDIR` had to be guessed, if it had to.

#![allow(unsafe_code)]

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::{Acceptor, Stream, connect, effective_uid};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Process, Viewpoint, process_ids};

#[cfg(target_vendor = "apple")]
mod darwin;
#[cfg(target_vendor = "apple")]
pub(crate) use darwin::{Process, Viewpoint, process_ids};
