//! `dipc gcdump report -p PID --watch TIME`: the types that only grow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use gcdump::{HeapReport, ReportRow};
use serde::Serialize;

use crate::args::heap_report::{ROWS, ReportFormat, csv_cell, name};
use crate::command::gcdump::args::DumpedProcess;
use crate::command::gcdump::report::ReportArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::render::table::{Align, Columns};
use crate::render::units::{self, signed};
use crate::render::{messages, output};

/// The number of steps in which a group has to grow, if there are that many: the first session makes the
/// runtime itself allocate.
const MIN_STEPS: usize = 2;

pub(super) fn run(args: &ReportArgs, interval: Duration) -> Outcome {
    let (dump, count) = (&args.heap.dump, args.count);
    if args.format == ReportFormat::DotnetGcdump {
        return Err(Failure::usage("--watch shows a table, json or csv: dotnet-gcdump has no such report"));
    }
    args.report.check_generation(None)?;
    let mut process = DumpedProcess::open(dump)?;
    let mut reports: Vec<HeapReport> = Vec::new();
    let mut exit = Exit::Done;
    for number in 0..count {
        let outcome = if number == 0 { Ok(()) } else { process.wait(interval) };
        match outcome.and_then(|()| process.dump()) {
            Ok(heap) => {
                let compute = || args.report.report(&heap.graph);
                // From the third dump on, an interrupt shows the growth so far.
                let report = match reports.len() {
                    0 | 1 => process.interrupts.while_computing(compute),
                    _ => compute(),
                };
                messages::note(format_args!(
                    "Dump {} of {count}    : {} objects, {}",
                    number + 1,
                    units::count(report.objects),
                    units::bytes(report.bytes)
                ));
                exit = heap.exit.join(exit);
                reports.push(report);
            }
            // The user interrupted, or the process has ended: two dumps suffice for a comparison.
            Err(failure) if reports.len() >= 2 => {
                messages::warning(format_args!("ended after {} of {count} dumps: {failure}", reports.len()));
                exit = if process.interrupts.count() > 0 { exit } else { Exit::Incomplete };
                break;
            }
            Err(failure) => return Err(failure),
        }
    }
    show(args, &reports)?;
    process.end(exit)
}

/// A group of objects in each of the dumps.
struct History<'r> {
    row: &'r ReportRow,
    objects: Vec<u64>,
    bytes: Vec<u64>,
    retained: Vec<Option<u64>>,
}

impl History<'_> {
    fn bytes_grown(&self) -> u64 {
        grown(&self.bytes)
    }

    fn retained_grown(&self) -> Option<i128> {
        let (first, last) = (self.retained.first().copied()??, self.retained.last().copied()??);
        Some(i128::from(last) - i128::from(first))
    }
}

fn grown(numbers: &[u64]) -> u64 {
    let (first, last) = (numbers.first().copied(), numbers.last().copied());
    last.unwrap_or_default().saturating_sub(first.unwrap_or_default())
}

/// The groups that only grow, by growth, largest first.
fn growing(reports: &[HeapReport]) -> Vec<History<'_>> {
    let mut histories: BTreeMap<(&str, &str), History<'_>> = BTreeMap::new();
    for (number, report) in reports.iter().enumerate() {
        for row in &report.rows {
            let history = histories.entry((&row.name, &row.module)).or_insert_with(|| History {
                row,
                objects: vec![0; reports.len()],
                bytes: vec![0; reports.len()],
                retained: vec![row.retained_bytes.map(|_| 0); reports.len()],
            });
            history.objects[number] += row.objects;
            history.bytes[number] += row.bytes;
            let retained = history.retained[number].zip(row.retained_bytes);
            history.retained[number] = retained.map(|(one, other)| one.saturating_add(other));
        }
    }
    let mut growing: Vec<_> = histories.into_values().filter(|history| only_grows(&history.bytes)).collect();
    growing.sort_by_key(|history| std::cmp::Reverse(history.bytes_grown()));
    growing
}

