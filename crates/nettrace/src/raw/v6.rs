//! The container of nettrace V6: blocks with a header of 4 bytes.
//!
//! ```text
//! stream = "Nettrace" u32(0) major:u32 minor:u32 block* end-block
//! block  = header:u32 content         (header: size in the low 24 bits, kind in the high 8)
//! ```

use nom::Parser as _;
use nom::bytes::streaming::tag;
use nom::number::streaming::le_u32;

use super::BlockKind;
use super::fast_serialization::NETTRACE;
use super::frame::{Frame, ScanResult};
use crate::cursor::{Cursor, ReadError, ReadResult};

const END_OF_STREAM: u8 = 0;
pub(crate) const TRACE: u8 = 1;

/// Parses the version at the start of the stream: 20 bytes.
pub(crate) fn version(bytes: &[u8]) -> ScanResult<(u32, u32)> {
    let zero = tag::<_, _, nom::error::Error<&[u8]>>(&[0u8; 4][..]);
    match (tag(NETTRACE), zero, le_u32, le_u32).parse(bytes) {
        Ok((_, (_, _, major, minor))) => ScanResult::Found((major, minor)),
        Err(nom::Err::Incomplete(_)) => ScanResult::NeedMore(20usize.saturating_sub(bytes.len()).max(1)),
        Err(_) => ScanResult::Invalid("not the beginning of a nettrace stream"),
    }
}

/// Size of the magic, the reserved bytes and the version.
pub(crate) const VERSION_SIZE: usize = 20;

/// An item of the stream after the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Block(Frame),
    Trace(Frame),
    /// The end of the stream.
    End(Frame),
}

/// Parses the header of the block at `at`.
pub(crate) fn item(bytes: &[u8], at: usize) -> ScanResult<Item> {
    let rest = bytes.get(at..).unwrap_or_default();
    let Some(&[s0, s1, s2, kind]) = rest.first_chunk::<4>() else {
        return ScanResult::NeedMore(4usize.saturating_sub(rest.len()));
    };
    let size = usize::try_from(u32::from_le_bytes([s0, s1, s2, 0])).unwrap_or(usize::MAX);
    let start = at.saturating_add(4);
    let end = start.saturating_add(size);
    let known = match kind {
        2 => BlockKind::Event,
        3 => BlockKind::Metadata,
        4 => BlockKind::SequencePoint,
        5 => BlockKind::Stack,
        6 => BlockKind::Thread,
        7 => BlockKind::RemoveThread,
        8 => BlockKind::LabelList,
        _ => BlockKind::Unknown,
    };
    let frame = Frame { kind: known, start, end, next: end };
    ScanResult::Found(match kind {
        END_OF_STREAM => Item::End(frame),
        TRACE => Item::Trace(frame),
        _ => Item::Block(frame),
    })
}

/// The blocks in a row that are taken as a proof that the first of them is one.
pub(crate) const CHAIN: usize = 3;

/// Looks for `count` blocks of known kinds in a row from `at` on, or as many as there are up to the end of
/// the recording. The contents must begin as their kinds require.
pub(crate) fn begin_blocks(bytes: &[u8], at: usize, count: usize, end: bool) -> ScanResult<()> {
    begin_at_least(bytes, at, (0, count), end)
}

/// As [`begin_blocks`], and up to the end of the recording at least as many as the first of the numbers.
fn begin_at_least(bytes: &[u8], at: usize, (least, count): (usize, usize), end: bool) -> ScanResult<()> {
    let mut at = at;
    // Only the headers of event blocks differ enough from other bytes.
    let mut has_events = count == 1;
    for found in 0..count {
        let frame = match item(bytes, at) {
            // It is the end of the stream if nothing follows it.
            ScanResult::Found(Item::End(frame)) if frame.next >= bytes.len() && !end => {
                return ScanResult::NeedMore(frame.next.saturating_sub(bytes.len()).saturating_add(1));
            }
            ScanResult::Found(Item::End(frame))
                if frame.next == bytes.len() && end && has_events && found >= least =>
            {
                return ScanResult::Found(());
            }
            ScanResult::Found(Item::Block(frame)) if frame.kind != BlockKind::Unknown => frame,
            ScanResult::NeedMore(_) if end && at == bytes.len() && has_events && found >= least => {
                return ScanResult::Found(());
            }
            ScanResult::NeedMore(more) if !end => return ScanResult::NeedMore(more),
            _ => return ScanResult::Invalid("no block"),
        };
        let missing = frame.next.saturating_sub(bytes.len());
        if missing > 0 {
            let content = bytes.get(frame.start..).unwrap_or_default();
            let size = frame.end.saturating_sub(frame.start);
            if matches!(content_begins(frame.kind, size, content), Ok(false) | Err(ReadError::Invalid(_))) {
                return ScanResult::Invalid("no block");
            }
            return if end { ScanResult::Invalid("no block") } else { ScanResult::NeedMore(missing) };
        }
        if !is_plausible(frame.kind, bytes.get(frame.start..frame.end).unwrap_or_default()) {
            return ScanResult::Invalid("no block");
        }
        has_events |= frame.kind == BlockKind::Event;
        at = frame.next;
    }
    if has_events { ScanResult::Found(()) } else { ScanResult::Invalid("no block") }
}

