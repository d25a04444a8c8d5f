//! The result of a judgement: the causes, and what they were judged by.

use nettrace_export::report::{EventGroup, Overview};
use nettrace_export::units::{count, counted, time};
use serde::Serialize;

use crate::activity::Activity;
use crate::diagnosis::{Evidence, diagnose};
use crate::finding::Finding;
use crate::of_free;
use crate::of_recording::{compiled_at_start, exceptions_time};
use crate::process::{ProcessEnd, ProcessIdentity};
use crate::running::RunningMethod;
use crate::waiting::WaitingPlace;

/// The judgement of a process, with its evidence in words.
///
/// ```
/// use clr_findings::{Diagnosis, Evidence, ProcessEnd, ProcessIdentity};
///
/// let end = ProcessEnd::new("the process was killed");
/// let process = ProcessIdentity::default().with_process_id(Some(4711));
/// let diagnosis = Diagnosis::new(process, &Evidence::default().with_end(Some(&end)));
/// assert_eq!(diagnosis.findings[0].cause, "The process was killed");
/// assert!(!diagnosis.is_healthy());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The process.
    pub process: ProcessIdentity,
    /// The end of the process; `None` if it runs, as far as is known.
    pub end: Option<ProcessEnd>,
    /// The causes, the most costly first.
    pub findings: Vec<Finding>,
    /// The activity of the program; `None` without a recording.
    pub activity: Option<Activity>,
    /// The places in which it waited all the time, those of the most threads and calls first.
    pub waiting: Vec<WaitingPlace>,
    /// The methods that threads ran at a single moment, those of the most threads first; empty with other
    /// evidence.
    pub running: Vec<RunningMethod>,
    /// The evidence that was judged, in words.
    pub looked_at: Vec<String>,
    /// The evidence that could not be had, with the reasons.
    pub missing: Vec<String>,
}

impl Diagnosis {
    /// Judges the evidence about a process.
    pub fn new(process: ProcessIdentity, evidence: &Evidence<'_>) -> Self {
        let missing = missing(evidence, process.runtime.as_deref());
        Self {
            process,
            end: evidence.end.cloned(),
            findings: diagnose(evidence),
            activity: evidence.recording.map(|recording| Activity::of(recording, evidence.requested)),
            waiting: WaitingPlace::all(evidence),
            running: RunningMethod::all(evidence),
            looked_at: looked_at(evidence),
            missing,
        }
    }

    /// Returns true if nothing was found, nothing that could hide a cause was missing, and the process runs.
    pub fn is_healthy(&self) -> bool {
        let has_activity = self.activity.is_some_and(|activity| activity.processors.is_some());
        self.findings.is_empty() && self.missing.is_empty() && self.end.is_none() && has_activity
    }

    /// Returns the diagnosis for JSON. `command` has the command that shows more of a finding.
    pub fn report(&self, command: impl Fn(&Finding) -> Option<String>) -> DiagnosisReport<'_> {
        let row = |finding| FindingReport { finding, command: command(finding) };
        DiagnosisReport {
            process: &self.process,
            end: self.end.as_ref(),
            healthy: self.is_healthy(),
            findings: self.findings.iter().map(row).collect(),
            activity: self.activity,
            waiting: &self.waiting,
            running: &self.running,
            looked_at: &self.looked_at,
            missing: &self.missing,
        }
    }
}

/// A diagnosis in its JSON form.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct DiagnosisReport<'d> {
    /// The process.
    pub process: &'d ProcessIdentity,
    /// The end of the process.
    pub end: Option<&'d ProcessEnd>,
    /// True if nothing was found, nothing that could hide a cause was missing, and the process runs.
    pub healthy: bool,
    /// The causes, the most costly first.
    pub findings: Vec<FindingReport<'d>>,
    /// The activity of the program.
    pub activity: Option<Activity>,
    /// The places in which it waited all the time, those of the most threads and calls first.
    pub waiting: &'d [WaitingPlace],
    /// The methods that threads ran at a single moment, those of the most threads first; empty with other
    /// evidence.
    pub running: &'d [RunningMethod],
    /// The evidence that was judged, in words.
    pub looked_at: &'d [String],
    /// The evidence that could not be had, with the reasons.
    pub missing: &'d [String],
}

/// A finding in its JSON form.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct FindingReport<'d> {
    /// The finding.
    #[serde(flatten)]
    pub finding: &'d Finding,
    /// The command that shows more.
    pub command: Option<String>,
}

fn looked_at(evidence: &Evidence<'_>) -> Vec<String> {
    let mut looked_at = Vec::new();
    if let Some(last) = evidence.memory.last() {
        let threads = counted(last.threads.len() as u64, "thread", "threads");
        looked_at.push(match evidence.memory.len() {
            1 => format!("{threads} with their locks, tasks and exceptions"),
            _ => format!("{threads} in memory, twice"),
        });
    }
    if !evidence.usage.is_empty() {
        looked_at.push("the kernel's account".to_owned());
    }
    if let Some(recording) = evidence.recording {
        let samples = match (recording.stream.has_kernel_samples, recording.has_samples) {
            (true, _) => ", samples of threads by the kernel",
            (_, true) => ", samples of threads by the runtime",
            _ => "",
        };
        let events = counted(recording.stream.events, "event", "events");
        let part = exceptions_time(recording).filter(|_| evidence.exceptions_are_partial);
        let exceptions =
            part.map_or_else(String::new, |part| format!(", exceptions of {}, which are many", time(part)));
        looked_at.push(format!("{events} in {}{samples}{exceptions}", time(recording.duration)));
    }
    looked_at
}

