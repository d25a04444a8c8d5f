//! Groups of arguments that several commands share. Each becomes a value of the room that it is for.

pub(crate) mod candidates;
pub(crate) mod flight;
pub(crate) mod format;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod profile;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod sources;
pub(crate) mod stopping;
pub(crate) mod target;
pub(crate) mod times;
