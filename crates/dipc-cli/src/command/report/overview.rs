//! `dipc report FILE`: an overview of a recording, on one screen.

mod data;
mod findings;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use nettrace_export::report::EventGroup;
use serde::Serialize;

use crate::args::format::Format;
use crate::args::user_code::UserCodeArgs;
use crate::command::report::{contention, gc, jit, requests, threadpool};
use crate::exit::Outcome;
use crate::inspect::needs::{self, Needs};
use crate::render::escape::escape_controls;
use crate::render::{command_line, messages, output, shell, units, width};
pub(crate) use data::OverviewData;
use data::Summary;
use findings::FindingRow;

/// The overview; the JSON form is the struct.
#[derive(Debug, Serialize)]
struct Overview {
    file: String,
    #[serde(flatten)]
    summary: Summary,
    /// The causes, then the other facts to know first: faults of the recording, then the rest.
    findings: Vec<FindingRow>,
    /// The empty reports: the recording lacks their events, or nothing of the kind happened.
    missing: Vec<Missing>,
}

/// An empty report.
#[derive(Debug, Serialize)]
struct Missing {
    /// The name of the report.
    report: &'static str,
    /// True if its events are known to have been requested: none happened.
    #[serde(skip)]
    is_asked_for: bool,
    #[serde(flatten)]
    needs: Needs,
}

/// A report: its group of events, or `None` for samples of threads, and how to record it.
type Report = (Option<EventGroup>, Needs);

const REPORTS: [Report; 8] = [
    (Some(EventGroup::Requests), requests::NEEDS),
    (None, needs::THREAD_SAMPLES),
    (Some(EventGroup::Collections), gc::NEEDS),
    (Some(EventGroup::Allocations), needs::ALLOCATIONS),
    (Some(EventGroup::Exceptions), needs::EXCEPTIONS),
    (Some(EventGroup::LockWaits), contention::NEEDS),
    (Some(EventGroup::ThreadPool), threadpool::NEEDS),
    (Some(EventGroup::Compilation), jit::NEEDS),
];

/// Prints an overview. The groups of events in `absent` are known to have been requested, in addition to
/// those of the recording itself.
pub(super) fn run(file: &Path, format: Format, user_code: &UserCodeArgs, absent: &[EventGroup]) -> Outcome {
    let (gathered, exit) = OverviewData::read(file, &user_code.patterns())?;
    let has_content = |group: Option<EventGroup>| {
        group.map_or(gathered.reports.has_samples, |group| group.is_in(&gathered.reports))
    };
    let is_asked_for = |group: &EventGroup| absent.contains(group) || gathered.requested.contains(group);
    let missing = REPORTS.into_iter().filter(|(group, _)| !has_content(*group));
    let overview = Overview {
        file: file.display().to_string(),
        findings: findings::rows(&gathered, &format!("dipc report {}", shell::path(file))),
        missing: missing
            .map(|(group, needs)| Missing {
                report: group.map_or("topN", EventGroup::id),
                is_asked_for: group.as_ref().is_some_and(is_asked_for),
                needs,
            })
            .collect(),
        summary: gathered.summary,
    };
    match format {
        Format::Json => output::print_json(&overview)?,
        Format::Table => output::print(table(&overview, width::of_output(), width::height_of_output()))?,
    }
    Ok(exit)
}

/// The program of a recording, or the number of processes of one that has no session of a program.
fn program(summary: &Summary) -> String {
    let others = summary.processes.saturating_sub(1);
    if summary.program.is_none() && summary.process_id.is_none() && others > 0 {
        let processes = units::count(summary.processes as u64);
        return format!("{processes} processes; topN --by-process shows the part of each");
    }
    let program = summary
        .program
        .as_deref()
        .map_or("a program that the recording does not name".into(), command_line::shortened);
    let others = match others {
        0 => String::new(),
        _ => format!(", and {}", units::counted(others as u64, "other process", "other processes")),
    };
    let process = summary.process_id.map_or_else(String::new, |pid| format!(", process {pid}"));
    let runtime = summary.runtime.as_ref().map_or_else(String::new, |version| format!(", .NET {version}"));
    format!("{program}{process}{runtime}{others}")
}

/// The width of the names of reports.
const NAME: usize = 12;

