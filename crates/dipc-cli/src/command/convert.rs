//! `dipc convert`: a recording as a profile that other programs open.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::format::ConvertFormat;
use crate::args::profile::{MetricArg, ProfileArgs};
use crate::exit::{Failure, Outcome};
use crate::inspect::export::{Export, ExportFormat};

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Format to convert to
    #[arg(short, long, value_enum, ignore_case = true)]
    pub(crate) format: ConvertFormat,
    /// Path of the result; '-' is standard output [default: the recording's name with the format's extension]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Metric of the profile
    #[arg(long, value_enum)]
    pub(crate) by: Option<MetricArg>,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    /// Separate threads in formats that show no time: each thread is the first frame of its stacks
    #[arg(long)]
    pub(crate) by_thread: bool,
    /// Put an apostrophe before csv cells that begin with =, +, - or @, which a spreadsheet would take for
    /// formulas
    #[arg(long)]
    pub(crate) for_spreadsheets: bool,
}

pub(crate) fn run(args: &ConvertArgs) -> Outcome {
    let Some(format) = args.format.export_format() else {
        return Err(Failure::usage("a recording is in the nettrace format already"));
    };
    if args.for_spreadsheets && args.format != ConvertFormat::Csv {
        return Err(Failure::usage("--for-spreadsheets is for csv: other formats have no cells"));
    }
    let profile = args.profile.options(&args.file)?;
    if format == ExportFormat::Events && (args.by.is_some() || profile.changes_stacks()) {
        return Err(Failure::usage(
            "jsonl has events, not stacks: --by, --root, --hide, --fold-recursion, --async, --by-task and --by-request do not apply",
        ));
    }
    let export = Export {
        file: &args.file,
        format,
        output: args.output.as_deref(),
        metric: args.by.map(MetricArg::metric),
        profile,
        by_thread: args.by_thread,
        for_spreadsheets: args.for_spreadsheets,
    };
    export.write()
}
