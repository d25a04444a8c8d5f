//! Recordings in memory or in files.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use nettrace::{Event, Reader, Thread, TraceInfo, read_file_at};
use nettrace_writer::{Transcoder, Version};

use crate::error::Error;

/// The bytes moved out of a transcoder at once. Chunks of this size are returned to the system when they are
/// dropped.
const CHUNK: usize = 256 << 10;

/// The storage of recordings.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace_edit::{RingCapacity, Ring, SegmentStorage};
/// use std::time::Instant;
///
/// // Unnamed files, which disappear with the program.
/// let storage = SegmentStorage::Folder(std::env::temp_dir());
/// let mut ring = Ring::new(RingCapacity { time: None, bytes: 1 << 20 }, storage, &info, Instant::now())?;
/// let mut events = nettrace::SliceReader::new(&recording)?;
/// while let Some(record) = events.next_record()? {
///     ring.add(&record)?;
/// }
/// assert_eq!(ring.newest().as_nanos(), 9_000_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentStorage {
    /// Memory.
    #[default]
    Memory,
    /// Unnamed files in this folder, which disappear with the program, however it ends.
    Folder(PathBuf),
}

/// A recording that several readers may read at once.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace_edit::Segment;
///
/// let mut segment = Segment::new();
/// recording.chunks(100).for_each(|chunk| segment.push(chunk));
/// let mut count = 0;
/// segment.read()?.for_each(|_| count += 1)?;
/// assert_eq!((segment.bytes(), count), (recording.len() as u64, 10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Segment {
    content: Content,
    bytes: u64,
}

#[derive(Debug, Clone)]
enum Content {
    Chunks(Vec<Arc<[u8]>>),
    /// A file, written only at its end and read at offsets: its bytes, and the bytes that the disk had no
    /// room for.
    File {
        file: Arc<File>,
        bytes: u64,
        rest: Vec<Arc<[u8]>>,
    },
}

impl Default for Content {
    fn default() -> Self {
        Self::Chunks(Vec::new())
    }
}

impl SegmentStorage {
    /// Creates an empty recording.
    fn segment(&self) -> io::Result<Segment> {
        let content = match self {
            Self::Memory => Content::default(),
            Self::Folder(folder) => {
                let file = Arc::new(tempfile::tempfile_in(folder)?);
                Content::File { file, bytes: 0, rest: Vec::new() }
            }
        };
        Ok(Segment { content, bytes: 0 })
    }
}

impl Segment {
    /// Creates an empty recording in memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends bytes to a recording in memory.
    pub fn push(&mut self, bytes: &[u8]) {
        if let Content::Chunks(chunks) = &mut self.content {
            chunks.push(bytes.into());
            self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        }
    }

    /// Appends bytes. They are kept even if the file cannot store them, which is reported once.
    fn store(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        match &mut self.content {
            Content::File { file, bytes: written, rest } if rest.is_empty() => {
                match (&**file).write_all(bytes) {
                    Ok(()) => *written = written.saturating_add(bytes.len() as u64),
                    Err(error) => {
                        rest.push(bytes.into());
                        return Err(error);
                    }
                }
            }
            Content::Chunks(chunks) | Content::File { rest: chunks, .. } => chunks.push(bytes.into()),
        }
        Ok(())
    }

    /// The size of the segment in bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a reader from its beginning.
    ///
    /// # Errors
    /// If the bytes do not begin as a recording does, or the file cannot be read.
    pub fn read(&self) -> Result<Reader<SegmentReader<'_>>, nettrace::Error> {
        Reader::new(SegmentReader(match &self.content {
            Content::Chunks(chunks) => Position::Chunks { chunks, offset: 0 },
            Content::File { file, bytes, rest } => Position::File { file, offset: 0, left: *bytes, rest },
        }))
    }
}

/// The bytes of a segment, from its beginning.
#[derive(Debug)]
pub struct SegmentReader<'s>(Position<'s>);

#[derive(Debug)]
enum Position<'s> {
    /// The remaining chunks, and the number of bytes already read from the first one.
    Chunks { chunks: &'s [Arc<[u8]>], offset: usize },
    /// The offset of the next byte, the number of bytes left from there, and the chunks that follow. The file
    /// may have more.
    File { file: &'s File, offset: u64, left: u64, rest: &'s [Arc<[u8]>] },
}

