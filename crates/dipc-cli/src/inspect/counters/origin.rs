//! The origin of samples.

use std::time::Duration;

use crate::inspect::counters::clock::Clock;

/// The origin of samples.
#[derive(Debug, Clone)]
pub(crate) struct CounterOrigin {
    pub(crate) clock: Clock,
    /// The name of the process, if it is known.
    pub(crate) process: Option<String>,
    pub(crate) pid: Option<u32>,
    /// The requested interval.
    pub(crate) interval: Duration,
}
