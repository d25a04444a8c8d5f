//! The wait between attempts that fail.

use std::time::Duration;

/// The wait before a failed attempt is repeated. It doubles with each failure.
///
/// ```
/// use std::time::Duration;
///
/// use dipc_collect::RetryWait;
///
/// let mut retry = RetryWait::new(Duration::from_secs(1), Duration::from_secs(3));
/// let waits: Vec<_> = (0..4).map(|_| retry.next_wait().as_secs()).collect();
/// assert_eq!(waits, [1, 2, 3, 3]);
/// retry.reset();
/// assert!(retry.is_first());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryWait {
    next: Duration,
    first: Duration,
    max: Duration,
}

/// One second at first, and at most a minute: for sessions of processes that may be busy or stopped.
impl Default for RetryWait {
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(60))
    }
}

impl RetryWait {
    /// Returns the waits from `first` to `max`.
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { next: first, first, max }
    }

    /// Maximum wait.
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// Returns true if nothing has failed since the last success.
    pub fn is_first(&self) -> bool {
        self.next == self.first
    }

    /// Returns the wait after another failure.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.max);
        wait
    }

    /// Records a success: the next wait is the first one again.
    pub const fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_maximum() {
        let mut retry = RetryWait::default();
        assert!(retry.is_first());
        let seconds: Vec<_> = (0..8).map(|_| retry.next_wait().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(!retry.is_first());
        retry.reset();
        assert_eq!(retry.next_wait(), Duration::from_secs(1));
    }
}
