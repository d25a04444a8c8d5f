//! From one block to the next, and what the blocks hold besides events.

use alloc::format;
use alloc::string::String;

use super::{Engine, Open, State, Step};
use crate::block::event::{Encoding, Row, Rows};
use crate::block::{self, BlockError};
use crate::container::{BlockKind, Frame, ScanResult, fast_serialization, v6};
use crate::cursor::{Cursor, ReadError};
use crate::event::Layout;
use crate::tables::Tables;

/// The versions of block types that this crate knows.
const NEWEST_BLOCK: u32 = 2;
/// Bytes that are kept while looking for the next block: more than the longest type takes.
const OBJECT_TYPE: usize = 512;

impl Engine {
    /// Enters the object at `self.at`.
    pub(super) fn object(&mut self, bytes: &[u8], end: bool) -> Option<Step> {
        let (found, data) = match fast_serialization::item(bytes, self.at) {
            ScanResult::Found(fast_serialization::Item::Object(found, data)) => (found, data),
            ScanResult::Found(fast_serialization::Item::Null) => {
                self.at = self.at.saturating_add(1);
                self.state = State::Ended { trailing: 0 };
                return None;
            }
            ScanResult::NeedMore(more) => return Some(self.need(more, end)),
            ScanResult::Invalid(what) => return self.start_resync(self.at.saturating_add(1), what),
        };
        let mut kind = fast_serialization::kind(found.name);
        let is_newer = kind != BlockKind::Unknown && found.least_reader_version > NEWEST_BLOCK;
        if is_newer {
            kind = BlockKind::Unknown;
        }
        let mut frame = match fast_serialization::frame(bytes, kind, data, self.base.wrapping_add(self.shift))
        {
            ScanResult::Found(frame) => frame,
            ScanResult::NeedMore(more) => return Some(self.need(more, end)),
            ScanResult::Invalid(what) => return self.start_resync(data, what),
        };
        let cut = frame.next > bytes.len();
        if cut && !end {
            return Some(Step::NeedMore(frame.next.saturating_sub(bytes.len())));
        }
        // A size that is wrong hides the blocks behind it: what follows tells whether it can be trusted.
        if cut && fast_serialization::next_block(bytes, data).is_some() {
            return self.start_resync(data, "block that is larger than what is left of the recording");
        }
        if !cut && fast_serialization::ends_at(bytes, frame.end) != Some(true) {
            let known = frame.next.saturating_add(fast_serialization::PADDINGS);
            if known > bytes.len() && !end {
                return Some(Step::NeedMore(known.saturating_sub(bytes.len())));
            }
            let Some(padded) = fast_serialization::frame_of_any_padding(bytes, frame, data) else {
                return self.start_resync(data, "block without its end tag");
            };
            self.tables.damaged(
                self.offset(self.at),
                0,
                "padding that shows that bytes before it are missing",
            );
            let further = padded.start.wrapping_sub(frame.start) as u64;
            self.shift = self.shift.wrapping_sub(further);
            frame = padded;
        }
        if is_newer {
            self.tables.damaged(self.offset(self.at), 0, "block that only a newer reader can read");
        }
        self.enter(bytes, frame, cut)
    }

    /// Enters the block of V6 at `self.at`.
    pub(super) fn block(&mut self, bytes: &[u8], end: bool) -> Option<Step> {
        match v6::item(bytes, self.at) {
            ScanResult::Found(v6::Item::End(frame)) => {
                if frame.next > bytes.len() {
                    return Some(self.need(frame.next.saturating_sub(bytes.len()), end));
                }
                self.at = frame.next;
                self.state = State::Ended { trailing: 0 };
                None
            }
            ScanResult::Found(v6::Item::Block(frame) | v6::Item::Trace(frame)) => {
                let cut = frame.next > bytes.len();
                if cut && !end {
                    return Some(Step::NeedMore(frame.next.saturating_sub(bytes.len())));
                }
                // A size that is wrong hides the blocks behind it: what follows tells whether it can be trusted.
                let mut what = "block that is larger than what is left of the recording";
                let mut is_doubtful = cut;
                if !cut && frame.kind == BlockKind::Unknown {
                    what = "block of an unknown kind that hides others";
                    match v6::begin_blocks(bytes, frame.next, 1, end) {
                        ScanResult::Found(()) => {}
                        ScanResult::NeedMore(more) => return Some(Step::NeedMore(more)),
                        ScanResult::Invalid(_) => is_doubtful = true,
                    }
                }
                let within = bytes.get(..frame.next).unwrap_or(bytes);
                if is_doubtful
                    && matches!(v6::next_block(within, frame.start, true), (_, ScanResult::Found(())))
                {
                    return self.start_resync(frame.start, what);
                }
                self.enter(bytes, frame, cut)
            }
            ScanResult::NeedMore(more) => Some(self.need(more, end)),
            ScanResult::Invalid(what) => self.start_resync(self.at.saturating_add(1), what),
        }
    }

