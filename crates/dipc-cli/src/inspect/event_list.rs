//! Lists of the events of a recording.

mod lines;
mod reading;
mod shared;

use std::path::Path;

use clr_events::CodeMap;
use clr_events::code::Symbolizer;
use dipc_client::LiveReader;
use nettrace::{Event, Events, Reader};
use nettrace_edit::{Criteria, Filter};
use nettrace_export::events::{LineContent, StackSymbols};

use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::filter::warn_of_misses;
use crate::inspect::lines::LineOptions;
use crate::inspect::names::{Names, add_code};
use crate::inspect::recording::{Input, Recording};
use crate::inspect::symbols::Symbols;
use crate::processors;
use crate::render::destination::Destination;
use lines::{Formatter, Lines, Writer};
use reading::{Ordered, Reading, State};
use shared::MAX_READERS;

/// A list of the events of a recording.
#[derive(Debug)]
pub(crate) struct EventList<'a> {
    /// The recording; `-` is standard input.
    pub(crate) file: &'a Path,
    pub(crate) format: ListFormat,
    /// In the order in which they happened, not in which the runtime wrote them.
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
    /// Returns the settings for the content of its lines.
    fn content<'s>(&self, symbols: Option<&'s mut (dyn StackSymbols + Send)>) -> LineContent<'s> {
        let mut content = LineContent::default();
        content.stacks = self.stacks;
        content.symbols = symbols;
        content.payload = self.payload;
        content
    }

    /// Begins to read a recording.
    fn reading<'s, O: Ordered>(
        &self,
        recording: Recording,
        content: LineContent<'s>,
        order: impl FnOnce(Reader<Input>) -> O,
    ) -> Reading<'s, O> {
        let (mut events, origin) = recording.into_parts();
        self.criteria.skip_blocks(&mut events);
        Reading {
            events: order(events),
            origin,
            filter: Filter::new(self.criteria.clone()),
            formatter: Formatter::new(self.format, content),
            left: self.head.unwrap_or(u64::MAX),
            state: State::Reading,
        }
    }
}

/// The format of a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFormat {
    /// For people, one line per event.
    Table,
    /// One array.
    Json,
    /// One object per line.
    Jsonl,
}

/// Writes the events to the destination that `open` returns, and closes it. It is opened after the recording,
/// because opening empties a file.
pub(crate) fn write(list: &EventList<'_>, open: impl FnOnce() -> Result<Destination, Failure>) -> Outcome {
    let mut code = CodeMap::default();
    let pdb_lines = list.lines.open();
    if pdb_lines.is_some() {
        code = code.with_il_offsets();
    }
    // A single reader is used with PDBs, so that they are searched once and lines counted in one place, and
    // for the first events.
    let is_for_one = pdb_lines.is_some() || list.head.is_some();
    let most_readers = if is_for_one { 1 } else { processors::count().min(MAX_READERS) };
    let mut symbols = Vec::new();
    if list.symbols || pdb_lines.is_some() {
        let names = names(list.file, &mut code)?;
        symbols.push(Symbols::new(names, pdb_lines));
        symbols.resize_with(most_readers, || Symbols::new(names, None));
    }
    let mut recordings = vec![Recording::open(list.file)?];
    if most_readers > 1
        && let Some(file) = recordings[0].file()
    {
        recordings = (0..most_readers).map(|_| file.open()).collect::<Result<_, _>>()?;
    }
    let mut out = open()?;
    let mut writer = Writer::new(&mut out, list.format)?;
    let mut contents: Vec<_> = symbols.iter_mut().map(|symbols| list.content(Some(symbols))).collect();
    contents.resize_with(recordings.len(), || list.content(None));
    let readings = recordings.into_iter().zip(contents);
    let outcome = if list.in_time_order {
        show(
            readings.map(|(it, content)| list.reading(it, content, Events::in_time_order)).collect(),
            &mut writer,
        )
    } else {
        show(readings.map(|(it, content)| list.reading(it, content, |events| events)).collect(), &mut writer)
    };
    // The output is completed even after an error; an array, above all, is closed.
    let ended = writer.end();
    if let (Ok(_), Some(symbols)) = (&outcome, symbols.first()) {
        list.lines.warn_if_missing(symbols.counts());
    }
    let exit = outcome?;
    ended?;
    out.close()?;
    Ok(exit)
}

/// Shows all events, and returns the exit code for missing or damaged parts.
fn show<O: Ordered + Send>(mut readings: Vec<Reading<'_, O>>, writer: &mut Writer<'_>) -> Outcome {
    let reading = if readings.len() > 1 {
        shared::read(readings, writer)?
    } else if let Some(mut reading) = readings.pop() {
        reading.read_alone(writer)?;
        reading
    } else {
        return Ok(Exit::Done);
    };
    reading.finish()
}

/// Reads a whole recording for the names in it. The second reading reports warnings about damage.
fn names<'m>(file: &Path, code: &'m mut CodeMap) -> Result<Symbolizer<'m>, Failure> {
    if !file.is_file() && file.exists() || file.as_os_str() == "-" {
        let what = format!("symbols: {}: it has to be read twice, which only a file can be", file.display());
        return Err(Failure::new(Exit::Usage, what).with_help("save the recording to a file first"));
    }
    if let Some(names) = Names::find(file) {
        names.add_to(code)?;
    }
    add_code(file, code)?;
    Ok(code.symbolizer())
}

/// A list of events that is written while they arrive, in time order within the limits of not waiting.
pub(crate) struct LiveList<'o> {
    filter: Filter,
    formatter: Formatter<'static>,
    lines: Lines,
    writer: Writer<'o>,
    /// The number of events that may still be shown.
    left: u64,
    shown: u64,
}

impl<'o> LiveList<'o> {
    /// Creates the list of the stream's events that `list` selects, without names for the addresses of
    /// stacks.
    pub(crate) fn new(list: EventList<'_>, out: &'o mut Destination) -> Result<Self, Failure> {
        Ok(Self {
            formatter: Formatter::new(list.format, list.content(None)),
            filter: Filter::new(list.criteria),
            lines: Lines::default(),
            writer: Writer::new(out, list.format)?,
            left: list.head.unwrap_or(u64::MAX),
            shown: 0,
        })
    }

    /// Writes the events that are ready. `each` is called with every event.
    pub(crate) fn read(
        &mut self,
        reader: &mut LiveReader,
        mut each: impl FnMut(&Event<'_>),
    ) -> Result<(), Failure> {
        while let Some(event) = reader.next() {
            each(&event);
            if self.filter.is_over(&event) {
                self.left = 0;
            }
            if self.left > 0 && self.filter.admits(&event) {
                self.formatter.push(&mut self.lines, &event);
                self.left -= 1;
                self.shown += 1;
                if self.lines.is_full() {
                    self.writer.write(&mut self.lines)?;
                }
            }
        }
        self.writer.write(&mut self.lines)?;
        self.writer.flush()
    }

    /// Ends the list.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.writer.end()
    }

    /// The number of events that were written.
    pub(crate) const fn shown(&self) -> u64 {
        self.shown
    }

    /// Returns true if no more events will be written.
    pub(crate) const fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Warns of filters that matched none of the events of `reader`.
    pub(crate) fn warn_of_misses(&mut self, reader: &LiveReader) {
        warn_of_misses(&self.filter.misses(reader.events()));
    }
}
