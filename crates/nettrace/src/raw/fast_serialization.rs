//! The container of netperf (V1–V3) and nettrace V4: objects with tags and type names.
//!
//! ```text
//! stream = ["Nettrace"] u32(20) "!FastSerialization.1" object* null
//! object = begin type data end
//! type   = begin null version:u32 least-reader-version:u32 name end
//! name   = size:u32 utf8
//! block  = size:i32 padding content          (data of every object but the first; padding to a multiple of 4 in the stream)
//! null   = 1    begin = 5 (nettrace) | 4 (netperf)    end = 6
//! ```

use nom::branch::alt;
use nom::bytes::streaming::{tag, take};
use nom::combinator::{value, verify};
use nom::number::streaming::le_u32;
use nom::{IResult, Parser as _};

use super::BlockKind;
use super::event::has_header;
use super::frame::{Frame, MAX_BLOCK_SIZE, ScanResult};

/// The first bytes of every nettrace recording.
pub(crate) const NETTRACE: &[u8] = b"Nettrace";
/// The bytes after that in V4, and the first bytes of netperf.
pub(crate) const FAST_SERIALIZATION: &[u8] = b"\x14\0\0\0!FastSerialization.1";

const NULL: u8 = 1;
/// The tag at the beginning of an object, and of its type, in netperf.
const BEGIN_NETPERF: u8 = 4;
/// The same in nettrace.
const BEGIN_NETTRACE: u8 = 5;
const END: u8 = 6;
/// Maximum length of an object's name. The longest known name has 38 bytes.
const MAX_NAME_LENGTH: u32 = 256;

/// The newest version of block types that this crate reads.
const NEWEST_BLOCK: u32 = 2;

/// The type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type<'a> {
    pub(crate) version: u32,
    pub(crate) least_reader_version: u32,
    pub(crate) name: &'a [u8],
}

impl Type<'_> {
    /// Returns the kind of block; [`BlockKind::Unknown`] also for known kinds that are
    /// [newer](Self::is_newer).
    pub(crate) fn kind(&self) -> BlockKind {
        if self.is_newer() { BlockKind::Unknown } else { kind(self.name) }
    }

    /// Returns whether the block is of a known kind, but only newer readers can read it.
    pub(crate) fn is_newer(&self) -> bool {
        self.least_reader_version > NEWEST_BLOCK && kind(self.name) != BlockKind::Unknown
    }
}

/// An item of the stream after the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// An object: its type, and the offset of its data.
    Object(Type<'a>, usize),
    /// The end of the stream: one byte.
    Null,
}

/// Parses the type of an object, as in the grammar above.
fn object_type(input: &[u8]) -> IResult<&[u8], Type<'_>> {
    let begin = alt((
        tag(&[BEGIN_NETTRACE, BEGIN_NETTRACE, NULL][..]),
        tag(&[BEGIN_NETPERF, BEGIN_NETPERF, NULL][..]),
    ));
    // A name that is too long is refused without waiting for its bytes.
    let name_size = verify(le_u32, |size| *size <= MAX_NAME_LENGTH);
    let (rest, (_, version, least_reader_version, size)) = (begin, le_u32, le_u32, name_size).parse(input)?;
    let (rest, (name, _)) = (take(size), tag(&[END][..])).parse(rest)?;
    Ok((rest, Type { version, least_reader_version, name }))
}

/// Parses the item at `at`: an object's type, or the end of the stream.
pub(crate) fn item(bytes: &[u8], at: usize) -> ScanResult<Item<'_>> {
    let input = bytes.get(at..).unwrap_or_default();
    let null = value(None, tag::<_, _, nom::error::Error<&[u8]>>(&[NULL][..]));
    match alt((null, object_type.map(Some))).parse(input) {
        Ok((_, None)) => ScanResult::Found(Item::Null),
        Ok((rest, Some(found))) => {
            ScanResult::Found(Item::Object(found, bytes.len().saturating_sub(rest.len())))
        }
        Err(nom::Err::Incomplete(nom::Needed::Size(more))) => ScanResult::NeedMore(more.get()),
        Err(nom::Err::Incomplete(nom::Needed::Unknown)) => ScanResult::NeedMore(1),
        Err(_) => ScanResult::Invalid("neither an object nor the end of the stream"),
    }
}

/// Returns whether the end tag of an object is at `at`; `None` at the end of the bytes.
pub(crate) fn ends_at(bytes: &[u8], at: usize) -> Option<bool> {
    bytes.get(at).map(|byte| *byte == END)
}

/// Returns the frame of a block with padding that does not fit its offset, because bytes before it are
/// missing. The result has the padding that leads to the end tag; `None` if none does.
pub(crate) fn frame_of_any_padding(bytes: &[u8], frame: Frame, data: usize) -> Option<Frame> {
    let size = frame.end.saturating_sub(frame.start);
    let after_size = data.saturating_add(4);
    (0..4).find_map(|padding| {
        let start = after_size.saturating_add(padding);
        let end = start.saturating_add(size);
        let next = end.saturating_add(1);
        let is_padded = bytes.get(after_size..start)?.iter().all(|byte| *byte == 0);
        let has_rows = matches!(frame.kind, BlockKind::Event | BlockKind::Metadata);
        let has_its_header = !has_rows || has_header(bytes.get(start..end)?);
        let is_followed =
            bytes.get(next).is_none_or(|tag| matches!(*tag, BEGIN_NETTRACE | BEGIN_NETPERF | NULL));
        (is_padded && has_its_header && is_followed && ends_at(bytes, end) == Some(true)).then_some(Frame {
            start,
            end,
            next,
            ..frame
        })
    })
}

/// The number of bytes after a frame that [`frame_of_any_padding`] may read.
pub(crate) const PADDINGS: usize = 4;

