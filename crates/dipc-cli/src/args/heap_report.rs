//! The report of a heap: its arguments and its forms.

mod json;

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use clr_dump::{Address, HeapContents};
use gcdump::{Dominators, Grouping, HeapGraph, HeapReport, ReportRow, dotnet_gcdump};
use nettrace_export::NameForm;

use self::json::JsonReport;
use crate::args::generation::GenerationArg;
use crate::args::names::NameArgs;
use crate::exit::Failure;
use crate::inspect::heap::Heap;
use crate::inspect::heap_generations;
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
    /// Only the objects of this generation, of a heap in memory: 0, 1, 2, loh, poh or frozen
    #[arg(long, value_name = "GENERATION", value_enum, hide_possible_values = true)]
    generation: Option<GenerationArg>,
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
    /// Prints the report of a heap. `is_live` is whether a process was dumped for it.
    pub(crate) fn show(&self, heap: &Heap, format: ReportFormat, is_live: bool) -> Result<(), Failure> {
        let Heap { graph, contents, .. } = heap;
        if format == ReportFormat::DotnetGcdump {
            self.check_whole("--format dotnet-gcdump has the whole heap")?;
            return output::print(dotnet_gcdump::report(graph, is_live, escape_controls));
        }
        let number = self.check_generation(contents.as_ref())?;
        let mut report = match (number, contents) {
            (Some(number), Some(contents)) => self.report_of(graph, contents, number),
            _ => self.report(graph),
        };
        match self.sort {
            SortArg::Bytes => {}
            SortArg::Objects => report.rows.sort_by_key(|row| std::cmp::Reverse(row.objects)),
            SortArg::Retained => report.rows.sort_by_key(|row| std::cmp::Reverse(row.retained_bytes)),
        }
        let rows = self.head.unwrap_or(if format == ReportFormat::Table { ROWS } else { usize::MAX });
        match format {
            ReportFormat::Json => output::print_json(&JsonReport::new(&report, heap, self.by, number, rows)),
            ReportFormat::Csv => output::print(csv(&report, self.by, rows)),
            ReportFormat::Table | ReportFormat::DotnetGcdump => {
                output::print(self.table(&report, contents.as_ref(), rows))
            }
        }
    }

    /// Fails if a generation is chosen. `why` is the reason why it cannot be.
    pub(crate) fn check_whole(&self, why: &str) -> Result<(), Failure> {
        match self.generation {
            Some(_) => Err(Failure::usage(format_args!("--generation: {why}"))),
            None => Ok(()),
        }
    }

    /// Returns the number of the chosen generation; a failure if the generations of the objects are not
    /// known.
    pub(crate) fn check_generation(&self, contents: Option<&HeapContents>) -> Result<Option<u64>, Failure> {
        if contents.is_none() {
            let unknown = "the generations of objects are only known in memory";
            self.check_whole(unknown).map_err(|failure| {
                failure.with_help("dipc heap -p PID and dipc dump analyze CORE heap read memory")
            })?;
        }
        Ok(self.generation.map(GenerationArg::number))
    }

    /// Summarizes a generation of a heap with the options of the user.
    fn report_of(&self, graph: &HeapGraph, contents: &HeapContents, number: u64) -> HeapReport {
        let dominators = (!self.no_retained).then(|| Dominators::new(graph));
        let is_in = |object: gcdump::Object<'_>| {
            let address = object.address().map(Address::new);
            address.and_then(|address| contents.generation_of(address)) == Some(number)
        };
        let report = HeapReport::of_objects(graph, self.by.grouping(), dominators.as_ref(), is_in);
        warn_of_inexact(&report);
        report
    }

    /// Summarizes a heap with the options of the user.
    pub(crate) fn report(&self, graph: &HeapGraph) -> HeapReport {
        let dominators = (!self.no_retained).then(|| Dominators::new(graph));
        let report = HeapReport::new(graph, self.by.grouping(), dominators.as_ref());
        warn_of_inexact(&report);
        report
    }

    fn table(&self, report: &HeapReport, contents: Option<&HeapContents>, most: usize) -> String {
        let mut text = format!(
            "{} objects, {}, {} references",
            units::count(report.objects),
            units::bytes(report.bytes),
            units::count(report.references)
        );
        if let Some(generation) = self.generation {
            let _ = write!(text, ", of {}", clr_dump::generation_name(generation.number()));
        }
        if let Some(unreachable) = report.unreachable.filter(|unreachable| unreachable.objects > 0) {
            let _ = write!(
                text,
                "; {} objects of {} that no root reaches",
                units::count(unreachable.objects),
                units::bytes(unreachable.bytes)
            );
        }
        text.push_str("\n\n");
        if let Some(contents) = contents.filter(|_| self.generation.is_none()) {
            text.push_str(&heap_generations::table(&contents.sums(), false));
            text.push('\n');
        }
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
