//! The end of a reader's patience.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag at which reads begin to fail; without one, they go on.
#[derive(Debug, Default)]
pub(crate) struct ReadStop(Option<Arc<AtomicBool>>);

impl ReadStop {
    pub(crate) const fn at(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
    }

    /// Returns true if the flag is set.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stop_while_the_flag_is_set() {
        let flag = Arc::<AtomicBool>::default();
        let stop = ReadStop::at(Arc::clone(&flag));
        assert!(!stop.is_stopped() && !ReadStop::default().is_stopped());
        flag.store(true, Ordering::Relaxed);
        assert!(stop.is_stopped());
        flag.store(false, Ordering::Relaxed);
        assert!(!stop.is_stopped());
    }
}
