//! The judgement of all evidence.

use linux_proc_stat::ProcessUsage;
use nettrace_export::report::{EventGroup, Overview};

use crate::finding::{Finding, FindingKind};
use crate::memory_counts::MemoryCounts;
use crate::memory_facts::MemoryFacts;
use crate::process::ProcessEnd;
use crate::readings::Readings;
use crate::{of_end, of_free, of_growth, of_memory, of_recording, of_timers, of_usage, server_collector};

/// The evidence of a process. Each part may be missing.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Evidence<'e> {
    /// The overview of a recording.
    pub recording: Option<&'e Overview>,
    /// The groups of events that the session is known to have requested: without events of them, none
    /// happened.
    pub requested: &'e [EventGroup],
    /// True if exceptions were recorded for a part of the time, from the first to the last of them.
    pub exceptions_are_partial: bool,
    /// Readings of memory, the oldest first: what lasts is in all of them.
    pub memory: &'e [MemoryFacts],
    /// The kernel's account of the process, the oldest first: what grows, grows from each to the next.
    pub usage: &'e [ProcessUsage],
    /// The end of the process, if it ended.
    pub end: Option<&'e ProcessEnd>,
    /// The evidence that could not be had, with the reasons; what a recording lacks is known from itself.
    pub missing: &'e [String],
    /// Counts of what memory holds, the oldest first.
    pub counts: &'e [MemoryCounts],
}

impl<'e> Evidence<'e> {
    /// With a recording.
    #[must_use]
    pub const fn with_recording(self, recording: &'e Overview) -> Self {
        Self { recording: Some(recording), ..self }
    }

    /// With the groups of events that the session of the recording is known to have requested.
    #[must_use]
    pub const fn with_requested(self, requested: &'e [EventGroup]) -> Self {
        Self { requested, ..self }
    }

    /// With exceptions of a part of the time of the recording, from the first to the last: their number says
    /// nothing of the rest.
    #[must_use]
    pub const fn with_partial_exceptions(self, exceptions_are_partial: bool) -> Self {
        Self { exceptions_are_partial, ..self }
    }

    /// With readings of memory, the oldest first.
    #[must_use]
    pub const fn with_memory(self, memory: &'e [MemoryFacts]) -> Self {
        Self { memory, ..self }
    }

    /// With the kernel's account of the process at three or more moments, the oldest first.
    #[must_use]
    pub const fn with_usage(self, usage: &'e [ProcessUsage]) -> Self {
        Self { usage, ..self }
    }

    /// With the end of the process.
    #[must_use]
    pub const fn with_end(self, end: Option<&'e ProcessEnd>) -> Self {
        Self { end, ..self }
    }

    /// With the evidence that could not be had, and the reasons:
    /// `locks and tasks in memory: permission denied`.
    #[must_use]
    pub const fn with_missing(self, missing: &'e [String]) -> Self {
        Self { missing, ..self }
    }

    /// With all that was read of the process beside the recording.
    #[must_use]
    pub fn with_readings(self, readings: &'e Readings) -> Self {
        self.with_memory(&readings.memory).with_usage(&readings.usage).with_counts(&readings.counts)
    }

    /// With counts of what memory holds at three or more moments, the oldest first.
    #[must_use]
    pub const fn with_counts(self, counts: &'e [MemoryCounts]) -> Self {
        Self { counts, ..self }
    }
}

