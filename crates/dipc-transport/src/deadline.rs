use std::time::{Duration, Instant};

/// The moment at which a step times out.
///
/// One deadline can span several steps, which share the time. A step after the deadline still tries once, and
/// fails only if it would have to wait.
///
/// ```
/// use std::time::Duration;
/// use dipc_transport::Deadline;
///
/// // One deadline for all steps of a request, and a shorter one for its first step.
/// let request = Deadline::after(Duration::from_secs(60));
/// let connect = request.min(Deadline::after(Duration::from_secs(5)));
/// assert!(connect.instant() < request.instant() && !connect.is_over());
/// assert_eq!(Deadline::never().remaining(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Returns a deadline `timeout` from now. One beyond the clock's range is [`Deadline::never`].
    pub fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// Returns a deadline at `instant`.
    pub const fn at(instant: Instant) -> Self {
        Self(Some(instant))
    }

    /// Returns no deadline: a step waits until it is done or cancelled.
    pub const fn never() -> Self {
        Self(None)
    }

    /// Returns the instant of the deadline; `None` if it never ends.
    pub const fn instant(self) -> Option<Instant> {
        self.0
    }

    /// Returns the remaining time, zero once it is over; `None` if it never ends.
    pub fn remaining(self) -> Option<Duration> {
        self.0.map(|instant| instant.saturating_duration_since(Instant::now()))
    }

    /// Returns whether the deadline has passed.
    pub fn is_over(self) -> bool {
        self.remaining() == Some(Duration::ZERO)
    }

    /// Returns the earlier of two deadlines.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(mine), Some(theirs)) => Self(Some(mine.min(theirs))),
            (mine, theirs) => Self(mine.or(theirs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_later_than_everything() {
        let soon = Deadline::after(Duration::from_secs(1));
        assert_eq!(Deadline::never().min(soon), soon);
        assert_eq!(soon.min(Deadline::never()), soon);
        assert_eq!(Deadline::never().remaining(), None);
        assert!(!Deadline::never().is_over());
    }

    #[test]
    fn a_timeout_beyond_the_clock_never_ends() {
        assert_eq!(Deadline::after(Duration::MAX), Deadline::never());
    }

    #[test]
    fn a_passed_deadline_has_nothing_left() {
        let past = Deadline::at(Instant::now());
        assert_eq!(past.remaining(), Some(Duration::ZERO));
        assert!(past.is_over());
        assert_eq!(past.min(Deadline::after(Duration::from_secs(9))), past);
    }
}
