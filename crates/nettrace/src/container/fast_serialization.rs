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

use super::{BlockKind, Frame, LARGEST_BLOCK, ScanResult};
use crate::block::event::block_header;

/// What every nettrace recording begins with.
pub(crate) const NETTRACE: &[u8] = b"Nettrace";
/// What follows that in V4, and what netperf begins with.
pub(crate) const FAST_SERIALIZATION: &[u8] = b"\x14\0\0\0!FastSerialization.1";

const NULL: u8 = 1;
const END: u8 = 6;
/// The longest name of any known object has 38 bytes.
const LONGEST_NAME: u32 = 256;

/// An object's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type<'a> {
    pub(crate) version: u32,
    pub(crate) least_reader_version: u32,
    pub(crate) name: &'a [u8],
}

/// What stands between objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// An object of this type, whose data begins at the offset.
    Object(Type<'a>, usize),
    /// The end of the stream, which takes one byte.
    Null,
}

fn object_type(input: &[u8]) -> IResult<&[u8], Type<'_>> {
    let begin = alt((tag(&[5u8, 5, NULL][..]), tag(&[4u8, 4, NULL][..])));
    // A name that is too long is refused before anybody waits for its bytes.
    let name_size = verify(le_u32, |size| *size <= LONGEST_NAME);
    let (rest, (_, version, least_reader_version, size)) = (begin, le_u32, le_u32, name_size).parse(input)?;
    let (rest, (name, _)) = (take(size), tag(&[END][..])).parse(rest)?;
    Ok((rest, Type { version, least_reader_version, name }))
}

/// Reads what stands at `at`: an object's type, or the end of the stream.
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

/// Whether the stream has bytes behind which an object may end: all that is left of it otherwise is the end tag.
pub(crate) fn ends_at(bytes: &[u8], at: usize) -> Option<bool> {
    bytes.get(at).map(|byte| *byte == END)
}

/// Where bytes before a block are missing, its padding is not what its place asks for. Its size is right if some padding leads
/// from it to the end tag; `None` if none does.
pub(crate) fn frame_of_any_padding(bytes: &[u8], frame: Frame, data: usize) -> Option<Frame> {
    let size = frame.end.saturating_sub(frame.start);
    let after_size = data.saturating_add(4);
    (0..4).find_map(|padding| {
        let start = after_size.saturating_add(padding);
        let end = start.saturating_add(size);
        let next = end.saturating_add(1);
        let is_padded = bytes.get(after_size..start)?.iter().all(|byte| *byte == 0);
        let has_rows = matches!(frame.kind, BlockKind::Event | BlockKind::Metadata);
        let begins = !has_rows || block_header(bytes.get(start..end)?, false).is_ok();
        let goes_on = bytes.get(next).is_none_or(|tag| matches!(*tag, 5 | 4 | NULL));
        (is_padded && begins && goes_on && ends_at(bytes, end) == Some(true)).then_some(Frame {
            start,
            end,
            next,
            ..frame
        })
    })
}

/// How many bytes beyond a frame tell whether another padding would be right.
pub(crate) const PADDINGS: usize = 4;

/// Finds where the content of an object begins and ends. `offset` is that of `bytes` in the recording: padding counts from there.
pub(crate) fn frame(bytes: &[u8], kind: BlockKind, data: usize, offset: u64) -> ScanResult<Frame> {
    let Some(size) = bytes.get(data..).and_then(|rest| rest.first_chunk::<4>()) else {
        return ScanResult::NeedMore(4);
    };
    let size = match usize::try_from(i32::from_le_bytes(*size)) {
        Ok(size) if size <= LARGEST_BLOCK => size,
        Ok(_) => return ScanResult::Invalid("block over 256 MB"),
        Err(_) => return ScanResult::Invalid("block of negative size"),
    };
    let after_size = data.saturating_add(4);
    let position = offset.wrapping_add(after_size as u64);
    let start = after_size.saturating_add(usize::from((position.wrapping_neg() & 3).to_le_bytes()[0]));
    let end = start.saturating_add(size);
    ScanResult::Found(Frame { kind, start, end, next: end.saturating_add(1) })
}

/// The kind of block that the objects of a type are.
pub(crate) fn kind(name: &[u8]) -> BlockKind {
    match name {
        b"EventBlock" => BlockKind::Event,
        b"MetadataBlock" => BlockKind::Metadata,
        b"StackBlock" => BlockKind::Stack,
        b"SPBlock" => BlockKind::SequencePoint,
        _ => BlockKind::Unknown,
    }
}

/// The first place at or after `from` where a known kind of block begins.
pub(crate) fn next_block(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(3).enumerate().filter(|(_, window)| matches!(window, [5, 5, NULL] | [4, 4, NULL])).find_map(
        |(index, _)| {
            let at = from.saturating_add(index);
            match item(bytes, at) {
                ScanResult::Found(Item::Object(found, _)) if kind(found.name) != BlockKind::Unknown => {
                    Some(at)
                }
                _ => None,
            }
        },
    )
}

/// Netperf V1 and V2 end with the end tag and a table of forward references: one, to the end tag itself.
///
/// ```text
/// tail = 6 count:u32(1) end-tag:u32 table:u32 entry:u32        (all offsets in the stream)
/// ```
pub(crate) fn is_netperf_tail(bytes: &[u8], at: usize, offset: u64) -> ScanResult<bool> {
    const TAIL: usize = 17;
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.first().is_some_and(|tag| *tag != END) {
        return ScanResult::Found(false);
    }
    let Some(tail) = rest.first_chunk::<TAIL>() else {
        return ScanResult::NeedMore(TAIL.saturating_sub(rest.len()));
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
    fn an_object_says_its_type() {
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
