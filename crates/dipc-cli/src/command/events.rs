//! `dipc events`: the events of a recording, one by one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use clr_events::CodeMap;
use clr_events::code::Symbolizer;
use nettrace::{Error, Event, Events, Source, TimeOrder};
use nettrace_export::{TooLarge, most_output};

use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::event_line::{JsonLines, Shown, TableLines};
use crate::inspect::filter::Filter;
use crate::inspect::lines::LineArgs;
use crate::inspect::recording::{Origin, Recording};
use crate::inspect::symbols::Symbols;
use crate::render::output;

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
    write(args, &mut output::stream(), &output::failed)
}

/// Makes a failure of an error of the output.
type Failed<'f> = &'f dyn Fn(&io::Error) -> Failure;

/// Writes the events to `out`.
pub(crate) fn write(args: &EventsArgs, out: &mut dyn Write, failed: Failed<'_>) -> Outcome {
    let mut code = CodeMap::default();
    let lines = args.lines.source();
    if lines.is_some() {
        code = code.with_il_offsets();
    }
    let symbols = if args.symbols || lines.is_some() {
        Some(Symbols::new(names(&args.file, &mut code)?, lines))
    } else {
        None
    };
    let shown = Shown { stacks: args.stacks, symbols, payload: args.payload };
    let (events, origin) = Recording::open(&args.file)?.into_parts();
    let mut lines = Lines::new(out, failed, args.format, shown)?;
    let outcome = match args.order {
        Order::File => show(events, &origin, args, &mut lines),
        Order::Time => show(events.in_time_order(), &origin, args, &mut lines),
    };
    if let (Ok(_), Some(symbols)) = (&outcome, lines.symbols()) {
        args.lines.tell(symbols.counts());
    }
    outcome
}

/// Reads all of a recording for the names in it. What is missing of it is told when it is read again.
fn names<'m>(file: &Path, code: &'m mut CodeMap) -> Result<Symbolizer<'m>, Failure> {
    if !file.is_file() && file.exists() || file.as_os_str() == "-" {
        let what =
            format_args!("symbols: {}: it has to be read twice, which only a file can be", file.display());
        return Err(Failure::new(Exit::Usage, what).with_help("save the recording to a file first"));
    }
    let (mut events, origin) = Recording::open(file)?.into_parts();
    events.for_each(|event| code.add(&event)).map_err(|error| origin.failed(&error))?;
    Ok(code.symbolizer())
}

/// Events that borrow from where they come from, in whatever order.
trait Ordered {
    type Source: Source;
    /// Whether no event is older than the one before.
    const IN_TIME_ORDER: bool;

    fn next_event(&mut self) -> Result<Option<Event<'_>>, Error>;
    fn reader(&self) -> &Events<Self::Source>;
}

impl<S: Source> Ordered for Events<S> {
    type Source = S;
    const IN_TIME_ORDER: bool = false;

    fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        self.next()
    }

    fn reader(&self) -> &Events<S> {
        self
    }
}

impl<S: Source> Ordered for TimeOrder<S> {
    type Source = S;
    const IN_TIME_ORDER: bool = true;

    fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        self.next()
    }

    fn reader(&self) -> &Events<S> {
        self.events()
    }
}

fn show<O: Ordered>(mut events: O, origin: &Origin, args: &EventsArgs, lines: &mut Lines<'_, '_>) -> Outcome {
    let mut filter = Filter::new(&args.filter);
    let mut left = args.filter.head.unwrap_or(u64::MAX);
    while left > 0 {
        let next = events.next_event();
        let event = match next {
            Ok(Some(event)) => event,
            Ok(None) => {
                lines.end()?;
                filter.tell_misses(events.reader().metadata());
                return Ok(origin.verdict(events.reader()));
            }
            Err(error) => {
                lines.end()?;
                return Err(origin.failed(&error));
            }
        };
        if O::IN_TIME_ORDER && filter.is_over(&event) {
            lines.end()?;
            filter.tell_misses(events.reader().metadata());
            return Ok(origin.verdict(events.reader()));
        }
        if filter.admits(&event) {
            if let Err(failure) = lines.push(&event) {
                // What was written is whole, an array above all.
                let _ = lines.end();
                return Err(failure);
            }
            left -= 1;
        }
    }
    lines.end()?;
    // What was not read cannot be judged, but what is known to be damaged so far is.
    Ok(origin.verdict(events.reader()))
}