/// Returns the frame of an object with data that begins at `data`. `offset` is the position of `bytes` in the
/// recording, which the padding depends on.
pub(crate) fn frame(bytes: &[u8], kind: BlockKind, data: usize, offset: u64) -> ScanResult<Frame> {
    let Some(size) = bytes.get(data..).and_then(|rest| rest.first_chunk::<4>()) else {
        return ScanResult::NeedMore(4);
    };
    let size = match usize::try_from(i32::from_le_bytes(*size)) {
        Ok(size) if size <= MAX_BLOCK_SIZE => size,
        Ok(_) => return ScanResult::Invalid("block over 256 MB"),
        Err(_) => return ScanResult::Invalid("block of negative size"),
    };
    let after_size = data.saturating_add(4);
    let position = offset.wrapping_add(after_size as u64);
    // The bytes up to the next multiple of 4: 0 to 3, in the lowest byte.
    let padding = usize::from((position.wrapping_neg() & 3).to_le_bytes()[0]);
    let start = after_size.saturating_add(padding);
    let end = start.saturating_add(size);
    ScanResult::Found(Frame { kind, start, end, next: end.saturating_add(1) })
}

/// Returns the kind of block with a type name.
fn kind(name: &[u8]) -> BlockKind {
    match name {
        b"EventBlock" => BlockKind::Event,
        b"MetadataBlock" => BlockKind::Metadata,
        b"StackBlock" => BlockKind::Stack,
        b"SPBlock" => BlockKind::SequencePoint,
        _ => BlockKind::Unknown,
    }
}

/// Returns the first offset from `from` on at which a known kind of block begins.
pub(crate) fn next_block(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let begins = |window: &[u8]| {
        matches!(window, [BEGIN_NETTRACE, BEGIN_NETTRACE, NULL] | [BEGIN_NETPERF, BEGIN_NETPERF, NULL])
    };
    rest.windows(3).enumerate().filter(|(_, window)| begins(window)).find_map(|(index, _)| {
        let at = from.saturating_add(index);
        match item(bytes, at) {
            ScanResult::Found(Item::Object(found, _)) if kind(found.name) != BlockKind::Unknown => Some(at),
            _ => None,
        }
    })
}

/// Size of the end of a netperf V1 or V2 recording, in bytes.
pub(crate) const NETPERF_TAIL_SIZE: usize = 17;

/// Returns the frame of an event of netperf V1 or V2: its size, and as many bytes, without padding.
pub(crate) fn netperf_event(bytes: &[u8], at: usize) -> ScanResult<Frame> {
    match frame(bytes, BlockKind::Event, at, 0) {
        ScanResult::Found(Frame { kind, start, end, .. }) => {
            let end = at.saturating_add(4).saturating_add(end.saturating_sub(start));
            ScanResult::Found(Frame { kind, start: at, end, next: end })
        }
        other => other,
    }
}

/// Returns whether the recording ends at `at`. Netperf V1 and V2 end with the end tag and a table of forward
/// references: one, to the end tag itself.
///
/// ```text
/// tail = 6 count:u32(1) end-tag:u32 table:u32 entry:u32        (all offsets in the stream)
/// ```
pub(crate) fn is_netperf_tail(bytes: &[u8], at: usize, offset: u64) -> ScanResult<bool> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.first().is_some_and(|tag| *tag != END) {
        return ScanResult::Found(false);
    }
    let Some(tail) = rest.first_chunk::<NETPERF_TAIL_SIZE>() else {
        return ScanResult::NeedMore(NETPERF_TAIL_SIZE.saturating_sub(rest.len()));
    };
    let position = |ahead: u64| {
        u32::try_from(offset.wrapping_add(at as u64).wrapping_add(ahead)).unwrap_or(0).to_le_bytes()
    };
    let expected = [&[END, 1, 0, 0, 0][..], &position(0), &position(1), &position(9)].concat();
    ScanResult::Found(tail[..] == expected[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_a_type() {
        let bytes = b"\x05\x05\x01\x02\0\0\0\x01\0\0\0\x07\0\0\0SPBlock\x06rest";
        let expected = Type { version: 2, least_reader_version: 1, name: b"SPBlock" };
        assert_eq!(item(bytes, 0), ScanResult::Found(Item::Object(expected, 23)));
        for cut in 0..23 {
            assert!(matches!(item(&bytes[..cut], 0), ScanResult::NeedMore(1..)), "cut at {cut}");
        }
        assert_eq!(item(&[NULL], 0), ScanResult::Found(Item::Null));
        assert!(matches!(item(b"\x07", 0), ScanResult::Invalid(_)));
        let endless = b"\x05\x05\x01\x02\0\0\0\x01\0\0\0\xff\xff\xff\xff";
        assert!(
            matches!(item(endless, 0), ScanResult::Invalid(_)),
            "a name that is too long is not waited for"
        );
    }

    #[test]
    fn blocks_are_aligned_in_the_stream() {
        let bytes = [&[0, 0, 8, 0, 0, 0][..], &[0; 16]].concat();
        let expected = |start| {
            ScanResult::Found(Frame { kind: BlockKind::Stack, start, end: start + 8, next: start + 9 })
        };
        assert_eq!(frame(&bytes, BlockKind::Stack, 2, 0), expected(8));
        assert_eq!(frame(&bytes, BlockKind::Stack, 2, 2), expected(6));
        assert!(matches!(frame(&[0xff; 8], BlockKind::Stack, 0, 0), ScanResult::Invalid(_)));
        assert!(matches!(frame(&[0xff, 0xff, 0xff, 0x7f], BlockKind::Stack, 0, 0), ScanResult::Invalid(_)));
    }
}
