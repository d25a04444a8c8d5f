//! Reading from [`std::io::Read`].

use std::io::{ErrorKind, Read};

use crate::error::Error;
use crate::events::{Events, sealed};
use crate::read_buffer::ReadBuffer;

/// The bytes that one read asks for: enough that calls cost little, few enough to stay in the processor's
/// cache.
const CHUNK: usize = 256 << 10;
/// The same after bytes that were skipped, where further bytes may be skipped, too; it is doubled from read
/// to read.
const SMALL_CHUNK: usize = 4 << 10;
/// Maximum capacity for bytes that have not arrived: a size in the stream is only a claim.
const MAX_AHEAD: usize = 4 << 20;

/// The source of a [`Reader`]: bytes from [`Read`].
#[derive(Debug)]
pub struct ReadSource<R> {
    input: R,
    buffer: ReadBuffer,
    read: u64,
    complete: bool,
    /// The bytes that one read asks for.
    chunk: usize,
    /// Moves the input on by some bytes without reading them.
    skip: Option<fn(&mut R, u64) -> std::io::Result<()>>,
}

/// Reads a recording from [`Read`]. The recording's largest block bounds the memory.
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
            let least = wanted.clamp(self.chunk, MAX_AHEAD);
            let mut room = self.buffer.room(least);
            // Most bytes that are read between skipped blocks are dropped.
            if self.chunk < CHUNK && room.len() > least {
                room = room.split_at_mut(least).0;
            }
            match self.input.read(room) {
                Ok(0) => {
                    self.complete = true;
                    return Ok(true);
                }
                Ok(count) => {
                    self.chunk = self.chunk.saturating_mul(2).min(CHUNK);
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
    fn skip(&mut self, count: usize) -> Result<bool, Error> {
        let Some(skip) = self.skip else { return Ok(false) };
        skip(&mut self.input, count as u64).map_err(|error| Error::Io { offset: self.read, error })?;
        self.buffer.drop_front(self.buffer.bytes().len());
        self.read = self.read.saturating_add(count as u64);
        self.chunk = SMALL_CHUNK;
        Ok(true)
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// // Any `Read`: a file, a socket, standard input.
    /// let mut events = nettrace::Reader::new(std::io::Cursor::new(bytes))?;
    /// let mut count = 0;
    /// events.for_each(|_| count += 1)?;
    /// assert_eq!(count, 4);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are not a recording, are of a version newer than this crate knows, or could not be read.
    pub fn new(input: R) -> Result<Self, Error> {
        Self::of(input, None)
    }

    /// Reads the header of an input that can skip bytes without reading them, as files can: `skip` moves it
    /// on by a number of bytes.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_skip(input: R, skip: fn(&mut R, u64) -> std::io::Result<()>) -> Result<Self, Error> {
        Self::of(input, Some(skip))
    }

    /// The input, which may have been read beyond the events so far.
    pub const fn input(&self) -> &R {
        &self.source.input
    }

    fn of(input: R, skip: Option<fn(&mut R, u64) -> std::io::Result<()>>) -> Result<Self, Error> {
        let buffer = ReadBuffer::default();
        Self::with_source(ReadSource { input, buffer, read: 0, complete: false, chunk: CHUNK, skip }).open()
    }
}
