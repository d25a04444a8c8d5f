//! The activity of a program, for programs without findings.

use std::fmt;

use nettrace_export::report::{EventGroup, Overview, SpanRole};
use nettrace_export::units::{bytes, counted, short_percent};
use serde::Serialize;

/// The activity of a program in a recording. Numbers are `None` for events that the recording lacks, and that
/// are not known to have been requested. Formatted, it is a list in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Activity {
    /// The processors that it kept busy, on average; `None` if the samples do not distinguish running from
    /// waiting.
    pub processors: Option<f64>,
    /// The number of collections.
    pub collections: Option<u64>,
    /// The share of the time for which they paused it, in percent.
    pub pause_percent: Option<f64>,
    /// The allocated bytes per second.
    pub allocated_per_second: Option<f64>,
    /// The number of exceptions.
    pub exceptions: Option<u64>,
    /// The number of waits for locks.
    pub lock_waits: Option<u64>,
    /// The number of finished requests.
    pub requests: Option<u64>,
}

impl Activity {
    /// The activity in a recording of a session that requested these groups of events, as far as is known.
    pub fn of(overview: &Overview, requested: &[EventGroup]) -> Self {
        let seconds = overview.duration.as_secs_f64().max(f64::MIN_POSITIVE);
        let profile = &overview.profile;
        let working = profile.total().saturating_sub(profile.blocked());
        let is_known =
            overview.stream.has_kernel_samples || (overview.has_samples && overview.unverified == 0);
        let requests = overview.requests.as_ref().map_or(&[][..], |requests| &requests.rows);
        let served = requests.iter().filter(|row| row.role == SpanRole::Server);
        let has = |group: EventGroup| group.is_in(overview) || requested.contains(&group);
        let count = |group, count: u64| has(group).then_some(count);
        Self {
            processors: is_known.then_some(working as f64 / 1e9 / seconds),
            collections: count(EventGroup::Collections, overview.gc.collections.len() as u64),
            pause_percent: has(EventGroup::Collections).then_some(overview.gc.pause_percent),
            allocated_per_second: has(EventGroup::Allocations)
                .then_some(overview.allocations.bytes as f64 / seconds),
            exceptions: count(EventGroup::Exceptions, overview.exceptions.count),
            lock_waits: count(EventGroup::LockWaits, overview.contention.waits.count),
            requests: count(EventGroup::Requests, served.map(|row| row.count).fold(0, u64::saturating_add)),
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processors {
            Some(busy) => write!(f, "{} of a processor", short_percent(100.0 * busy))?,
            None => f.write_str("processor time not known")?,
        }
        if let Some(collections) = self.collections {
            write!(f, ", {}", counted(collections, "collection", "collections"))?;
            if let Some(percent) = self.pause_percent.filter(|_| collections > 0) {
                write!(f, " ({} of the time)", short_percent(percent))?;
            }
        }
        if let Some(allocated) = self.allocated_per_second {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a saturating conversion of a positive number"
            )]
            let allocated = allocated as u64;
            write!(f, ", {} allocated per second", bytes(allocated))?;
        }
        let counts = [
            (self.exceptions, "exception", "exceptions"),
            (self.lock_waits, "lock wait", "lock waits"),
            (self.requests, "request", "requests"),
        ];
        for (count, singular, plural) in counts {
            if let Some(count) = count {
                write!(f, ", {}", counted(count, singular, plural))?;
            }
        }
        Ok(())
    }
}
