//! Memory that records which pages are read.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::memory::PAGE;
use crate::memory::{Memory, MemoryResult, Missing};

/// Maximum number of pages to record: 4 GiB.
const MAX_PAGES: usize = 1 << 20;

/// Memory that records which of its pages were read: a small core dump must have the pages that an analysis
/// reads.
///
/// ```
/// use clr_dump::{Memory, MemoryResult, TouchedMemory};
///
/// /// Memory of zeros.
/// struct Zeros;
///
/// impl Memory for Zeros {
///     fn read(&self, _: u64, buffer: &mut [u8]) -> MemoryResult<()> {
///         buffer.fill(0);
///         Ok(())
///     }
/// }
///
/// let touched = TouchedMemory::new(&Zeros);
/// let memory: &dyn Memory = &touched;
/// // The last two bytes of one page, and the first two of the next.
/// memory.u32(0x1ffe).expect("zeros");
/// assert!(touched.into_pages().into_iter().eq([1, 2]));
/// ```
#[derive(Debug)]
pub struct TouchedMemory<'a, M: ?Sized> {
    memory: &'a M,
    pages: Mutex<BTreeSet<u64>>,
    until: Option<Instant>,
}

impl<'a, M: Memory + ?Sized> TouchedMemory<'a, M> {
    /// No page has been read yet.
    pub const fn new(memory: &'a M) -> Self {
        Self { memory, pages: Mutex::new(BTreeSet::new()), until: None }
    }

    /// Ends reading at a time: all later reads fail.
    #[must_use]
    pub const fn until(mut self, end: Instant) -> Self {
        self.until = Some(end);
        self
    }

    /// The numbers of the pages of 4096 bytes that were read, at most 2^20.
    pub fn into_pages(self) -> BTreeSet<u64> {
        self.pages.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Memory + ?Sized> Memory for TouchedMemory<'_, M> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        if self.until.is_some_and(|end| Instant::now() >= end) {
            return Err(Missing { address });
        }
        self.memory.read(address, buffer)?;
        let Some(last) = u64::try_from(buffer.len()).ok().and_then(|size| size.checked_sub(1)) else {
            return Ok(());
        };
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        for page in address / PAGE..=address.saturating_add(last) / PAGE {
            if pages.len() < MAX_PAGES {
                pages.insert(page);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    #[test]
    fn pages_that_are_read_are_recorded() {
        let mut memory = TestMemory::default();
        memory.put(0x1000, &[0; 0x3000]);
        let touched = TouchedMemory::new(&memory);
        touched.read(0x1ffc, &mut [0; 8]).unwrap();
        touched.read(0x1000, &mut [0; 8]).unwrap();
        assert!(touched.read(0x9000, &mut [0; 8]).is_err());
        assert!(touched.read(0x3000, &mut []).is_ok());
        assert_eq!(touched.into_pages().into_iter().collect::<Vec<_>>(), [1, 2]);
        let ended = TouchedMemory::new(&memory).until(Instant::now());
        assert!(ended.read(0x1000, &mut [0; 8]).is_err());
        assert!(ended.into_pages().is_empty());
    }
}