    /// Enters the event of netperf V1 or V2 at `self.at`: a block of its own.
    pub(super) fn flat(&mut self, bytes: &[u8], end: bool) -> Option<Step> {
        match fast_serialization::is_netperf_tail(bytes, self.at, self.base) {
            ScanResult::Found(true) => {
                self.at = self.at.saturating_add(17);
                self.state = State::Ended { trailing: 0 };
                return None;
            }
            ScanResult::NeedMore(more) => return Some(self.need(more, end)),
            _ => {}
        }
        let frame = match fast_serialization::frame(bytes, BlockKind::Event, self.at, 0) {
            ScanResult::Found(frame) => frame,
            ScanResult::NeedMore(more) => return Some(self.need(more, end)),
            ScanResult::Invalid(what) => return self.start_resync(self.at.saturating_add(1), what),
        };
        // Nothing is padded here: the event is its size and as many bytes.
        let size = frame.end.saturating_sub(frame.start).saturating_add(4);
        let next = self.at.saturating_add(size);
        if next > bytes.len() {
            return Some(self.need(next.saturating_sub(bytes.len()), end));
        }
        let rows = Rows::new(0, Encoding::Netperf);
        self.open = Open { start: self.at, end: next, next, rows, cut: false };
        self.is_open = true;
        None
    }

    /// More bytes, or the end of a recording that should go on.
    fn need(&mut self, more: usize, end: bool) -> Step {
        if end { self.cut(self.at) } else { Step::NeedMore(more) }
    }

    /// What stands at `self.at` makes no sense: the next block is looked for from `from` on.
    fn start_resync(&mut self, from: usize, what: &'static str) -> Option<Step> {
        self.state = State::Resync { since: self.offset(self.at), what };
        self.at = from;
        None
    }

    pub(super) fn resync(&mut self, bytes: &[u8], end: bool, since: u64, what: &'static str) -> Option<Step> {
        let flat = self.tables.info.as_ref().is_some_and(|info| info.version < 3);
        let v6 = self.layout == Layout::V6;
        let found = if v6 {
            let (at, found) = v6::next_block(bytes, self.at, end);
            self.at = at;
            match found {
                ScanResult::Found(()) => Some(at),
                ScanResult::NeedMore(more) => return Some(Step::NeedMore(more)),
                ScanResult::Invalid(_) => None,
            }
        } else if flat {
            None
        } else {
            fast_serialization::next_block(bytes, self.at)
        };
        if let Some(at) = found {
            self.tables.damaged(since, self.offset(at).saturating_sub(since), what);
            self.at = at;
            self.state = if v6 { State::Blocks } else { State::Objects };
            return None;
        }
        if end {
            self.tables.damaged(since, self.offset(bytes.len()).saturating_sub(since), what);
            return Some(self.cut(bytes.len()));
        }
        self.at = self.at.max(bytes.len().saturating_sub(OBJECT_TYPE));
        Some(Step::NeedMore(1))
    }

    pub(super) fn ended(&mut self, bytes: &[u8], end: bool, trailing: u64) -> Step {
        let trailing = trailing.saturating_add(bytes.len().saturating_sub(self.at) as u64);
        self.at = bytes.len();
        self.state = State::Ended { trailing };
        if !end {
            return Step::NeedMore(1);
        }
        if trailing > 0 {
            let offset = self.offset(bytes.len()).saturating_sub(trailing);
            self.tables.damaged(offset, trailing, "bytes behind the end of the stream");
            self.state = State::Ended { trailing: 0 };
        }
        Step::End
    }

