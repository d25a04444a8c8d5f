//! Recordings in memory.

use std::io::{self, Read};
use std::sync::Arc;

use nettrace::{Event, Reader, Thread, TraceInfo};
use nettrace_writer::{Error, Transcoder, Version};

/// Bytes that are moved out of a transcoder at once. Pieces of this size are given back to the system when they are dropped.
const CHUNK: usize = 256 << 10;

/// A recording in memory, which several may read at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segment {
    chunks: Vec<Arc<[u8]>>,
    bytes: u64,
}

impl Segment {
    /// Adds bytes at the end.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.chunks.push(bytes.into());
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads it from its beginning.
    pub(crate) fn read(&self) -> Result<Reader<SegmentReader<'_>>, nettrace::Error> {
        Reader::new(SegmentReader { chunks: &self.chunks, offset: 0 })
    }
}

/// The bytes of a segment.
#[derive(Debug)]
pub(crate) struct SegmentReader<'s> {
    /// Those that are left, and the bytes of the first one that were read.
    chunks: &'s [Arc<[u8]>],
    offset: usize,
}

impl Read for SegmentReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some((first, rest)) = self.chunks.split_first() {
            let left = &first[self.offset..];
            if left.is_empty() {
                (self.chunks, self.offset) = (rest, 0);
                continue;
            }
            let count = left.len().min(buffer.len());
            buffer[..count].copy_from_slice(&left[..count]);
            self.offset += count;
            return Ok(count);
        }
        Ok(0)
    }
}

/// A recording that is written into memory.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    pub(crate) transcoder: Transcoder,
    segment: Segment,
}

impl SegmentWriter {
    pub(crate) fn new(version: Version, info: &TraceInfo) -> Result<Self, Error> {
        Ok(Self { transcoder: Transcoder::new(version, info)?, segment: Segment::default() })
    }

    /// A writer of the records behind those that another was handed over.
    pub(crate) fn behind(&self, info: &TraceInfo, threads: &[Thread]) -> Result<Self, Error> {
        let mut next = Self::new(self.transcoder.version(), info)?;
        next.transcoder.begin_behind(&self.transcoder, threads);
        Ok(next)
    }

    /// The bytes that it holds, but for those of the block at hand.
    pub(crate) fn bytes(&self) -> u64 {
        self.segment.bytes + self.transcoder.bytes().len() as u64
    }

    /// Moves what has collected.
    #[inline]
    pub(crate) fn collect(&mut self) {
        if self.transcoder.bytes().len() >= CHUNK {
            self.take();
        }
    }

    /// Adds an event that names others, without its stack. The events that lie between these are no losses.
    pub(crate) fn add_name(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.transcoder.skip_losses_before(event);
        self.transcoder.event_with(event, event.payload(), false)?;
        self.collect();
        Ok(())
    }

    /// Everything so far. More can be written behind it.
    pub(crate) fn segment(&mut self) -> Result<Segment, Error> {
        self.transcoder.flush()?;
        self.take();
        Ok(self.segment.clone())
    }

    fn take(&mut self) {
        if !self.transcoder.bytes().is_empty() {
            self.segment.push(self.transcoder.bytes());
            self.transcoder.clear_bytes();
        }
    }
}
