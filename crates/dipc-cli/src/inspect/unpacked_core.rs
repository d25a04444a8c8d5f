//! Core dumps that are compressed or read from pipes, unpacked into a file without a name.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use dipc_collect::staged::free_bytes;

use crate::compression::Compression;
use crate::exit::{Exit, Failure};
use crate::inspect::recording::suggest_process;
use crate::render::{messages, units};

/// Maximum number of bytes of content, zeros included.
const MAX_BYTES: u64 = 1 << 40;
/// Bytes of the disk that are left to other programs.
const RESERVE: u64 = 256 << 20;
/// Bytes that are unpacked at a time.
const STEP: usize = 1 << 20;
/// Pages of zeros take no room.
const PAGE: usize = 4096;
/// Maximum bytes of content, without pages of zeros, for each compressed byte. Cores of processes have 3 to
/// 50.
const MAX_RATIO: u64 = 1000;
/// Minimum size of content for the ratio to apply, in bytes.
const MIN_SIZE_FOR_RATIO: u64 = 64 << 20;
/// The time for unpacking, and what each MiB of compressed data adds to it.
const MAX_TIME: Duration = Duration::from_secs(20);
const TIME_FOR_MIB: Duration = Duration::from_secs(1);

/// Copies a stream (`-` is standard input) into a file without a name, and returns it, or its content if it is
/// compressed.
pub(super) fn open_stream(path: &Path) -> Result<File, Failure> {
    let is_input = path.as_os_str() == "-";
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    let stream: Box<dyn Read> =
        if is_input { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    content(path, copy(path, stream, None)?.0)
}

/// Returns the file, or its content if it is compressed.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    let file = dipc_transport::open_regular(path).map_err(|error| {
        let failure = Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
        if error.kind() != io::ErrorKind::InvalidInput {
            return suggest_process(failure, path, &error);
        }
        failure.with_help("a core dump from a pipe is read from standard input: dipc dump analyze - < PIPE")
    })?;
    content(path, file)
}

fn content(path: &Path, mut file: File) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    let Some(compression) = Compression::detect(&mut file).map_err(failed)? else { return Ok(file) };
    let packed = file.try_clone().map_err(failed)?;
    let (unpacked, Unpacked { bytes, stored, .. }) = copy(path, compression.reader(file), Some(packed))?;
    messages::note(format_args!(
        "Unpacked       : {} of {}, {} of it not zero, in a temporary file",
        units::bytes(bytes),
        compression.name(),
        units::bytes(stored)
    ));
    Ok(unpacked)
}

/// Copies the content into a file without a name, up to the available room. `packed` is the file that the
/// content is unpacked from.
fn copy(path: &Path, content: impl Read, packed: Option<File>) -> Result<(File, Unpacked), Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    // All that there can be if the system does not report it.
    let free = free_bytes(&std::env::temp_dir()).unwrap_or(u64::MAX);
    let most = free.saturating_sub(RESERVE);
    let mut file = tempfile::tempfile().map_err(|error| {
        let folder = std::env::temp_dir();
        Failure::new(Exit::Failed, format_args!("unpack {}: {}: {error}", path.display(), folder.display()))
            .with_help("TMPDIR names another folder")
    })?;
    let mut limits = Limits { most, most_bytes: MAX_BYTES, packed, start: Instant::now() };
    let unpacked = unpack(content, &mut file, &mut limits).map_err(failed)?;
    let refused = |what: &str| {
        Failure::new(Exit::Failed, format_args!("unpack {}: {what}", path.display()))
            .with_help("if it is one, unpack it with the program that made it, and give the result")
    };
    match &unpacked.end {
        End::NotACore => return Err(refused("its content is not a core dump")),
        End::Inflated => {
            return Err(refused(&format!(
                "{} of its content are more than {MAX_RATIO} times its own bytes: it is not a core dump",
                units::bytes(unpacked.stored)
            )));
        }
        End::TooLong => {
            return Err(refused(&format!(
                "it takes too long: {} after {:.0} s",
                units::bytes(unpacked.bytes),
                limits.start.elapsed().as_secs_f64()
            )));
        }
        End::Whole => {}
        End::Damaged(error) => messages::warning(format_args!(
            "{}: {error}: only the unpacked part of the dump is read",
            path.display()
        )),
        End::TooLarge => {
            return Err(Failure::new(
                Exit::Failed,
                format_args!(
                    "unpack {}: its content needs more than the {} that are free in {}",
                    path.display(),
                    units::bytes(most),
                    std::env::temp_dir().display()
                ),
            )
            .with_help("TMPDIR names another folder"));
        }
    }
    Ok((file, unpacked))
}

struct Unpacked {
    bytes: u64,
    /// Bytes that take room.
    stored: u64,
    end: End,
}

enum End {
    Whole,
    /// The compressed data ends early or is damaged.
    Damaged(io::Error),
    TooLarge,
    /// The first bytes are neither an ELF header nor a known compression format's.
    NotACore,
    /// There is more content than such a file can have.
    Inflated,
    TooLong,
}

struct Limits {
    /// Bytes that take room.
    most: u64,
    most_bytes: u64,
    /// The compressed file; its position shows how much of it was read.
    packed: Option<File>,
    start: Instant,
}

