//! The code map, threads and stacks, on recordings of a made-up runtime.

mod code;
mod il;
mod recording;
mod roles;
