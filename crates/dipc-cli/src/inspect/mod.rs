//! Reading recordings: their events, filters, names, lines and profiles.
//!
//! # Modules
//!
//! - `recording`, `names`, `thread_times`: a recording and the files next to it, which are named by one rule
//!   (`names::companion_path`). `time_range`: dates as times from the start.
//! - `event_list`: lists of events, by readers that take turns. `filter`: messages about filters. `stat`,
//!   `symbols`, `lines` (which finds PDBs).
//! - `profile`, with `diagnostics` for recordings that lack its events. `needs`: those events.
//!   `thread_stacks`: the first samples of each thread in a recording. `export`, `page`: files for other
//!   programs, and the page.
//! - `crash_note`: the description of a crash next to a recording.
//! - `run`: recordings as the sides of a comparison.
//! - `counters`: samples as files and tables. `heap`, `heap_profile`: heaps from files.
//!   `heap_generations`: the parts of a heap in memory. `memory_use`: memory that is not managed.
//!   `memory_growth`: growth of memory by owner.
//! - `ring_folder`: the folder of a ring in the place of a recording.
//! - `rewrite`: files that are made by editing recordings. `redact`: messages about replaced strings.
//!   `merging`: many recordings merged into one.
//! - `core_source`, `unpacked_core`: core dumps, also compressed, and the memory of processes. `core_advice`:
//!   what they lack. `core_dump`, `core_text`, `core_lines`: their threads. `core_heap`, `core_value`,
//!   `core_known_value`: their objects. `tick_clock`: times of tick counts.

pub(crate) mod await_name;
pub(crate) mod core_advice;
pub(crate) mod core_dump;
pub(crate) mod core_heap;
mod core_known_value;
pub(crate) mod core_lines;
pub(crate) mod core_reads;
pub(crate) mod core_source;
pub(crate) mod core_text;
pub(crate) mod core_value;
pub(crate) mod counters;
pub(crate) mod crash_note;
pub(crate) mod event_list;
pub(crate) mod export;
pub(crate) mod filter;
pub(crate) mod heap;
pub(crate) mod heap_generations;
pub(crate) mod heap_profile;
pub(crate) mod lines;
pub(crate) mod memory_growth;
pub(crate) mod memory_use;
pub(crate) mod merging;
pub(crate) mod names;
pub(crate) mod needs;
pub(crate) mod page;
pub(crate) mod pause;
pub(crate) mod profile;
pub(crate) mod recording;
pub(crate) mod redact;
pub(crate) mod rewrite;
pub(crate) mod ring_folder;
pub(crate) mod run;
pub(crate) mod spans;
pub(crate) mod stat;
pub(crate) mod symbols;
pub(crate) mod thread_stacks;
pub(crate) mod thread_times;
pub(crate) mod tick_clock;
pub(crate) mod time_range;
mod unpacked_core;
