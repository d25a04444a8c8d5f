//! `dipc edit`: a part of a recording as a recording.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use nettrace::RelativeTime;
use nettrace_writer::Version;

use crate::duration;
use crate::exit::{Failure, Outcome};
use crate::inspect::filter::Criteria;
use crate::inspect::rewrite::Rewrite;
use crate::inspect::slice::Slice;
use crate::render::messages;

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Path of the new recording; '-' is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Only events at or after this time since the recording's start
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    from: Option<Duration>,
    /// Only events before this time since the recording's start
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    to: Option<Duration>,
    /// Only events of this provider; '*' stands for any text; may be given several times
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// Only events of this name or number; '*' stands for any text; may be given several times
    #[arg(long, value_name = "NAME|ID")]
    event: Vec<String>,
    /// Only events of this thread; may be given several times
    #[arg(long, alias = "threads", value_name = "TID", value_delimiter = ',')]
    tid: Vec<u64>,
    /// Only the first N of these events in time order; reads the file twice
    #[arg(long, value_name = "N", conflicts_with = "tail")]
    head: Option<usize>,
    /// Only the last N of these events in time order; reads the file twice
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Without the stacks of events
    #[arg(long)]
    drop_stacks: bool,
    /// Write this version of the format; without it that of the recording, and 4 for those before that
    #[arg(long, value_name = "VERSION", value_enum)]
    upgrade: Option<VersionArg>,
}

/// A version that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VersionArg {
    /// Of .NET Core 3.0 and later
    #[value(name = "4")]
    V4,
    /// With names of threads, many processes and labels
    #[value(name = "6")]
    V6,
}

impl VersionArg {
    const fn version(self) -> Version {
        match self {
            Self::V4 => Version::V4,
            Self::V6 => Version::V6,
        }
    }
}

pub(crate) fn run(args: &EditArgs) -> Outcome {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        return Err(Failure::usage("--to: it is not after --from"));
    }
    let criteria = Criteria {
        threads: args.tid.clone(),
        from: args.from.map(RelativeTime::after_start),
        to: args.to.map(RelativeTime::after_start),
        ..Criteria::of_names(&args.provider, &args.event)
    };
    let mut slice = Slice::new(criteria, args.drop_stacks);
    if args.head.is_some() || args.tail.is_some() {
        if args.file.as_os_str() == "-" {
            return Err(Failure::usage("--head and --tail read a recording twice, which only a file can be"));
        }
        slice.limit(&args.file, args.head, args.tail)?;
    }
    let rewrite = Rewrite::open(&args.file, &args.output, args.upgrade.map(VersionArg::version))?;
    let rewrite = rewrite.copy(&mut slice)?;
    slice.warn_of_misses(rewrite.events.metadata());
    let (read, written) = (rewrite.read, rewrite.written);
    let (bytes, events, origin) = rewrite.finish()?;
    messages::note(format_args!("Kept           : {written} of {read} events, {bytes} bytes"));
    Ok(origin.report_damage(&events))
}