/// Formats the overview. If it has more lines than the terminal, the findings are last, in reverse order.
fn table(overview: &Overview, width: Option<usize>, height: Option<usize>) -> String {
    let (mut memory, mut text) = (String::new(), String::new());
    let line = |text: &mut String, label: &str, value: &str| {
        let label = format!("{label:<NAME$}");
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(NAME + 2).max(20));
        for (index, part) in width::filled(&escape_controls(value), room).iter().enumerate() {
            let label = if index == 0 { label.as_str() } else { "" };
            let _ = writeln!(text, "{label:<NAME$}  {part}");
        }
    };
    let summary = &overview.summary;
    if let Some(mostly_other) = summary.memory.and_then(|memory| memory.mostly_other()) {
        line(&mut memory, "Memory", &mostly_other);
    }
    line(&mut text, "Program", &program(summary));
    let start = summary.start.as_ref().map_or_else(String::new, |start| format!("{start}, "));
    let at_least = if summary.lost_is_lower_bound { "at least " } else { "" };
    let recorded = format!(
        "{start}{}; {} in {}, {at_least}{} lost",
        units::time(Duration::from_nanos(summary.duration_ns)),
        units::counted(summary.events, "event", "events"),
        units::bytes(summary.bytes),
        units::count(summary.lost),
    );
    line(&mut text, "Recorded", &recorded);
    if let Some(sampling) = &summary.sampling {
        line(&mut text, "Samples", sampling);
    }
    text.push('\n');
    let (mut found, mut lacking) = (Vec::new(), String::new());
    for finding in &overview.findings {
        let mut text = String::new();
        let mark = if finding.is_problem { "! " } else { "" };
        line(&mut text, finding.report, &format!("{mark}{}", finding.text));
        // The evidence of the first cause alone: a screen holds the causes.
        let evidence = finding.cause.as_ref().filter(|_| found.is_empty());
        for evidence in evidence.into_iter().flat_map(|cause| &cause.evidence) {
            line(&mut text, "", evidence);
        }
        // A command stays on one line, however long, so that it can be copied.
        let _ = writeln!(text, "{:<NAME$}    {}", "", escape_controls(&finding.command));
        found.push(text);
    }
    if overview.findings.is_empty() {
        let mut text = String::new();
        line(&mut text, "More", "nothing stands out");
        found.push(text);
    }
    let (asked_for, unknown): (Vec<_>, Vec<_>) =
        overview.missing.iter().partition(|missing| missing.is_asked_for);
    let names = |missing: &[&Missing]| {
        let names = missing.iter().map(|missing| format!("{} ({})", missing.needs.what, missing.report));
        names.collect::<Vec<_>>().join(", ")
    };
    if !asked_for.is_empty() {
        line(&mut lacking, "None of", &format!("{}: recorded, and none happened", names(&asked_for)));
    }
    if !unknown.is_empty() {
        // A recording does not state its requested events.
        line(&mut lacking, "None of", &format!("{}: not recorded, or none happened", names(&unknown)));
        match unknown.as_slice() {
            [missing] => line(&mut lacking, "To record it", missing.needs.command),
            missing if messages::is_verbose() => {
                lacking.push('\n');
                for missing in missing {
                    line(&mut lacking, missing.report, missing.needs.command);
                }
            }
            _ => line(&mut lacking, "To record it", "-v lists the command for each"),
        }
    }
    let whole = format!("{memory}{text}{}\n{lacking}", found.concat());
    // The shell's prompt takes a line.
    if height.is_none_or(|height| whole.lines().count() < height) {
        return whole;
    }
    // The end stays on the screen.
    found.reverse();
    format!("{text}{lacking}\n{}{memory}", found.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::memory_use::MemoryUse;

    fn overview(findings: usize) -> Overview {
        let finding = |number| FindingRow {
            id: "gc",
            report: "gc",
            is_problem: number == 0,
            text: format!("finding {number}"),
            command: "dipc report app.nettrace gc".to_owned(),
            ..FindingRow::default()
        };
        let summary =
            Summary { memory: Some(MemoryUse::resident(1_200_000_000, 48_000_000)), ..Summary::default() };
        Overview {
            file: "app.nettrace".to_owned(),
            summary,
            findings: (0..findings).map(finding).collect(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn lists_requested_events_that_did_not_happen() {
        let missing = |report, is_asked_for, needs| Missing { report, is_asked_for, needs };
        let missing = vec![
            missing("exceptions", true, needs::EXCEPTIONS),
            missing("contention", true, contention::NEEDS),
            missing("alloc", false, needs::ALLOCATIONS),
        ];
        let text = table(&Overview { missing, ..overview(1) }, None, None);
        let end = "None of       exception events (exceptions), waits for locks (contention): recorded, and none happened\n\
                   None of       allocation events (alloc): not recorded, or none happened\n\
                   To record it  dipc trace -p PID --profile gc-verbose\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn findings_are_on_the_screen_however_long_the_output_is() {
        let text = |findings, height| table(&overview(findings), None, height);
        assert!(text(3, Some(24)).starts_with("Memory        1.20 GB resident"), "{}", text(3, Some(24)));
        assert_eq!(text(3, Some(24)), text(3, None));
        let long = text(30, Some(24));
        let last: Vec<_> = long.lines().rev().take(3).collect();
        assert!(last[0].starts_with("Memory  ") && last[2].ends_with("! finding 0"), "{long}");
        assert_eq!(long.lines().count(), text(30, None).lines().count());
    }
}
