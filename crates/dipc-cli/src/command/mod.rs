//! The commands, a file each.

pub(crate) mod completions;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod counters;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod edit;
pub(crate) mod env;
pub(crate) mod events;
pub(crate) mod gcdump;
pub(crate) mod help;
pub(crate) mod info;
pub(crate) mod list_profiles;
pub(crate) mod man;
pub(crate) mod ports;
pub(crate) mod ps;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod sim;
pub(crate) mod stack;
pub(crate) mod stat;
pub(crate) mod top;
pub(crate) mod trace;