/// Returns the first offset from `from` on at which blocks begin, or may begin once more bytes are there.
pub(crate) fn next_block(bytes: &[u8], from: usize, end: bool) -> (usize, ScanResult<()>) {
    let nothing = if end { ScanResult::Invalid("no block") } else { ScanResult::NeedMore(1) };
    first_chain(bytes, from..bytes.len(), 1, end).unwrap_or((bytes.len(), nothing))
}

/// Returns the first offset in `from..to` at which blocks begin, or may begin once more bytes have arrived,
/// inside the possible content of another block. Some of the many offsets in a block look like the beginning
/// of a block that ends at the cut, or at the beginning of another. So at least two blocks are required, and
/// the first must be of a kind with content that is distinguishable from other bytes.
pub(crate) fn hidden_block(bytes: &[u8], from: usize, to: usize, end: bool) -> (usize, ScanResult<()>) {
    let may_be_first = |at: &usize| {
        use BlockKind::{Event, LabelList, SequencePoint, Stack};
        match item(bytes, *at) {
            ScanResult::Found(Item::Block(frame)) => {
                matches!(frame.kind, Event | SequencePoint | Stack | LabelList)
            }
            ScanResult::NeedMore(_) => true,
            ScanResult::Found(_) | ScanResult::Invalid(_) => false,
        }
    };
    let found = first_chain(bytes, (from..to).filter(may_be_first), 2, end);
    found.unwrap_or((to, ScanResult::Invalid("no block")))
}

/// The first of some offsets at which at least `least` blocks begin, or may begin once more bytes have
/// arrived.
fn first_chain(
    bytes: &[u8],
    mut offsets: impl Iterator<Item = usize>,
    least: usize,
    end: bool,
) -> Option<(usize, ScanResult<()>)> {
    offsets.find_map(|at| match begin_at_least(bytes, at, (least, CHAIN), end) {
        ScanResult::Invalid(_) => None,
        found => Some((at, found)),
    })
}

/// The first kind that no later version of the format is expected to reach; 0x14 is the first byte of each
/// event block's content.
const PLAUSIBLE_KINDS: u8 = 0x10;
/// Maximum plausible size of a block of an unknown kind, in bytes.
const PLAUSIBLE_SIZE: usize = 1 << 20;

/// The first bytes of a block's content that show whether it begins as its kind requires.
const BEGINNING: usize = 20;

/// Checks that the bytes at `at` may follow a block: a whole block that begins as its kind requires, or the
/// end. `ahead` bytes are known to follow the available bytes.
pub(crate) fn is_followed(bytes: &[u8], at: usize, end: bool, ahead: usize) -> ScanResult<()> {
    const NOTHING: ScanResult<()> = ScanResult::Invalid("no block");
    let (frame, is_known) = match item(bytes, at) {
        ScanResult::Found(Item::End(frame)) if frame.start == frame.end => {
            let after = bytes.get(frame.next..).unwrap_or_default();
            return match after {
                [] if end => ScanResult::Found(()),
                _ if after.starts_with(NETTRACE) => ScanResult::Found(()),
                _ if NETTRACE.starts_with(after) && !end => {
                    ScanResult::NeedMore(NETTRACE.len().saturating_sub(after.len()))
                }
                _ => NOTHING,
            };
        }
        ScanResult::Found(Item::Block(frame)) => (frame, frame.kind != BlockKind::Unknown),
        ScanResult::NeedMore(more) if !end => return ScanResult::NeedMore(more),
        _ => return NOTHING,
    };
    let size = frame.end.saturating_sub(frame.start);
    if !is_known {
        let kind = bytes.get(at.saturating_add(3));
        let is_plausible = kind.is_some_and(|kind| *kind < PLAUSIBLE_KINDS) && size < PLAUSIBLE_SIZE;
        return if is_plausible { ScanResult::Found(()) } else { NOTHING };
    }
    let missing = frame.next.saturating_sub(bytes.len());
    let is_there = missing <= ahead;
    let content = bytes.get(frame.start..frame.end.min(bytes.len())).unwrap_or_default();
    match content_begins(frame.kind, size, content) {
        Ok(true) if is_there => ScanResult::Found(()),
        Err(ReadError::UnexpectedEnd) if missing > 0 && is_there && !end => {
            ScanResult::NeedMore(missing.min(BEGINNING))
        }
        Ok(true) | Err(ReadError::UnexpectedEnd) if missing > 0 && !end => ScanResult::NeedMore(missing),
        _ => NOTHING,
    }
}

/// Returns true if the content of a block begins as its kind requires.
fn is_plausible(kind: BlockKind, content: &[u8]) -> bool {
    content_begins(kind, content.len(), content) == Ok(true)
}

