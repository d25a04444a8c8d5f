//! A recording that comes from [`std::io::Read`].

use std::io::{ErrorKind, Read};

use crate::error::Error;
use crate::events::{Events, sealed};
use crate::read_buffer::ReadBuffer;

/// How many bytes are asked for at once: large enough that calls cost nothing, small enough to stay in the processor's cache.
const CHUNK: usize = 256 << 10;
/// The most that is made room for before its bytes have come: a size in the stream is only a claim.
const MOST_AHEAD: usize = 4 << 20;

/// Bytes from a reader.
#[derive(Debug)]
pub struct ReadSource<R> {
    input: R,
    window: ReadBuffer,
    read: u64,
    complete: bool,
}

/// Reads a recording from anything that is [`Read`], in memory bounded by its largest block.
pub type Reader<R> = Events<ReadSource<R>>;

impl<R: Read> sealed::Source for ReadSource<R> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.window.bytes()
    }
    #[inline]
    fn is_complete(&self) -> bool {
        self.complete
    }
    fn more(&mut self, released: usize, wanted: usize) -> Result<bool, Error> {
        self.window.drop_front(released);
        let mut wanted = wanted;
        loop {
            let room = self.window.room(wanted.clamp(CHUNK, MOST_AHEAD));
            match self.input.read(room) {
                Ok(0) => {
                    self.complete = true;
                    return Ok(true);
                }
                Ok(count) => {
                    self.window.filled(count);
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
        Self::of(ReadSource { input, window: ReadBuffer::default(), read: 0, complete: false }).open()
    }
}
