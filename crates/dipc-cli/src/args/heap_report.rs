//! The report of a heap: its arguments and its forms.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use gcdump::{Completeness, Dominators, Grouping, HeapGraph, HeapReport, ReportRow, dotnet_gcdump};
use nettrace_export::NameForm;
use serde::Serialize;

use crate::args::names::NameArgs;
use crate::exit::Failure;
use crate::inspect::memory_use::MemoryUse;
use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns};
use crate::render::{messages, output, units};

/// The default number of rows of a table.
pub(crate) const ROWS: usize = 30;

/// The content and the order of a report.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct HeapReportArgs {
    /// Property that objects are grouped by
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: GroupingArg,
    /// Order of the groups, largest first
    #[arg(long, value_enum, default_value_t)]
    sort: SortArg,
    /// Number of groups to show [default: 30 in a table, else all]
    #[arg(long = "rows", alias = "head", value_name = "N")]
    pub(crate) head: Option<usize>,
    /// Leave out retained sizes, which take 36 bytes of memory per object and 4 per reference to compute
    #[arg(long)]
    pub(crate) no_retained: bool,
    #[command(flatten)]
    pub(crate) names: NameArgs,
}

/// The order of groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Bytes of the objects themselves
    #[default]
    Bytes,
    /// The number of objects
    Objects,
    /// Bytes that would be freed if all objects of the group were gone
    Retained,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    #[default]
    Table,
    /// For programs: one object
    Json,
    /// For spreadsheets: one line per group
    Csv,
    /// The output of dotnet-gcdump report, which takes each type's sizes from its first object
    #[value(alias = "heapstat")]
    DotnetGcdump,
}

impl HeapReportArgs {
    /// Prints the report of a heap. `is_live` is whether a process was dumped for it; `memory` is around it.
    pub(crate) fn show(
        &self,
        graph: &HeapGraph,
        memory: Option<MemoryUse>,
        format: ReportFormat,
        is_live: bool,
    ) -> Result<(), Failure> {
        if format == ReportFormat::DotnetGcdump {
            return output::print(dotnet_gcdump::report(graph, is_live, escape_controls));
        }
        let mut report = self.report(graph);
        match self.sort {
            SortArg::Bytes => {}
            SortArg::Objects => report.rows.sort_by_key(|row| std::cmp::Reverse(row.objects)),
            SortArg::Retained => report.rows.sort_by_key(|row| std::cmp::Reverse(row.retained_bytes)),
        }
        let rows = self.head.unwrap_or(if format == ReportFormat::Table { ROWS } else { usize::MAX });
        match format {
            ReportFormat::Json => {
                output::print_json(&JsonReport::new(&report, memory, graph.completeness(), self.by, rows))
            }
            ReportFormat::Csv => output::print(csv(&report, self.by, rows)),
            ReportFormat::Table | ReportFormat::DotnetGcdump => output::print(self.table(&report, rows)),
        }
    }

    /// Summarizes a heap with the options of the user.
    pub(crate) fn report(&self, graph: &HeapGraph) -> HeapReport {
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
pub(crate) fn warn_of_inexact(report: &HeapReport) {
    let count = report.rows.iter().filter(|row| row.retains_more).count();
    if count > 0 {
        messages::warning(format_args!(
            "retained bytes of {} groups are sums over single objects: the heap has too many groups for exact values",
            units::count(count as u64)
        ));
        messages::help("--by module and --by namespace have fewer groups");
    }
}

/// Returns the name of a group in the form that the user chose.
pub(crate) fn name(row: &ReportRow, form: NameForm) -> &str {
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
    /// The memory of the process or the core dump; null if the heap is not of its memory.
    memory: Option<MemoryUse>,
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
    fn new(
        report: &'a HeapReport,
        memory: Option<MemoryUse>,
        missing: &Completeness,
        by: GroupingArg,
        rows: usize,
    ) -> Self {
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
            memory,
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

/// The property by which objects are grouped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupingArg {
    /// By type
    #[default]
    Type,
    /// By the type's module
    Module,
    /// By the type's namespace
    Namespace,
}

impl GroupingArg {
    /// Returns the grouping that the argument stands for.
    pub(crate) const fn grouping(self) -> Grouping {
        match self {
            Self::Type => Grouping::Type,
            Self::Module => Grouping::Module,
            Self::Namespace => Grouping::Namespace,
        }
    }

    /// The heading of a table.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Type => "TYPE",
            Self::Module => "MODULE",
            Self::Namespace => "NAMESPACE",
        }
    }

    /// The name in JSON.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Module => "module",
            Self::Namespace => "namespace",
        }
    }
}

/// Returns the name of a group of objects, or a placeholder for unnamed groups.
pub(crate) fn or_none(name: &str) -> &str {
    if name.is_empty() { "(none)" } else { name }
}

/// A text as a cell of CSV.
pub(crate) fn csv_cell(text: &str) -> String {
    format!("\"{}\"", escape_controls(text).replace('"', "\"\""))
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
