//! `dipc report FILE`: what a recording says, on one screen.

mod findings;
mod gathered;

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::args::format::Format;
use crate::command::report::reading::Needs;
use crate::command::report::{alloc, contention, exceptions, gc, jit, requests, threadpool};
use crate::exit::Outcome;
use crate::inspect::profile::THREAD_SAMPLES;
use crate::render::escape::escape_controls;
use crate::render::{messages, output, units, width};
use findings::Finding;
use gathered::{Gathered, Subject};

/// The overview; the JSON form is the struct.
#[derive(Debug, Serialize)]
struct Overview {
    file: String,
    process_id: Option<u64>,
    /// The command line, if the recording says it.
    program: Option<String>,
    /// The version of the runtime, if the recording says it.
    runtime: Option<String>,
    /// RFC 3339; `None` if the recording names no calendar time.
    start: Option<String>,
    /// From the start to the last event.
    duration_ns: u64,
    bytes: u64,
    events: u64,
    lost: u64,
    lost_is_lower_bound: bool,
    truncated: bool,
    /// What is worth knowing first, the most urgent first.
    findings: Vec<Finding>,
    /// What the recording cannot tell.
    missing: Vec<Missing>,
}

/// Something that a recording has no events of.
#[derive(Debug, Serialize)]
struct Missing {
    /// The report that needs them.
    report: &'static str,
    what: &'static str,
    /// The command that records them.
    command: &'static str,
}

/// The reports, the events that they need, and their names.
const REPORTS: [(&str, Subject, &Needs); 8] = [
    ("requests", Subject::Requests, &requests::NEEDS),
    ("topN", Subject::Samples, &Needs { what: THREAD_SAMPLES.0, command: THREAD_SAMPLES.1 }),
    ("gc", Subject::Collections, &gc::NEEDS),
    ("alloc", Subject::Allocations, &alloc::NEEDS),
    ("exceptions", Subject::Exceptions, &exceptions::NEEDS),
    ("contention", Subject::Contention, &contention::NEEDS),
    ("threadpool", Subject::ThreadPool, &threadpool::NEEDS),
    ("jit", Subject::Compilation, &jit::NEEDS),
];

pub(super) fn run(file: &Path, format: Format) -> Outcome {
    let (gathered, exit) = Gathered::read(file)?;
    let missing = REPORTS.iter().filter(|(_, subject, _)| !gathered.has(*subject));
    let missing = missing
        .map(|(report, _, needs)| Missing { report, what: needs.what, command: needs.command })
        .collect();
    let overview = Overview {
        file: file.display().to_string(),
        process_id: gathered.process_id,
        program: gathered.startup.as_ref().and_then(|startup| startup.command_line.clone()),
        runtime: gathered.startup.as_ref().and_then(|startup| startup.runtime.clone()),
        start: gathered.start.clone(),
        duration_ns: u64::try_from(gathered.duration.as_nanos()).unwrap_or(u64::MAX),
        bytes: gathered.bytes,
        events: gathered.events,
        lost: gathered.lost,
        lost_is_lower_bound: gathered.lost_is_lower_bound,
        truncated: gathered.truncated,
        findings: findings::of(&gathered),
        missing,
    };
    match format {
        Format::Json => output::print_json(&overview)?,
        Format::Table => output::print(table(&overview, &gathered, width::of_output()))?,
    }
    Ok(exit)
}

/// The width of the names of reports.
const NAME: usize = 12;

fn table(overview: &Overview, gathered: &Gathered, width: Option<usize>) -> String {
    let mut text = String::new();
    let line = |text: &mut String, label: &str, value: &str| {
        let label = format!("{label:<NAME$}");
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(NAME + 2).max(20));
        for (index, part) in width::filled(&escape_controls(value), room).iter().enumerate() {
            let label = if index == 0 { label.as_str() } else { "" };
            let _ = writeln!(text, "{label:<NAME$}  {part}");
        }
    };
    let program = overview.program.as_deref().unwrap_or("a program that the recording does not name");
    let process = overview.process_id.map_or_else(String::new, |pid| format!(", process {pid}"));
    let runtime = overview.runtime.as_ref().map_or_else(String::new, |version| format!(", .NET {version}"));
    line(&mut text, "Program", &format!("{program}{process}{runtime}"));
    let start = overview.start.as_ref().map_or_else(String::new, |start| format!("{start}, "));
    let at_least = if overview.lost_is_lower_bound { "at least " } else { "" };
    let recorded = format!(
        "{start}{}; {} events in {}, {at_least}{} lost",
        units::time(gathered.duration),
        units::count(overview.events),
        units::bytes(overview.bytes),
        units::count(overview.lost),
    );
    line(&mut text, "Recorded", &recorded);
    text.push('\n');
    for finding in &overview.findings {
        let mark = if finding.is_problem { "! " } else { "" };
        line(&mut text, finding.report, &format!("{mark}{}", finding.text));
    }
    let more = if overview.findings.is_empty() {
        "nothing in it stands out"
    } else {
        "dipc report FILE and a name from the left: topN, gc, …"
    };
    let more = more.replace("FILE", &overview.file);
    let _ = writeln!(text);
    line(&mut text, "More", &more);
    if !overview.missing.is_empty() {
        let missing = overview.missing.iter().map(|missing| format!("{} ({})", missing.what, missing.report));
        line(&mut text, "Not in it", &missing.collect::<Vec<_>>().join(", "));
        match overview.missing.as_slice() {
            [missing] => line(&mut text, "To record it", missing.command),
            missing if messages::is_verbose() => {
                text.push('\n');
                for missing in missing {
                    line(&mut text, missing.report, missing.command);
                }
            }
            _ => line(&mut text, "To record it", "-v lists the command for each"),
        }
    }
    text
}
