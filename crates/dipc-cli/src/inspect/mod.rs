//! Recordings that are read: their events, filters, names, lines and profiles.

pub(crate) mod counters;
pub(crate) mod event_list;
pub(crate) mod export;
pub(crate) mod filter;
pub(crate) mod heap;
pub(crate) mod heap_page;
pub(crate) mod heap_profile;
pub(crate) mod lines;
pub(crate) mod live_reader;
pub(crate) mod mapping_ids;
pub(crate) mod merging;
pub(crate) mod names;
pub(crate) mod needs;
pub(crate) mod page;
pub(crate) mod profile;
pub(crate) mod recording;
pub(crate) mod redact;
pub(crate) mod rewrite;
pub(crate) mod slice;
pub(crate) mod stat;
pub(crate) mod symbols;
pub(crate) mod thread_stacks;
pub(crate) mod thread_times;
pub(crate) mod time_range;
