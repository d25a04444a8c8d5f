//! Reading from memory.

use crate::error::Error;
use crate::events::{Events, sealed};

/// The source of a [`SliceReader`]: the bytes of a whole recording.
#[derive(Debug, Clone, Copy)]
pub struct SliceSource<'a>(pub(crate) &'a [u8]);

/// Reads a recording from a slice, without copying it.
///
/// ```
/// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
/// let mut events = nettrace::SliceReader::new(bytes)?;
/// let mut times = Vec::new();
/// while let Some(event) = events.next()? {
///     times.push((event.thread_id().0, event.relative_time().as_nanos() / 1_000_000));
/// }
/// // In the order of the file: that of time for each thread.
/// assert_eq!(times, [(8, 100), (8, 300), (9, 200), (8, 400)]);
/// # Ok::<(), nettrace::Error>(())
/// ```
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
