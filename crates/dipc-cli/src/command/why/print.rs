//! A diagnosis in words and as JSON.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clr_findings::{Details, Diagnosis, DiagnosisReport, Evidence, Finding, FindingKind, ProcessIdentity};

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

impl Answer {
    /// The first cause in a line, or what the process does.
    pub(super) fn first_line(&self) -> String {
        self.diagnosis.first_line()
    }

    fn text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(LABEL + 2).max(20));
        for (label, value) in self.diagnosis.rows(&self.process(), |finding| self.command(finding)) {
            for (index, part) in width::filled(&value, room).iter().enumerate() {
                let label = if index == 0 { label } else { "" };
                let _ = writeln!(text, "{label:<LABEL$}  {part}");
            }
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
                (
                    Details::Locks | Details::Awaits | Details::Stacks | Details::Heap | Details::Machine,
                    _,
                    Some(pid),
                )
                | (_, None, Some(pid)) => Some(details.command(*pid)),
                (_, Some(path), _) => Some(of_recording(path)),
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
