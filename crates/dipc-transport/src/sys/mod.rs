//! What the rest of the crate needs of an operating system. Every platform module has exactly these items, and all
//! unsafe code of the workspace is here:
//!
//! - `Stream`: a connected stream. `read` and `write`, each until a deadline or a cancel, `peer_credentials`,
//!   `canceller` and `renew_canceller`.
//! - `connect(&Address, PeerCheck, Deadline)`: makes one.
//! - `Acceptor`: a bound listener. `bind`, `accept`, `canceller`; dropping it removes its file.
//! - `effective_uid()`: who we are, if users have numbers.
//! - `open_regular(path)` and `open_untrusted(path)`: files that are looked at before they are opened.
//! - `process_state(pid)`: what a process looks like.
//! - `descriptor_limits()` and `set_descriptor_limit`, where there is such a limit.
//!
//! Unix also has what stands behind `discovery::sockets`:
//!
//! - `process_ids()`: the processes worth looking at.
//! - `Process`: `read(pid)` (`None` if there is none), `pid`, `namespace_pid`, `uid`, `name()`, `command_line()` and
//!   `start_key()`, which the name of its socket holds.
//! - `Viewpoint`: `new()` and `socket_place(&Process)`, where a runtime in that process puts its socket: `directory`,
//!   `listing_path()`, and `environment`, why `TMPDIR` had to be guessed, if it had to.
//! - `SocketFile`: `open(path)`, `owner()` and `is_socket()`.
//!
//! and behind `hub` and `descriptors`: `ListeningSocket`, `Socket`, `ReceivedRights`. Windows has what stands behind
//! `discovery::pipes`: `processes()`, `pipe_exists(name)`.

#![allow(unsafe_code)]
// A list that all platforms share: what one of them always has, another may lack.
#![allow(clippy::unnecessary_wraps, clippy::unused_self)]

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;
