//! Settings that change while the server runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::configuration::GlobalCounter;
use crate::filter::Filter;
use crate::process::Watched;

/// The settings. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Settings(Arc<Mutex<Values>>);

#[derive(Debug)]
pub(super) struct Values {
    /// Filters of the process that requests without one are about.
    pub(super) default_process: Vec<Filter>,
    /// The interval between values of `/livemetrics`.
    pub(super) counter_interval: Duration,
}

impl Settings {
    pub(super) fn new(default_process: Vec<Filter>, counter_interval: Option<Duration>) -> Self {
        let counter_interval = counter_interval.unwrap_or_else(|| GlobalCounter::default().interval);
        Self(Arc::new(Mutex::new(Values { default_process, counter_interval })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Values {
    /// Returns true if all filters match a process; true without any.
    pub(super) fn matches(&self, process: &Watched) -> bool {
        self.default_process.iter().all(|filter| filter.matches(&process.facts))
    }
}
