//! Findings as rows of an overview: sentences, and the commands that print the quoted figures.

use std::collections::BTreeMap;

use nettrace_export::report::{Finding, FindingNumber, Severity};
use serde::Serialize;

use super::data::OverviewData;
use crate::inspect::crash_note::CrashNote;
use crate::render::shell;

/// A fact found in a recording.
#[derive(Debug, Serialize)]
pub(super) struct FindingRow {
    /// The kind of fact, for programs.
    pub(super) id: &'static str,
    /// The report with the details.
    pub(super) report: &'static str,
    /// True if something is wrong with the program or the recording.
    pub(super) is_problem: bool,
    pub(super) text: String,
    /// The numbers in the text, with units in their names.
    pub(super) numbers: BTreeMap<&'static str, FindingNumber>,
    /// The command that prints the quoted figures.
    pub(super) command: String,
}

/// The name of the finding on the end of the process, which lacks a report of its own.
const CRASH: &str = "crash";

/// Returns the findings, problems first. `command` is the overview's.
pub(super) fn rows(gathered: &OverviewData, command: &str) -> Vec<FindingRow> {
    let findings = gathered.reports.findings();
    let findings = findings.iter().map(|finding| FindingRow::of(finding, command));
    gathered.crash.as_ref().map(crash).into_iter().chain(findings).collect()
}

/// The end of the process, according to the file next to the recording.
fn crash(note: &CrashNote) -> FindingRow {
    let command = match &note.core {
        Some(core) => format!("dipc dump analyze {}", shell::path(core)),
        None => format!("cat {}", shell::path(&note.path)),
    };
    let numbers = BTreeMap::new();
    FindingRow { id: CRASH, report: CRASH, is_problem: true, text: note.summary(), numbers, command }
}

impl FindingRow {
    fn of(finding: &Finding, overview: &str) -> Self {
        let report = report(finding);
        Self {
            id: finding.id(),
            report,
            is_problem: finding.severity() == Severity::Problem,
            text: finding.to_string(),
            numbers: finding.numbers().into_iter().collect(),
            command: match finding {
                // No report but the overview has these figures.
                Finding::ProcessorTime { .. } => overview.to_owned(),
                _ => format!("{overview} {report}{}", options(finding)),
            },
        }
    }
}

/// Returns the report with the details of a finding.
const fn report(finding: &Finding) -> &'static str {
    match finding {
        Finding::Lost { .. } => "events",
        Finding::Starvation(_) | Finding::PoolGrowth { .. } | Finding::PoolQueue { .. } => "threadpool",
        Finding::FailedRequests { .. } | Finding::SlowestRequests { .. } => "requests",
        Finding::Pauses { .. } => "gc",
        Finding::Allocations { .. } => "alloc",
        Finding::Exceptions { .. } => "exceptions",
        Finding::Deadlock { .. } | Finding::LockConvoy { .. } | Finding::LockWaits { .. } => "contention",
        Finding::Compilation { .. } => "jit",
        _ => "topN",
    }
}

/// Returns the options of the report that print the figures of a finding.
fn options(finding: &Finding) -> String {
    // The findings leave the cost of the session out.
    let no_session = |leaves_out: &bool| if *leaves_out { " --no-session" } else { "" };
    match finding {
        Finding::Work { rows, leaves_out_session, .. } => {
            let rows = if *rows > 5 { format!(" -n {rows}") } else { String::new() };
            format!(" --no-blocked{}{rows}", no_session(leaves_out_session))
        }
        Finding::Blocked { leaves_out_session, .. }
        | Finding::WaitedThroughout { leaves_out_session, .. }
        | Finding::Asleep { leaves_out_session, .. } => {
            format!(" --blocked{}", no_session(leaves_out_session))
        }
        Finding::Ready { leaves_out_session, .. } => {
            format!(" --by off-cpu{}", no_session(leaves_out_session))
        }
        Finding::Session(_) => " --no-blocked".to_owned(),
        _ => String::new(),
    }
}
