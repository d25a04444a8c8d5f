//! Making recordings: the source of the events, the selected providers, and the destination.
//!
//! # Modules
//!
//! - `source`, `selection`, `session`: the process, the providers, the start. `recorder` passes the stream to
//!   a consumer: `sink` (a file), `heap`, `flight`, or the live events of dipc-collect. `notes`: remarks of
//!   dipc-collect in words. `stopping_event`, `stream_stats`: its end and its figures. `watch`: several
//!   processes at once, with a session each.
//! - `silence`: events that the end of another session has stopped, requested again.
//! - `names`: names for recordings that end without a rundown.
//! - `thread_times`: the kernel's account of threads, in rounds while a session runs, into a file next to the
//!   recording. `kernel_samples`: the kernel's samples. `exceptions`: exceptions in a session of their own,
//!   which ends once they are many. `additions`: these merged into the recording.
//! - `machine`: the kernel's samples of many processes in one recording, with the names of each, and the
//!   events of those that have a session.
//! - `requested_events`: groups of events that a session requested, and that did not occur.
//! - `process_core`: the destination of core dumps of processes.
//! - `flight`: `session` (the ring of dipc-collect, and its snapshots), `method_lists`, `snapshot` and
//!   `file_series` (what is written), `condition_watch`, `trigger` (when), `crash` (facts next to it),
//!   `rotation` (one file after another).

pub(crate) mod additions;
pub(crate) mod exceptions;
pub(crate) mod flight;
pub(crate) mod heap;
pub(crate) mod kernel_samples;
pub(crate) mod machine;
pub(crate) mod names;
pub(crate) mod notes;
pub(crate) mod own_program;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod process_core;
mod readings;
pub(crate) mod recorder;
pub(crate) mod requested_events;
pub(crate) mod selection;
pub(crate) mod session;
pub(crate) mod silence;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod stopping_event;
pub(crate) mod stream_stats;
pub(crate) mod thread_times;
pub(crate) mod watch;
