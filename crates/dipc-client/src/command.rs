//! The commands that are asked and answered, one file a purpose. Sessions are `session_config.rs` and `session.rs`.

mod dump;
mod environment;
mod native_aot;
mod perf_map;
mod process;
mod profiler;
mod startup_hook;

pub use dump::{Dump, WrittenDump};