/// Returns the causes, the most costly first. Of two findings of a kind the one of memory is kept, which
/// knows the objects, with the numbers of the recording as evidence.
pub fn diagnose(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = of_memory::findings(evidence.memory, evidence.usage);
    let of_recording = |recording| {
        let mut findings = of_recording::findings(recording, evidence.exceptions_are_partial);
        if evidence.memory.is_empty() {
            findings.extend(of_recording::endless_waits(recording));
        }
        if evidence.usage.is_empty() {
            findings.extend(of_recording::thread_growth(recording));
        }
        findings
    };
    let late_timers = of_timers::starvation(evidence.counts);
    for finding in evidence.recording.map(of_recording).unwrap_or_default().into_iter().chain(late_timers) {
        match findings.iter_mut().find(|other| is_same(other, &finding)) {
            Some(other) => {
                other.cost = other.cost.max(finding.cost);
                other.evidence.push(finding.cause);
                other.evidence.extend(finding.evidence);
                other.numbers.extend(finding.numbers);
            }
            None => findings.push(finding),
        }
    }
    findings.extend(of_usage::findings(evidence.usage, evidence.memory));
    findings.extend(evidence.end.and_then(of_end::finding));
    findings.extend(of_growth::findings(evidence.counts, evidence.usage, evidence.recording));
    if let Some(starvation) = findings.iter_mut().find(|finding| finding.kind == FindingKind::Starvation) {
        starvation.evidence.extend(of_timers::elapsed_delays(evidence.memory));
    }
    let is_pressure = |finding: &&mut Finding| finding.kind == FindingKind::GcPressure;
    if let Some(pressure) = findings.iter_mut().find(is_pressure) {
        pressure.evidence.extend(server_collector::evidence(evidence.counts, evidence.usage));
    }
    findings.extend(of_free::findings(evidence.counts, evidence.usage, evidence.recording));
    if evidence.recording.and_then(of_recording::compiled_at_start).is_some() {
        findings.retain(|finding| !finding.is_of_growth());
    }
    without_effects(&mut findings);
    findings.sort_by(|a, b| {
        let rank = |finding: &Finding| !matches!(finding.kind, FindingKind::Death | FindingKind::Deadlock);
        rank(a).cmp(&rank(b)).then(b.cost.total_cmp(&a.cost)).then(a.kind.cmp(&b.kind))
    });
    findings
}

/// Returns true if two findings are of one cause. Locks are the same if threads wait for them in the same
/// method: a recording has their waiters, and memory has also the holder.
fn is_same(one: &Finding, other: &Finding) -> bool {
    let are_same_waits = || {
        let [one, other] = [&one.waiting_methods, &other.waiting_methods];
        one.is_empty() || other.is_empty() || one.iter().any(|method| other.contains(method))
    };
    one.kind == other.kind && (one.kind != FindingKind::LockConvoy || are_same_waits())
}

/// Makes effects evidence of their causes.
fn without_effects(findings: &mut Vec<Finding>) {
    let mut at = 0;
    while let Some(effect) = findings.get(at) {
        let causes = |finding: &Finding| {
            finding.kind.causes(effect.kind, finding.method.is_some() && finding.method == effect.method)
        };
        match findings.iter().position(causes) {
            Some(cause) => {
                let effect = findings.remove(at);
                let cause = if cause > at { cause.saturating_sub(1) } else { cause };
                if let Some(cause) = findings.get_mut(cause) {
                    cause.evidence.push(effect.cause);
                    cause.cost = cause.cost.max(effect.cost);
                }
            }
            None => at = at.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Details;

    #[test]
    fn a_lock_is_one_by_the_methods_that_wait_for_it() {
        let convoy = |holder: &str, waiting: &[&str]| {
            Finding::new(FindingKind::LockConvoy, 1.0, String::new(), Details::Locks)
                .with_method(Some(holder.to_owned()))
                .with_waiting_methods(waiting.iter().map(|method| (*method).to_owned()).collect())
        };
        let of_memory = convoy("Ledger.Archive", &["Ledger.Post", "Report.Print"]);
        assert!(is_same(&of_memory, &convoy("Ledger.Post", &["Ledger.Post"])));
        // The holder of one lock waits for another.
        assert!(!is_same(&of_memory, &convoy("Ledger.Archive", &["Ledger.Archive"])));
        assert!(is_same(&of_memory, &convoy("", &[])));
    }
}
