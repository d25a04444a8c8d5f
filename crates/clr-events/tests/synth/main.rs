//! The code map, threads and stacks, on recordings of a made-up runtime.

mod code;
mod il;
mod names;
mod recording;
mod roles;