/// Lines on their way out.
struct Lines<'m, 'o> {
    out: &'o mut dyn Write,
    failed: Failed<'o>,
    buffer: Vec<u8>,
    written: u64,
    /// Bytes that the events take in the recording, at least: they bound what is written.
    recorded: u64,
    style: Style<'m>,
}

enum Style<'m> {
    Table(TableLines<'m>),
    Jsonl(JsonLines<'m>),
    /// An array; whether it has an element.
    Json(JsonLines<'m>, bool),
}

/// Bytes that an event takes besides its payload, at least.
const SHORTEST_HEADER: u64 = 8;

fn too_large(limit: u64) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {}: stopped there", TooLarge { limit }))
        .with_help("--head, --tid, --event and --provider show fewer events; without --stacks and --symbols they are shorter")
}

/// Bytes that are collected before they are written.
const BUFFER: usize = 256 << 10;

impl<'m, 'o> Lines<'m, 'o> {
    fn new(
        out: &'o mut dyn Write,
        failed: Failed<'o>,
        format: EventsFormat,
        shown: Shown<'m>,
    ) -> Result<Self, Failure> {
        let mut buffer = Vec::with_capacity(BUFFER + (16 << 10));
        let style = match format {
            EventsFormat::Table => {
                output::print(output::heading(TableLines::HEADER))?;
                Style::Table(TableLines::new(shown))
            }
            EventsFormat::Jsonl => Style::Jsonl(JsonLines::new(shown)),
            EventsFormat::Json => {
                buffer.push(b'[');
                Style::Json(JsonLines::new(shown), false)
            }
        };
        Ok(Self { out, failed, buffer, written: 0, recorded: 0, style })
    }

    /// Returns the symbols that stacks are shown with.
    fn symbols(&self) -> Option<&Symbols<'m>> {
        match &self.style {
            Style::Table(lines) => lines.symbols(),
            Style::Jsonl(lines) | Style::Json(lines, _) => lines.symbols(),
        }
    }

    fn push(&mut self, event: &Event<'_>) -> Result<(), Failure> {
        let recorded = (event.payload().len() as u64).saturating_add(SHORTEST_HEADER);
        self.recorded = self.recorded.saturating_add(recorded);
        match &mut self.style {
            Style::Table(lines) => {
                lines.push(&mut self.buffer, event);
                self.buffer.push(b'\n');
            }
            Style::Jsonl(lines) => {
                lines.push(&mut self.buffer, event);
                self.buffer.push(b'\n');
            }
            Style::Json(lines, any) => {
                self.buffer.extend_from_slice(if *any { b",\n" } else { b"\n" });
                *any = true;
                lines.push(&mut self.buffer, event);
            }
        }
        if self.buffer.len() < BUFFER {
            return Ok(());
        }
        self.write()?;
        // A stack, or a name, is written once and may be meant by every event.
        let limit = most_output(self.recorded);
        if self.written > limit { Err(too_large(limit)) } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Failure> {
        let result = self.out.write_all(&self.buffer);
        self.written = self.written.saturating_add(self.buffer.len() as u64);
        self.buffer.clear();
        result.map_err(|error| (self.failed)(&error))
    }

    fn end(&mut self) -> Result<(), Failure> {
        if matches!(self.style, Style::Json(..)) {
            self.buffer.extend_from_slice(b"\n]\n");
        }
        self.write()?;
        self.out.flush().map_err(|error| (self.failed)(&error))
    }
}
