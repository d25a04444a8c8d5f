//! Files that are read at offsets, and a bounded cache of their pages.

use std::cell::RefCell;
use std::io;
use std::mem;
use std::sync::Arc;

use hashbrown::HashMap;

/// Bytes that are read at offsets: a file, or a slice in tests.
pub trait ReadAt {
    /// Reads bytes from an offset on; returns their number, which is zero past the end.
    ///
    /// # Errors
    /// Those of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// The number of bytes.
    ///
    /// # Errors
    /// Those of the file.
    fn size(&self) -> io::Result<u64>;
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }
}

impl ReadAt for &[u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn size(&self) -> io::Result<u64> {
        u64::try_from(self.len()).map_err(io::Error::other)
    }
}

#[cfg(any(unix, windows))]
impl ReadAt for std::fs::File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(self, buffer, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(self, buffer, offset);
    }

    fn size(&self) -> io::Result<u64> {
        let attributes = self.metadata()?;
        if attributes.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(attributes.len())
    }
}

/// Bytes of a page of the cache.
const PAGE: u64 = 1 << 16;
/// Pages of each of the two generations of the cache: 16 MiB together.
const PAGES: usize = 128;

/// A file of which recently used pages are kept.
pub(crate) struct PagedFile {
    file: Box<dyn ReadAt>,
    size: u64,
    cache: RefCell<Cache>,
}

#[derive(Default)]
struct Cache {
    recent: HashMap<u64, Arc<[u8]>>,
    older: HashMap<u64, Arc<[u8]>>,
}

impl std::fmt::Debug for PagedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagedFile").field("size", &self.size).finish_non_exhaustive()
    }
}

impl PagedFile {
    pub(crate) fn new(file: Box<dyn ReadAt>) -> io::Result<Self> {
        let size = file.size()?;
        Ok(Self { file, size, cache: RefCell::default() })
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buffer` from an offset on. Large reads are not kept: what is read in order of addresses is not
    /// read again soon.
    pub(crate) fn read_exact(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        if u64::try_from(buffer.len()).is_ok_and(|size| size >= PAGE) {
            return match self.fill(offset, buffer)? {
                filled if filled < buffer.len() => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(()),
            };
        }
        while !buffer.is_empty() {
            let page = self.page(offset / PAGE)?;
            let from = usize::try_from(offset % PAGE).map_err(io::Error::other)?;
            let bytes = page.get(from..).unwrap_or_default();
            let count = bytes.len().min(buffer.len());
            let (part, rest) = mem::take(&mut buffer).split_at_mut_checked(count).unwrap_or_default();
            if part.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            part.copy_from_slice(bytes.get(..count).unwrap_or_default());
            offset = offset.saturating_add(u64::try_from(count).map_err(io::Error::other)?);
            buffer = rest;
        }
        Ok(())
    }

    /// Reads `size` bytes, as far as the file goes.
    pub(crate) fn bytes(&self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let size = size.min(self.size.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        self.read_exact(offset, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(&self, offset: u64) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(offset, &mut bytes)?;
        Ok(bytes)
    }

    fn page(&self, number: u64) -> io::Result<Arc<[u8]>> {
        let mut cache = self.cache.borrow_mut();
        if let Some(page) = cache.recent.get(&number) {
            return Ok(Arc::clone(page));
        }
        let page = match cache.older.remove(&number) {
            Some(page) => page,
            None => self.read_page(number)?,
        };
        if cache.recent.len() >= PAGES {
            cache.older = mem::take(&mut cache.recent);
        }
        cache.recent.insert(number, Arc::clone(&page));
        Ok(page)
    }

    fn read_page(&self, number: u64) -> io::Result<Arc<[u8]>> {
        let start = number.saturating_mul(PAGE);
        let size = self.size.saturating_sub(start).min(PAGE);
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        let filled = self.fill(start, &mut bytes)?;
        bytes.truncate(filled);
        Ok(bytes.into())
    }

    /// Reads from an offset on. Returns the number of bytes, which are fewer at the end of the file.
    fn fill(&self, start: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0_usize;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = start.saturating_add(u64::try_from(filled).map_err(io::Error::other)?);
            match self.file.read_at(at, rest) {
                Ok(0) => break,
                Ok(count) => filled = filled.saturating_add(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn directories_are_not_files_of_their_size() {
        let directory = std::fs::File::open(std::env::temp_dir()).unwrap();
        assert_eq!(ReadAt::size(&directory).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn reads_cross_pages_and_end_with_the_file() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
        let file = PagedFile::new(Box::new(bytes.clone())).unwrap();
        let mut part = vec![0; 140_000];
        file.read_exact(100, &mut part).unwrap();
        assert_eq!(part, bytes[100..140_100]);
        assert!(file.read_exact(199_999, &mut [0; 2]).is_err());
        assert!(file.read_exact(u64::MAX, &mut [0; 1]).is_err());
        assert_eq!(file.array::<1>(199_999).unwrap(), [bytes[199_999]]);
    }

    #[test]
    fn the_cache_is_bounded() {
        let file = PagedFile::new(Box::new(vec![1; 40 << 20])).unwrap();
        for page in 0..640 {
            file.array::<1>(page * PAGE).unwrap();
        }
        let cache = file.cache.borrow();
        assert!(cache.recent.len() <= PAGES && cache.older.len() <= PAGES);
    }
}
