//! What a runtime answers, a file each command set.

mod dump;
mod event_pipe;
mod process;
mod profiler;
mod user_events;

pub(crate) use event_pipe::SessionRequest;
