//! `dipc gcdump report`: the contents of a heap.

use std::fmt::Write as _;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use gcdump::{Completeness, Dominators, HeapGraph, HeapReport, ReportRow, dotnet_gcdump};
use nettrace_export::NameForm;
use serde::Serialize;

use crate::args::names::NameArgs;
use crate::args::source::SOURCES;
use crate::command::gcdump::args::{GroupingArg, HeapArgs, csv_cell, or_none};
use crate::command::gcdump::growth;
use crate::duration;
use crate::exit::{Failure, Outcome};
use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns};
use crate::render::{messages, output, units};

/// The default number of rows of a table.
pub(super) const ROWS: usize = 30;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("heap").required(true).args(SOURCES).arg("file"))]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    heap: HeapArgs,
    /// Property that objects are grouped by
    #[arg(long, value_enum, default_value_t)]
    pub(super) by: GroupingArg,
    /// Order of the groups, largest first
    #[arg(long, value_enum, default_value_t)]
    sort: SortArg,
    /// Number of groups to show [default: 30 in a table, else all]
    #[arg(long, value_name = "N")]
    pub(super) head: Option<usize>,
    /// Leave out retained sizes, whose computation takes 36 bytes per object and 4 per reference
    #[arg(long)]
    pub(super) no_retained: bool,
    #[command(flatten)]
    pub(super) names: NameArgs,
    /// Format of the report
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: ReportFormat,
    /// For compatibility with the command line of dotnet-gcdump: shows its report
    #[arg(short = 't', long, value_name = "TYPE", hide = true, value_parser = ["heapstat", "HeapStat"])]
    report_type: Option<String>,
    /// Dump the heap of the process repeatedly, at this interval, and show the types that only grow
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "file")]
    watch: Option<Duration>,
    /// The number of dumps for --watch
    #[arg(long, value_name = "N", default_value_t = 5, requires = "watch", value_parser = clap::value_parser!(u32).range(2..))]
    count: u32,
}

/// The order of groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Bytes of the objects themselves
    #[default]
    Bytes,
    /// The number of objects
    Objects,
    /// Bytes that would be free without all objects of the group
    Retained,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people
    #[default]
    Table,
    /// For programs: one object
    Json,
    /// For spreadsheets: one line per group
    Csv,
    /// The text of dotnet-gcdump report, whose sizes are those of each type's first object
    #[value(alias = "heapstat")]
    DotnetGcdump,
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    if let Some(interval) = args.watch {
        return growth::run(args, &args.heap.dump, interval, args.count);
    }
    args.heap.with_heap(|graph| args.show(graph))
}

impl ReportArgs {
    fn show(&self, graph: &HeapGraph) -> Result<(), Failure> {
        let is_live = self.heap.file.is_none();
        if self.format == ReportFormat::DotnetGcdump || self.report_type.is_some() {
            return output::print(dotnet_gcdump::report(graph, is_live, escape_controls));
        }
        let mut report = self.report(graph);
        match self.sort {
            SortArg::Bytes => {}
            SortArg::Objects => report.rows.sort_by_key(|row| std::cmp::Reverse(row.objects)),
            SortArg::Retained => report.rows.sort_by_key(|row| std::cmp::Reverse(row.retained_bytes)),
        }
        let rows = self.head.unwrap_or(if self.format == ReportFormat::Table { ROWS } else { usize::MAX });
        match self.format {
            ReportFormat::Json => {
                output::print_json(&JsonReport::new(&report, graph.completeness(), self.by, rows))
            }
            ReportFormat::Csv => output::print(csv(&report, self.by, rows)),
            ReportFormat::Table | ReportFormat::DotnetGcdump => output::print(self.table(&report, rows)),
        }
    }

    /// Summarizes a heap with the options of the user.
    pub(super) fn report(&self, graph: &HeapGraph) -> HeapReport {
        let dominators = (!self.no_retained).then(|| Dominators::new(graph));
        let report = HeapReport::new(graph, self.by.grouping(), dominators.as_ref());
        warn_of_inexact(&report);
        report
    }

