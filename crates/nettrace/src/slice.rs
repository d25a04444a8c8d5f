//! Reading from memory.

use crate::error::Error;
use crate::events::{Events, sealed};

/// The source of a [`SliceReader`]: the bytes of a whole recording.
#[derive(Debug, Clone, Copy)]
pub struct SliceSource<'a>(pub(crate) &'a [u8]);

/// Reads a recording from a slice, without copying it.
pub type SliceReader<'a> = Events<SliceSource<'a>>;

impl sealed::Source for SliceSource<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.0
    }
    #[inline]
    fn is_complete(&self) -> bool {
        true
    }
    fn more(&mut self, _: usize, _: usize) -> Result<bool, Error> {
        Ok(false)
    }
    fn drops(&self) -> bool {
        false
    }
}

impl<'a> SliceReader<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the bytes are not a recording, or are of a version newer than this crate knows.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::with_source(SliceSource(bytes)).open()
    }
}
