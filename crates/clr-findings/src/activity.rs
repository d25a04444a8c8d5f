//! The activity of a program, for programs without findings.

use std::fmt;

use nettrace_export::report::Overview;
use nettrace_export::units::{bytes, counted, short_percent};
use serde::Serialize;

/// The activity of a program in a recording. Formatted, it is a list in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Activity {
    /// The processors that it kept busy, on average; `None` if the samples do not distinguish running from waiting.
    pub processors: Option<f64>,
    /// The number of collections.
    pub collections: u64,
    /// The share of the time for which they paused it, in percent.
    pub pause_percent: f64,
    /// The allocated bytes per second.
    pub allocated_per_second: f64,
    /// The number of exceptions.
    pub exceptions: u64,
    /// The number of waits for locks.
    pub lock_waits: u64,
    /// The number of finished requests.
    pub requests: u64,
}

impl Activity {
    /// The activity in a recording.
    pub fn of(overview: &Overview) -> Self {
        let seconds = overview.duration.as_secs_f64().max(f64::MIN_POSITIVE);
        let profile = &overview.profile;
        let working = profile.total().saturating_sub(profile.blocked());
        let is_known =
            overview.stream.has_kernel_samples || (overview.has_samples && overview.unverified == 0);
        let requests = overview.requests.as_ref().map_or(&[][..], |requests| &requests.rows);
        let served = requests.iter().filter(|row| row.role == nettrace_export::report::SpanRole::Server);
        Self {
            processors: is_known.then_some(working as f64 / 1e9 / seconds),
            collections: overview.gc.collections.len() as u64,
            pause_percent: overview.gc.pause_percent,
            allocated_per_second: overview.allocations.bytes as f64 / seconds,
            exceptions: overview.exceptions.count,
            lock_waits: overview.contention.waits.count,
            requests: served.map(|row| row.count).fold(0, u64::saturating_add),
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processors {
            Some(busy) => write!(f, "{} of a processor, ", short_percent(100.0 * busy))?,
            None => f.write_str("processor time not known, ")?,
        }
        write!(f, "{}", counted(self.collections, "collection", "collections"))?;
        if self.collections > 0 {
            write!(f, " ({} of the time)", short_percent(self.pause_percent))?;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a saturating conversion of a positive number"
        )]
        let allocated = self.allocated_per_second as u64;
        write!(
            f,
            ", {} allocated per second, {}, {}, {}",
            bytes(allocated),
            counted(self.exceptions, "exception", "exceptions"),
            counted(self.lock_waits, "lock wait", "lock waits"),
            counted(self.requests, "request", "requests"),
        )
    }
}
