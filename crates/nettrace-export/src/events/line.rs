//! One event as one line: an object for programs, columns for people.

use std::fmt;

use clr_events::{escape_controls_from, event_name, event_opcode, json};
use nettrace::Event;

use super::fields;
use super::metadata_cache::MetadataCache;

/// The names of addresses in stacks.
pub trait StackSymbols {
    /// Appends the name of an address in an event's stack, or the address, as text.
    fn push_text(&mut self, out: &mut Vec<u8>, event: &Event<'_>, address: u64);

    /// Appends it as a JSON string.
    fn push_json(&mut self, out: &mut Vec<u8>, event: &Event<'_>, address: u64);
}

/// The optional parts of an event's line.
#[derive(Default)]
#[non_exhaustive]
pub struct LineContent<'s> {
    /// The stack, as addresses.
    pub stacks: bool,
    /// The stack, as names.
    pub symbols: Option<&'s mut (dyn StackSymbols + Send)>,
    /// The payload in hexadecimal, also where its fields are known.
    pub payload: bool,
}

impl fmt::Debug for LineContent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineContent")
            .field("stacks", &self.stacks)
            .field("symbols", &self.symbols.is_some())
            .field("payload", &self.payload)
            .finish()
    }
}

/// Writes events as JSON objects. Members that all events of a kind share are formatted once.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # for time in [1_000_000, 2_000_000] {
/// #     recording.at(time).thread(7).exception("System.TimeoutException", "no answer");
/// # }
/// # let recording = recording.bytes();
/// use nettrace_export::events::{JsonLines, LineContent};
///
/// let mut events = nettrace_export::nettrace::SliceReader::new(&recording)?;
/// let mut line = Vec::new();
/// let event = events.next()?.ok_or("an event")?;
/// JsonLines::new(LineContent::default()).push(&mut line, &event);
/// assert!(line.starts_with(b"{\"time_ns\":1000000,"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JsonLines<'s> {
    content: LineContent<'s>,
    cache: MetadataCache,
}

impl<'s> JsonLines<'s> {
    /// Creates a writer of lines with this content.
    pub fn new(content: LineContent<'s>) -> Self {
        Self { content, cache: MetadataCache::default() }
    }

    /// Appends the event as an object, without a line end.
    pub fn push(&mut self, out: &mut Vec<u8>, event: &Event<'_>) {
        out.extend_from_slice(b"{\"time_ns\":");
        json::push_i64(out, event.relative_time().as_nanos());
        self.cache.push(out, event, push_kind);
        push_optional(out, "pid", event.process_id());
        out.extend_from_slice(b",\"tid\":");
        json::push_u64(out, event.thread_id().0);
        push_optional(out, "cpu", event.processor().map(u64::from));
        if let Some(activity) = event.activity() {
            out.extend_from_slice(b",\"activity\":");
            json::push_uuid(out, activity);
        }
        if let Some(related) = event.related_activity() {
            out.extend_from_slice(b",\"related\":");
            json::push_uuid(out, related);
        }
        out.extend_from_slice(b",\"payload_len\":");
        json::push_u64(out, event.payload().len() as u64);
        let complete = json::push_fields_member(out, event);
        if self.content.payload || !complete {
            out.extend_from_slice(b",\"payload\":");
            json::push_hex(out, event.payload());
        }
        if let Some(symbols) = &mut self.content.symbols {
            push_stack(out, event, |out, address| symbols.push_json(out, event, address));
        } else if self.content.stacks {
            push_stack(out, event, json::push_hex_number);
        }
        out.push(b'}');
    }
}

/// Appends the members that all events of a kind have in common.
fn push_kind(out: &mut Vec<u8>, event: &Event<'_>) {
    out.extend_from_slice(b",\"provider\":");
    json::push_str(out, event.provider());
    out.extend_from_slice(b",\"id\":");
    json::push_u64(out, event.id().into());
    out.extend_from_slice(b",\"version\":");
    json::push_u64(out, event.version().into());
    out.extend_from_slice(b",\"name\":");
    json::push_str(out, &event_name(event).to_string());
    out.extend_from_slice(b",\"level\":");
    json::push_u64(out, event.level().into());
    out.extend_from_slice(b",\"keywords\":");
    json::push_hex_number(out, event.keywords());
    push_optional(out, "opcode", event_opcode(event).map(u64::from));
}

