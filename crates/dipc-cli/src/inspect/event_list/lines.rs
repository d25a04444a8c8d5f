//! Lines of events, and their output.

use std::io::Write as _;

use nettrace::Event;
use nettrace_export::events::{JsonLines, LineContent, TableLines};
use nettrace_export::{TooLarge, most_output};

use super::ListFormat;
use crate::exit::{Exit, Failure};
use crate::render::destination::Destination;
use crate::render::{output, table};

/// A formatter of events into lines.
pub(super) enum Formatter<'s> {
    Table(TableLines<'s>),
    Jsonl(JsonLines<'s>),
    /// An array: each object follows a comma.
    Json(JsonLines<'s>),
}

/// Lines of neighbouring events.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: Vec<u8>,
    /// A lower bound of the bytes that the events take in the recording, which bounds the output.
    recorded: u64,
}

/// A writer of lines, within the bounds.
pub(super) struct Writer<'o> {
    out: &'o mut Destination,
    format: ListFormat,
    /// True if any line was written.
    any: bool,
    written: u64,
    recorded: u64,
}

/// Minimum size of an event besides its payload, in bytes.
const MIN_HEADER_LENGTH: u64 = 8;
/// The bytes collected before they are written.
const BUFFER: usize = 256 << 10;

impl<'s> Formatter<'s> {
    pub(super) fn new(format: ListFormat, content: LineContent<'s>) -> Self {
        match format {
            ListFormat::Table => Self::Table(TableLines::new(content)),
            ListFormat::Jsonl => Self::Jsonl(JsonLines::new(content)),
            ListFormat::Json => Self::Json(JsonLines::new(content)),
        }
    }

    /// Adds an event.
    pub(super) fn push(&mut self, lines: &mut Lines, event: &Event<'_>) {
        let recorded = (event.payload().len() as u64).saturating_add(MIN_HEADER_LENGTH);
        lines.recorded = lines.recorded.saturating_add(recorded);
        let text = &mut lines.text;
        match self {
            Self::Table(table) => {
                table.push(text, event);
                text.push(b'\n');
            }
            Self::Jsonl(objects) => {
                objects.push(text, event);
                text.push(b'\n');
            }
            Self::Json(objects) => {
                text.extend_from_slice(b",\n");
                objects.push(text, event);
            }
        }
    }
}

impl Lines {
    /// Returns true if the lines should be written before more are added.
    pub(super) const fn is_full(&self) -> bool {
        self.text.len() >= BUFFER
    }

    fn clear(&mut self) {
        self.text.clear();
        self.recorded = 0;
    }
}

impl<'o> Writer<'o> {
    /// Begins a list.
    pub(super) fn new(out: &'o mut Destination, format: ListFormat) -> Result<Self, Failure> {
        let mut writer = Self { out, format, any: false, written: 0, recorded: 0 };
        match format {
            ListFormat::Table => output::print(table::heading(TableLines::HEADER))?,
            ListFormat::Json => writer.append(b"[")?,
            ListFormat::Jsonl => {}
        }
        Ok(writer)
    }

    fn append(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.written = self.written.saturating_add(text.len() as u64);
        self.out.write_all(text).map_err(|error| self.out.failed(&error))
    }

    /// Writes lines, and clears them. Bounds the output: a recording contains a stack or a name once, but
    /// every event may refer to it.
    pub(super) fn write(&mut self, lines: &mut Lines) -> Result<(), Failure> {
        if lines.text.is_empty() {
            return Ok(());
        }
        // The first object is not preceded by a comma.
        let is_first = !std::mem::replace(&mut self.any, true);
        let skipped = usize::from(is_first && self.format == ListFormat::Json);
        self.append(&lines.text[skipped..])?;
        self.recorded = self.recorded.saturating_add(lines.recorded);
        lines.clear();
        let limit = most_output(self.recorded);
        if self.written > limit { Err(too_large(limit)) } else { Ok(()) }
    }

    /// Flushes the output, for readers that wait for it.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| self.out.failed(&error))
    }

    /// Writes the end.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        if self.format == ListFormat::Json {
            self.append(b"\n]\n")?;
        }
        self.flush()
    }
}

fn too_large(limit: u64) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {}: stopped there", TooLarge::new(limit)))
        .with_help("--head, --tid, --event and --provider show fewer events; without --stacks and --symbols they are shorter")
}
