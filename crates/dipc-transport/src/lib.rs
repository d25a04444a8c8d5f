//! Discovery of .NET diagnostic ports, connections to them and listeners.
//!
//! **Use it** to find the endpoints of runtimes, connect to them or listen for them, with messages of your
//! own. **Not for** commands: `dipc-client` sends them.
//!
//! Features: none. Rust 1.89 or later.
//!
//! This crate moves bytes and knows the peer; it does *not* know the meaning of the bytes (`dipc-wire` does),
//! and it starts no threads.
//!
//! 1. [`discover`] and [`find`] turn processes into [`Endpoint`]s: the socket or pipe that a runtime opened,
//!    wherever its own `TMPDIR`, mount namespace and pid namespace put it, and only if it belongs to that
//!    process.
//! 2. [`Connection::connect`] reaches an [`Address`] and checks the listener ([`PeerCheck`]) before a byte is
//!    sent. Every step takes a [`Deadline`], and a [`Canceller`] ends a pending read or write from another
//!    thread. Unix domain sockets also carry open files (`send_with_descriptors`).
//! 3. [`Listener`] accepts connections as a runtime (or a port server) does. A [`Hub`] does so for
//!    thousands at once, in one thread.
//! 4. [`open_regular`] and [`open_untrusted`] open files at paths from outside, and refuse everything except
//!    regular files. [`open_own`] and [`FolderBelow`] are for files of a program's own in folders of others.
//! 5. [`process_state`] returns the state that keeps a process from answering; the error of a time-out has it
//!    as well.
//!
//! Unix domain sockets, Windows named pipes and TCP (loopback, unless more is allowed) share this API.
//!
//! ```no_run
//! use std::time::Duration;
//! use dipc_transport::{Connection, Deadline};
//!
//! # fn main() -> Result<(), dipc_transport::Error> {
//! let endpoint = dipc_transport::find(4711)?;
//! let deadline = Deadline::after(Duration::from_secs(5));
//! let mut connection = Connection::connect(&endpoint.address(), endpoint.peer_check(), deadline)?;
//! connection.write_all(b"DOTNET_IPC_V1\0\x14\0\x04\0\0\0", deadline)?;
//! let mut reply = [0; 4096];
//! let count = connection.read(&mut reply, deadline)?;
//! println!("{} answered {count} bytes", connection.address());
//! # Ok(()) }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cancel;
mod deadline;
mod error;

mod address;
mod peer;
mod peer_credentials;
mod readiness;
mod tcp;

mod connection;
#[cfg(unix)]
mod descriptors;
mod hub;
mod listener;

mod checked_folder;
mod discovery;
mod folder_below;
mod limits;
mod process_state;
mod refusal;
mod regular_file;

mod sys;

pub use address::{Address, TcpAddress, TcpReach};
pub use cancel::Canceller;
pub use connection::{Connection, Connector};
pub use deadline::Deadline;
#[cfg(unix)]
pub use descriptors::Received;
pub use discovery::{
    Discovery, Endpoint, SkipReason, Skipped, SocketName, command_line, discover, find, process_name,
    process_state, start_key,
};
pub use error::{Error, Operation, PeerState};
pub use folder_below::FolderBelow;
pub use hub::{Hub, HubEvent, HubWaker, Token};
pub use limits::{DescriptorLimit, descriptor_limit, raise_descriptor_limit, restore_descriptor_limit};
pub use listener::Listener;
pub use peer::PeerCheck;
pub use peer_credentials::PeerCredentials;
pub use process_state::ProcessState;
pub use regular_file::{close, open_own, open_regular, open_untrusted};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
