//! Files of the browser.

use std::io::{self, Read};

#[link(wasm_import_module = "worker")]
unsafe extern "C" {
    /// Reads up to `length` bytes of a file from `offset` on to `address`. Returns how many, or -1.
    fn read(file: u32, offset: u64, address: *mut u8, length: usize) -> i32;
}

/// A reader of a file that the page was given.
pub(crate) struct File {
    number: u32,
    /// Offset of the next byte.
    at: u64,
}

impl File {
    pub(crate) fn open(number: u32) -> Self {
        Self { number, at: 0 }
    }

    /// Skips bytes without reading them.
    pub(crate) fn skip(&mut self, count: u64) -> io::Result<()> {
        self.at = self.at.checked_add(count).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(())
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the worker writes no more than `length` bytes at `address`, and only during the call.
        let count = unsafe { read(self.number, self.at, buffer.as_mut_ptr(), buffer.len()) };
        let count = usize::try_from(count)
            .map_err(|_| io::Error::other("the browser cannot read the file; has it changed?"))?;
        self.at += count as u64;
        Ok(count.min(buffer.len()))
    }
}
