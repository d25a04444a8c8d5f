//! Lines of events on their way out, formatted on all processors.

use std::io::Write as _;

use nettrace::{Event, EventBatch};
use nettrace_export::events::{JsonLines, LineContent, TableLines};
use nettrace_export::{TooLarge, most_output};
use rayon::iter::{IndexedParallelIterator as _, IntoParallelRefMutIterator as _, ParallelIterator as _};

use super::ListFormat;
use crate::exit::{Exit, Failure};
use crate::render::destination::Destination;
use crate::render::{output, table};

/// Lines on their way out.
pub(super) struct Lines<'s, 'o> {
    writer: Writer<'o>,
    style: Style<'s>,
    /// Whether there is a line.
    any: bool,
    /// Formatters of parts of a batch; none where there is one processor.
    formatters: Vec<Formatter<'s>>,
    /// Their parts of the last batch, which are not written yet.
    parts: Vec<Part>,
    /// The lines behind these.
    last: Part,
    /// The size of the next batch, in events.
    batch_size: usize,
}

/// Writes events in a format.
enum Style<'s> {
    Table(TableLines<'s>),
    Jsonl(JsonLines<'s>),
    /// An array.
    Json(JsonLines<'s>),
}

/// Lines of neighbouring events.
#[derive(Default)]
struct Part {
    text: Vec<u8>,
    events: usize,
    /// Bytes that the events take in the recording, at least: they bound what is written.
    recorded: u64,
}

/// A formatter that works beside others.
struct Formatter<'s> {
    style: Style<'s>,
    part: Part,
}

struct Writer<'o> {
    out: &'o mut Destination,
    written: u64,
    recorded: u64,
}

/// Returns the number of contents that a list on all processors takes: each has symbols of its own.
pub(super) fn most_contents() -> usize {
    match rayon::current_num_threads() {
        1 => 1,
        // Two parts for each thread: it may be held up.
        threads => 1 + (2 * threads).min(MOST_FORMATTERS),
    }
}

/// Each holds texts that it has formatted before, and two parts.
const MOST_FORMATTERS: usize = 32;

/// Bytes that an event takes besides its payload, at least.
const SHORTEST_HEADER: u64 = 8;

fn too_large(limit: u64) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {}: stopped there", TooLarge::new(limit)))
        .with_help("--head, --tid, --event and --provider show fewer events; without --stacks and --symbols they are shorter")
}

/// Bytes that are collected before they are written.
const BUFFER: usize = 256 << 10;
/// The bytes of a part that batches are made for, and the most: some bytes of a recording may become lines of any length.
const PART: usize = 1 << 20;
const MOST_PART: usize = 4 << 20;
/// The sizes of batches, in events.
const LEAST_EVENTS: usize = 256;
const MOST_EVENTS: usize = 32_768;

/// The bytes of payloads in a batch of few events that are formatted before other threads have begun.
const LEAST_BYTES: usize = 16 << 10;

/// Whether events are formatted before other threads have begun. An event of a heap has thousands of values.
fn is_small(batch: EventBatch<'_>) -> bool {
    batch.len() < LEAST_EVENTS && batch.iter().map(|event| event.payload().len()).sum::<usize>() < LEAST_BYTES
}

impl<'s, 'o> Lines<'s, 'o> {
    /// Begins a list. With more than one content, as many but one are formatted at the same time.
    pub(super) fn new(
        out: &'o mut Destination,
        format: ListFormat,
        contents: Vec<LineContent<'s>>,
    ) -> Result<Self, Failure> {
        let mut styles = contents.into_iter().map(|content| Style::new(format, content));
        let style = styles.next().unwrap_or_else(|| Style::new(format, LineContent::default()));
        let formatters: Vec<_> = styles.map(|style| Formatter { style, part: Part::default() }).collect();
        let parts = formatters.iter().map(|_| Part::default()).collect();
        let mut last = Part::default();
        match format {
            ListFormat::Table => output::print(table::heading(TableLines::HEADER))?,
            ListFormat::Json => last.text.push(b'['),
            ListFormat::Jsonl => {}
        }
        let writer = Writer { out, written: 0, recorded: 0 };
        Ok(Self { writer, style, any: false, formatters, parts, last, batch_size: LEAST_EVENTS })
    }

    /// The most events that the next batch should have.
    pub(super) const fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Adds an event.
    pub(super) fn push(&mut self, event: &Event<'_>) -> Result<(), Failure> {
        self.style.push(&mut self.last, event, !self.any);
        self.any = true;
        if self.last.text.len() < BUFFER { Ok(()) } else { self.write_all() }
    }

