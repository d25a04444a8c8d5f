//! The view of a heap in memory: its arguments and its forms.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use gcdump::page::HeapPage;
use nettrace_export::NameForm;
use serde::Serialize;

use crate::args::heap_report::{HeapReportArgs, ReportFormat};
use crate::duration;
use crate::exit::Failure;
use crate::inspect::heap::Heap;
use crate::render::destination::Destination;
use crate::render::output;
use crate::render::output_file::NameOrigin;

/// The report of a heap, and the time for which a process is stopped for it.
#[derive(Debug, Clone, Args)]
pub(crate) struct HeapViewArgs {
    #[command(flatten)]
    report: HeapReportArgs,
    /// Stop the process while its heap is read, for at most this time. By default it keeps running, and
    /// objects that it allocates or a collection moves meanwhile can be missing
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) stop: Option<Duration>,
    /// Path of the page for --format html [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// The format of a view of a core dump or a process's memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MemoryFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For spreadsheets, for heaps only: one line per group
    Csv,
    /// A page about a heap with treemap, dominator tree, types and paths from roots; opens in any browser,
    /// loads nothing
    Html,
}

/// A failure for programs, which read an object in any case.
#[derive(Debug, Serialize)]
struct FailureReport<'f> {
    error: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'f str>,
}

impl MemoryFormat {
    /// Prints a failure as JSON, if that is the format, for a command that has printed nothing else.
    pub(crate) fn print_failure(self, failure: &Failure) {
        if self == Self::Json && !failure.message.is_empty() {
            let report = FailureReport { error: &failure.message, help: failure.help.as_deref() };
            // A reader that has gone needs no error either.
            let _ = output::print_json(&report);
        }
    }
}

impl HeapViewArgs {
    /// Prints a heap. `title` is the page's title.
    pub(crate) fn show(&self, heap: &Heap, title: &str, format: MemoryFormat) -> Result<(), Failure> {
        let graph = &heap.graph;
        let report = match format {
            MemoryFormat::Table => ReportFormat::Table,
            MemoryFormat::Json => ReportFormat::Json,
            MemoryFormat::Csv => ReportFormat::Csv,
            MemoryFormat::Html => {
                self.report.check_whole("--format html is a page of the whole heap")?;
                let page =
                    HeapPage::new(graph, title).with_full_names(self.report.names.form() == NameForm::Full);
                let out = Destination::create(self.output.as_deref(), NameOrigin::User)?;
                return out.write_with(|out| page.write(out));
            }
        };
        if self.output.is_some() {
            return Err(Failure::usage(
                "--output FILE is for --format html; other formats go to standard output",
            ));
        }
        let mostly_other = heap.memory.and_then(|memory| memory.mostly_other());
        if let Some(memory) = mostly_other.filter(|_| format == MemoryFormat::Table) {
            output::print(format!("Memory: {memory}\n"))?;
        }
        self.report.show(heap, report, false)
    }
}
