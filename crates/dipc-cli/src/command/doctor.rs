//! `dipc doctor`: the reasons that a process cannot be seen or reached.

mod diagnosis;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use dipc_doctor::{Examination, Finding, Status};
use serde::Serialize;

use self::diagnosis::Examined;

use crate::args::candidates;
use crate::args::format::Format;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::process::candidates::application_name;
use crate::process::info::timeouts;
use crate::process::query;
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::render::output;
use crate::render::table::{self, Align, Columns};

/// The processes to examine: one, those of a name, or all that look like .NET.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The process id [default: every process that looks like .NET]
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(candidates::pids))]
    pub(crate) process_id: Option<u32>,
    /// The name of the process, or else of its entry assembly
    #[arg(short, long, value_name = "NAME", conflicts_with = "process_id", add = ArgValueCandidates::new(candidates::names))]
    pub(crate) name: Option<String>,
    /// Format of the findings
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Time limit for each runtime's answer
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "2s")]
    pub(crate) timeout: Duration,
}

/// The number of processes examined at the same time. The examination reads a process's program and
/// libraries.
const AT_ONCE: usize = 16;

pub(crate) fn run(args: &DoctorArgs) -> Outcome {
    let tmpdir = tmpdir();
    let (pids, host) = match (args.process_id, &args.name) {
        (Some(pid), _) => (vec![pid], Vec::new()),
        (None, Some(name)) => (by_name(name)?, Vec::new()),
        (None, None) => {
            let discovery = dipc_transport::discover();
            (dipc_doctor::find_candidates(&discovery), dipc_doctor::check_host(&discovery, &tmpdir))
        }
    };
    let processes = query::run_concurrently(&pids, AT_ONCE, |&pid| {
        Examined::new(dipc_doctor::examine(pid, &tmpdir, timeouts(args.timeout)))
    });
    let all = args.process_id.is_none() && args.name.is_none();
    match args.format {
        Format::Json => output::print_json(&Report::new(&processes, &host))?,
        Format::Table if all => output::print(overview(&processes, &host))?,
        Format::Table => {
            let texts: Vec<_> = processes.iter().map(|process| examination(process, Status::Ok)).collect();
            output::print(texts.join("\n"))?;
        }
    }
    if all && processes.is_empty() {
        messages::note("No process looks like .NET.");
    }
    let reached = processes.iter().all(|examined| examined.process.reachable);
    Ok(if reached { Exit::Done } else { Exit::NotReachable })
}

/// Returns the folder that tools search if they know only their own environment.
fn tmpdir() -> PathBuf {
    let tmpdir = std::env::var_os("TMPDIR").filter(|tmpdir| !tmpdir.is_empty());
    tmpdir.map_or_else(|| "/tmp".into(), PathBuf::from)
}

fn by_name(name: &str) -> Result<Vec<u32>, Failure> {
    let pids = dipc_doctor::find_by_name(name, &dipc_transport::discover());
    if pids.is_empty() {
        let missing = format_args!("find: process '{name}': no process has that name");
        return Err(Failure::new(Exit::NotReachable, missing)
            .with_help("dipc doctor without -n lists every process that looks like .NET"));
    }
    Ok(pids)
}

/// Formats all processes as a table, and below it the problems of unreachable processes.
fn overview(processes: &[Examined], host: &[Finding]) -> String {
    let mut columns = Columns::new([
        ("PID", Align::Right),
        ("NAME", Align::Left),
        ("RUNTIME", Align::Left),
        ("REACHED", Align::Left),
        ("PROBLEMS", Align::Left),
    ]);
    for Examined { process, .. } in processes {
        let problems = process.findings.iter().filter(|finding| finding.status >= Status::Warning);
        let problems: Vec<_> = problems.map(|finding| finding.check.name()).collect();
        columns.row([
            process.pid.to_string(),
            application(process).unwrap_or_else(|| "-".to_owned()),
            process.runtime.clone().unwrap_or_else(|| "-".to_owned()),
            if process.reachable { "yes" } else { "no" }.to_owned(),
            if problems.is_empty() { "-".to_owned() } else { problems.join(", ") },
        ]);
    }
    let mut text = if processes.is_empty() { String::new() } else { columns.fitted(&["RUNTIME"]) + "\n" };
    for examined in processes.iter().filter(|examined| !examined.process.reachable) {
        text += &examination(examined, Status::Problem);
        text.push('\n');
    }
    text + &table::heading("All processes") + &lines(host, Status::Ok)
}

