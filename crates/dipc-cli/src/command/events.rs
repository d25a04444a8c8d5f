//! `dipc events`: the events of a recording or of a process, one by one.

mod live;
mod live_selection;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use nettrace_edit::Criteria;

use crate::args::lines::LineArgs;
use crate::args::selection::SelectionArgs;
use crate::args::source::{SOURCES, SourceArgs};
use crate::args::stopping::StoppingArgs;
use crate::args::times::TimeArgs;
use crate::duration;
use crate::exit::{Failure, Outcome};
use crate::inspect::event_list::{self, EventList, ListFormat};
use crate::render::destination::Destination;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).arg("file").args(SOURCES))]
pub(crate) struct EventsArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) process: SourceArgs,
    /// Format of the events
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: EventsFormat,
    /// Order of the events
    #[arg(long, value_enum, default_value_t)]
    pub(crate) order: Order,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// Show the stack of each event, as addresses
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Show the stack of each event, as names; reads the file twice, since most names are at its end
    ///
    /// A recording has each stack once and may refer to it from every event. Output ends with exit code 1
    /// after 64 MB plus 2,048 bytes for each byte of the events; names longer than 2,048 bytes are cut.
    #[arg(long)]
    pub(crate) symbols: bool,
    #[command(flatten)]
    pub(crate) lines: LineArgs,
    /// Show the payload of each event, as hexadecimal bytes
    #[arg(long)]
    pub(crate) payload: bool,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
}

/// The filters of the events to show.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FilterArgs {
    /// Only events of this provider; '*' matches any text; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Vec<String>,
    /// Only events of this name or number; '*' matches any text; may be given several times
    #[arg(long, value_name = "NAME|ID")]
    pub(crate) event: Vec<String>,
    /// Only events of this thread; may be given several times
    #[arg(long, value_name = "TID")]
    pub(crate) tid: Vec<u64>,
    /// Only events of this process, in recordings of many; may be given several times
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<u64>,
    #[command(flatten)]
    pub(crate) times: TimeArgs,
    /// Only the first N of these events
    #[arg(long, alias = "rows", value_name = "N")]
    pub(crate) head: Option<u64>,
}

/// The format of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormat {
    /// For people, one line per event; values are cut after 1,024 bytes
    #[default]
    Table,
    /// One array
    Json,
    /// One object per line
    Jsonl,
}

/// The order in which events are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// In the order in which they happened
    #[default]
    Time,
    /// In the order in which the runtime wrote them, which needs less memory
    File,
}

/// The events to request from a process, and for how long.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Events of a process")]
pub(crate) struct LiveArgs {
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Stop after this time: 30s, 1m30s, 500ms or dd:hh:mm:ss
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "file")]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) stopping: StoppingArgs,
    /// Size of the buffer in the process, in megabytes [default: 256]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "file")]
    pub(crate) buffersize: Option<u32>,
    /// Let the started program use this terminal; Ctrl-C then reaches it too
    #[arg(long, requires = "command")]
    pub(crate) show_child_io: bool,
    /// Time limit for each of the runtime's answers, and for its silence after the stop [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "file")]
    pub(crate) timeout: Option<Duration>,
}

pub(crate) fn run(args: &EventsArgs) -> Outcome {
    let Some(file) = &args.file else { return live::run(args) };
    if args.live.selection.request().is_some() || args.live.stopping.event().is_some() {
        return Err(Failure::usage(
            "--providers, --profile, --clrevents and --stopping-event-… apply to a process, not to a recording",
        )
        .with_help("--provider and --event choose among the events of a recording"));
    }
    event_list::write(&args.list(file)?, || Destination::open(None))
}

impl EventsArgs {
    /// The list that the arguments ask for.
    fn list<'a>(&self, file: &'a Path) -> Result<EventList<'a>, Failure> {
        Ok(EventList {
            file,
            format: self.format.list_format(),
            in_time_order: self.order == Order::Time,
            criteria: self.filter.criteria(file)?,
            head: self.filter.head,
            stacks: self.stacks,
            symbols: self.symbols,
            lines: self.lines.options(),
            payload: self.payload,
        })
    }
}

impl EventsFormat {
    const fn list_format(self) -> ListFormat {
        match self {
            Self::Table => ListFormat::Table,
            Self::Json => ListFormat::Json,
            Self::Jsonl => ListFormat::Jsonl,
        }
    }
}

impl FilterArgs {
    fn criteria(&self, file: &Path) -> Result<Criteria, Failure> {
        let (from, to) = self.times.range().resolve(file)?;
        Ok(Criteria::of_names(&self.provider, &self.event)
            .with_threads(self.tid.clone())
            .with_processes(self.pid.clone())
            .with_from(from)
            .with_to(to))
    }
}
