//! `dipc gcdump report`: the contents of a heap.

use std::time::Duration;

use clap::{ArgGroup, Args};

use crate::args::heap_report::{HeapReportArgs, ReportFormat};
use crate::args::source::SOURCES;
use crate::command::gcdump::args::HeapArgs;
use crate::duration;
use crate::exit::Outcome;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("heap").required(true).args(SOURCES).arg("file"))]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(super) heap: HeapArgs,
    #[command(flatten)]
    pub(super) report: HeapReportArgs,
    /// Format of the report
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: ReportFormat,
    /// For compatibility with the command line of dotnet-gcdump: shows its report
    #[arg(short = 't', long, value_name = "TYPE", hide = true, value_parser = ["heapstat", "HeapStat"])]
    report_type: Option<String>,
    /// Dump the heap of the process repeatedly, at this interval, and show the types that only grow
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "file")]
    pub(super) watch: Option<Duration>,
    /// The number of dumps for --watch
    #[arg(long, value_name = "N", default_value_t = 5, requires = "watch", value_parser = clap::value_parser!(u32).range(2..))]
    pub(super) count: u32,
}

pub(crate) fn run(args: &ReportArgs) -> Outcome {
    let format = if args.report_type.is_some() { ReportFormat::DotnetGcdump } else { args.format };
    let is_live = args.heap.file.is_none();
    args.heap.with_heap(|heap| args.report.show(heap, format, is_live))
}
