//! The evaluation of a flight recorder's condition over a stream while it arrives.

use std::time::Duration;

use clr_conditions::{Condition, Evaluator, Match, StreamEnd};
use clr_counters::SessionSettings;
use dipc_client::{LiveReader, Rundown, SessionConfig, Target};
use dipc_collect::silence::SilenceGuard;
use nettrace::RelativeTime;

use crate::record::silence::warn_of_silence;

/// Maximum time that an event waits for older events of other threads. Runtimes send their events every 100
/// ms.
const MAX_DELAY: Duration = Duration::from_millis(500);

/// The size of the buffer of a session that requests events again.
const BUFFER_MB: u32 = 16;

/// A condition with a reader of its own: the ring keeps events in stream order, but the condition has to
/// agree with reports, which read events in time order.
pub(super) struct ConditionWatch {
    reader: LiveReader,
    evaluator: Evaluator,
    condition: Condition,
    silence: SilenceGuard,
}

impl ConditionWatch {
    pub(super) fn new(condition: Condition) -> Self {
        Self {
            reader: LiveReader::new(MAX_DELAY),
            evaluator: Evaluator::new(condition.clone()),
            condition,
            silence: SilenceGuard::new(SessionSettings::default().interval),
        }
    }

    /// Has events that fall silent be requested again from this process.
    pub(super) fn renew_from(&mut self, target: &Target) {
        self.silence.renew_from(target);
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
            self.silence.add(&event);
            self.evaluator.event(&event, &mut each);
        }
        let silences = self.silence.check(self.condition.has_requests(), || {
            // The condition's Meters have a client name of their own.
            let mut requests = self.condition.requests();
            requests.retain(|request| !request.arguments.is_empty());
            SessionConfig::new(requests).with_rundown(Rundown::Off).with_buffer_mb(BUFFER_MB)
        });
        for silence in silences {
            warn_of_silence("trace", None, silence);
        }
    }

    /// Evaluates the reason for the end of the stream.
    pub(super) fn end(&mut self, end: StreamEnd, time: RelativeTime) -> Option<Match> {
        let mut last = None;
        self.evaluator.finish(|found| last = Some(found));
        self.evaluator.end(end, time).or(last)
    }
}
