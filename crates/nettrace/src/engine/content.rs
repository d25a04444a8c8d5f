//! The content of blocks: from the rows of the raw layer to the tables.

use alloc::format;
use alloc::string::String;

use super::{Engine, Invalidation, Open, Step};
use crate::cursor::{Cursor, ReadError, ReadResult};
use crate::metadata::Metadata;
use crate::raw::{
    BlockContent, BlockKind, Frame, LabelListBlock, Layout, MetadataRow, MetadataRows, ParseError,
    ParsedMetadata, RemovedThreads, RowHeader, RowKind, SequencePoint, StackBlock, ThreadEntry, ThreadRow,
    ThreadRows,
};
use crate::tables::Tables;
use crate::thread::{Thread, ThreadId};
use crate::thread_table::ThreadTable;

/// Maximum number of empty fields of an event kind: with more, a small recording could have very many values.
/// Real ones are objects without properties.
const MAX_EMPTY_FIELDS: usize = 64;

/// The fault of a metadata row that cannot be parsed.
const NAMES_NO_EVENT: &str = "metadata row that names no event";

impl Engine {
    /// Reads a block. An event block stays open, for its events to be given one by one.
    pub(super) fn read_block(&mut self, bytes: &[u8], frame: Frame, cut: bool) -> Option<Step> {
        if frame.start > bytes.len() {
            return Some(self.cut(self.at));
        }
        let end = frame.end.min(bytes.len());
        let content = bytes.get(frame.start..end).unwrap_or_default();
        let offset = self.offset(frame.start);
        if self.replaces_ids(frame.kind, content) && self.replacing != Some(offset) {
            self.replacing = Some(offset);
            return Some(Step::Invalidates);
        }
        let parsed = BlockContent::new(frame.kind, content, offset, self.layout, self.metadata_among_events);
        let outcome = match parsed {
            Ok(BlockContent::Event(block)) => {
                let rows = block.decoder();
                self.open = Some(Open { start: frame.start, end, next: frame.next, rows, cut });
                return None;
            }
            Ok(BlockContent::Metadata(rows)) => self.add_metadata(rows),
            Ok(BlockContent::Stack(block)) => self.add_stacks(&block),
            Ok(BlockContent::LabelList(block)) => self.add_label_lists(&block),
            Ok(BlockContent::Thread(rows)) => add_threads(rows, &mut self.tables.threads),
            Ok(BlockContent::RemoveThread(rows)) => remove_threads(rows, &mut self.tables.threads),
            Ok(BlockContent::SequencePoint(point)) => self.pass_sequence_point(&point),
            Ok(BlockContent::Unknown(_)) => Ok(()),
            Err(error) => Err(ParseError { offset: 0, error }),
        };
        let mut step = None;
        if frame.kind == BlockKind::SequencePoint {
            step = Some(Step::SequencePoint);
            self.point = frame.start..end;
            // Also a point that cannot be read ends the meaning of stack ids.
            self.invalidation.get_or_insert_default();
        }
        self.at = frame.next;
        self.note(outcome, content.len(), offset, cut);
        self.note_thread_faults(offset);
        if cut {
            // No event follows for which ids could have lost their meaning.
            self.invalidation = None;
            return Some(self.cut(end));
        }
        step
    }

    /// Returns true if a block has ids of stacks or label lists that are in use: events before it must be
    /// given before it is read.
    fn replaces_ids(&self, kind: BlockKind, content: &[u8]) -> bool {
        let table = match kind {
            BlockKind::Stack => &self.tables.epoch.stacks,
            BlockKind::LabelList => &self.tables.epoch.labels,
            _ => return false,
        };
        let mut cursor = Cursor::new(content);
        let (Ok(first_id), Ok(count)) = (cursor.u32(), cursor.u32()) else { return false };
        table.has_any(first_id, count)
    }

    /// Adds the stacks that are whole.
    fn add_stacks(&mut self, block: &StackBlock<'_>) -> Result<(), ParseError> {
        let stacks = &mut self.tables.epoch.stacks;
        stacks.begin(block.first_id());
        block.rows().try_for_each(|row| row.map(|row| stacks.push(row.bytes)))
    }

    /// Adds the label lists that are whole.
    fn add_label_lists(&mut self, block: &LabelListBlock<'_>) -> Result<(), ParseError> {
        let labels = &mut self.tables.epoch.labels;
        labels.begin(block.first_id());
        block.rows().try_for_each(|row| row.map(|row| labels.push(row.bytes)))
    }

    /// Adds the kinds of events of a metadata block.
    fn add_metadata(&mut self, rows: MetadataRows<'_>) -> Result<(), ParseError> {
        for row in rows {
            let row = row?;
            match row.parse() {
                Some(parsed) => insert(parsed, row.offset(), &mut self.tables),
                // V6 rows are part of the block: after an invalid row the rest is not trusted.
                None if self.layout == Layout::V6 => {
                    return Err(ParseError {
                        offset: row.offset_in_content(),
                        error: ReadError::Invalid(NAMES_NO_EVENT),
                    });
                }
                None => self.tables.damaged(row.offset(), row.as_bytes().len() as u64, NAMES_NO_EVENT),
            }
        }
        Ok(())
    }

    /// Passes a sequence point: accounts for losses, and prepares the invalidation of ids.
    fn pass_sequence_point(&mut self, point: &SequencePoint<'_>) -> Result<(), ParseError> {
        self.invalidation =
            Some(Invalidation { threads: point.ends_threads(), metadata: point.ends_metadata() });
        account_for_losses(point, self.layout, &mut self.tables.threads)
    }

