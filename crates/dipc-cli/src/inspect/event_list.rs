//! Lists of the events of a recording.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use clr_events::CodeMap;
use clr_events::code::Symbolizer;
use nettrace::{Error, Event, Events, Source, TimeOrder};
use nettrace_export::events::{JsonLines, LineContent, StackSymbols, TableLines};
use nettrace_export::{TooLarge, most_output};

use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::filter::{Criteria, Filter};
use crate::inspect::lines::LineOptions;
use crate::inspect::live_reader::LiveReader;
use crate::inspect::names::Names;
use crate::inspect::recording::{Origin, Recording};
use crate::inspect::symbols::Symbols;
use crate::render::destination::Destination;
use crate::render::{output, table};

/// A list of the events of a recording.
#[derive(Debug)]
pub(crate) struct EventList<'a> {
    /// The recording; `-` is standard input.
    pub(crate) file: &'a Path,
    pub(crate) format: ListFormat,
    /// As they happened, and not as the runtime wrote them.
    pub(crate) in_time_order: bool,
    pub(crate) criteria: Criteria,
    /// Only the first of the events.
    pub(crate) head: Option<u64>,
    /// With stacks, as addresses.
    pub(crate) stacks: bool,
    /// With stacks, as names.
    pub(crate) symbols: bool,
    pub(crate) lines: LineOptions,
    /// With the payload, in hexadecimal.
    pub(crate) payload: bool,
}

impl EventList<'_> {
    /// Returns the content of its lines.
    fn content<'s>(&self, symbols: Option<&'s mut dyn StackSymbols>) -> LineContent<'s> {
        let mut content = LineContent::default();
        content.stacks = self.stacks;
        content.symbols = symbols;
        content.payload = self.payload;
        content
    }
}

/// The format of a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFormat {
    /// For people, a line an event.
    Table,
    /// One array.
    Json,
    /// One object a line.
    Jsonl,
}

/// Writes the events to `out`.
pub(crate) fn write(list: EventList<'_>, out: &mut Destination) -> Outcome {
    let mut code = CodeMap::default();
    let lines = list.lines.open();
    if lines.is_some() {
        code = code.with_il_offsets();
    }
    let mut symbols = if list.symbols || lines.is_some() {
        Some(Symbols::new(names(list.file, &mut code)?, lines))
    } else {
        None
    };
    let content = list.content(symbols.as_mut().map(|symbols| symbols as &mut dyn StackSymbols));
    let (mut events, origin) = Recording::open(list.file)?.into_parts();
    list.criteria.skip_blocks(&mut events);
    let mut lines = Lines::new(out, list.format, content)?;
    let filter = Filter::new(list.criteria);
    let head = list.head.unwrap_or(u64::MAX);
    let outcome = if list.in_time_order {
        show(events.in_time_order(), &origin, filter, head, &mut lines)
    } else {
        show(events, &origin, filter, head, &mut lines)
    };
    drop(lines);
    if let (Ok(_), Some(symbols)) = (&outcome, &symbols) {
        list.lines.warn_if_missing(symbols.counts());
    }
    outcome
}

/// Reads all of a recording for the names in it. Warnings about damage come from the second reading.
fn names<'m>(file: &Path, code: &'m mut CodeMap) -> Result<Symbolizer<'m>, Failure> {
    if !file.is_file() && file.exists() || file.as_os_str() == "-" {
        let what = format!("symbols: {}: it has to be read twice, which only a file can be", file.display());
        return Err(Failure::new(Exit::Usage, what).with_help("save the recording to a file first"));
    }
    if let Some(names) = Names::find(file) {
        names.add_to(code)?;
    }
    let (mut events, origin) = Recording::open(file)?.into_parts();
    events.for_each(|event| code.add(&event)).map_err(|error| origin.failed(&error))?;
    Ok(code.symbolizer())
}

/// A source of events in time or file order.
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

