//! The note of a core dump that this crate writes: its content, and the memory left out because of limits.

use std::time::Duration;

/// The type of the note: `dipc` in ASCII.
pub(crate) const KIND: u32 = 0x6469_7063;
/// Bytes of the note's content.
pub(crate) const SIZE: usize = 48;
/// The version of the note.
const VERSION: u32 = 1;

const SIZE_REACHED: u32 = 1;
const TIME_REACHED: u32 = 2;

/// The description of a copied core dump: its content, and the memory left out because of limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyNote {
    /// The memory that was asked for.
    pub content: CopiedContent,
    /// The limit of bytes to copy.
    pub size_limit: Option<u64>,
    /// The time limit of the copy.
    pub time_limit: Option<Duration>,
    /// True if memory was left out for the limit of bytes.
    pub size_reached: bool,
    /// True if memory was left out for the limit of time.
    pub time_reached: bool,
    /// Bytes of memory that were left out for a limit.
    pub omitted_bytes: u64,
    /// Bytes of memory that the kernel did not let be read.
    pub unreadable_bytes: u64,
}

/// The memory that a copied core dump was to have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiedContent(pub u32);

impl CopiedContent {
    /// All readable memory.
    pub const FULL: Self = Self(1);
    /// All memory but code of native libraries and data files.
    pub const HEAP: Self = Self(2);
    /// Stacks, and the memory that the analysis of threads reads.
    pub const MINI: Self = Self(3);
}

impl CopyNote {
    /// Encodes the note's content.
    pub(crate) fn encode(&self) -> [u8; SIZE] {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(self.size_reached, SIZE_REACHED) | flag(self.time_reached, TIME_REACHED);
        let mut out = [0; SIZE];
        let nanoseconds =
            self.time_limit.map_or(u64::MAX, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let longs =
            [self.size_limit.unwrap_or(u64::MAX), nanoseconds, self.omitted_bytes, self.unreadable_bytes];
        let words = [VERSION, self.content.0, flags, 0];
        let words = words.into_iter().flat_map(u32::to_le_bytes);
        for (to, from) in out.iter_mut().zip(words.chain(longs.into_iter().flat_map(u64::to_le_bytes))) {
            *to = from;
        }
        out
    }

    /// Decodes the note's content; `None` of another version.
    pub(crate) fn decode(bytes: &[u8; SIZE]) -> Option<Self> {
        let (words, longs) = bytes.split_at_checked(16)?;
        let [version, content, flags, _] =
            words.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let [size, time, omitted_bytes, unreadable_bytes] =
            longs.as_chunks().0.iter().map(|long| u64::from_le_bytes(*long)).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let limit = |value: u64| (value != u64::MAX).then_some(value);
        (version == VERSION).then_some(Self {
            content: CopiedContent(content),
            size_limit: limit(size),
            time_limit: limit(time).map(Duration::from_nanos),
            size_reached: flags & SIZE_REACHED != 0,
            time_reached: flags & TIME_REACHED != 0,
            omitted_bytes,
            unreadable_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_survives_its_encoding() {
        let note = CopyNote {
            content: CopiedContent::HEAP,
            size_limit: Some(5_000_000),
            time_limit: Some(Duration::from_millis(20)),
            size_reached: true,
            time_reached: false,
            omitted_bytes: 7 << 40,
            unreadable_bytes: 4096,
        };
        assert_eq!(CopyNote::decode(&note.encode()), Some(note));
        let note = CopyNote { time_reached: true, ..CopyNote::default() };
        assert_eq!(CopyNote::decode(&note.encode()), Some(note));
        let mut other = note.encode();
        other[0] = 9;
        assert_eq!(CopyNote::decode(&other), None);
    }
}
