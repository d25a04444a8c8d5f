//! Reading from inputs with random access.

use std::io::{Read, Result};

use crate::error::Error;
use crate::reader::Reader;

/// A recording that can be read at any offset, by several threads at the same time: a file.
pub trait ReadAt: Sync {
    /// Reads bytes from an offset on. Returns their number, which is 0 at the end and may be smaller than the
    /// buffer elsewhere.
    ///
    /// # Errors
    /// If they cannot be read. [`ErrorKind::Interrupted`](std::io::ErrorKind::Interrupted) is tried again.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// The number of bytes that are read at most, asked for once at the start of a reading.
    fn size(&self) -> u64;
}

/// Reads bytes of a file from an offset on, as [`ReadAt::read_at`] does: for implementations over files,
/// which have to decide on the [size](ReadAt::size) of a file that grows.
///
/// On Windows this moves the file's position.
///
/// # Errors
/// Those of the system.
#[cfg(any(unix, windows))]
pub fn read_file_at(file: &std::fs::File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
}

/// The size is the file's at the start of a reading, 0 if the system does not state it.
#[cfg(any(unix, windows))]
impl ReadAt for std::fs::File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        read_file_at(self, buffer, offset)
    }

    fn size(&self) -> u64 {
        self.metadata().map_or(0, |attributes| attributes.len())
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn size(&self) -> u64 {
        self.len() as u64
    }
}

/// The input of a [`Reader`] over an input with random access: reads it sequentially.
#[derive(Debug)]
pub struct ReadAtInput<'a, I: ?Sized> {
    pub(crate) input: &'a I,
    at: u64,
    pub(crate) size: u64,
}

impl<I: ?Sized> ReadAtInput<'_, I> {
    /// Offset of the next byte: at the end of the recording the number of its bytes.
    pub const fn offset(&self) -> u64 {
        self.at
    }
}

impl<I: ReadAt + ?Sized> Read for ReadAtInput<'_, I> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let count = self.input.read_at(buffer.get_mut(..most).unwrap_or_default(), self.at)?;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}

impl<'a, I: ReadAt + ?Sized> Reader<ReadAtInput<'a, I>> {
    /// Reads the header.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn at_start(input: &'a I) -> std::result::Result<Self, Error> {
        let input = ReadAtInput { input, at: 0, size: input.size() };
        let skip = |input: &mut ReadAtInput<'a, I>, count: u64| {
            input.at = input.at.saturating_add(count);
            Ok(())
        };
        Ok(Self::with_skip(input, skip)?.with_lookahead())
    }
}