fn missing(evidence: &Evidence<'_>, runtime: Option<&str>) -> Vec<String> {
    let missing_in = |recording| missing_in_recording(recording, evidence.requested);
    let of_recording = evidence.recording.map(missing_in).unwrap_or_default();
    let compiled = evidence.recording.and_then(compiled_at_start);
    let starts = compiled.map(|rate| {
        format!("what grows: the program compiles {} methods per second, as at its start", count(rate))
    });
    let calls = runtime.filter(|runtime| evidence.recording.is_some() && !has_events_of_calls(runtime));
    let calls = calls.map(|runtime| format!("outgoing calls: .NET Core {runtime} has no events of them"));
    let native_heap = of_free::missing(evidence.counts);
    evidence
        .missing
        .iter()
        .cloned()
        .chain(of_recording)
        .chain(calls)
        .chain(starts)
        .chain(native_heap)
        .collect()
}

/// Returns true for versions with events of calls by `HttpClient`, which are .NET 5 and later.
fn has_events_of_calls(runtime: &str) -> bool {
    let major = runtime.split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_none_or(|major| major >= 5)
}

/// The groups of events that causes are judged by. Allocations are details of other causes.
const JUDGED: [EventGroup; 6] = [
    EventGroup::Requests,
    EventGroup::Collections,
    EventGroup::Exceptions,
    EventGroup::LockWaits,
    EventGroup::ThreadPool,
    EventGroup::Compilation,
];

fn missing_in_recording(recording: &Overview, requested: &[EventGroup]) -> Vec<String> {
    let mut missing = Vec::new();
    if !recording.has_samples {
        missing.push("the time of threads: the recording has no samples".to_owned());
    } else if !recording.stream.has_kernel_samples && recording.unverified > 0 {
        missing
            .push("processor time: the runtime's samples do not distinguish running from waiting".to_owned());
    }
    let unknown = JUDGED.iter().filter(|group| !group.is_in(recording) && !requested.contains(group));
    let unknown: Vec<_> = unknown.map(|group| group.name()).collect();
    if !unknown.is_empty() {
        missing.push(format!("{}: not recorded, or none happened", unknown.join(", ")));
    }
    if recording.stream.lost > 0 {
        missing.push(counted(recording.stream.lost, "event was lost", "events were lost"));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::FindingKind;
    use crate::memory_facts::MemoryFacts;

    #[test]
    fn the_end_of_a_process_is_its_first_cause() {
        let details = [
            "Shop.OrderException: no\u{1b}",
            "   at System.Array.Copy(Array)",
            "   at Shop.Orders.Sell(Int32)",
        ];
        let details = details.map(str::to_owned);
        let end = ProcessEnd::new("the process crashed with SIGABRT").with_details(details.into());
        let memory = [MemoryFacts::default(), MemoryFacts::default()];
        let evidence = Evidence::default().with_memory(&memory).with_end(Some(&end));
        let diagnosis = Diagnosis::new(ProcessIdentity::default(), &evidence);
        let [finding] = &diagnosis.findings[..] else { panic!("{diagnosis:?}") };
        assert_eq!(finding.kind, FindingKind::Death);
        let cause = r"The process crashed with SIGABRT: Shop.OrderException: no\u001b, in Orders.Sell";
        assert_eq!((&*finding.cause, finding.method.as_deref()), (cause, Some("Orders.Sell")));
        assert_eq!(finding.evidence, ["at System.Array.Copy(Array)", "at Shop.Orders.Sell(Int32)"]);
        assert_eq!(diagnosis.looked_at, ["0 threads in memory, twice"]);
        let report = diagnosis.report(|finding| Some(finding.kind.id().to_owned()));
        assert_eq!((report.findings[0].command.as_deref(), report.healthy), (Some("death"), false));
    }

    #[test]
    fn the_count_of_repeated_frames_is_not_an_exception() {
        let details =
            ["Repeated 9 times:", "-----", "   at Shop.Tree.Depth(Int32)", "-----"].map(str::to_owned);
        let end = ProcessEnd::new("the process crashed with SIGABRT, because of a stack overflow");
        let end = end.with_details(details.into());
        let evidence = Evidence::default().with_end(Some(&end));
        let findings = Diagnosis::new(ProcessIdentity::default(), &evidence).findings;
        let cause = "The process crashed with SIGABRT, because of a stack overflow, in Tree.Depth";
        assert_eq!(findings[0].cause, cause);
        assert_eq!(findings[0].evidence, ["Repeated 9 times:", "at Shop.Tree.Depth(Int32)"]);
    }

    #[test]
    fn an_exit_is_a_cause_unless_its_code_is_0() {
        let causes = |code| {
            let end = ProcessEnd::exit(code);
            let diagnosis =
                Diagnosis::new(ProcessIdentity::default(), &Evidence::default().with_end(Some(&end)));
            assert!(!diagnosis.is_healthy());
            diagnosis.findings.into_iter().map(|finding| finding.cause).collect::<Vec<_>>()
        };
        assert_eq!(causes(Some(3)), ["The process exited with code 3"]);
        assert_eq!(causes(None), ["The process exited, with a code that its parent has"]);
        assert_eq!(causes(Some(0)), [""; 0]);
    }
}