fn show<O: Ordered>(
    mut events: O,
    origin: &Origin,
    mut filter: Filter,
    head: u64,
    lines: &mut Lines<'_, '_>,
) -> Outcome {
    let mut left = head;
    while left > 0 {
        let next = events.next_event();
        let event = match next {
            Ok(Some(event)) => event,
            Ok(None) => {
                lines.end()?;
                filter.warn_of_misses(events.reader());
                return Ok(origin.report_damage(events.reader()));
            }
            Err(error) => {
                lines.end()?;
                return Err(origin.failed(&error));
            }
        };
        if O::IN_TIME_ORDER && filter.is_over(&event) {
            lines.end()?;
            filter.warn_of_misses(events.reader());
            return Ok(origin.report_damage(events.reader()));
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
    Ok(origin.report_damage(events.reader()))
}

/// The longest delay of an event whose place among those of other threads is not certain yet.
const MOST_DELAY: Duration = Duration::from_millis(500);

/// A list of events that is written while they arrive, in time order as far as that needs no wait.
pub(crate) struct LiveList<'o> {
    reader: LiveReader,
    filter: Filter,
    lines: Lines<'static, 'o>,
    /// The number of events that may still be shown.
    left: u64,
    shown: u64,
}

impl<'o> LiveList<'o> {
    /// Creates the list of the stream's events that `list` asks for, without names for the addresses of stacks.
    pub(crate) fn new(list: EventList<'_>, out: &'o mut Destination) -> Result<Self, Failure> {
        let content = list.content(None);
        Ok(Self {
            reader: LiveReader::new(MOST_DELAY),
            filter: Filter::new(list.criteria),
            lines: Lines::new(out, list.format, content)?,
            left: list.head.unwrap_or(u64::MAX),
            shown: 0,
        })
    }

    /// Takes the next bytes of the stream, and writes what can be written. `each` is called with every event.
    pub(crate) fn feed(&mut self, bytes: &[u8], each: impl FnMut(&Event<'_>)) -> Result<(), Failure> {
        self.reader.feed(bytes);
        self.show(each)
    }

    /// Writes all events that have arrived: the stream is silent.
    pub(crate) fn release(&mut self, each: impl FnMut(&Event<'_>)) -> Result<(), Failure> {
        self.reader.release();
        self.show(each)
    }

    /// Ends the stream and the list.
    pub(crate) fn end(&mut self, each: impl FnMut(&Event<'_>)) -> Result<(), Failure> {
        self.reader.end_of_input();
        self.show(each)?;
        self.lines.end()
    }

    fn show(&mut self, mut each: impl FnMut(&Event<'_>)) -> Result<(), Failure> {
        while let Some(event) = self.reader.next() {
            each(&event);
            if self.filter.is_over(&event) {
                self.left = 0;
            }
            if self.left > 0 && self.filter.admits(&event) {
                self.lines.push(&event)?;
                self.left -= 1;
                self.shown += 1;
            }
        }
        self.lines.flush()
    }

    /// The number of events that were written.
    pub(crate) const fn shown(&self) -> u64 {
        self.shown
    }

    /// Whether no other event will be written.
    pub(crate) const fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// The reader of the stream.
    pub(crate) const fn reader(&self) -> &LiveReader {
        &self.reader
    }

    /// Warns of filters that matched nothing.
    pub(crate) fn warn_of_misses(&mut self) {
        self.filter.warn_of_misses(self.reader.events());
    }
}

/// Lines on their way out.
struct Lines<'s, 'o> {
    out: &'o mut Destination,
    buffer: Vec<u8>,
    written: u64,
    /// Bytes that the events take in the recording, at least: they bound what is written.
    recorded: u64,
    style: Style<'s>,
}

enum Style<'s> {
    Table(TableLines<'s>),
    Jsonl(JsonLines<'s>),
    /// An array; whether it has an element.
    Json(JsonLines<'s>, bool),
}

/// Bytes that an event takes besides its payload, at least.
const SHORTEST_HEADER: u64 = 8;

fn too_large(limit: u64) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {}: stopped there", TooLarge::new(limit)))
        .with_help("--head, --tid, --event and --provider show fewer events; without --stacks and --symbols they are shorter")
}

/// Bytes that are collected before they are written.
const BUFFER: usize = 256 << 10;

impl<'s, 'o> Lines<'s, 'o> {
    fn new(out: &'o mut Destination, format: ListFormat, content: LineContent<'s>) -> Result<Self, Failure> {
        let mut buffer = Vec::with_capacity(BUFFER + (16 << 10));
        let style = match format {
            ListFormat::Table => {
                output::print(table::heading(TableLines::HEADER))?;
                Style::Table(TableLines::new(content))
            }
            ListFormat::Jsonl => Style::Jsonl(JsonLines::new(content)),
            ListFormat::Json => {
                buffer.push(b'[');
                Style::Json(JsonLines::new(content), false)
            }
        };
        Ok(Self { out, buffer, written: 0, recorded: 0, style })
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
        result.map_err(|error| self.out.failed(&error))
    }

    /// Writes what is collected, for readers that wait for it.
    fn flush(&mut self) -> Result<(), Failure> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write()?;
        self.out.flush().map_err(|error| self.out.failed(&error))
    }

    fn end(&mut self) -> Result<(), Failure> {
        if matches!(self.style, Style::Json(..)) {
            self.buffer.extend_from_slice(b"\n]\n");
        }
        self.write()?;
        self.out.flush().map_err(|error| self.out.failed(&error))
    }
}
