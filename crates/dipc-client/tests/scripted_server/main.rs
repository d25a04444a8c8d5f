//! The client against servers that do what no runtime should, and what old runtimes did.

mod collect;
mod commands;
mod dump;
mod info;
mod server;
mod stream;