/// Returns true if the first bytes of a block's content, of `length` bytes in all, are as its kind requires.
fn content_begins(kind: BlockKind, length: usize, first: &[u8]) -> ReadResult<bool> {
    let mut cursor = Cursor::new(first);
    match kind {
        BlockKind::Event => {
            let (size, flags) = (cursor.u16()?, cursor.u16()?);
            let (oldest, newest) = (cursor.u64()?, cursor.u64()?);
            Ok(usize::from(size) <= length && size >= 20 && flags < 2 && oldest <= newest)
        }
        // Neither has more rows than bytes.
        BlockKind::Stack | BlockKind::LabelList => {
            cursor.u32()?;
            Ok(usize::try_from(cursor.u32()?).is_ok_and(|count| count <= length))
        }
        BlockKind::SequencePoint => {
            cursor.u64()?;
            cursor.u32()?;
            Ok(usize::try_from(cursor.u32()?).is_ok_and(|count| count <= length))
        }
        BlockKind::Metadata | BlockKind::Thread => Ok(usize::from(cursor.u16()?) <= length),
        BlockKind::RemoveThread => cursor.varuint64().map(|_| true),
        BlockKind::Unknown => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_size_and_kind() {
        let bytes = [9, 0x5e, 0, 0, 1, 0];
        let frame = Frame { kind: BlockKind::Unknown, start: 5, end: 5 + 0x5e, next: 5 + 0x5e };
        assert_eq!(item(&bytes, 1), ScanResult::Found(Item::Trace(frame)));
        assert_eq!(item(&bytes, 3), ScanResult::NeedMore(1));
        assert_eq!(
            item(&[0, 0, 0, 0], 0),
            ScanResult::Found(Item::End(Frame { kind: BlockKind::Unknown, start: 4, end: 4, next: 4 }))
        );
    }

    #[test]
    fn in_a_block_of_doubtful_size_others_have_to_be_two() {
        let block =
            |kind: u8, content: &[u8]| [&[content.len().to_le_bytes()[0], 0, 0, kind], content].concat();
        let mut event = [0; 20];
        event[0] = 20;
        let event = block(2, &event);
        let end = block(0, &[]);
        let (begin, two) = ([0xff; 5], [event.clone(), event.clone()].concat());
        let at_five = (5, ScanResult::Found(()));
        let hidden = |blocks: &[&[u8]]| {
            let bytes = [&begin[..], &blocks.concat()].concat();
            hidden_block(&bytes, 0, bytes.len(), true)
        };
        assert_eq!(hidden(&[&two]), at_five);
        assert_eq!(hidden(&[&two, &end]), at_five);
        // Where a recording is cut, or where zeros are, the bytes of an event may look like these.
        assert!(matches!(hidden(&[&event]), (_, ScanResult::Invalid(_))));
        assert!(matches!(hidden(&[&event, &end]), (_, ScanResult::Invalid(_))));
        // A row that removes threads can look like any bytes.
        assert!(matches!(hidden(&[&block(7, &[1, 0]), &event]), (_, ScanResult::Invalid(_))));
    }

    #[test]
    fn a_block_is_believed_if_others_follow_it() {
        let block =
            |kind: u8, content: &[u8]| [&[content.len().to_le_bytes()[0], 0, 0, kind], content].concat();
        let stack = block(5, &[1, 0, 0, 0, 0, 0, 0, 0]);
        let mut event = [0; 20];
        event[0] = 20;
        let event = block(2, &event);
        let three = [stack.clone(), event.clone(), stack.clone()].concat();
        assert_eq!(begin_blocks(&three, 0, CHAIN, false), ScanResult::Found(()));
        assert!(matches!(begin_blocks(&three[..three.len() - 1], 0, CHAIN, false), ScanResult::NeedMore(1)));
        assert!(matches!(begin_blocks(&three[..three.len() - 1], 0, CHAIN, true), ScanResult::Invalid(_)));
        let last = [event, block(0, &[])].concat();
        assert_eq!(begin_blocks(&last, 0, CHAIN, true), ScanResult::Found(()));
        assert!(matches!(
            begin_blocks(&last, 0, CHAIN, false),
            ScanResult::NeedMore(_) | ScanResult::Invalid(_)
        ));
        let noise = [&[0xff; 7][..], &three].concat();
        assert_eq!(next_block(&noise, 0, true), (7, ScanResult::Found(())));
        assert_eq!(next_block(&noise[..6], 0, false), (3, ScanResult::NeedMore(1)));
        let many_stacks = block(5, &[1, 0, 0, 0, 9, 0, 0, 0]);
        assert!(matches!(begin_blocks(&many_stacks, 0, 1, true), ScanResult::Invalid(_)));
    }

    #[test]
    fn the_version_is_read_whole() {
        let bytes = b"Nettrace\0\0\0\0\x06\0\0\0\x07\0\0\0";
        assert_eq!(version(bytes), ScanResult::Found((6, 7)));
        for cut in 0..bytes.len() {
            assert_eq!(version(&bytes[..cut]), ScanResult::NeedMore(20 - cut));
        }
        assert!(matches!(version(b"Nettrace\x14\0\0\0"), ScanResult::Invalid(_)));
    }
}
