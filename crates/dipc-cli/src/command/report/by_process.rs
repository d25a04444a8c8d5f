//! `dipc report FILE topN --by-process` and `--by-container`.

use std::time::Duration;

use nettrace_export::report::{ContainerWeight, ProcessReport, ProcessWeight};
use nettrace_export::{Measure, Profile, Unit};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::Outcome;
use crate::inspect::profile::RecordingProfile;
use crate::render::frame_name::FrameName;
use crate::render::table::{Align, Columns};
use crate::render::{output, units, width};

/// The rows of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    Process,
    Container,
}

/// The width of the name of code.
const NAME: usize = 48;
/// The digits of a container's id that its tools show.
const SHORT_ID: usize = 12;

/// The containers in the form that JSON has.
#[derive(Serialize)]
struct ContainerReport {
    metric: &'static str,
    unit: &'static str,
    total: u64,
    samples: u64,
    containers: Vec<ContainerWeight>,
}

/// Prints the processes or the containers with the most weight.
pub(super) fn print(
    read: &RecordingProfile,
    grouping: Grouping,
    number: Option<usize>,
    format: Format,
) -> Outcome {
    let mut report = ProcessReport::new(&read.profile);
    let number = number.unwrap_or(if format == Format::Json { usize::MAX } else { 10 });
    match (format, grouping) {
        (Format::Json, Grouping::Process) => {
            report.processes.truncate(number);
            output::print_json(&report)?;
        }
        (Format::Json, Grouping::Container) => {
            let mut containers = report.containers();
            containers.truncate(number);
            let ProcessReport { metric, unit, total, samples, .. } = report;
            output::print_json(&ContainerReport { metric, unit, total, samples, containers })?;
        }
        (Format::Table, Grouping::Process) => {
            let text = processes(&read.profile, report.processes.iter().take(number));
            output::print(text + &sum(read, report.processes.len(), number, ["process", "processes"]))?;
        }
        (Format::Table, Grouping::Container) => {
            let rows = report.containers();
            let text = containers(&read.profile, rows.iter().take(number));
            output::print(text + &sum(read, rows.len(), number, ["container", "containers and groups"]))?;
        }
    }
    Ok(read.exit)
}

/// A weight in words.
fn weight(measure: Measure, weight: u64) -> String {
    match measure.unit {
        Unit::Nanoseconds => units::time(Duration::from_nanos(weight)),
        Unit::Bytes => units::bytes(weight),
        _ => units::count(weight),
    }
}

fn processes<'r>(profile: &Profile, rows: impl Iterator<Item = &'r ProcessWeight>) -> String {
    let title = profile.measure.name.to_uppercase();
    let mut columns = Columns::new([
        (&*title, Align::Right),
        ("%", Align::Right),
        ("PID", Align::Right),
        ("PROCESS", Align::Left),
        ("CONTAINER", Align::Left),
        ("THREADS", Align::Right),
        ("MOST IN", Align::Left),
        ("%", Align::Right),
    ]);
    for row in rows {
        let (most, percent) = row.top.as_ref().map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |top| {
                let name = FrameName::new(&profile.frames, Some(top.frame_id), &top.frame);
                (width::cut(&name.fit(NAME), NAME), units::short_percent(top.percent))
            },
        );
        columns.row([
            weight(profile.measure, row.weight),
            units::short_percent(row.percent),
            row.pid.to_string(),
            row.name.clone().unwrap_or_else(|| "-".to_owned()),
            row.container.as_deref().map_or("-", short).to_owned(),
            units::count(row.threads),
            most,
            percent,
        ]);
    }
    columns.fitted(&[])
}

fn containers<'r>(profile: &Profile, rows: impl Iterator<Item = &'r ContainerWeight>) -> String {
    let title = profile.measure.name.to_uppercase();
    let mut columns = Columns::new([
        (&*title, Align::Right),
        ("%", Align::Right),
        ("CONTAINER", Align::Left),
        ("PROCESSES", Align::Right),
        ("MOST IN", Align::Left),
        ("CONTROL GROUP", Align::Left),
    ]);
    for row in rows {
        columns.row([
            weight(profile.measure, row.weight),
            units::short_percent(row.percent),
            row.container.as_deref().map_or("-", short).to_owned(),
            units::count(row.processes),
            row.top_process.clone().unwrap_or_else(|| "-".to_owned()),
            row.control_group.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    columns.fitted(&[])
}

fn short(id: &str) -> &str {
    id.get(..SHORT_ID).unwrap_or(id)
}

/// The line below the table.
fn sum(read: &RecordingProfile, rows: usize, number: usize, [one, many]: [&str; 2]) -> String {
    let measure = read.profile.measure;
    let samples = if measure == Measure::CPU_TIME {
        format!(" in {}", units::counted(read.profile.samples(), "sample", "samples"))
    } else {
        String::new()
    };
    let of = units::counted(rows as u64, one, many);
    let left = rows.saturating_sub(number);
    let more = if left > 0 { format!(" ({left} not shown: -n)") } else { String::new() };
    let total = weight(measure, read.profile.total());
    format!("\n{}: {total}{samples} of {of}{more}\n", measure.name)
}
