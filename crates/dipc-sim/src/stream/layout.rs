//! The positions of a recording's blocks, for recordings of V4 and V5.

use super::cursor::Cursor;
use super::object::NULL_REFERENCE;
use super::rows;
use crate::error::UnsupportedRecording;
use std::ops::Range;

/// `Nettrace` and the signature.
const PREAMBLE: &[u8] = b"Nettrace\x14\0\0\0!FastSerialization.1";
const BEGIN_OBJECT: u8 = 5;
const END_OBJECT: u8 = 6;

/// The positions of the blocks, and the clock of their times.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) blocks: Vec<Block>,
    /// The lowest time in the recording, in ticks.
    pub(super) start: u64,
    /// Ticks a second.
    pub(super) frequency: u64,
    /// The offset of the stream's end mark.
    end: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// The whole object.
    pub(super) object: Range<usize>,
    /// Its tags and type.
    pub(super) head: Range<usize>,
    pub(super) content: Range<usize>,
    /// The last time in this block or one before it, in ticks.
    pub(super) newest: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Event,
    Metadata,
    SequencePoint,
    Other,
}

impl Layout {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, UnsupportedRecording> {
        let not_v4 = || {
            UnsupportedRecording(
                "only whole recordings of nettrace V4 and V5 can be played over and over".into(),
            )
        };
        let rest = bytes.strip_prefix(PREAMBLE).ok_or_else(not_v4)?;
        let mut reader = Reader { bytes, cursor: Cursor::new(rest) };
        let (start, frequency) = reader.trace().ok_or_else(not_v4)?;
        let mut layout = Self { blocks: Vec::new(), start, frequency: frequency.max(1), end: bytes.len() };
        loop {
            let place = reader.offset();
            if reader.cursor.len() == 1 && bytes.get(place) == Some(&NULL_REFERENCE) {
                layout.end = place;
                return Ok(layout);
            }
            let block = reader.block().ok_or_else(|| {
                UnsupportedRecording(format!(
                    "no whole block at byte {place}: what is cut or damaged cannot be played over and over"
                ))
            })?;
            layout.add(block, bytes).ok_or_else(|| {
                UnsupportedRecording(format!("the block at byte {place} is not as runtimes write it"))
            })?;
        }
    }

    /// Adds a block, with the times in it.
    fn add(&mut self, mut block: Block, bytes: &[u8]) -> Option<()> {
        let content = bytes.get(block.content.clone())?;
        block.newest = self.blocks.last().map_or(self.start, |last| last.newest);
        match block.kind {
            Kind::Event => rows::for_each(content, |event| {
                self.start = self.start.min(event.timestamp);
                block.newest = block.newest.max(event.timestamp);
            })?,
            Kind::Metadata => rows::for_each(content, |_| ())?,
            Kind::SequencePoint => block.newest = block.newest.max(sequence_point(content)?.0),
            Kind::Other => {}
        }
        self.blocks.push(block);
        Some(())
    }

    /// Returns the offset of the block with the rundown's first event, which is at `event`; without a rundown that of the end mark.
    pub(super) fn rundown_start(&self, event: Option<usize>) -> usize {
        let first = event.and_then(|offset| self.blocks.iter().find(|block| block.object.contains(&offset)));
        first.map_or(self.end, |block| block.object.start)
    }
}

/// A sequence point's time, and its threads with the number of the last event of each.
pub(super) fn sequence_point(content: &[u8]) -> Option<(u64, Vec<(u64, u32)>)> {
    let mut cursor = Cursor::new(content);
    let (ticks, count) = (cursor.u64()?, cursor.length()?);
    if count > cursor.len() {
        return None;
    }
    let threads: Option<Vec<_>> = (0..count).map(|_| Some((cursor.u64()?, cursor.u32()?))).collect();
    Some((ticks, threads?))
}

/// Reads objects one after the other.
struct Reader<'a> {
    bytes: &'a [u8],
    cursor: Cursor<'a>,
}

impl<'a> Reader<'a> {
    fn offset(&self) -> usize {
        self.bytes.len().saturating_sub(self.cursor.len())
    }

    /// The tags and the type of an object: its name.
    fn begin(&mut self) -> Option<&'a [u8]> {
        if self.cursor.array()? != [BEGIN_OBJECT, BEGIN_OBJECT, NULL_REFERENCE] {
            return None;
        }
        self.cursor.take(8)?;
        let name = self.cursor.length()?;
        let name = self.cursor.take(name)?;
        (self.cursor.u8()? == END_OBJECT).then_some(name)
    }

    /// The `Trace` object: when it starts, and how fast its clock ticks.
    fn trace(&mut self) -> Option<(u64, u64)> {
        if self.begin()? != b"Trace" {
            return None;
        }
        let mut data = Cursor::new(self.cursor.take(48)?);
        data.take(16)?;
        let clock = (data.u64()?, data.u64()?);
        (self.cursor.u8()? == END_OBJECT).then_some(clock)
    }

    fn block(&mut self) -> Option<Block> {
        let start = self.offset();
        let kind = match self.begin()? {
            b"EventBlock" => Kind::Event,
            b"MetadataBlock" => Kind::Metadata,
            b"SPBlock" => Kind::SequencePoint,
            _ => Kind::Other,
        };
        let head = start..self.offset();
        let size = self.cursor.length()?;
        let place = self.offset();
        self.cursor.take(place.next_multiple_of(4).saturating_sub(place))?;
        let place = self.offset();
        self.cursor.take(size)?;
        let content = place..self.offset();
        (self.cursor.u8()? == END_OBJECT).then_some(())?;
        Some(Block { kind, object: start..self.offset(), head, content, newest: 0 })
    }
}
