//! Events of a session that lives, which the end of another session has stopped.

use std::time::{Duration, Instant};

use clr_activity::{LOGGING_PROVIDER, RequestWitness};
use clr_counters::SilenceWatch;
use dipc_client::dipc_transport::process_state;
use dipc_client::{Renewal, SessionConfig, Target};
use nettrace::Event;

use crate::render::messages;

/// Requests counters and the statuses of requests again once they have fallen silent.
pub(crate) struct SilenceGuard {
    /// The name of the command, for messages.
    command: &'static str,
    /// The process in messages: ` of NAME (PID)`, or nothing if there is one process only.
    of_process: String,
    counters: SilenceWatch,
    requests: RequestWitness,
    /// The process, and the session by which it is asked again.
    renewal: Option<(Target, Renewal)>,
}

impl SilenceGuard {
    /// Creates the guard of a session with counters at this interval. `process` is its title in messages.
    pub(crate) fn new(command: &'static str, process: Option<String>, interval: Duration) -> Self {
        Self {
            command,
            of_process: process.map(|title| format!(" of {title}")).unwrap_or_default(),
            counters: SilenceWatch::new(interval),
            requests: RequestWitness::new(LOGGING_PROVIDER),
            renewal: None,
        }
    }

    /// Has this process be asked again. Nothing is checked before.
    pub(crate) fn renew_from(&mut self, target: &Target) {
        self.renewal = Some((target.clone(), Renewal::new(target.clone())));
    }

    /// Takes an event of the session.
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        self.counters.add(event);
        self.requests.add(event);
    }

    /// Requests events again that have fallen silent, by the session of `config`, unless the process is stopped.
    /// `needs_requests` is true if the statuses of requests matter.
    pub(crate) fn check(&mut self, needs_requests: bool, config: impl FnOnce() -> SessionConfig) {
        let Some((target, renewal)) = &mut self.renewal else { return };
        let now = Instant::now();
        let has_lost_requests = self.requests.take_silence(now) && needs_requests;
        let silent = self.counters.check(now);
        let state = || process_state(target.pid()?).ok();
        if !has_lost_requests && (silent.is_empty() || state().is_some_and(|state| state.is_unresponsive())) {
            return;
        }
        let Self { command, of_process, .. } = self;
        if has_lost_requests {
            messages::warning(format_args!(
                "{command}: the statuses of requests{of_process} have stopped coming: another session of them has ended; asking for them again"
            ));
        }
        for (source, time) in silent {
            messages::warning(format_args!(
                "{command}: the {source}{of_process} have been silent for {} s, while the session runs: asking for them again",
                time.as_secs()
            ));
        }
        renewal.renew(config());
    }
}
