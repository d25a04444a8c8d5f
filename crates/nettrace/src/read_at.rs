//! Reading from inputs with random access.

use std::io::{Read, Result};
use std::sync::Arc;

use crate::error::Error;
use crate::reader::Reader;

/// Bytes that can be read at any offset, by several threads at the same time: a file, or bytes in memory.
///
/// Recordings are read so by [`Reader::at_start`], core dumps by the crate clr-dump.
///
/// ```
/// use nettrace::{ReadAt, Reader};
///
/// /// The part of a file that a writer has finished.
/// struct Finished { file: std::fs::File, size: u64 }
///
/// impl ReadAt for Finished {
///     fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
///         self.file.read_at(buffer, offset)
///     }
///     fn size(&self) -> std::io::Result<u64> {
///         Ok(self.size)
///     }
/// }
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin");
/// let part = Finished { file: std::fs::File::open(path)?, size: 200 };
/// let mut events = Reader::at_start(&part)?;
/// events.for_each(|_| {})?;
/// assert!(events.truncated_at().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ReadAt: Send + Sync {
    /// Reads bytes from an offset on. Returns their number, which is 0 at the end and may be smaller than the
    /// buffer elsewhere.
    ///
    /// # Errors
    /// If they cannot be read. [`ErrorKind::Interrupted`](std::io::ErrorKind::Interrupted) is tried again.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// The number of bytes that are read at most, asked for once at the start of a reading.
    ///
    /// # Errors
    /// If it is not known.
    fn size(&self) -> Result<u64>;
}

/// Reads bytes of a file from an offset on, as [`ReadAt::read_at`] does: for implementations over files,
/// which have to decide on the [size](ReadAt::size) of a file that grows.
///
/// On Windows this moves the file's position.
///
/// # Errors
/// Errors of the system.
#[cfg(any(unix, windows))]
pub fn read_file_at(file: &std::fs::File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
}

/// The size is the file's at the start of a reading.
#[cfg(any(unix, windows))]
impl ReadAt for std::fs::File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        read_file_at(self, buffer, offset)
    }

    /// # Errors
    /// Errors of the system, and [`ErrorKind::IsADirectory`](std::io::ErrorKind::IsADirectory): the system
    /// states a size for directories, too.
    fn size(&self) -> Result<u64> {
        let attributes = self.metadata()?;
        if attributes.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        Ok(attributes.len())
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

    fn size(&self) -> Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.as_slice().read_at(buffer, offset)
    }

    fn size(&self) -> Result<u64> {
        self.as_slice().size()
    }
}

/// Implements the trait for pointers to an input.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<I: ReadAt + ?Sized> ReadAt for $pointer {
            fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
                (**self).read_at(buffer, offset)
            }

            fn size(&self) -> Result<u64> {
                (**self).size()
            }
        }
    )*};
}

pointers!(&I, Box<I>, Arc<I>);

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
    /// As [`new`](Self::new), and if the size of the input is not known.
    pub fn at_start(input: &'a I) -> std::result::Result<Self, Error> {
        let size = input.size().map_err(|error| Error::Io { offset: 0, error })?;
        let input = ReadAtInput { input, at: 0, size };
        let skip = |input: &mut ReadAtInput<'a, I>, count: u64| {
            input.at = input.at.saturating_add(count);
            Ok(())
        };
        Ok(Self::with_skip(input, skip)?.with_lookahead())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn directories_are_not_files_of_their_size() {
        let directory = std::fs::File::open(std::env::temp_dir()).unwrap();
        assert_eq!(ReadAt::size(&directory).unwrap_err().kind(), std::io::ErrorKind::IsADirectory);
    }

    #[test]
    fn pointers_read_like_their_targets() {
        let inputs: [Box<dyn ReadAt>; 3] =
            [Box::new(vec![1, 2, 3]), Box::new(&[1, 2, 3][..]), Box::new(Arc::new(vec![1, 2, 3]))];
        for input in inputs {
            let mut buffer = [0; 4];
            assert_eq!((input.size().unwrap(), input.read_at(&mut buffer, 1).unwrap()), (3, 2));
            assert_eq!(buffer, [2, 3, 0, 0]);
        }
    }
}
