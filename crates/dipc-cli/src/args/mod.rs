//! Groups of arguments that several commands share. Each converts to a value of the module that uses it.

pub(crate) mod awaits;
pub(crate) mod candidates;
pub(crate) mod deferred;
pub(crate) mod flight;
pub(crate) mod format;
pub(crate) mod generation;
pub(crate) mod heap_paths;
pub(crate) mod heap_report;
pub(crate) mod heap_view;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod profile;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod sources;
pub(crate) mod stopping;
pub(crate) mod target;
pub(crate) mod times;
pub(crate) mod user_code;
