//! `dipc report FILE startup`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use nettrace_export::report::{Startup, StartupReport};

use crate::command::report::reading::{ReadPart, ReadingArgs};
use crate::exit::Outcome;
use crate::inspect::needs::Needs;
use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns};
use crate::render::{charts, command_line, units};

const NEEDS: Needs = Needs {
    what: "events of loading and compiling",
    command: "dipc trace -p PID --clrevents loader+jit+typediagnostic+assemblyloader --clreventlevel verbose",
};

pub(super) fn run(file: &Path, args: &ReadingArgs) -> Outcome {
    let mut startup = Startup::default();
    let ReadPart { exit, .. } = args.read_session(file, Startup::needs, |event| startup.add(event))?;
    args.show(
        (file, exit),
        &NEEDS,
        startup.finish(),
        |report, rows| report.steps.truncate(rows),
        |report| table(report, args.rows()),
    )
}

fn table(report: &StartupReport, rows: usize) -> String {
    use Align::{Left, Right};
    let mut text = String::new();
    if let Some(line) = &report.command_line {
        let _ = writeln!(text, "Program  {}", escape_controls(&command_line::shortened(line)));
    }
    if let Some(runtime) = &report.runtime {
        let _ = writeln!(text, "Runtime  {}", escape_controls(runtime));
    }
    let mut sums = Columns::new([("WHAT", Left), ("COUNT", Right), ("TOOK", Right)]);
    let took = |time: Option<Duration>| time.map_or_else(|| "not recorded".to_owned(), units::time);
    for (what, count, time) in [
        ("assemblies loaded", report.assemblies, took(report.assembly_time)),
        ("methods compiled", report.methods, took(report.method_time)),
        ("precompiled methods looked up", report.precompiled, "-".to_owned()),
        ("types loaded", report.types, took(report.type_time)),
        ("exceptions thrown", report.exceptions, "-".to_owned()),
    ] {
        sums.row([what.to_owned(), units::count(count), time]);
    }
    let _ = write!(text, "{}", sums.fitted(&[]));
    if !report.steps.is_empty() {
        let mut steps = Columns::new([("AT", Right), ("WHAT", Left)]);
        for step in report.steps.iter().take(rows) {
            steps.row([units::moment(step.time.since_start()), step.what.clone()]);
        }
        let _ = write!(text, "\n{}", steps.fitted(&[]));
        let left = report.steps.len().saturating_sub(rows);
        if left > 0 {
            let _ = writeln!(text, "({left} more)");
        }
    }
    if report.methods > 0 {
        text.push_str(&charts::over_time("Methods compiled", &report.timeline));
    }
    text
}