    /// Takes a row of the open block that is not an event: netperf defines kinds of events among the events.
    pub(super) fn row_without_event(
        &mut self,
        kind: RowKind,
        header: &RowHeader,
        content: &[u8],
        offset: u64,
        end: usize,
    ) {
        match kind {
            RowKind::Event => {}
            RowKind::Metadata => self.metadata_event(header, content, offset),
            RowKind::Unknown => {
                let size = (end as u64).saturating_sub(u64::from(header.start));
                self.tables.damaged(offset, size, unknown_kind(header.metadata_id));
            }
        }
    }

    /// Adds the kind of event that a row of netperf defines.
    fn metadata_event(&mut self, header: &RowHeader, content: &[u8], offset: u64) {
        let Some(encoding) = self.metadata_among_events else { return };
        let start = usize::try_from(header.payload).unwrap_or(usize::MAX);
        let length = usize::try_from(header.payload_len).unwrap_or(usize::MAX);
        let payload = content.get(start..start.saturating_add(length)).unwrap_or_default();
        match MetadataRow::new(payload, offset, offset, encoding).parse() {
            Some(parsed) => insert(parsed, offset, &mut self.tables),
            None => self.tables.damaged(offset, length as u64, NAMES_NO_EVENT),
        }
    }

    /// Notes the impossible references to threads of the block at `offset`.
    pub(super) fn note_thread_faults(&mut self, offset: u64) {
        for fault in self.tables.threads.take_faults() {
            self.tables.damaged(offset, 0, format!("{} (index {})", fault.what, fault.index));
        }
    }

    /// Notes that a block of some length could not be read to its end: because the recording ends there, or
    /// because it is damaged.
    pub(super) fn note(&mut self, outcome: Result<(), ParseError>, length: usize, offset: u64, cut: bool) {
        let Err(ParseError { offset: at, error }) = outcome else { return };
        let place = offset.saturating_add(at);
        let skipped = (length as u64).saturating_sub(at);
        match error {
            ReadError::UnexpectedEnd if cut => self.tables.truncated_at = Some(place),
            ReadError::UnexpectedEnd => {
                self.tables.damaged(place, skipped, "row that continues past the end of its block");
            }
            ReadError::Invalid(what) => self.tables.damaged(place, skipped, what),
        }
    }
}

/// The fault of an event of an undefined kind.
pub(super) fn unknown_kind(id: u32) -> String {
    format!("event of the kind {id}, which is defined nowhere before it")
}

/// Counts the events that threads lost up to a sequence point.
pub(super) fn account_for_losses(
    point: &SequencePoint<'_>,
    layout: Layout,
    threads: &mut ThreadTable,
) -> Result<(), ParseError> {
    for number in point.threads() {
        let number = number?;
        let slot = threads.slot(number.thread);
        threads.captured_up_to(slot, number.sequence, Some(point.time()));
        if layout != Layout::V6 {
            threads.restart_behind(slot, number.sequence);
        }
    }
    Ok(())
}

/// Adds the threads with whole descriptions.
fn add_threads(rows: ThreadRows<'_>, threads: &mut ThreadTable) -> Result<(), ParseError> {
    for row in rows {
        let row = row?;
        let described = thread(&row).map_err(|error| ParseError { offset: row.offset as u64, error })?;
        threads.describe(described);
    }
    Ok(())
}

fn thread(row: &ThreadRow<'_>) -> ReadResult<Thread> {
    let mut thread = Thread::numbered(row.index);
    for entry in row.entries() {
        match entry? {
            ThreadEntry::Name(name) => thread.name = Some(text(name)),
            ThreadEntry::ProcessId(id) => thread.process_id = Some(id),
            ThreadEntry::ThreadId(id) => thread.id = ThreadId(id),
            ThreadEntry::KeyValue(key, value) => thread.key_values.push((text(key), text(value))),
        }
    }
    Ok(thread)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Removes threads, and counts the events that they lost.
fn remove_threads(rows: RemovedThreads<'_>, threads: &mut ThreadTable) -> Result<(), ParseError> {
    rows.into_iter().try_for_each(|row| row.map(|row| threads.remove(row.thread, row.sequence)))
}

fn insert(parsed: ParsedMetadata, offset: u64, tables: &mut Tables) {
    let ParsedMetadata { mut metadata, fault } = parsed;
    if let Some(fault) = fault {
        tables.damaged(offset, 0, fault);
    }
    if metadata.id == 0 {
        return tables.damaged(offset, 0, "metadata row with the number 0, which no event can have");
    }
    if empty_fields(&metadata) > MAX_EMPTY_FIELDS {
        metadata.fields.clear();
        tables.damaged(offset, 0, "field list with too many fields that take no bytes");
    }
    // Runtimes repeat rows, but an id never means two kinds of events at once.
    match tables.metadata.get(tables.metadata.slot(metadata.id)) {
        Some(before) if *before == metadata => return,
        Some(_) => {
            let what = format!("kind {} of events that is defined again as another", metadata.id);
            tables.damaged(offset, 0, what);
        }
        None => {}
    }
    tables.metadata.insert(metadata);
}

fn empty_fields(metadata: &Metadata) -> usize {
    metadata.fields.iter().fold(0, |sum, field| sum.saturating_add(field.field_type.empty_parts()))
}