/// Returns the name of the program, or of the assembly that `dotnet` runs.
fn application(process: &Examination) -> Option<String> {
    process.name.as_deref().map(|name| application_name(process.pid, name))
}

/// Formats a process and its findings, from this status on.
fn examination(examined: &Examined, from: Status) -> String {
    let Examined { process, cause } = examined;
    let name = application(process).map_or_else(String::new, |name| format!(" ({name})"));
    let verdict = if process.reachable { "can be reached" } else { "cannot be reached" };
    let title = format!("Process {}{name} {verdict}", process.pid);
    let why = cause.as_ref().map_or_else(String::new, |cause| {
        let style = style(Status::Problem);
        format!(
            "{style}{:<7}{style:#}  {:<13}  {cause}\n{:24}fix: {} says more\n",
            Status::Problem,
            "diagnosis",
            "",
            examined.command()
        )
    });
    table::heading(&escape_controls(&title)) + &lines(&process.findings, from) + &why
}

fn lines(findings: &[Finding], from: Status) -> String {
    findings.iter().filter(|finding| finding.status >= from).map(line).collect()
}

fn line(finding: &Finding) -> String {
    let style = style(finding.status);
    let words = words::describe(finding);
    let first = format!(
        "{style}{:<7}{style:#}  {:<13}  {}\n",
        finding.status,
        finding.check,
        escape_controls(&words.seen)
    );
    let details = [("cause", words.cause), ("fix", words.fix)].into_iter();
    let details =
        details.filter_map(|(label, text)| Some(format!("{:24}{label}: {}\n", "", escape_controls(&text?))));
    first + &details.collect::<String>()
}

fn style(status: Status) -> Style {
    match status {
        Status::Ok => AnsiColor::Green.on_default(),
        Status::Unknown => Style::new(),
        Status::Warning => AnsiColor::Yellow.on_default().bold(),
        Status::Problem => AnsiColor::Red.on_default().bold(),
    }
}

/// The JSON form.
#[derive(Serialize)]
struct Report<'f> {
    processes: Vec<ProcessReport<'f>>,
    /// Empty if a process was named.
    #[serde(rename = "surroundings")]
    host: Vec<FindingReport>,
}

#[derive(Serialize)]
struct ProcessReport<'f> {
    pid: u32,
    name: Option<&'f str>,
    entry_assembly: Option<String>,
    clr_version: Option<&'f str>,
    reachable: bool,
    /// The first cause that its memory shows, of a runtime that does not answer.
    diagnosis: Option<&'f str>,
    findings: Vec<FindingReport>,
}

#[derive(Serialize)]
struct FindingReport {
    check: &'static str,
    status: &'static str,
    seen: String,
    cause: Option<String>,
    fix: Option<String>,
}

impl<'f> Report<'f> {
    fn new(processes: &'f [Examined], host: &[Finding]) -> Self {
        let findings = |findings: &[Finding]| findings.iter().map(FindingReport::new).collect();
        let process = |Examined { process, cause }: &'f Examined| ProcessReport {
            pid: process.pid,
            name: process.name.as_deref(),
            entry_assembly: dipc_doctor::entry_assembly(process.pid),
            clr_version: process.runtime.as_deref(),
            reachable: process.reachable,
            diagnosis: cause.as_deref(),
            findings: findings(&process.findings),
        };
        Self { processes: processes.iter().map(process).collect(), host: findings(host) }
    }
}

impl FindingReport {
    fn new(finding: &Finding) -> Self {
        let words = words::describe(finding);
        Self {
            check: finding.check.name(),
            status: finding.status.name(),
            seen: words.seen,
            cause: words.cause,
            fix: words.fix,
        }
    }
}