impl Read for SegmentReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Position::File { left: 0, rest, .. } = self.0 {
            self.0 = Position::Chunks { chunks: rest, offset: 0 };
        }
        match &mut self.0 {
            Position::Chunks { chunks, offset } => {
                while let Some((first, rest)) = chunks.split_first() {
                    let mut left = first.get(*offset..).unwrap_or_default();
                    if left.is_empty() {
                        (*chunks, *offset) = (rest, 0);
                        continue;
                    }
                    let count = left.read(buffer)?;
                    *offset = offset.saturating_add(count);
                    return Ok(count);
                }
                Ok(0)
            }
            Position::File { file, offset, left, .. } => {
                let most = usize::try_from(*left).map_or(buffer.len(), |left| left.min(buffer.len()));
                // On Windows this moves the position for writing; a file that is read is no longer written.
                let count = read_file_at(file, buffer.get_mut(..most).unwrap_or_default(), *offset)?;
                *offset = offset.saturating_add(count as u64);
                *left = left.saturating_sub(count as u64);
                Ok(count)
            }
        }
    }
}

/// A writer of a segment.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    pub(crate) transcoder: Transcoder,
    segment: Segment,
    storage: SegmentStorage,
}

impl SegmentWriter {
    pub(crate) fn new(info: &TraceInfo, storage: &SegmentStorage) -> Result<Self, Error> {
        let transcoder = Transcoder::new(Version::of(info), info)?;
        let segment = storage.segment().map_err(|error| cannot_store(0, error))?;
        Ok(Self { transcoder, segment, storage: storage.clone() })
    }

    /// Returns the writer in `slot`, after creating it if the slot is empty.
    pub(crate) fn get_or_new<'s>(
        slot: &'s mut Option<Self>,
        info: &TraceInfo,
        storage: &SegmentStorage,
    ) -> Result<&'s mut Self, Error> {
        match slot {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(Self::new(info, storage)?)),
        }
    }

    /// Creates a writer for the records after the last one given to this writer.
    pub(crate) fn writer_after(&self, info: &TraceInfo, threads: &[Thread]) -> Result<Self, Error> {
        let mut next = Self::new(info, &self.storage)?;
        next.transcoder.resume_after(&self.transcoder, threads);
        Ok(next)
    }

    /// The number of bytes held, without the current block.
    pub(crate) fn bytes(&self) -> u64 {
        self.segment.bytes.saturating_add(self.transcoder.bytes().len() as u64)
    }

    /// Moves the collected bytes into the segment if there are enough.
    #[inline]
    pub(crate) fn collect(&mut self) -> Result<(), Error> {
        if self.transcoder.bytes().len() >= CHUNK { self.take() } else { Ok(()) }
    }

    /// Adds an event that names others, without its stack. The events in between do not count as losses.
    pub(crate) fn add_name(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.transcoder.skip_losses_before(event);
        self.transcoder.event_with(event, event.payload(), false)?;
        self.collect()
    }

    /// Returns everything so far. More can still be written after it.
    pub(crate) fn segment(&mut self) -> Result<Segment, Error> {
        self.store()?;
        Ok(self.segment.clone())
    }

    /// Moves everything written so far into the segment.
    pub(crate) fn store(&mut self) -> Result<(), Error> {
        self.transcoder.flush()?;
        self.take()
    }

    /// Keeps the segments of later writers in memory.
    pub(crate) fn keep_in_memory(&mut self) {
        self.storage = SegmentStorage::Memory;
    }

    fn take(&mut self) -> Result<(), Error> {
        if self.transcoder.bytes().is_empty() {
            return Ok(());
        }
        let offset = self.segment.bytes;
        let stored = self.segment.store(self.transcoder.bytes());
        self.transcoder.clear_bytes();
        stored.map_err(|error| cannot_store(offset, error))
    }
}

fn cannot_store(offset: u64, error: io::Error) -> Error {
    Error::Write(nettrace_writer::Error::Io { offset, error })
}