/// Returns true if sizes never shrink, and, if there are more than two, grow more than once.
fn only_grows(bytes: &[u64]) -> bool {
    let steps = || bytes.iter().zip(bytes.iter().skip(1));
    let grown = steps().filter(|(before, after)| before < after).count();
    steps().all(|(before, after)| before <= after) && grown >= MIN_STEPS.min(bytes.len() - 1)
}

fn show(args: &ReportArgs, reports: &[HeapReport]) -> Result<(), Failure> {
    let growing = growing(reports);
    let rows = args.report.head.unwrap_or(if args.format == ReportFormat::Table { ROWS } else { usize::MAX });
    match args.format {
        ReportFormat::Json => {
            let rows = growing.iter().take(rows).map(JsonGrowth::new).collect();
            output::print_json(&JsonWatch { by: args.report.by.key(), dumps: reports.len(), rows })
        }
        ReportFormat::Csv => {
            let mut text =
                format!("{},csharp,module,dump,objects,bytes,retained_bytes\n", args.report.by.key());
            for history in growing.iter().take(rows) {
                for (number, bytes) in history.bytes.iter().enumerate() {
                    let row = history.row;
                    let _ = writeln!(
                        text,
                        "{},{},{},{},{},{bytes},{}",
                        csv_cell(&row.name),
                        csv_cell(&row.csharp),
                        csv_cell(&row.module),
                        number + 1,
                        history.objects[number],
                        history.retained[number].map(|bytes| bytes.to_string()).unwrap_or_default()
                    );
                }
            }
            output::print(text)
        }
        ReportFormat::Table | ReportFormat::DotnetGcdump => output::print(table(args, &growing, rows)),
    }
}

fn table(args: &ReportArgs, growing: &[History<'_>], rows: usize) -> String {
    use Align::{Left, Right};
    if growing.is_empty() {
        return "Nothing only grows.\n".to_owned();
    }
    let mut columns = Columns::new([
        ("GREW BY", Right),
        ("OBJECTS", Right),
        ("RETAINED", Right),
        ("BYTES IN EACH DUMP", Left),
        (args.report.by.heading(), Left),
    ]);
    for history in growing.iter().take(rows) {
        let bytes: Vec<_> = history.bytes.iter().map(|bytes| units::bytes(*bytes)).collect();
        columns.row([
            units::bytes(history.bytes_grown()),
            signed(
                i128::from(*history.objects.last().unwrap_or(&0))
                    - i128::from(*history.objects.first().unwrap_or(&0)),
                units::count,
            ),
            history.retained_grown().map_or_else(|| "-".to_owned(), |grown| signed(grown, units::bytes)),
            bytes.join(", "),
            name(history.row, args.report.names.form()).to_owned(),
        ]);
    }
    let mut text = columns.fitted(&["BYTES IN EACH DUMP", "RETAINED"]);
    let left = growing.len().saturating_sub(rows);
    if left > 0 {
        let _ = writeln!(text, "({left} more)");
    }
    text
}

#[derive(Serialize)]
struct JsonWatch<'a> {
    by: &'static str,
    dumps: usize,
    rows: Vec<JsonGrowth<'a>>,
}

#[derive(Serialize)]
struct JsonGrowth<'a> {
    name: &'a str,
    csharp: &'a str,
    module: &'a str,
    objects: &'a [u64],
    bytes: &'a [u64],
    retained_bytes: &'a [Option<u64>],
}

impl<'a> JsonGrowth<'a> {
    fn new(history: &'a History<'_>) -> Self {
        Self {
            name: &history.row.name,
            csharp: &history.row.csharp,
            module: &history.row.module,
            objects: &history.objects,
            bytes: &history.bytes,
            retained_bytes: &history.retained,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_types_that_shrink_or_grow_only_once() {
        for (bytes, expected) in [
            (&[1, 2][..], true),
            (&[2, 2], false),
            (&[1, 2, 3], true),
            (&[1, 2, 2], false),
            (&[1, 1, 2, 3], true),
            (&[1, 2, 3, 2, 9], false),
            (&[0, 5, 5, 5, 6], true),
        ] {
            assert_eq!(only_grows(bytes), expected, "{bytes:?}");
        }
        assert_eq!((signed(-1500, units::bytes), signed(2, units::count)), ("-1.50 KB".into(), "+2".into()));
    }
}