    /// Reads what a block holds; an event block stays open for its events to be given one by one.
    fn enter(&mut self, bytes: &[u8], frame: Frame, cut: bool) -> Option<Step> {
        if frame.start > bytes.len() {
            return Some(self.cut(self.at));
        }
        let end = frame.end.min(bytes.len());
        let content = bytes.get(frame.start..end).unwrap_or_default();
        let v6 = self.layout == Layout::V6;
        let offset = self.offset(frame.start);
        if self.replaces(frame.kind, content, cut) && self.replacing != Some(offset) {
            self.replacing = Some(offset);
            return Some(Step::Invalidates);
        }
        let passes = self.passes_events && self.may_pass(content, cut);
        let tables = &mut self.tables;
        let mut step = None;
        let outcome = match frame.kind {
            BlockKind::Event => match self.rows_of(content) {
                Ok(rows) => {
                    self.open = Open { start: frame.start, end, next: frame.next, rows, cut };
                    self.is_open = true;
                    return None;
                }
                Err(error) => Err(BlockError { at: 0, error }),
            },
            BlockKind::Metadata if v6 => block::metadata::v6_block(content, |at, row| {
                insert(row, offset.saturating_add(at as u64), tables);
            }),
            BlockKind::Metadata => metadata_rows(content, offset, tables),
            BlockKind::Stack => block::stack::read(content, &mut tables.epoch.stacks),
            BlockKind::LabelList => block::label_list::read(content, &mut tables.epoch.labels),
            BlockKind::Thread => block::thread::read(content, &mut tables.threads),
            BlockKind::RemoveThread => block::thread::remove(content, &mut tables.threads),
            BlockKind::SequencePoint if passes => {
                step = Some(Step::SequencePoint);
                self.passed_point = Some(frame.start..end);
                Ok(())
            }
            BlockKind::SequencePoint => {
                step = Some(Step::SequencePoint);
                let outcome = block::sequence_point::read(content, v6, &mut tables.threads);
                self.forget = Some(outcome.unwrap_or_else(|(_, forget)| forget));
                outcome.map(drop).map_err(|(bad, _)| bad)
            }
            BlockKind::Unknown => Ok(()),
        };
        self.at = frame.next;
        self.note(outcome, content.len(), offset, cut);
        self.note_thread_faults(offset);
        if cut {
            return Some(self.cut(end));
        }
        step
    }

    /// Whether a block gives ids to other stacks or label lists than those that have them, or is of a kind that must not be
    /// read before the events before it.
    fn replaces(&self, kind: BlockKind, content: &[u8], cut: bool) -> bool {
        let table = match kind {
            BlockKind::Stack => &self.tables.epoch.stacks,
            BlockKind::LabelList => &self.tables.epoch.labels,
            BlockKind::SequencePoint => return self.passes_events && !self.may_pass(content, cut),
            BlockKind::Metadata | BlockKind::Thread | BlockKind::RemoveThread => {
                return self.passes_events;
            }
            BlockKind::Event | BlockKind::Unknown => return false,
        };
        let mut cursor = Cursor::new(content);
        let (Ok(first_id), Ok(count)) = (cursor.u32(), cursor.u32()) else { return false };
        table.has_any(first_id, count)
    }

    /// Whether a sequence point does no more than end an epoch: what it says of threads can wait.
    fn may_pass(&self, point: &[u8], cut: bool) -> bool {
        let flags = point.get(8..).and_then(|rest| rest.first_chunk::<4>());
        !cut && (self.layout != Layout::V6 || flags == Some(&[0; 4]))
    }

    /// What the block at `offset` says about threads that cannot be.
    pub(super) fn note_thread_faults(&mut self, offset: u64) {
        for fault in self.tables.threads.take_faults() {
            self.tables.damaged(offset, 0, format!("{} (index {})", fault.what, fault.index));
        }
    }

    fn rows_of(&self, content: &[u8]) -> Result<Rows, ReadError> {
        if self.layout == Layout::Netperf {
            return Ok(Rows::new(0, Encoding::Netperf));
        }
        let (start, encoding) = block::event::block_header(content, self.layout == Layout::V6)?;
        Ok(Rows::new(start, encoding))
    }

