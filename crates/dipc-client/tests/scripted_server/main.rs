//! The client against servers that misbehave as no runtime should, or behave like old runtimes.

mod collect;
mod commands;
mod dump;
mod info;
mod server;
mod stream;
