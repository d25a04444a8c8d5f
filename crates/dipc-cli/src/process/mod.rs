//! .NET processes: the target of a command, and the known facts of each process.
//!
//! # Modules
//!
//! - `target`, `socket`: the target of a command, by pid, name, socket or port.
//! - `candidates`, `choice`: processes that the user may have meant, as text and at a terminal.
//! - `query`, `info`, `table`: requests to many runtimes at the same time, their facts, and the table of
//!   `ps`.
//! - `peer`: the process at an address.
//! - `tracing_rights`: the right to look into a process, and the way to get it.
//! - `companion`: companion programs in this program's folder, such as `dipc-fleet`.

pub(crate) mod candidates;
pub(crate) mod choice;
pub(crate) mod companion;
pub(crate) mod info;
pub(crate) mod peer;
pub(crate) mod query;
mod socket;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod tracing_rights;
