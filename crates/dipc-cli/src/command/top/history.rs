//! The data kept of a process: its last interval, and sums since its session began.

use dipc_collect::live::{Interval, IntervalSum};

use crate::command::top::session::Features;
use crate::record::watch::WatchedProcess;

/// A process, and the data known about it.
pub(super) struct History {
    pub(super) process: WatchedProcess,
    pub(super) features: Features,
    pub(super) has_ended: bool,
    /// The interval shown.
    pub(super) latest: Option<Interval>,
    pub(super) sums: IntervalSum,
}

impl History {
    pub(super) fn new(process: &WatchedProcess, features: Features) -> Self {
        Self {
            process: process.clone(),
            features,
            has_ended: false,
            latest: None,
            sums: IntervalSum::default(),
        }
    }
}
