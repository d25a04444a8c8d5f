//! Core dumps out of streams: compressed ones, and ones from pipes, as files.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant};

use crate::memory::PAGE;

/// Maximum number of bytes of content, zeros included.
const MAX_BYTES: u64 = 1 << 40;
/// Bytes that are unpacked at a time.
const STEP: usize = 1 << 20;
const MAX_RATIO: u64 = 1000;
/// Minimum size of content for the ratio to apply, in bytes.
const MIN_SIZE_FOR_RATIO: u64 = 64 << 20;
/// The time for unpacking, and what each MiB of compressed data adds to it.
const MAX_TIME: Duration = Duration::from_secs(20);
const TIME_FOR_MIB: Duration = Duration::from_secs(1);

/// The content of a stream in a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnpackedCore {
    /// Bytes of the content.
    pub bytes: u64,
    /// Bytes that take room: pages of zeros are holes of the file.
    pub stored_bytes: u64,
    /// The time that it took.
    pub time: Duration,
    /// The reason why reading ended.
    pub end: UnpackEnd,
}

/// The reason why reading a stream ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum UnpackEnd {
    /// The file has all content.
    Whole,
    /// The stream failed: compressed data ends early, or is damaged.
    Damaged(io::Error),
    /// The content takes more than the room for it.
    TooLarge,
    /// The first bytes are not those of a core dump.
    NotACore,
    /// There is more content than a core dump can have for so few compressed bytes.
    Inflated,
    /// Unpacking takes longer than a core dump of so many compressed bytes can take.
    TooLong,
}

/// The copy of a stream into a file, within limits: the stream may be hostile.
///
/// ```
/// use clr_dump::{CoreUnpacker, UnpackEnd};
///
/// # let mut file = tempfile::tempfile()?;
/// // Not a core dump.
/// let unpacked = CoreUnpacker::new(1 << 30).unpack(&mut std::io::repeat(7), &mut file)?;
/// assert!(matches!(unpacked.end, UnpackEnd::NotACore));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct CoreUnpacker {
    max_stored_bytes: u64,
    max_bytes: u64,
    packed: Option<File>,
    permits: Option<fn(&[u8]) -> bool>,
    start: Instant,
}

impl CoreUnpacker {
    /// Maximum bytes of content, without pages of zeros, for each compressed byte. Cores of processes have 3
    /// to 50.
    pub const MAX_RATIO: u64 = MAX_RATIO;

    /// Unpacks content that takes at most `max_stored_bytes`.
    pub fn new(max_stored_bytes: u64) -> Self {
        Self { max_stored_bytes, max_bytes: MAX_BYTES, packed: None, permits: None, start: Instant::now() }
    }

    /// The maximum bytes of content, without pages of zeros.
    pub const fn max_stored_bytes(&self) -> u64 {
        self.max_stored_bytes
    }

    /// Limits content and time by the compressed file, of which the position shows how much was read.
    #[must_use]
    pub fn of_compressed(mut self, packed: File) -> Self {
        self.packed = Some(packed);
        self
    }

    /// Permits other content than core dumps, if `permits` accepts its first bytes: compressed data.
    #[must_use]
    pub const fn with_others(mut self, permits: fn(&[u8]) -> bool) -> Self {
        self.permits = Some(permits);
        self
    }

    /// Copies the content into an empty file, which is then at its beginning.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn unpack(mut self, content: &mut dyn Read, file: &mut File) -> io::Result<UnpackedCore> {
        let mut buffer = vec![0; STEP];
        let (mut bytes, mut stored_bytes) = (0_u64, 0_u64);
        let end = loop {
            let (filled, ended) = fill(content, &mut buffer);
            let part = buffer.get(..filled).unwrap_or_default();
            // Less than this is a truncated core dump.
            if bytes == 0 && filled >= 4 && !self.permits(part) {
                break UnpackEnd::NotACore;
            }
            for page in part.chunks(usize::try_from(PAGE).unwrap_or(usize::MAX)) {
                if page.iter().all(|byte| *byte == 0) {
                    file.seek_relative(i64::try_from(page.len()).unwrap_or(i64::MAX))?;
                } else {
                    file.write_all(page)?;
                    stored_bytes = stored_bytes.saturating_add(size(page.len()));
                }
            }
            bytes = bytes.saturating_add(size(filled));
            if let Some(ended) = ended {
                break ended;
            }
            if let Some(exceeded) = self.exceeded(bytes, stored_bytes)? {
                break exceeded;
            }
        };
        file.set_len(bytes)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(UnpackedCore { bytes, stored_bytes, time: self.start.elapsed(), end })
    }

    /// Returns the limit that is exceeded.
    fn exceeded(&mut self, bytes: u64, stored_bytes: u64) -> io::Result<Option<UnpackEnd>> {
        if stored_bytes > self.max_stored_bytes || bytes > self.max_bytes {
            return Ok(Some(UnpackEnd::TooLarge));
        }
        let Some(packed) = &mut self.packed else { return Ok(None) };
        let read = packed.stream_position()?;
        let mebibytes = u32::try_from(read >> 20).unwrap_or(u32::MAX);
        let time = MAX_TIME.saturating_add(TIME_FOR_MIB.saturating_mul(mebibytes));
        Ok(if stored_bytes > MIN_SIZE_FOR_RATIO && stored_bytes / MAX_RATIO > read {
            Some(UnpackEnd::Inflated)
        } else {
            (self.start.elapsed() > time).then_some(UnpackEnd::TooLong)
        })
    }

    /// Returns true for the first bytes of what can be a core dump.
    fn permits(&self, beginning: &[u8]) -> bool {
        beginning.starts_with(b"\x7fELF") || self.permits.is_some_and(|permits| permits(beginning))
    }
}