    /// Adds events: they are formatted on all processors, while those before are written.
    pub(super) fn push_all(&mut self, batch: EventBatch<'_>) -> Result<(), Failure> {
        if self.formatters.is_empty() || is_small(batch) {
            return batch.iter().try_for_each(|event| self.push(&event));
        }
        let chunks: Vec<_> = batch.chunks(batch.len().div_ceil(self.formatters.len())).collect();
        let is_first = !std::mem::replace(&mut self.any, true);
        let Self { writer, formatters, parts, last, .. } = self;
        let (written, ()) = rayon::join(
            || parts.iter_mut().chain([last]).try_for_each(|part| writer.write(part)),
            || {
                let work = formatters.par_iter_mut().zip(&chunks).enumerate();
                work.with_max_len(1).for_each(|(index, (formatter, chunk))| {
                    formatter.format(*chunk, is_first && index == 0);
                });
            },
        );
        for (formatter, part) in formatters.iter_mut().zip(parts.iter_mut()) {
            std::mem::swap(&mut formatter.part, part);
        }
        written?;
        let (formatted, size) =
            parts.iter().fold((0, 0), |(events, size), part| (events + part.events, size + part.text.len()));
        self.batch_size =
            (formatters.len() * PART * formatted / size.max(1)).clamp(LEAST_EVENTS, MOST_EVENTS);
        if formatted == batch.len() { Ok(()) } else { self.push_rest(&chunks) }
    }

    /// Adds the events behind those that the formatters have added to their parts.
    fn push_rest(&mut self, chunks: &[EventBatch<'_>]) -> Result<(), Failure> {
        let mut parts = std::mem::take(&mut self.parts);
        let mut add = || {
            for (chunk, part) in chunks.iter().zip(&mut parts) {
                let formatted = part.events;
                self.write_all()?;
                self.writer.write(part)?;
                chunk.skip(formatted).iter().try_for_each(|event| self.push(&event))?;
            }
            Ok(())
        };
        let outcome = add();
        self.parts = parts;
        outcome
    }

    fn write_all(&mut self) -> Result<(), Failure> {
        let Self { writer, parts, last, .. } = self;
        parts.iter_mut().chain([last]).try_for_each(|part| writer.write(part))
    }

    /// Writes what is collected, for readers that wait for it.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if self.parts.iter().chain([&self.last]).all(|part| part.text.is_empty()) {
            return Ok(());
        }
        let Self { writer, parts, last, .. } = self;
        parts.iter_mut().chain([last]).try_for_each(|part| writer.append(part))?;
        writer.flush()
    }

    /// Writes the end.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        if matches!(self.style, Style::Json(..)) {
            self.last.text.extend_from_slice(b"\n]\n");
        }
        self.flush()?;
        self.writer.flush()
    }
}

impl<'s> Style<'s> {
    fn new(format: ListFormat, content: LineContent<'s>) -> Self {
        match format {
            ListFormat::Table => Self::Table(TableLines::new(content)),
            ListFormat::Jsonl => Self::Jsonl(JsonLines::new(content)),
            ListFormat::Json => Self::Json(JsonLines::new(content)),
        }
    }

    fn push(&mut self, part: &mut Part, event: &Event<'_>, is_first: bool) {
        let recorded = (event.payload().len() as u64).saturating_add(SHORTEST_HEADER);
        part.recorded = part.recorded.saturating_add(recorded);
        part.events += 1;
        let text = &mut part.text;
        match self {
            Self::Table(lines) => {
                lines.push(text, event);
                text.push(b'\n');
            }
            Self::Jsonl(lines) => {
                lines.push(text, event);
                text.push(b'\n');
            }
            Self::Json(lines) => {
                text.extend_from_slice(if is_first { b"\n" } else { b",\n" });
                lines.push(text, event);
            }
        }
    }
}

impl Formatter<'_> {
    /// Adds events to the part until it is large.
    fn format(&mut self, events: EventBatch<'_>, is_first: bool) {
        let Self { style, part } = self;
        for event in events.iter() {
            if part.text.len() > MOST_PART {
                break;
            }
            style.push(part, &event, is_first && part.events == 0);
        }
    }
}

impl Writer<'_> {
    fn append(&mut self, part: &mut Part) -> Result<(), Failure> {
        let result = self.out.write_all(&part.text);
        self.written = self.written.saturating_add(part.text.len() as u64);
        self.recorded = self.recorded.saturating_add(part.recorded);
        part.text.clear();
        (part.events, part.recorded) = (0, 0);
        result.map_err(|error| self.out.failed(&error))
    }

    /// Appends a part, within the bounds: a stack, or a name, is written once in a recording and may be meant by every event.
    fn write(&mut self, part: &mut Part) -> Result<(), Failure> {
        self.append(part)?;
        let limit = most_output(self.recorded);
        if self.written > limit { Err(too_large(limit)) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| self.out.failed(&error))
    }
}
