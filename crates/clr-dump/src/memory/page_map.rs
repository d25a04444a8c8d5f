//! The pages of a live process, by `/proc/PID/pagemap`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::memory::process::page_bytes;
use crate::memory::resident::{MAX_RESIDENT_RANGE, ResidentPages};

/// The bits of a page that is resident, or swapped out.
pub(crate) const PRESENT_OR_SWAPPED: u64 = 3 << 62;
/// Maximum number of pages to read at once: 32 MB of memory with pages of 4 KB.
const MAX_PAGES: u64 = 1 << 13;

/// The pages of a live process.
#[derive(Debug)]
pub struct PageMap {
    file: File,
    /// Bytes of a page, of which the kernels of arm64 have several sizes.
    page: u64,
    /// The number of the first page that was read last, and the words of these pages.
    read: Mutex<(u64, Vec<u8>)>,
}

impl PageMap {
    /// Opens the map of a process. This takes the permission to trace it.
    ///
    /// # Errors
    /// If the process does not exist, or the caller may not read its map.
    pub fn open(pid: u32) -> Result<Self, Error> {
        let path = format!("/proc/{pid}/pagemap");
        let file = File::open(&path).map_err(|error| Error::Io { what: path, error })?;
        Ok(Self { file, page: page_bytes(pid), read: Mutex::default() })
    }
}

impl ResidentPages for PageMap {
    fn resident_bytes(&self, start: u64, end: u64) -> Option<u64> {
        if end.saturating_sub(start) > MAX_RESIDENT_RANGE {
            return None;
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut page, last) = (start.checked_div(self.page)?, end.checked_div(self.page)?);
        let mut pages = 0_u64;
        while page < last {
            let words = read.1.as_chunks::<8>().0;
            let index = page.checked_sub(read.0).and_then(|index| usize::try_from(index).ok());
            let known = index.and_then(|index| words.get(index..)).unwrap_or_default();
            if known.is_empty() {
                // Neighbouring ranges follow.
                let size = usize::try_from(MAX_PAGES.saturating_mul(8)).ok()?;
                read.0 = page;
                read.1.resize(size, 0);
                let count = self.file.read_at(&mut read.1, page.saturating_mul(8)).ok()?;
                read.1.truncate(count);
                if count < 8 {
                    return None;
                }
                continue;
            }
            let wanted = usize::try_from(last.saturating_sub(page)).unwrap_or(usize::MAX);
            let known = known.get(..wanted.min(known.len()))?;
            let is_resident = |word: &&[u8; 8]| u64::from_le_bytes(**word) & PRESENT_OR_SWAPPED != 0;
            pages = pages.saturating_add(u64::try_from(known.iter().filter(is_resident).count()).ok()?);
            page = page.saturating_add(u64::try_from(known.len()).ok()?);
        }
        Some(pages.saturating_mul(self.page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::PAGE;

    #[test]
    fn touched_pages_are_resident_and_huge_ranges_unknown() {
        let pages = PageMap::open(std::process::id()).unwrap();
        assert!(pages.page >= PAGE && pages.page.is_power_of_two());
        let touched = vec![1_u8; 256 << 12];
        let start = (touched.as_ptr() as u64).next_multiple_of(pages.page);
        assert_eq!(pages.resident_bytes(start, start + 32 * PAGE), Some(32 * PAGE));
        assert_eq!(pages.resident_bytes(start, start + MAX_RESIDENT_RANGE + PAGE), None);
        assert_eq!(pages.resident_bytes(start, start - PAGE), Some(0));
        drop(touched);
    }
}
