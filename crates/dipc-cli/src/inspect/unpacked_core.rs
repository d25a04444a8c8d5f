//! Compressed core dumps, and those of pipes, unpacked into a file without a name.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::compression::Compression;
use crate::exit::{Exit, Failure};
use crate::render::{messages, units};

/// The most bytes of content, zeros included.
const MOST_BYTES: u64 = 1 << 40;
/// Bytes of the disk that are left to other programs.
const RESERVE: u64 = 256 << 20;
/// Bytes that are unpacked at a time.
const STEP: usize = 1 << 20;
/// Pages of zeros take no room.
const PAGE: usize = 4096;

/// Copies a stream (`-` is standard input) into a file without a name, and returns it, or its content if it is
/// compressed.
pub(super) fn open_stream(path: &Path) -> Result<File, Failure> {
    let is_input = path.as_os_str() == "-";
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    let stream: Box<dyn Read> =
        if is_input { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    content(path, copy(path, stream)?.0)
}

/// Returns the file, or its content if it is compressed.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    content(path, File::open(path).map_err(failed)?)
}

fn content(path: &Path, mut file: File) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    let Some(compression) = Compression::detect(&mut file).map_err(failed)? else { return Ok(file) };
    let (unpacked, Unpacked { bytes, stored, .. }) = copy(path, compression.reader(file))?;
    messages::note(format_args!(
        "Unpacked       : {} of {}, {} of it not zero, in a temporary file",
        units::bytes(bytes),
        compression.name(),
        units::bytes(stored)
    ));
    Ok(unpacked)
}

/// Copies what is read into a file without a name, as far as there is room.
fn copy(path: &Path, content: impl Read) -> Result<(File, Unpacked), Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    let most = free_bytes().saturating_sub(RESERVE);
    let mut file = tempfile::tempfile().map_err(|error| {
        let folder = std::env::temp_dir();
        Failure::new(Exit::Failed, format_args!("unpack {}: {}: {error}", path.display(), folder.display()))
            .with_help("TMPDIR names another folder")
    })?;
    let unpacked = unpack(content, &mut file, most, MOST_BYTES).map_err(failed)?;
    match &unpacked.end {
        End::Whole => {}
        End::Damaged(error) => messages::warning(format_args!(
            "{}: {error}: the dump is read as far as it was unpacked",
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
}

fn unpack(mut content: impl Read, file: &mut File, most: u64, most_bytes: u64) -> io::Result<Unpacked> {
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
        if stored > most || bytes > most_bytes {
            break End::TooLarge;
        }
    };
    file.set_len(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Unpacked { bytes, stored, end })
}

/// The free bytes of the folder of temporary files; as many as there can be if the system does not say.
#[cfg(unix)]
fn free_bytes() -> u64 {
    let status = rustix::fs::statvfs(std::env::temp_dir());
    status.map_or(u64::MAX, |status| status.f_bavail.saturating_mul(status.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes() -> u64 {
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_take_no_room_and_the_rest_is_bounded() {
        let mut content = vec![0; 5 << 20];
        content[3 << 20] = 7;
        content.push(9);
        let mut file = tempfile::tempfile().unwrap();
        let unpacked = unpack(&content[..], &mut file, u64::MAX, u64::MAX).unwrap();
        assert!(matches!(unpacked.end, End::Whole));
        assert_eq!((unpacked.bytes, unpacked.stored), ((5 << 20) + 1, PAGE as u64 + 1));
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert!(found == content);
        for (most, most_bytes) in [(u64::MAX, 1 << 20), (0, u64::MAX)] {
            let mut file = tempfile::tempfile().unwrap();
            let endless = io::repeat(u8::from(most == 0));
            let unpacked = unpack(endless, &mut file, most, most_bytes).unwrap();
            assert!(matches!(unpacked.end, End::TooLarge));
            assert!(unpacked.bytes <= 2 << 20, "{}", unpacked.bytes);
        }
    }
}
