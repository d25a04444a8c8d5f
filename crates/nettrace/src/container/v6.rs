//! The container of nettrace V6: blocks with a header of 4 bytes.
//!
//! ```text
//! stream = "Nettrace" u32(0) major:u32 minor:u32 block* end-block
//! block  = header:u32 content         (header: size in the low 24 bits, kind in the high 8)
//! ```

use nom::Parser as _;
use nom::bytes::streaming::tag;
use nom::number::streaming::le_u32;

use super::{Found, Frame, Kind, fast_serialization::NETTRACE};

const END_OF_STREAM: u8 = 0;
pub(crate) const TRACE: u8 = 1;

/// Reads the version at the start of the stream, which takes 20 bytes.
pub(crate) fn version(bytes: &[u8]) -> Found<(u32, u32)> {
    let zero = tag::<_, _, nom::error::Error<&[u8]>>(&[0u8; 4][..]);
    match (tag(NETTRACE), zero, le_u32, le_u32).parse(bytes) {
        Ok((_, (_, _, major, minor))) => Found::Whole((major, minor)),
        Err(nom::Err::Incomplete(_)) => Found::NeedMore(20usize.saturating_sub(bytes.len()).max(1)),
        Err(_) => Found::Bad("not the beginning of a nettrace stream"),
    }
}

/// Size of the stream's beginning.
pub(crate) const VERSION_SIZE: usize = 20;

/// What stands between blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Block(Frame),
    Trace(Frame),
    /// The block that ends the stream.
    End(Frame),
}

/// Reads the header at `at`.
pub(crate) fn item(bytes: &[u8], at: usize) -> Found<Item> {
    let rest = bytes.get(at..).unwrap_or_default();
    let Some(&[s0, s1, s2, kind]) = rest.first_chunk::<4>() else {
        return Found::NeedMore(4usize.saturating_sub(rest.len()));
    };
    let size = usize::try_from(u32::from_le_bytes([s0, s1, s2, 0])).unwrap_or(usize::MAX);
    let start = at.saturating_add(4);
    let end = start.saturating_add(size);
    let known = match kind {
        2 => Kind::Event,
        3 => Kind::Metadata,
        4 => Kind::SequencePoint,
        5 => Kind::Stack,
        6 => Kind::Thread,
        7 => Kind::RemoveThread,
        8 => Kind::LabelList,
        _ => Kind::Unknown,
    };
    let frame = Frame { kind: known, start, end, next: end };
    Found::Whole(match kind {
        END_OF_STREAM => Item::End(frame),
        TRACE => Item::Trace(frame),
        _ => Item::Block(frame),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_size_and_kind() {
        let bytes = [9, 0x5e, 0, 0, 1, 0];
        let frame = Frame { kind: Kind::Unknown, start: 5, end: 5 + 0x5e, next: 5 + 0x5e };
        assert_eq!(item(&bytes, 1), Found::Whole(Item::Trace(frame)));
        assert_eq!(item(&bytes, 3), Found::NeedMore(1));
        assert_eq!(
            item(&[0, 0, 0, 0], 0),
            Found::Whole(Item::End(Frame { kind: Kind::Unknown, start: 4, end: 4, next: 4 }))
        );
    }

    #[test]
    fn the_version_is_read_whole() {
        let bytes = b"Nettrace\0\0\0\0\x06\0\0\0\x07\0\0\0";
        assert_eq!(version(bytes), Found::Whole((6, 7)));
        for cut in 0..bytes.len() {
            assert_eq!(version(&bytes[..cut]), Found::NeedMore(20 - cut));
        }
        assert!(matches!(version(b"Nettrace\x14\0\0\0"), Found::Bad(_)));
    }
}