fn push_optional(out: &mut Vec<u8>, name: &str, value: Option<u64>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    match value {
        Some(value) => json::push_u64(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

/// Frames of a stack that are shown. Runtimes take 100.
const MAX_FRAMES: usize = 8192;

fn push_stack(out: &mut Vec<u8>, event: &Event<'_>, push: impl FnMut(&mut Vec<u8>, u64)) {
    out.extend_from_slice(b",\"stack\":");
    json::push_list(out, event.stack().take(MAX_FRAMES), push);
    let left_out = event.stack().len().saturating_sub(MAX_FRAMES);
    if left_out > 0 {
        push_optional(out, "frames_left_out", Some(left_out as u64));
    }
}

/// Writes events as columns. Values of more than 1,024 bytes are cut, and the number of the other bytes is
/// written after them.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # for time in [1_000_000, 2_000_000] {
/// #     recording.at(time).thread(7).exception("System.TimeoutException", "no answer");
/// # }
/// # let recording = recording.bytes();
/// use nettrace_export::events::{LineContent, TableLines};
///
/// let mut events = nettrace_export::nettrace::SliceReader::new(&recording)?;
/// let (mut lines, mut text) = (TableLines::new(LineContent::default()), Vec::new());
/// while let Some(event) = events.next()? {
///     lines.push(&mut text, &event);
///     text.push(b'\n');
/// }
/// let text = String::from_utf8(text)?;
/// assert_eq!(text.matches("System.TimeoutException").count(), 2, "{text}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TableLines<'s> {
    content: LineContent<'s>,
    cache: MetadataCache,
}

impl<'s> TableLines<'s> {
    /// The headings of the columns.
    pub const HEADER: &'static str = "       SECONDS      TID  EVENT  FIELDS";

    /// Creates a writer of lines with this content.
    pub fn new(content: LineContent<'s>) -> Self {
        Self { content, cache: MetadataCache::default() }
    }

    /// Appends the event, without a line end; its stack, if it is shown, follows in lines of its own.
    pub fn push(&mut self, out: &mut Vec<u8>, event: &Event<'_>) {
        use std::io::Write as _;

        let start = out.len();
        let time = event.relative_time().as_nanos();
        let (sign, time) = (if time < 0 { "-" } else { "" }, time.unsigned_abs());
        let seconds = format!("{sign}{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        // Writing into a `Vec` does not fail.
        let _ = write!(out, "{seconds:>14} {:>8}  ", event.thread_id());
        self.cache.push(out, event, push_full_name);
        let complete = fields::push_columns(out, event);
        if self.content.payload || !complete {
            out.extend_from_slice(b"  payload=");
            let start = out.len();
            json::push_hex(out, event.payload());
            if !self.content.payload {
                fields::cut(out, start);
            }
        }
        escape_controls_from(out, start);
        if let Some(symbols) = &mut self.content.symbols {
            for address in event.stack().take(MAX_FRAMES) {
                let _ = write!(out, "\n{:>25}", "");
                let start = out.len();
                symbols.push_text(out, event, address);
                escape_controls_from(out, start);
            }
        } else if self.content.stacks {
            for address in event.stack().take(MAX_FRAMES) {
                let _ = write!(out, "\n{:>25}{address:#x}", "");
            }
        } else {
            return;
        }
        let left_out = event.stack().len().saturating_sub(MAX_FRAMES);
        if left_out > 0 {
            let _ = write!(out, "\n{:>25}({left_out} more frames)", "");
        }
    }
}

/// Appends the names of the provider and of the event.
fn push_full_name(out: &mut Vec<u8>, event: &Event<'_>) {
    use std::io::Write as _;

    // Writing into a `Vec` does not fail.
    let _ = write!(out, "{}/{}", event.provider(), event_name(event));
}