/// Fills a buffer. Returns the number of bytes, and the end if there are no more.
fn fill(content: &mut dyn Read, buffer: &mut [u8]) -> (usize, Option<UnpackEnd>) {
    let mut filled = 0_usize;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match content.read(rest) {
            Ok(0) => return (filled, Some(UnpackEnd::Whole)),
            Ok(count) => filled = filled.saturating_add(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(UnpackEnd::Damaged(error))),
        }
    }
    (filled, None)
}

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(content: &mut dyn Read, unpacker: CoreUnpacker) -> (UnpackedCore, File) {
        let mut file = tempfile::tempfile().unwrap();
        let core = unpacker.unpack(content, &mut file).unwrap();
        (core, file)
    }

    #[test]
    fn zeros_take_no_room_and_the_rest_is_bounded() {
        let mut content = vec![0; 5 << 20];
        content[..4].copy_from_slice(b"\x7fELF");
        content[3 << 20] = 7;
        content.push(9);
        let (core, mut file) = unpack(&mut &content[..], CoreUnpacker::new(u64::MAX));
        assert!(matches!(core.end, UnpackEnd::Whole));
        assert_eq!((core.bytes, core.stored_bytes), ((5 << 20) + 1, 2 * PAGE + 1));
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert!(found == content);
        for (max_stored_bytes, max_bytes) in [(u64::MAX, 1 << 20), (0, u64::MAX)] {
            let mut endless = b"\x7fELF".chain(io::repeat(u8::from(max_stored_bytes == 0)));
            let unpacker = CoreUnpacker { max_bytes, ..CoreUnpacker::new(max_stored_bytes) };
            let (core, _) = unpack(&mut endless, unpacker);
            assert!(matches!(core.end, UnpackEnd::TooLarge));
            assert!(core.bytes <= 2 << 20, "{}", core.bytes);
        }
    }

    #[test]
    fn content_that_is_not_a_core_dump_is_not_unpacked() {
        let compressed = || CoreUnpacker::new(u64::MAX).of_compressed(tempfile::tempfile().unwrap());
        let stream = || CoreUnpacker::new(u64::MAX).with_others(|beginning| beginning.starts_with(b"\x28"));
        let (garbage, _) = unpack(&mut io::repeat(7), compressed());
        assert!(matches!(garbage.end, UnpackEnd::NotACore) && garbage.stored_bytes == 0);
        // Compressed twice is neither; a stream may be compressed.
        let twice = || b"\x28\xb5\x2f\xfd\0".chain(io::empty());
        assert!(matches!(unpack(&mut twice(), compressed()).0.end, UnpackEnd::NotACore));
        assert!(matches!(unpack(&mut twice(), stream()).0.end, UnpackEnd::Whole));
        assert!(matches!(unpack(&mut io::repeat(7), stream()).0.end, UnpackEnd::NotACore));
        // Nothing was read of the packed file: no content is in proportion to it.
        let (inflated, _) = unpack(&mut b"\x7fELF".chain(io::repeat(7)), compressed());
        assert!(matches!(inflated.end, UnpackEnd::Inflated));
        assert!(inflated.bytes <= MIN_SIZE_FOR_RATIO + size(STEP), "{}", inflated.bytes);
        if let Some(start) = Instant::now().checked_sub(MAX_TIME) {
            let unpacker = CoreUnpacker { start, ..compressed() };
            let (zeros, _) = unpack(&mut b"\x7fELF".chain(io::repeat(0)), unpacker);
            assert!(matches!(zeros.end, UnpackEnd::TooLong) && zeros.bytes == size(STEP));
        }
    }
}
