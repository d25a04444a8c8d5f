//! Reading from [`std::io::Read`].

use std::io::{ErrorKind, Read};

use crate::error::Error;
use crate::events::{Events, sealed};
use crate::read_buffer::ReadBuffer;

/// The bytes that one read asks for: enough that calls cost little, few enough to stay in the processor's cache.
const CHUNK: usize = 256 << 10;
/// The most room for bytes that have not arrived: a size in the stream is only a claim.
const MOST_AHEAD: usize = 4 << 20;

/// The source of a [`Reader`]: bytes from [`Read`].
#[derive(Debug)]
pub struct ReadSource<R> {
    input: R,
    buffer: ReadBuffer,
    read: u64,
    complete: bool,
}

/// Reads a recording from [`Read`], in memory bounded by its largest block.
pub type Reader<R> = Events<ReadSource<R>>;

impl<R: Read> sealed::Source for ReadSource<R> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }
    #[inline]
    fn is_complete(&self) -> bool {
        self.complete
    }
    fn more(&mut self, released: usize, wanted: usize) -> Result<bool, Error> {
        self.buffer.drop_front(released);
        let mut wanted = wanted;
        loop {
            let room = self.buffer.room(wanted.clamp(CHUNK, MOST_AHEAD));
            match self.input.read(room) {
                Ok(0) => {
                    self.complete = true;
                    return Ok(true);
                }
                Ok(count) => {
                    self.buffer.filled(count);
                    self.read = self.read.saturating_add(count as u64);
                    wanted = wanted.saturating_sub(count);
                    if wanted == 0 {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Io { offset: self.read, error }),
            }
        }
    }
    fn drops(&self) -> bool {
        true
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the bytes are no recording, or one of a version that is newer than this crate, or could not be read.
    pub fn new(input: R) -> Result<Self, Error> {
        Self::with_source(ReadSource { input, buffer: ReadBuffer::default(), read: 0, complete: false })
            .open()
    }
}
