//! A bounded cache of the pages of a file.

use std::io;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use nettrace::ReadAt;

/// Bytes of a page of the cache.
const PAGE: u64 = 1 << 16;
/// Pages of each of the two generations of the cache: 16 MiB together.
const PAGES: usize = 128;

/// A file with a cache of recently used pages.
pub(crate) struct PagedFile {
    file: Box<dyn ReadAt>,
    size: u64,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    recent: HashMap<u64, Box<[u8]>>,
    older: HashMap<u64, Box<[u8]>>,
}

impl Cache {
    /// Returns the result of `read` for a page that is kept.
    #[inline]
    fn read<T>(&mut self, number: u64, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if let Some(page) = self.recent.get(&number) {
            return Some(read(page));
        }
        let page = self.older.remove(&number)?;
        let result = read(&page);
        self.insert(number, page);
        Some(result)
    }

    fn insert(&mut self, number: u64, page: Box<[u8]>) {
        if self.recent.len() >= PAGES {
            self.older = mem::take(&mut self.recent);
        }
        self.recent.insert(number, page);
    }
}

impl std::fmt::Debug for PagedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PagedFile").field("size", &self.size).finish_non_exhaustive()
    }
}

impl PagedFile {
    pub(crate) fn new(file: Box<dyn ReadAt>) -> io::Result<Self> {
        let size = file.size()?;
        Ok(Self { file, size, cache: Mutex::default() })
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buffer` from an offset on. Large reads are not cached: data read in address order is not needed
    /// again soon.
    pub(crate) fn read_exact(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        if u64::try_from(buffer.len()).is_ok_and(|size| size >= PAGE) {
            return match self.fill(offset, buffer)? {
                filled if filled < buffer.len() => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(()),
            };
        }
        while !buffer.is_empty() {
            let count = self.read_cached(offset, buffer)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset = offset.saturating_add(u64::try_from(count).map_err(io::Error::other)?);
            buffer = mem::take(&mut buffer).get_mut(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Reads `size` bytes, or up to the end of the file.
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

    /// Reads bytes of one page. Returns their number. Other threads read from the cache while this one reads
    /// from the file.
    fn read_cached(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (number, from) = (offset / PAGE, usize::try_from(offset % PAGE).map_err(io::Error::other)?);
        let mut copy = |page: &[u8]| {
            let bytes = page.get(from..).unwrap_or_default();
            let count = bytes.len().min(buffer.len());
            if let (Some(to), Some(bytes)) = (buffer.get_mut(..count), bytes.get(..count)) {
                to.copy_from_slice(bytes);
            }
            count
        };
        if let Some(count) = self.cache().read(number, &mut copy) {
            return Ok(count);
        }
        let page = self.read_page(number)?;
        let count = copy(&page);
        self.cache().insert(number, page);
        Ok(count)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_page(&self, number: u64) -> io::Result<Box<[u8]>> {
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
            match self.file.read_at(rest, at) {
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
        let cache = file.cache();
        assert!(cache.recent.len() <= PAGES && cache.older.len() <= PAGES);
    }
}
