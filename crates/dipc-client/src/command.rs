//! The commands with a request and an answer, one file per purpose. Sessions are in `session_config.rs` and
//! `session.rs`.

mod dump;
mod environment;
mod native_aot;
mod perf_map;
mod process;
mod profiler;
mod startup_hook;

pub use dump::{Dump, WrittenDump};
