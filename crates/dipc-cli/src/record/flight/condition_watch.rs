//! The evaluation of a flight recorder's condition over a stream while it arrives.

use std::time::{Duration, Instant};

use clr_activity::RequestWitness;
use clr_conditions::{Condition, Evaluator, Match, StreamEnd};
use clr_counters::{SessionSettings, SilenceWatch};
use dipc_client::dipc_transport::process_state;
use dipc_client::{LiveReader, Renewal, Rundown, SessionConfig, Target};
use nettrace::RelativeTime;

use crate::render::messages;

/// The longest time that an event is held back for older ones of other threads. Runtimes send their events
/// every 100 ms.
const MOST_DELAY: Duration = Duration::from_millis(500);

/// The EventSource of log records, which has the statuses of requests.
const LOGGING: &str = "Microsoft-Extensions-Logging";
/// The size of the buffer of a session that requests events again.
const BUFFER_MB: u32 = 16;

/// A condition with a reader of its own: the ring keeps events in stream order, but the condition has to
/// agree with reports, which read events in time order.
pub(super) struct ConditionWatch {
    reader: LiveReader,
    evaluator: Evaluator,
    condition: Condition,
    requests: RequestWitness,
    silence: SilenceWatch,
    /// The process, and the session by which events that have fallen silent are requested again.
    renewal: Option<(Target, Renewal)>,
}

impl ConditionWatch {
    pub(super) fn new(condition: Condition) -> Self {
        Self {
            reader: LiveReader::new(MOST_DELAY),
            evaluator: Evaluator::new(condition.clone()),
            condition,
            requests: RequestWitness::new(LOGGING),
            silence: SilenceWatch::new(SessionSettings::default().interval),
            renewal: None,
        }
    }

    /// Has events that fall silent be requested again from this process.
    pub(super) fn renew_from(&mut self, target: &Target) {
        self.renewal = Some((target.clone(), Renewal::new(target.clone())));
    }

    /// Takes the next bytes of the stream.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes);
    }

    /// Releases all events that have arrived for evaluation: the stream is silent.
    pub(super) fn release(&mut self) {
        self.reader.release();
    }

    /// Ends the stream.
    pub(super) fn end_of_input(&mut self) {
        self.reader.end_of_input();
    }

    /// Evaluates the events that need not wait, and passes matches of the condition to `each`.
    pub(super) fn judge(&mut self, mut each: impl FnMut(Match)) {
        while let Some(event) = self.reader.next() {
            self.requests.add(&event);
            self.silence.add(&event);
            self.evaluator.event(&event, &mut each);
        }
        self.check_silence();
    }

    /// Requests events again that have fallen silent, unless the process is stopped.
    fn check_silence(&mut self) {
        let Some((target, renewal)) = &mut self.renewal else { return };
        let now = Instant::now();
        let has_lost_requests = self.requests.take_silence(now) && self.condition.has_requests();
        let silent = self.silence.check(now);
        let state = || process_state(target.pid()?).ok();
        if !has_lost_requests && (silent.is_empty() || state().is_some_and(|state| state.is_unresponsive())) {
            return;
        }
        if has_lost_requests {
            messages::warning(
                "trace: the statuses of requests have stopped coming: another session of them has ended; asking for them again",
            );
        }
        for (source, time) in silent {
            messages::warning(format_args!(
                "trace: the {source} have been silent for {} s, while the session runs: asking for them again",
                time.as_secs()
            ));
        }
        // Its Meters have a client name of their own.
        let mut requests = self.condition.requests();
        requests.retain(|request| !request.arguments.is_empty());
        renewal.renew(SessionConfig::new(requests).with_rundown(Rundown::Off).with_buffer_mb(BUFFER_MB));
    }

    /// Evaluates the reason for the end of the stream.
    pub(super) fn end(&mut self, end: StreamEnd, time: RelativeTime) -> Option<Match> {
        let mut last = None;
        self.evaluator.finish(|found| last = Some(found));
        self.evaluator.end(end, time).or(last)
    }
}
