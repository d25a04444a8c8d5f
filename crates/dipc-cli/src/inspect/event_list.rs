//! Lists of the events of a recording.

mod lines;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use clr_events::CodeMap;
use clr_events::code::Symbolizer;
use nettrace::{BatchRows, Error, Event, EventBatch, Events, Source, TimeOrder};
use nettrace_export::events::{LineContent, StackSymbols};

use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::filter::{Criteria, Filter};
use crate::inspect::lines::LineOptions;
use crate::inspect::live_reader::LiveReader;
use crate::inspect::names::{Names, add_code};
use crate::inspect::recording::{Origin, Recording};
use crate::inspect::symbols::Symbols;
use crate::render::destination::Destination;
use lines::Lines;

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
    fn content<'s>(&self, symbols: Option<&'s mut (dyn StackSymbols + Send)>) -> LineContent<'s> {
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

/// Writes the events to what `open` returns, and closes it. It is opened once the recording is, as a file is emptied then.
pub(crate) fn write(list: EventList<'_>, open: impl FnOnce() -> Result<Destination, Failure>) -> Outcome {
    let mut code = CodeMap::default();
    let pdb_lines = list.lines.open();
    if pdb_lines.is_some() {
        code = code.with_il_offsets();
    }
    // PDBs are searched once, and lines counted in one place.
    let contents = if pdb_lines.is_some() { 1 } else { lines::most_contents() };
    let mut symbols = Vec::new();
    if list.symbols || pdb_lines.is_some() {
        let names = names(list.file, &mut code)?;
        symbols.push(Symbols::new(names, pdb_lines));
        symbols.resize_with(contents, || Symbols::new(names, None));
    }
    let contents = if symbols.is_empty() {
        (0..contents).map(|_| list.content(None)).collect()
    } else {
        symbols.iter_mut().map(|symbols| list.content(Some(symbols))).collect()
    };
    let (mut events, origin) = Recording::open(list.file)?.into_parts();
    list.criteria.skip_blocks(&mut events);
    let mut out = open()?;
    let mut lines = Lines::new(&mut out, list.format, contents)?;
    let filter = Filter::new(list.criteria);
    let head = list.head.unwrap_or(u64::MAX);
    let outcome = if list.in_time_order {
        show(events.in_time_order(), &origin, filter, head, &mut lines)
    } else {
        show(events, &origin, filter, head, &mut lines)
    };
    drop(lines);
    if let (Ok(_), Some(symbols)) = (&outcome, symbols.first()) {
        list.lines.warn_if_missing(symbols.counts());
    }
    let exit = outcome?;
    out.close()?;
    Ok(exit)
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
    add_code(file, code)?;
    Ok(code.symbolizer())
}

/// A source of events in time or file order.
trait Ordered {
    type Source: Source;
    /// Whether no event is older than the one before.
    const IN_TIME_ORDER: bool;

    fn next_batch<'a>(
        &'a mut self,
        rows: &'a mut BatchRows,
        most: usize,
        choose: impl FnMut(&Event<'_>) -> ControlFlow<(), bool>,
    ) -> Result<Option<EventBatch<'a>>, Error>;
    fn reader(&self) -> &Events<Self::Source>;
}

impl<S: Source> Ordered for Events<S> {
    type Source = S;
    const IN_TIME_ORDER: bool = false;

    fn next_batch<'a>(
        &'a mut self,
        rows: &'a mut BatchRows,
        most: usize,
        choose: impl FnMut(&Event<'_>) -> ControlFlow<(), bool>,
    ) -> Result<Option<EventBatch<'a>>, Error> {
        self.next_batch(rows, most, choose)
    }

    fn reader(&self) -> &Events<S> {
        self
    }
}

impl<S: Source> Ordered for TimeOrder<S> {
    type Source = S;
    const IN_TIME_ORDER: bool = true;

    fn next_batch<'a>(
        &'a mut self,
        rows: &'a mut BatchRows,
        most: usize,
        choose: impl FnMut(&Event<'_>) -> ControlFlow<(), bool>,
    ) -> Result<Option<EventBatch<'a>>, Error> {
        self.next_batch(rows, most, choose)
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
    let mut rows = BatchRows::default();
    let mut left = head;
    let mut is_over = false;
    while left > 0 && !is_over {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(lines.batch_size());
        let batch = events.next_batch(&mut rows, most, |event| {
            is_over = O::IN_TIME_ORDER && filter.is_over(event);
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(filter.admits(event)) }
        });
        match batch {
            Ok(Some(batch)) => {
                left -= batch.len() as u64;
                if let Err(failure) = lines.push_all(batch) {
                    // What was written is whole, an array above all.
                    let _ = lines.end();
                    return Err(failure);
                }
            }
            Ok(None) => is_over = true,
            Err(error) => {
                lines.end()?;
                return Err(origin.failed(&error));
            }
        }
    }
    lines.end()?;
    // What was not read cannot be judged, but what is known to be damaged so far is.
    if is_over {
        filter.warn_of_misses(events.reader());
    }
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
        let contents = vec![list.content(None)];
        Ok(Self {
            reader: LiveReader::new(MOST_DELAY),
            filter: Filter::new(list.criteria),
            lines: Lines::new(out, list.format, contents)?,
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
