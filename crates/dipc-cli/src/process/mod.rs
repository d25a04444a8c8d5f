//! .NET processes: the one that a command is about, and the known facts of each.

pub(crate) mod candidates;
pub(crate) mod choice;
pub(crate) mod companion;
pub(crate) mod info;
pub(crate) mod query;
mod socket;
pub(crate) mod table;
pub(crate) mod target;
