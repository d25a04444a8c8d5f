//! `dipc events`: the events of a recording, one by one.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use nettrace::RelativeTime;

use crate::args::lines::LineArgs;
use crate::duration;
use crate::exit::Outcome;
use crate::inspect::event_list::{self, EventList, ListFormat};
use crate::inspect::filter::Criteria;
use crate::render::destination::Destination;

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Format of the events
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: EventsFormat,
    /// In which order
    #[arg(long, value_enum, default_value_t)]
    pub(crate) order: Order,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    /// With the stack of each event, as addresses
    #[arg(long)]
    pub(crate) stacks: bool,
    /// With the stack of each event, as names; reads the file twice, since most names stand at its end
    ///
    /// A recording has each stack once and may refer to it with every event. Nothing more is written, and the exit code is 1, once
    /// there are 64 MB and 2,048 bytes for each byte of the events; names longer than 2,048 bytes are cut.
    #[arg(long)]
    pub(crate) symbols: bool,
    #[command(flatten)]
    pub(crate) lines: LineArgs,
    /// With the payload of each event, as hexadecimal bytes
    #[arg(long)]
    pub(crate) payload: bool,
}

/// Which events of a recording are shown.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FilterArgs {
    /// Only events of this provider; '*' stands for any text; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Vec<String>,
    /// Only events of this name or number; '*' stands for any text; may be given several times
    #[arg(long, value_name = "NAME|ID")]
    pub(crate) event: Vec<String>,
    /// Only events of this thread; may be given several times
    #[arg(long, value_name = "TID")]
    pub(crate) tid: Vec<u64>,
    /// Only events at or after this time since the recording's start
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) from: Option<Duration>,
    /// Only events before this time since the recording's start
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) to: Option<Duration>,
    /// Only the first N of these events
    #[arg(long, value_name = "N")]
    pub(crate) head: Option<u64>,
}

/// The format of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormat {
    /// For people, a line an event
    #[default]
    Table,
    /// One array
    Json,
    /// One object a line
    Jsonl,
}

/// The order in which events are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// As they happened
    #[default]
    Time,
    /// As the runtime wrote them, which needs less memory
    File,
}

pub(crate) fn run(args: &EventsArgs) -> Outcome {
    let list = EventList {
        file: &args.file,
        format: args.format.list_format(),
        in_time_order: args.order == Order::Time,
        criteria: args.filter.criteria(),
        head: args.filter.head,
        stacks: args.stacks,
        symbols: args.symbols,
        lines: args.lines.options(),
        payload: args.payload,
    };
    event_list::write(list, &mut Destination::open(None)?)
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
    fn criteria(&self) -> Criteria {
        Criteria {
            threads: self.tid.clone(),
            from: self.from.map(RelativeTime::after_start),
            to: self.to.map(RelativeTime::after_start),
            ..Criteria::of_names(&self.provider, &self.event)
        }
    }
}
