//! Bounds on the diagnoses of processes with rules that fire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Minimum time between two diagnoses of a process: rules can fire often.
const MIN_APART: Duration = Duration::from_secs(60);
/// Maximum number of diagnoses at a time: each takes some 30 MB and some of a processor's time.
const MAX_AT_ONCE: usize = 2;

/// The diagnoses that are made for all processes at the moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Diagnoses(Arc<AtomicUsize>);

/// The place of a diagnosis among those that are made at a time, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Diagnoses {
    /// Takes a place; `None` if all are taken.
    pub(super) fn begin(&self) -> Option<Place> {
        let more = |number| (number < MAX_AT_ONCE).then_some(number + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Place(Arc::clone(&self.0)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The time of the last diagnosis of a process.
#[derive(Debug, Default)]
pub(super) struct LastDiagnosis(Option<Instant>);

impl LastDiagnosis {
    /// Returns true, and sets the time, if the last diagnosis was long ago.
    pub(super) fn begin(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|last| now.saturating_duration_since(last) >= MIN_APART);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnoses_are_few() {
        let diagnoses = Diagnoses::default();
        let places: Vec<_> = (0..MAX_AT_ONCE).map(|_| diagnoses.begin()).collect();
        assert!(places.iter().all(Option::is_some) && diagnoses.begin().is_none());
        drop(places);
        assert!(diagnoses.begin().is_some());

        let (mut last, start) = (LastDiagnosis::default(), Instant::now());
        let begins =
            [0, 59, 60, 61, 119, 120].map(|seconds| last.begin(start + Duration::from_secs(seconds)));
        assert_eq!(begins, [true, false, true, false, false, true]);
    }
}
