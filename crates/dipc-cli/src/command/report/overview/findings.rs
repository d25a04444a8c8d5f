//! Causes and notes as rows of an overview: sentences, and the commands that print the quoted figures.

use std::collections::BTreeMap;

use clr_findings::{Confidence, Finding, FindingKind, RecordingFindings};
use nettrace_export::report::{Note, NoteNumber};
use serde::Serialize;

use super::data::OverviewData;
use crate::command::why::report_of;
use crate::inspect::crash_note::CrashNote;
use crate::render::shell;

/// A cause, or another fact of a recording.
#[derive(Debug, Default, Serialize)]
pub(super) struct FindingRow {
    /// The kind of cause or fact, for programs.
    pub(super) id: &'static str,
    /// The report with the details.
    pub(super) report: &'static str,
    /// True for causes, and for faults of the recording.
    pub(super) is_problem: bool,
    pub(super) text: String,
    /// Of a cause.
    #[serde(flatten)]
    pub(super) cause: Option<CauseRow>,
    /// The numbers in the text, with units in their names.
    pub(super) numbers: BTreeMap<&'static str, NumberRow>,
    /// The command that prints the quoted figures.
    pub(super) command: String,
}

/// The parts of a cause besides its sentence, as `dipc why` prints them.
#[derive(Debug, Serialize)]
pub(super) struct CauseRow {
    confidence: Confidence,
    cost: f64,
    method: Option<String>,
    object: Option<String>,
    pub(super) evidence: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum NumberRow {
    OfCause(f64),
    OfNote(NoteNumber),
}

/// The name in place of the report of the process's end, which lacks one.
const CRASH: &str = "crash";

/// Returns the causes, then the other facts, faults of the recording first. `command` is the overview's.
pub(super) fn rows(gathered: &OverviewData, command: &str) -> Vec<FindingRow> {
    let end = gathered.end();
    let RecordingFindings { causes, notes, .. } =
        RecordingFindings::of(&gathered.reports, &gathered.readings, end.as_ref());
    let crash = gathered.crash.as_ref();
    let causes = causes.into_iter().map(|cause| {
        if let Some(note) = crash.filter(|_| cause.kind == FindingKind::Death) {
            return FindingRow::of_cause(cause, CRASH, crash_command(note));
        }
        let report = report_of(cause.details);
        FindingRow::of_cause(cause, report, format!("{command} {report}"))
    });
    causes.chain(notes.iter().map(|note| FindingRow::of_note(note, command))).collect()
}

/// The command that shows more of the end of the process.
fn crash_command(note: &CrashNote) -> String {
    match &note.core {
        Some(core) => format!("dipc dump analyze {}", shell::path(core)),
        None => format!("cat {}", shell::path(&note.path)),
    }
}

impl FindingRow {
    fn of_cause(cause: Finding, report: &'static str, command: String) -> Self {
        let text = cause.sentence();
        let Finding { kind, confidence, cost, method, object, evidence, numbers, .. } = cause;
        Self {
            id: kind.id(),
            report,
            is_problem: true,
            text,
            cause: Some(CauseRow { confidence, cost, method, object, evidence }),
            numbers: numbers
                .into_iter()
                .map(|number| (number.name, NumberRow::OfCause(number.value)))
                .collect(),
            command,
        }
    }

    fn of_note(note: &Note, overview: &str) -> Self {
        let report = report(note);
        let numbers = note.numbers().into_iter();
        Self {
            id: note.id(),
            report,
            is_problem: note.is_fault(),
            text: note.to_string(),
            cause: None,
            numbers: numbers.map(|(name, number)| (name, NumberRow::OfNote(number))).collect(),
            command: match note {
                // No report but the overview has these figures.
                Note::ProcessorTime { .. } => overview.to_owned(),
                _ => format!("{overview} {report}{}", options(note)),
            },
        }
    }
}

/// Returns the report with the details of a note.
const fn report(note: &Note) -> &'static str {
    match note {
        Note::Lost { .. } => "events",
        Note::Starvation(_) | Note::PoolGrowth { .. } | Note::PoolQueue { .. } => "threadpool",
        Note::FailedRequests { .. } | Note::SlowestRequests { .. } => "requests",
        Note::Pauses { .. } => "gc",
        Note::Allocations { .. } => "alloc",
        Note::Exceptions { .. } => "exceptions",
        Note::LockWaits { .. } => "contention",
        Note::Compilation { .. } => "jit",
        _ => "topN",
    }
}

/// Returns the options of the report that print the figures of a note.
fn options(note: &Note) -> String {
    // The notes leave the cost of the session out.
    let no_session = |leaves_out: &bool| if *leaves_out { " --no-session" } else { "" };
    match note {
        Note::Work { rows, leaves_out_session, .. } => {
            let rows = if *rows > 5 { format!(" -n {rows}") } else { String::new() };
            format!(" --no-blocked{}{rows}", no_session(leaves_out_session))
        }
        Note::Blocked { leaves_out_session, .. }
        | Note::WaitedThroughout { leaves_out_session, .. }
        | Note::Asleep { leaves_out_session, .. } => {
            format!(" --blocked{}", no_session(leaves_out_session))
        }
        Note::Ready { leaves_out_session, .. } => {
            format!(" --by off-cpu{}", no_session(leaves_out_session))
        }
        Note::Session(_) => " --no-blocked".to_owned(),
        _ => String::new(),
    }
}
