//! The wait between attempts that fail.

use std::time::Duration;

/// The wait before a failed session is started again. It doubles with each failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryWait(Duration);

impl RetryWait {
    /// The first wait.
    const FIRST: Duration = Duration::from_secs(1);
    /// Maximum wait.
    pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

    /// Before the first failure.
    pub(crate) const fn new() -> Self {
        Self(Self::FIRST)
    }

    /// Returns true if nothing has failed.
    pub(crate) fn is_first(self) -> bool {
        self.0 == Self::FIRST
    }

    /// Returns the wait after another failure.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(Self::MAX_WAIT);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let mut retry = RetryWait::new();
        assert!(retry.is_first());
        let seconds: Vec<_> = (0..8).map(|_| retry.next().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(!retry.is_first());
    }
}
