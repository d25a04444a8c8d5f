//! Events of a running session that have stopped, and the request to send them again.

use std::time::{Duration, Instant};

use clr_activity::{LOGGING_PROVIDER, RequestWitness};
use clr_counters::{CounterSource, SilenceWatch};
use dipc_client::dipc_transport::process_state;
use dipc_client::{Renewal, SessionConfig, Target};
use nettrace::Event;

/// Events that have stopped while their session runs: the end of another session has disabled them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Silence {
    /// Counters that reported before no longer do.
    Counters {
        /// The counters.
        source: CounterSource,
        /// The time since their last report.
        time: Duration,
    },
    /// The statuses of requests, from `Microsoft-Extensions-Logging`, are missing.
    Requests,
}

/// Requests counters and the statuses of requests again once they have fallen silent.
#[derive(Debug)]
pub struct SilenceGuard {
    counters: SilenceWatch,
    requests: RequestWitness,
    /// The session by which the process is asked again, with its pid on this machine.
    renewal: Option<(Renewal, Option<u32>)>,
}

impl SilenceGuard {
    /// Creates the guard of a session with counters at this interval.
    pub fn new(interval: Duration) -> Self {
        Self {
            counters: SilenceWatch::new(interval),
            requests: RequestWitness::new(LOGGING_PROVIDER),
            renewal: None,
        }
    }

    /// Sets the process to ask again. Nothing is checked before.
    pub fn renew_from(&mut self, target: &Target) {
        self.renewal = Some((Renewal::new(target.clone()), target.pid()));
    }

    /// Takes an event of the session.
    pub fn add(&mut self, event: &Event<'_>) {
        self.counters.add(event);
        self.requests.add(event);
    }

    /// Requests events again that have fallen silent, by a session of `config`, and returns them. Silent
    /// counters of a stopped process are not requested. `needs_requests` is true if the statuses of requests
    /// matter.
    ///
    /// `config` needs a [client of its own](clr_counters::SessionSettings::with_unique_client) in the shared
    /// session of the Meters.
    pub fn check(&mut self, needs_requests: bool, config: impl FnOnce() -> SessionConfig) -> Vec<Silence> {
        let Some((renewal, pid)) = &mut self.renewal else { return Vec::new() };
        let now = Instant::now();
        let has_lost_requests = self.requests.take_silence(now) && needs_requests;
        let silent = self.counters.check(now);
        let state = || process_state((*pid)?).ok();
        if !has_lost_requests && (silent.is_empty() || state().is_some_and(|state| state.is_unresponsive())) {
            return Vec::new();
        }
        renewal.renew(config());
        let requests = has_lost_requests.then_some(Silence::Requests);
        let counters = silent.into_iter().map(|(source, time)| Silence::Counters { source, time });
        requests.into_iter().chain(counters).collect()
    }
}
