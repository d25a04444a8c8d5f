//! The crate's interface to the operating system. Every platform module has exactly these items, and all
//! unsafe code of the workspace is here:
//!
//! - `Stream`: a connected stream. `read` and `write`, each until a deadline or a cancel, `peer_credentials`,
//!   `canceller` and `renew_canceller`. `tcp(TcpStream, Readiness)` wraps a TCP connection.
//! - `connect(&Address, PeerCheck, Deadline)`: connects a stream to the system's own kind of address; `tcp`
//!   handles TCP addresses.
//! - `Acceptor`: a bound listener. `bind`, `accept`, `canceller`; dropping it removes its file.
//! - `effective_uid()`: the user of this process, if users have numbers.
//! - `open_regular(path)` and `open_untrusted(path)`: files that are checked before they are opened.
//! - `refuse_links(options)` and `has_other_names(metadata)`: files in folders to which others can write;
//!   `FolderBelow`: `open(folder, below, creates)`, without links, and `path()`.
//! - `close(file)`: closes a file and returns the error.
//! - `process_state(pid)`: the state of a process.
//! - `descriptor_limits()` and `set_descriptor_limit`, if there is such a limit; `limit_child_descriptors`,
//!   for a program before it is started.
//!
//! Unix also has the items that `discovery::sockets` uses:
//!
//! - `process_ids()`: the visible processes.
//! - `Process`: `read(pid)` (`None` if it does not exist), `pid`, `namespace_pid`, `uid`, `name()`,
//!   `command_line()` and `start_key()`, which is part of its socket's name.
//! - `NamespaceView`: `new()`; `socket_location(pid)`, the directory of the socket of a process: `directory`,
//!   `listing_path()`, `is_shared`, whether all processes reach it by this path, and `environment_error`, the
//!   reason why `TMPDIR` had to be guessed, if it had to;
//!   `namespace_pid(pid)`, if it is known without reading the process's status.
//! - `SocketFile`: `open(path)`, `owner()` and `is_socket()`.
//!
//! and the items that `hub` and `descriptors` use: `ListeningSocket`, `Socket`, `ReceivedRights`. Windows has
//! the items that `discovery::pipes` uses: `processes()`, `pipe_exists(name)`.

#![allow(unsafe_code)]
// All platforms share the signatures, some of which are wider than a platform needs.
#![allow(clippy::unnecessary_wraps, clippy::unused_self)]

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;
