//! Recordings that are made: the source of the events, the selected providers, and the destination.

pub(crate) mod flight;
pub(crate) mod heap;
pub(crate) mod kernel_samples;
pub(crate) mod live_stream;
pub(crate) mod module_types;
pub(crate) mod names;
pub(crate) mod recorder;
pub(crate) mod selection;
pub(crate) mod session;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod stopping_event;
pub(crate) mod stream_stats;
pub(crate) mod thread_times;
