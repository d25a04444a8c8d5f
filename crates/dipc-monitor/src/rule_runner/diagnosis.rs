//! The cause of what is wrong with a process when a rule fires, by its memory and the kernel's account.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clr_findings::{Diagnosis, Evidence, ProcessIdentity};
use dipc_collect::readings::BackgroundReader;

use super::RuleEvent;
use super::process_rules::{ProcessRules, STACK};

/// The time for which a process is read: its memory twice, and the kernel's account three times. Its runtime is not
/// asked, and it is not stopped.
const READING_TIME: Duration = Duration::from_secs(2);
/// Minimum time between two diagnoses of a process: rules can fire often.
const MIN_APART: Duration = Duration::from_secs(60);
/// Maximum number of diagnoses at a time: each takes some 30 MB and some of a processor's time.
const MAX_AT_ONCE: usize = 2;

/// The diagnoses that are made for all processes at the moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Diagnoses(Arc<AtomicUsize>);

/// The place of a diagnosis among those that are made at a time.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Diagnoses {
    /// Takes a place; `None` if all are taken.
    fn begin(&self) -> Option<Place> {
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

impl ProcessRules {
    /// Begins to diagnose the process, for a rule that has fired, unless that was done a short while ago. A thread of
    /// its own reports the first cause; without one, nothing is reported.
    pub(super) fn diagnose(self: &Arc<Self>, rule: &str) {
        let Some(pid) = self.process.system_pid() else { return };
        let Some(place) = self.diagnoses().begin().filter(|_| self.is_diagnosis_due()) else { return };
        let (rules, rule) = (Arc::clone(self), rule.to_owned());
        let diagnose = move || {
            let _place = place;
            if let Some(cause) = rules.cause(pid) {
                rules.report(&rule, RuleEvent::Diagnosed(cause));
            }
        };
        // The rule does its work without a diagnosis, too.
        let _ = thread::Builder::new().name("why".to_owned()).stack_size(STACK).spawn(diagnose);
    }

    /// The first cause that some readings show; `None` without a cause, and if the rules are stopped meanwhile.
    fn cause(&self, pid: u32) -> Option<String> {
        let reader = BackgroundReader::start(pid, READING_TIME).ok()?;
        let end = Instant::now() + READING_TIME;
        while !self.stop.is_stopped() && !self.process_has_ended() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.wait(left);
        }
        if self.stop.is_stopped() {
            return None;
        }
        let readings = reader.finish();
        let evidence = Evidence::default()
            .with_memory(&readings.memory)
            .with_usage(&readings.usage)
            .with_counts(&readings.counts);
        let diagnosis = Diagnosis::new(ProcessIdentity::default(), &evidence);
        (!diagnosis.findings.is_empty()).then(|| diagnosis.first_line())
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