impl Limits {
    /// Returns the limit that is exceeded.
    fn exceeded(&mut self, bytes: u64, stored: u64) -> io::Result<Option<End>> {
        if stored > self.most || bytes > self.most_bytes {
            return Ok(Some(End::TooLarge));
        }
        let Some(packed) = &mut self.packed else { return Ok(None) };
        let read = packed.stream_position()?;
        let seconds = u32::try_from(read >> 20).unwrap_or(u32::MAX);
        let time = MAX_TIME.saturating_add(TIME_FOR_MIB.saturating_mul(seconds));
        Ok(if stored > MIN_SIZE_FOR_RATIO && stored / MAX_RATIO > read {
            Some(End::Inflated)
        } else {
            (self.start.elapsed() > time).then_some(End::TooLong)
        })
    }

    /// Returns true for the first bytes of what can be a core dump. That of a stream may be compressed.
    fn permit(&self, beginning: &[u8]) -> bool {
        beginning.starts_with(b"\x7fELF")
            || self.packed.is_none() && Compression::of_beginning(beginning).is_some()
    }
}

fn unpack(mut content: impl Read, file: &mut File, limits: &mut Limits) -> io::Result<Unpacked> {
    let mut buffer = vec![0; STEP];
    let (mut bytes, mut stored) = (0_u64, 0_u64);
    let end = loop {
        let mut filled = 0;
        let ended = loop {
            match content.read(&mut buffer[filled..]) {
                Ok(0) => break Some(End::Whole),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(End::Damaged(error)),
            }
            if filled == buffer.len() {
                break None;
            }
        };
        // Less than this is cut, which is said elsewhere.
        if bytes == 0 && filled >= 4 && !limits.permit(&buffer[..filled]) {
            break End::NotACore;
        }
        for page in buffer[..filled].chunks(PAGE) {
            if page.iter().all(|byte| *byte == 0) {
                file.seek_relative(page.len().cast_signed() as i64)?;
            } else {
                file.write_all(page)?;
                stored += page.len() as u64;
            }
        }
        bytes += filled as u64;
        if let Some(ended) = ended {
            break ended;
        }
        if let Some(exceeded) = limits.exceeded(bytes, stored)? {
            break exceeded;
        }
    };
    file.set_len(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Unpacked { bytes, stored, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(most: u64, most_bytes: u64) -> Limits {
        Limits { most, most_bytes, packed: None, start: Instant::now() }
    }

    #[test]
    fn zeros_take_no_room_and_the_rest_is_bounded() {
        let mut content = vec![0; 5 << 20];
        content[..4].copy_from_slice(b"\x7fELF");
        content[3 << 20] = 7;
        content.push(9);
        let mut file = tempfile::tempfile().unwrap();
        let unpacked = unpack(&content[..], &mut file, &mut limits(u64::MAX, u64::MAX)).unwrap();
        assert!(matches!(unpacked.end, End::Whole));
        assert_eq!((unpacked.bytes, unpacked.stored), ((5 << 20) + 1, 2 * PAGE as u64 + 1));
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert!(found == content);
        for (most, most_bytes) in [(u64::MAX, 1 << 20), (0, u64::MAX)] {
            let mut file = tempfile::tempfile().unwrap();
            let endless = b"\x7fELF".chain(io::repeat(u8::from(most == 0)));
            let unpacked = unpack(endless, &mut file, &mut limits(most, most_bytes)).unwrap();
            assert!(matches!(unpacked.end, End::TooLarge));
            assert!(unpacked.bytes <= 2 << 20, "{}", unpacked.bytes);
        }
    }

    #[test]
    fn content_that_is_not_a_core_dump_is_not_unpacked() {
        let unpack = |content: &mut dyn Read, packed: Option<File>, start| {
            let mut file = tempfile::tempfile().unwrap();
            let mut limits = Limits { packed, start, ..limits(u64::MAX, u64::MAX) };
            unpack(content, &mut file, &mut limits).unwrap()
        };
        let packed = || Some(tempfile::tempfile().unwrap());
        let now = Instant::now();
        let garbage = unpack(&mut io::repeat(7), packed(), now);
        assert!(matches!(garbage.end, End::NotACore) && garbage.stored == 0);
        // Compressed twice is neither; a stream may be compressed.
        let twice = || b"\x28\xb5\x2f\xfd\0".chain(io::empty());
        assert!(matches!(unpack(&mut twice(), packed(), now).end, End::NotACore));
        assert!(matches!(unpack(&mut twice(), None, now).end, End::Whole));
        assert!(matches!(unpack(&mut io::repeat(7), None, now).end, End::NotACore));
        // Nothing was read of the packed file: no content is in proportion to it.
        let inflated = unpack(&mut b"\x7fELF".chain(io::repeat(7)), packed(), now);
        assert!(matches!(inflated.end, End::Inflated));
        assert!(inflated.bytes <= MIN_SIZE_FOR_RATIO + STEP as u64, "{}", inflated.bytes);
        if let Some(start) = now.checked_sub(MAX_TIME) {
            let zeros = unpack(&mut b"\x7fELF".chain(io::repeat(0)), packed(), start);
            assert!(matches!(zeros.end, End::TooLong) && zeros.bytes == STEP as u64);
        }
    }
}
