//! The positions of a recording's blocks, for recordings of V4 and V5.

use super::rewrite;
use crate::error::UnsupportedRecording;
use nettrace::raw::{Block, BlockKind, Blocks, Layout, SequencePoint};
use std::ops::Range;

/// The positions of the blocks, and the clock of their times.
#[derive(Debug)]
pub(super) struct BlockIndex {
    pub(super) blocks: Vec<IndexedBlock>,
    /// The lowest time in the recording, in ticks.
    pub(super) start: u64,
    /// Ticks a second.
    pub(super) frequency: u64,
    /// The offset of the stream's end mark.
    end: usize,
}

#[derive(Clone, Debug)]
pub(super) struct IndexedBlock {
    pub(super) kind: BlockKind,
    /// The whole object.
    pub(super) object: Range<usize>,
    /// The tags and the type of the object.
    pub(super) head: Range<usize>,
    pub(super) content: Range<usize>,
    /// The last time in this block or one before it, in ticks.
    pub(super) newest: u64,
}

impl BlockIndex {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, UnsupportedRecording> {
        let not_v4 = || {
            UnsupportedRecording(
                "only whole recordings of nettrace V4 and V5 can be played over and over".into(),
            )
        };
        let mut blocks = Blocks::new(bytes).map_err(|_| not_v4())?;
        if blocks.header().layout() != Layout::V4 {
            return Err(not_v4());
        }
        let info = blocks.header().info();
        let mut index =
            Self { blocks: Vec::new(), start: info.start_ticks.0, frequency: info.frequency, end: 0 };
        loop {
            let place = blocks.offset();
            let damaged = || {
                UnsupportedRecording(format!(
                    "no whole block at byte {place}: a cut or damaged recording cannot be repeated"
                ))
            };
            match blocks.next() {
                Some(Ok(block)) => index.add(&block).ok_or_else(|| {
                    UnsupportedRecording(format!("the block at byte {place} is not as runtimes write it"))
                })?,
                None if blocks.offset() == bytes.len() => {
                    index.end = place;
                    return Ok(index);
                }
                None | Some(Err(_)) => return Err(damaged()),
            }
        }
    }

    /// Adds a block, with the times in it.
    fn add(&mut self, block: &Block<'_>) -> Option<()> {
        let content = block.content();
        let mut newest = self.blocks.last().map_or(self.start, |last| last.newest);
        match block.kind() {
            BlockKind::Event => rewrite::for_each(content, |event| {
                self.start = self.start.min(event.timestamp);
                newest = newest.max(event.timestamp);
            })?,
            BlockKind::Metadata => rewrite::for_each(content, |_| ())?,
            BlockKind::SequencePoint => newest = newest.max(sequence_point(content)?.0),
            _ => {}
        }
        let object = range(block.range())?;
        let head = object.start..object.start.checked_add(block.prefix().len())?;
        let start = usize::try_from(block.content_offset()).ok()?;
        let content = start..start.checked_add(content.len())?;
        self.blocks.push(IndexedBlock { kind: block.kind(), object, head, content, newest });
        Some(())
    }

    /// Returns the offset of the block with the rundown's first event, which is at `event`; without a rundown
    /// that of the end mark.
    pub(super) fn rundown_start(&self, event: Option<usize>) -> usize {
        let first = event.and_then(|offset| self.blocks.iter().find(|block| block.object.contains(&offset)));
        first.map_or(self.end, |block| block.object.start)
    }
}

fn range(range: Range<u64>) -> Option<Range<usize>> {
    Some(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

/// Returns a sequence point's time, and its threads with the number of the last event of each.
pub(super) fn sequence_point(content: &[u8]) -> Option<(u64, Vec<(u64, u32)>)> {
    let point = SequencePoint::parse(content, Layout::V4).ok()?;
    let threads = point.threads().map(|number| number.map(|number| (number.thread, number.sequence)));
    Some((point.time().0, threads.collect::<Result<_, _>>().ok()?))
}
