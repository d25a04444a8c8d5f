//! A diagnosis in words and as JSON.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clr_findings::{Activity, Confidence, Details, Finding};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::Failure;
use crate::render::{output, shell, width};

/// What the commands that show more read.
pub(super) enum Subject {
    Process { pid: Option<u32>, recording: Option<PathBuf> },
    Recording(PathBuf),
    Core(PathBuf),
}

/// The causes, and what they were judged by.
pub(super) struct Diagnosis {
    /// The process in a sentence.
    pub(super) process: String,
    /// The end of the process, from the file next to the recording, with the core dump.
    pub(super) crash: Option<(String, Option<PathBuf>)>,
    pub(super) findings: Vec<Finding>,
    pub(super) activity: Option<Activity>,
    pub(super) looked_at: Vec<String>,
    /// The evidence that could not be had, with the reasons.
    pub(super) missing: Vec<String>,
    pub(super) subject: Subject,
}

/// The JSON form.
#[derive(Serialize)]
struct Report<'d> {
    process: &'d str,
    crash: Option<&'d str>,
    healthy: bool,
    findings: Vec<Row<'d>>,
    activity: Option<Activity>,
    looked_at: &'d [String],
    missing: &'d [String],
}

#[derive(Serialize)]
struct Row<'d> {
    #[serde(flatten)]
    finding: &'d Finding,
    command: Option<String>,
}

pub(super) fn print(diagnosis: &Diagnosis, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::print_json(&Report {
            process: &diagnosis.process,
            crash: diagnosis.crash.as_ref().map(|(text, _)| text.as_str()),
            healthy: diagnosis.is_healthy(),
            findings: diagnosis
                .findings
                .iter()
                .map(|finding| Row { finding, command: diagnosis.subject.command(finding.details) })
                .collect(),
            activity: diagnosis.activity,
            looked_at: &diagnosis.looked_at,
            missing: &diagnosis.missing,
        }),
        Format::Table => output::print(text(diagnosis, width::of_output())),
    }
}

/// The width of the labels.
const LABEL: usize = 9;
/// Maximum number of findings after the first.
const OTHERS: usize = 3;

fn text(diagnosis: &Diagnosis, width: Option<usize>) -> String {
    let mut text = String::new();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(LABEL + 2).max(20));
    let mut row = |label: &str, value: &str| {
        for (index, part) in width::filled(value, room).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let _ = writeln!(text, "{label:<LABEL$}  {part}");
        }
    };
    if let Some((crash, core)) = &diagnosis.crash {
        row("Cause", crash);
        if let Some(core) = core {
            row("", &format!("dipc why {}", shell::path(core)));
        }
    }
    for (index, finding) in diagnosis.findings.iter().take(1 + OTHERS).enumerate() {
        let is_first = index == 0 && diagnosis.crash.is_none();
        let label = if is_first { "Cause" } else { "Also" };
        let likely = if finding.confidence == Confidence::Likely { "likely: " } else { "" };
        row(label, &format!("{likely}{}", finding.cause));
        let evidence = if is_first { usize::MAX } else { 0 };
        for evidence in finding.evidence.iter().take(evidence) {
            row("", evidence);
        }
        if let Some(command) = diagnosis.subject.command(finding.details) {
            row("", &command);
        }
    }
    let left = diagnosis.findings.len().saturating_sub(1 + OTHERS);
    if left > 0 {
        row("Also", &format!("{left} more: --format json"));
    }
    if diagnosis.findings.is_empty() && diagnosis.crash.is_none() {
        let label = if diagnosis.is_healthy() { "Healthy" } else { "No cause" };
        match diagnosis.activity {
            Some(activity) => row(label, &format!("{activity}; nothing stands out")),
            None => row(label, "nothing stands out"),
        }
    }
    row("Process", &diagnosis.process);
    if !diagnosis.looked_at.is_empty() {
        row("Looked at", &diagnosis.looked_at.join("; "));
    }
    for missing in &diagnosis.missing {
        row("Not seen", missing);
    }
    text
}

impl Diagnosis {
    /// Returns true if nothing was found, and nothing that could hide a cause was missing.
    fn is_healthy(&self) -> bool {
        let has_activity = self.activity.is_some_and(|activity| activity.processors.is_some());
        let is_whole = self.missing.is_empty() && self.crash.is_none() && has_activity;
        self.findings.is_empty() && is_whole
    }
}

impl Subject {
    /// Returns the command that shows more.
    fn command(&self, details: Details) -> Option<String> {
        let of_recording = |path: &Path| format!("dipc report {} {}", shell::path(path), report(details));
        match self {
            Self::Recording(path) => Some(of_recording(path)),
            Self::Core(path) => {
                let view = match details {
                    Details::Locks => "locks",
                    Details::Exceptions => "exceptions",
                    _ => "stacks",
                };
                Some(format!("dipc dump analyze {} {view}", shell::path(path)))
            }
            Self::Process { pid, recording } => match (details, recording, pid) {
                (Details::Contention | Details::ThreadPool, Some(path), _) => Some(of_recording(path)),
                (Details::Locks | Details::Contention, _, Some(pid)) => Some(format!("dipc locks -p {pid}")),
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
const fn report(details: Details) -> &'static str {
    match details {
        Details::Exceptions => "exceptions",
        Details::Collections => "gc",
        Details::Allocations => "alloc",
        Details::Locks | Details::Contention => "contention",
        Details::ThreadPool => "threadpool",
        Details::Jit => "jit",
        Details::Requests => "requests",
        _ => "topN",
    }
}
