//! Requests that a process serves, and no longer reports.

use std::time::{Duration, Instant};

use nettrace::Event;

/// Watches whether the requests that a process serves are reported by an EventSource with a filter, by the
/// events of ASP.NET Core's own EventSource, which is less detailed and not filtered.
///
/// At the end of a session, the runtime sends each of its EventSources a command without arguments.
/// EventSources with filters take it as the end of all sessions: the remaining sessions get no events from
/// them.
///
/// ```no_run
/// use clr_activity::RequestWitness;
/// use std::time::Instant;
///
/// let mut witness = RequestWitness::new("Microsoft-Diagnostics-DiagnosticSource");
/// let mut events = nettrace::Reader::new(std::io::stdin().lock())?;
/// while let Some(event) = events.next()? {
///     witness.add(&event);
///     if witness.take_silence(Instant::now()) {
///         eprintln!("another session has ended, and requests are no longer reported");
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RequestWitness {
    source: &'static str,
    /// The arrival of the first request since the source's last event.
    unreported: Option<Instant>,
}

impl RequestWitness {
    /// The EventSource that has to be enabled as well, at level 4.
    pub const HOSTING: &'static str = "Microsoft.AspNetCore.Hosting";
    /// The event for the start of a request.
    const REQUEST_START: u32 = 3;
    /// The time after which a request counts as unreported: events of different threads are sent in any
    /// order.
    const DELAY: Duration = Duration::from_secs(1);

    /// Creates the watch of an EventSource that has an event for each request.
    pub const fn new(source: &'static str) -> Self {
        Self { source, unreported: None }
    }

    /// Takes an event of the session.
    pub fn add(&mut self, event: &Event<'_>) {
        if event.provider() == self.source {
            self.unreported = None;
        } else if event.provider() == Self::HOSTING && event.id() == Self::REQUEST_START {
            self.unreported.get_or_insert_with(Instant::now);
        }
    }

    /// Returns true if requests are no longer reported; once, until further requests are served.
    pub fn take_silence(&mut self, now: Instant) -> bool {
        let is_silent = |arrival: &mut Instant| now.saturating_duration_since(*arrival) >= Self::DELAY;
        self.unreported.take_if(is_silent).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreported_request_is_returned_once() {
        let start = Instant::now();
        let mut witness = RequestWitness::new("Source");
        assert!(!witness.take_silence(start));
        witness.unreported = Some(start);
        assert!(!witness.take_silence(start));
        assert!(witness.take_silence(start + RequestWitness::DELAY));
        assert!(!witness.take_silence(start + RequestWitness::DELAY * 2));
    }
}
