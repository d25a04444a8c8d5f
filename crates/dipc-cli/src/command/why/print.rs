//! A diagnosis in words and as JSON.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clr_findings::{
    Confidence, Details, Diagnosis, DiagnosisReport, Evidence, Finding, FindingKind, ProcessIdentity,
};

use crate::args::format::Format;
use crate::exit::Failure;
use crate::render::{command_line, output, shell, width};

/// The process or file that the commands with details read.
pub(super) enum Subject {
    Process { pid: Option<u32>, recording: Option<PathBuf> },
    Recording(PathBuf),
    Core(PathBuf),
}

/// The causes, with the commands that show more of them.
pub(super) struct Answer {
    diagnosis: Diagnosis,
    subject: Subject,
}

impl Answer {
    /// Judges the evidence about a process.
    pub(super) fn new(process: ProcessIdentity, evidence: &Evidence<'_>, subject: Subject) -> Self {
        Self { diagnosis: Diagnosis::new(process, evidence), subject }
    }

    pub(super) fn print(&self, format: Format) -> Result<(), Failure> {
        match format {
            Format::Json => output::print_json(&self.report()),
            Format::Table => output::print(self.text(width::of_output())),
        }
    }

    /// The kinds of the causes.
    pub(super) fn kinds(&self) -> impl Iterator<Item = FindingKind> {
        self.diagnosis.findings.iter().map(|finding| finding.kind)
    }

    pub(super) fn report(&self) -> DiagnosisReport<'_> {
        self.diagnosis.report(|finding| self.command(finding))
    }

    pub(super) const fn identity(&self) -> &ProcessIdentity {
        &self.diagnosis.process
    }

    /// The class of the answer among those of several processes: the lower, the worse.
    pub(super) fn severity(&self) -> u8 {
        match self.diagnosis.findings.first().map(|finding| finding.kind) {
            Some(FindingKind::Death | FindingKind::Deadlock) => 0,
            Some(_) => 1,
            None if self.diagnosis.is_healthy() => 4,
            None => 3,
        }
    }

    /// The cost of the first cause.
    pub(super) fn cost(&self) -> f64 {
        self.diagnosis.findings.first().map_or(0.0, |finding| finding.cost)
    }

    /// Returns the command that shows more of a finding.
    fn command(&self, finding: &Finding) -> Option<String> {
        let core = self.diagnosis.end.as_ref().and_then(|end| end.core.as_ref());
        match (finding.kind, core) {
            (FindingKind::Death, Some(core)) => Some(format!("dipc why {}", shell::path(core))),
            (FindingKind::Death, None) if self.subject.is_process() => Some("dipc help crash".to_owned()),
            _ => self.subject.command(finding.details),
        }
    }

    /// The process in a sentence.
    fn process(&self) -> String {
        if let Subject::Core(path) = &self.subject {
            return format!("core dump {}", shell::path(path));
        }
        let ProcessIdentity { process_id, name, command_line, runtime, .. } = &self.diagnosis.process;
        let program = command_line.as_ref().or(name.as_ref());
        let program = program.map_or("a program".into(), |program| command_line::shortened(program));
        let process = process_id.map_or_else(String::new, |pid| format!(", process {pid}"));
        let runtime = runtime.as_ref().map_or_else(String::new, |version| format!(", .NET {version}"));
        format!("{program}{process}{runtime}")
    }
}

/// The width of the labels.
const LABEL: usize = 9;
/// Maximum number of findings after the first.
const OTHERS: usize = 3;

fn cause(finding: &Finding) -> String {
    let likely = if finding.confidence == Confidence::Likely { "likely: " } else { "" };
    format!("{likely}{}", finding.cause)
}

impl Answer {
    /// The first cause in a line, or what the process does.
    pub(super) fn first_line(&self) -> String {
        self.diagnosis.findings.first().map_or_else(
            || {
                let (label, activity) = self.without_cause();
                format!("{label}: {activity}")
            },
            cause,
        )
    }