    /// A block could not be read to its end: because the recording ends there, or because it is damaged.
    pub(super) fn note(&mut self, outcome: Result<(), BlockError>, length: usize, offset: u64, cut: bool) {
        let Err(BlockError { at, error }) = outcome else { return };
        let place = offset.saturating_add(at as u64);
        let skipped = length.saturating_sub(at) as u64;
        match error {
            ReadError::UnexpectedEnd if cut => self.tables.truncated = Some(place),
            ReadError::UnexpectedEnd => {
                self.tables.damaged(place, skipped, "row that goes on behind its block");
            }
            ReadError::Invalid(what) => self.tables.damaged(place, skipped, what),
        }
    }
}

/// Metadata blocks of V4 hold rows like those of event blocks.
fn metadata_rows(content: &[u8], offset: u64, tables: &mut Tables) -> Result<(), BlockError> {
    let (start, encoding) =
        block::event::block_header(content, false).map_err(|error| BlockError { at: 0, error })?;
    let mut rows = Rows::of_metadata(start, encoding);
    while rows.at() < content.len() {
        let at = rows.at();
        rows.next(content, tables).map_err(|error| BlockError { at, error })?;
        metadata_row(&rows, content, offset.saturating_add(at as u64), tables);
    }
    Ok(())
}

/// A row that is no event: netperf defines kinds of events among them.
pub(super) fn row_without_event(row: Row, rows: &Rows, content: &[u8], offset: u64, tables: &mut Tables) {
    match row {
        Row::Event => {}
        Row::Metadata => metadata_row(rows, content, offset, tables),
        Row::Unknown => {
            let id = rows.header.metadata_id;
            let size = rows.at().saturating_sub(usize::try_from(rows.header.start).unwrap_or(0));
            tables.damaged(offset, size as u64, unknown_kind(id));
        }
    }
}

/// More fields without bytes would make a small recording one of very many values. Real ones are objects without properties.
const MOST_EMPTY: usize = 64;

/// What is wrong with an event whose kind has no metadata.
pub(crate) fn unknown_kind(id: u32) -> String {
    format!("event of the kind {id}, which is defined nowhere before it")
}

fn metadata_row(rows: &Rows, content: &[u8], offset: u64, tables: &mut Tables) {
    let start = usize::try_from(rows.header.payload).unwrap_or(usize::MAX);
    let length = usize::try_from(rows.header.payload_len).unwrap_or(usize::MAX);
    let payload = content.get(start..start.saturating_add(length)).unwrap_or_default();
    let version = tables.info.as_ref().map_or(0, |info| info.version);
    let row = if version < 3 {
        // The offset of the row is the id that it defines.
        u32::try_from(offset).ok().and_then(|id| block::metadata::netperf_v1(payload, id, version))
    } else {
        block::metadata::v4_row(payload)
    };
    match row {
        Some(row) => insert(row, offset, tables),
        None => tables.damaged(offset, length as u64, "metadata row that names no event"),
    }
}

fn insert(mut row: block::metadata::Row, offset: u64, tables: &mut Tables) {
    if let Some(fault) = row.fault {
        tables.damaged(offset, 0, fault);
    }
    if row.metadata.id == 0 {
        return tables.damaged(offset, 0, "metadata row with the number 0, which no event can have");
    }
    let empty = row
        .metadata
        .fields
        .iter()
        .fold(0, |sum: usize, field| sum.saturating_add(field.field_type.empty_parts()));
    if empty > MOST_EMPTY {
        row.metadata.fields.clear();
        tables.damaged(offset, 0, "field list with too many fields that take no bytes");
    }
    // Runtimes repeat rows, but a number never means two kinds of events at once.
    match tables.metadata.get(tables.metadata.slot(row.metadata.id)) {
        Some(before) if *before == row.metadata => return,
        Some(_) => {
            let what = format!("kind {} of events that is defined again as another", row.metadata.id);
            tables.damaged(offset, 0, what);
        }
        None => {}
    }
    tables.metadata.insert(row.metadata);
}
