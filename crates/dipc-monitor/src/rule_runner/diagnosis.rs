//! The cause of what is wrong with a process when a rule fires, by its memory and the kernel's account.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clr_findings::{Diagnosis, Evidence, ProcessIdentity};
use dipc_collect::readings::BackgroundReader;

use super::RuleEvent;
use super::process_rules::{ProcessRules, STACK};

/// The time for which a process is read: its memory twice, and the kernel's account three times. Its runtime
/// is not asked, and it is not stopped.
const READING_TIME: Duration = Duration::from_secs(2);
impl ProcessRules {
    /// Begins to diagnose the process, for a rule that has fired, unless that was done a short while ago. A
    /// thread of its own reports the first cause; without one, nothing is reported.
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

    /// The first cause that some readings show; `None` without a cause, and if the rules are stopped
    /// meanwhile.
    fn cause(&self, pid: u32) -> Option<String> {
        let reader = BackgroundReader::start(pid, Some(READING_TIME)).ok()?;
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
        let evidence = Evidence::default().with_readings(&readings);
        let diagnosis = Diagnosis::new(ProcessIdentity::default(), &evidence);
        (!diagnosis.findings.is_empty()).then(|| diagnosis.first_line())
    }
}