    /// The label of a process without a cause, and what it does.
    fn without_cause(&self) -> (&'static str, String) {
        let Diagnosis { end, activity, .. } = &self.diagnosis;
        let label = match end {
            Some(_) => "Ended",
            None if self.diagnosis.is_healthy() => "Healthy",
            None => "No cause",
        };
        let end = end.iter().map(|end| end.cause.clone());
        let activity = activity.iter().map(ToString::to_string);
        let parts: Vec<_> = end.chain(activity).chain(["nothing stands out".to_owned()]).collect();
        (label, parts.join("; "))
    }

    fn text(&self, width: Option<usize>) -> String {
        let diagnosis = &self.diagnosis;
        let mut text = String::new();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(LABEL + 2).max(20));
        let mut row = |label: &str, value: &str| {
            for (index, part) in width::filled(value, room).iter().enumerate() {
                let label = if index == 0 { label } else { "" };
                let _ = writeln!(text, "{label:<LABEL$}  {part}");
            }
        };
        for (index, finding) in diagnosis.findings.iter().take(1 + OTHERS).enumerate() {
            let label = if index == 0 { "Cause" } else { "Also" };
            row(label, &cause(finding));
            let evidence = if index == 0 { usize::MAX } else { 0 };
            for evidence in finding.evidence.iter().take(evidence) {
                row("", evidence);
            }
            if let Some(command) = self.command(finding) {
                row("", &command);
            }
        }
        let left = diagnosis.findings.len().saturating_sub(1 + OTHERS);
        if left > 0 {
            row("Also", &format!("{left} more: --format json"));
        }
        if diagnosis.findings.is_empty() {
            let (label, activity) = self.without_cause();
            row(label, &activity);
        }
        row("Process", &self.process());
        if !diagnosis.looked_at.is_empty() {
            row("Looked at", &diagnosis.looked_at.join("; "));
        }
        for missing in &diagnosis.missing {
            row("Not seen", missing);
        }
        text
    }
}

impl Subject {
    const fn is_process(&self) -> bool {
        matches!(self, Self::Process { .. })
    }

    /// Returns the command that shows more.
    fn command(&self, details: Details) -> Option<String> {
        let of_recording = |path: &Path| format!("dipc report {} {}", shell::path(path), report_of(details));
        match self {
            Self::Recording(path) => Some(of_recording(path)),
            Self::Core(path) => {
                let view = match details {
                    Details::Locks => "locks",
                    Details::Awaits => "async",
                    Details::Exceptions => "exceptions",
                    _ => "stacks",
                };
                Some(format!("dipc dump analyze {} {view}", shell::path(path)))
            }
            Self::Process { pid, recording } => match (details, recording, pid) {
                (Details::Contention | Details::ThreadPool, Some(path), _) => Some(of_recording(path)),
                (Details::Locks | Details::Contention, _, Some(pid)) => Some(format!("dipc locks -p {pid}")),
                (Details::Awaits, _, Some(pid)) => Some(format!("dipc async -p {pid}")),
                (Details::Stacks | Details::ThreadPool, _, Some(pid)) => Some(format!("dipc stack -p {pid}")),
                (Details::Heap, _, Some(pid)) => Some(format!("dipc heap -p {pid}")),
                (Details::Machine, _, Some(pid)) => Some(format!("dipc info -p {pid}")),
                (_, Some(path), _) => Some(of_recording(path)),
                (Details::Requests, None, Some(pid)) => Some(format!("dipc profile -p {pid} --duration 10s")),
                (_, None, Some(pid)) => Some(format!("dipc top -p {pid}")),
                (_, None, None) => None,
            },
        }
    }
}

/// The report of a recording with the details.
pub(crate) const fn report_of(details: Details) -> &'static str {
    match details {
        Details::Exceptions => "exceptions",
        Details::Collections => "gc",
        Details::Allocations | Details::Heap => "alloc",
        Details::Locks | Details::Contention => "contention",
        Details::ThreadPool => "threadpool",
        Details::Jit => "jit",
        Details::Requests => "requests",
        _ => "topN",
    }
}