    fn table(&self, report: &HeapReport, most: usize) -> String {
        let mut text = format!(
            "{} objects, {}, {} references",
            units::count(report.objects),
            units::bytes(report.bytes),
            units::count(report.references)
        );
        if let Some(unreachable) = report.unreachable.filter(|unreachable| unreachable.objects > 0) {
            let _ = write!(
                text,
                "; {} objects of {} that no root reaches",
                units::count(unreachable.objects),
                units::bytes(unreachable.bytes)
            );
        }
        text.push_str("\n\n");
        let rows = report.rows.iter().take(most);
        let retained = |row: &ReportRow| {
            let bytes = row.retained_bytes.map_or_else(|| "-".to_owned(), units::bytes);
            if row.retains_more { format!("≥ {bytes}") } else { bytes }
        };
        if self.by == GroupingArg::Type {
            use Align::{Left, Right};
            let mut columns = Columns::new([
                ("BYTES", Right),
                ("OBJECTS", Right),
                ("RETAINED", Right),
                ("FIRST OBJECT", Right),
                ("MODULE", Left),
                ("TYPE", Left),
            ]);
            for row in rows {
                columns.row([
                    units::bytes(row.bytes),
                    units::count(row.objects),
                    retained(row),
                    units::bytes(row.first_bytes),
                    row.module.clone(),
                    name(row, self.names.form()).to_owned(),
                ]);
            }
            text.push_str(&columns.fitted(&["FIRST OBJECT", "MODULE"]));
        } else {
            use Align::{Left, Right};
            let mut columns = Columns::new([
                ("BYTES", Right),
                ("OBJECTS", Right),
                ("RETAINED", Right),
                (self.by.heading(), Left),
            ]);
            for row in rows {
                columns.row([
                    units::bytes(row.bytes),
                    units::count(row.objects),
                    retained(row),
                    or_none(&row.name).to_owned(),
                ]);
            }
            text.push_str(&columns.fitted(&[]));
        }
        let left = report.rows.len().saturating_sub(most);
        if left > 0 {
            let _ = writeln!(text, "({left} more)");
        }
        text
    }
}

/// Warns of retained sizes that are smaller than the memory that would be freed.
pub(super) fn warn_of_inexact(report: &HeapReport) {
    let count = report.rows.iter().filter(|row| row.retains_more).count();
    if count > 0 {
        messages::warning(format_args!(
            "retained bytes of {} groups are sums of what each object retains alone: the heap has too many groups for exact ones",
            units::count(count as u64)
        ));
        messages::help("--by module and --by namespace have fewer groups");
    }
}

/// Returns the name of a group in the form that the user chose.
pub(super) fn name(row: &ReportRow, form: NameForm) -> &str {
    or_none(match form {
        NameForm::Full => &row.name,
        _ => &row.csharp,
    })
}

fn csv(report: &HeapReport, by: GroupingArg, rows: usize) -> String {
    let mut text =
        format!("{},csharp,module,objects,bytes,first_object_bytes,retained_bytes,retains_more\n", by.key());
    for row in report.rows.iter().take(rows) {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{}",
            csv_cell(&row.name),
            csv_cell(&row.csharp),
            csv_cell(&row.module),
            row.objects,
            row.bytes,
            row.first_bytes,
            row.retained_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            row.retains_more
        );
    }
    text
}

/// A report as JSON.
#[derive(Serialize)]
struct JsonReport<'a> {
    by: &'static str,
    objects: u64,
    bytes: u64,
    references: u64,
    unreachable_objects: Option<u64>,
    unreachable_bytes: Option<u64>,
    complete: bool,
    missing: JsonMissing,
    rows: Vec<JsonRow<'a>>,
}

/// The missing parts of a heap, as JSON.
#[derive(Serialize)]
struct JsonMissing {
    cut: bool,
    lost_events: u64,
    object_events: u64,
    reference_events: u64,
    root_events: u64,
    objects_without_references: u64,
    unused_references: u64,
    dangling_references: u64,
    objects_of_unknown_types: u64,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    name: &'a str,
    csharp: &'a str,
    module: &'a str,
    objects: u64,
    bytes: u64,
    first_object_bytes: u64,
    retained_bytes: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retains_more: bool,
}

impl<'a> JsonReport<'a> {
    fn new(report: &'a HeapReport, missing: &Completeness, by: GroupingArg, rows: usize) -> Self {
        let row = |row: &'a ReportRow| JsonRow {
            name: &row.name,
            csharp: &row.csharp,
            module: &row.module,
            objects: row.objects,
            bytes: row.bytes,
            first_object_bytes: row.first_bytes,
            retained_bytes: row.retained_bytes,
            retains_more: row.retains_more,
        };
        Self {
            by: by.key(),
            objects: report.objects,
            bytes: report.bytes,
            references: report.references,
            unreachable_objects: report.unreachable.map(|unreachable| unreachable.objects),
            unreachable_bytes: report.unreachable.map(|unreachable| unreachable.bytes),
            complete: missing.is_complete(),
            missing: JsonMissing {
                cut: missing.is_cut,
                lost_events: missing.lost_events,
                object_events: missing.object_gaps,
                reference_events: missing.reference_gaps,
                root_events: missing.root_gaps,
                objects_without_references: missing.objects_without_references,
                unused_references: missing.unused_references,
                dangling_references: missing.dangling_references,
                objects_of_unknown_types: missing.objects_of_unknown_types,
            },
            rows: report.rows.iter().take(rows).map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {

    use gcdump::Grouping;

    use super::*;

    #[test]
    fn lower_bounds_of_retained_bytes_are_marked_in_csv() {
        let graph = gcdump::file::read(&testdata::bytes("gcdump/files/net10.gcdump.xz")).unwrap();
        let mut report = HeapReport::new(&graph, Grouping::Type, Some(&Dominators::new(&graph)));
        report.rows[1].retains_more = true;
        let text = csv(&report, GroupingArg::Type, 3);
        let last: Vec<_> = text.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
        assert_eq!(last, ["retains_more", "false", "true", "false"]);
    }
}
