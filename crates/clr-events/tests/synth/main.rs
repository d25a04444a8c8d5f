//! The code map, threads and stacks, on recordings of a made-up runtime.

mod code;
mod recording;
mod roles;
