//! The last part of a session's stream, kept in a ring until it is wanted: the flight recorder of a process.

use std::io;
use std::time::Instant;

use nettrace::{Record, RelativeTime};
use nettrace_edit::nettrace_writer;
use nettrace_edit::{Error, Ring, RingCapacity, SegmentStorage, Snapshot};

use crate::record_stream::RecordStream;

/// A stream, and a ring of the last part of it. The ring begins with the header of the stream.
///
/// If the files of the ring cannot be written, it keeps what it has in memory and takes no more records: see
/// [`storage_error`](Self::storage_error).
#[derive(Debug)]
pub struct RingRecorder {
    capacity: RingCapacity,
    storage: SegmentStorage,
    stream: RecordStream,
    /// `None` before the header of the stream.
    ring: Option<Ring>,
    storage_error: Option<io::Error>,
}

impl RingRecorder {
    /// Creates the recorder of one stream.
    pub fn new(capacity: RingCapacity, storage: SegmentStorage) -> Self {
        Self { capacity, storage, stream: RecordStream::default(), ring: None, storage_error: None }
    }

    /// Changes the limit on bytes. It applies when the next part of the ring begins.
    pub fn limit_bytes(&mut self, bytes: u64) {
        self.capacity.bytes = bytes;
        if let Some(ring) = &mut self.ring {
            ring.limit_bytes(bytes);
        }
    }

    /// Takes the next bytes of the stream, and passes its records to `each` before they are kept.
    ///
    /// # Errors
    /// If the ring cannot be created, or a record is larger than the format allows.
    pub fn feed(&mut self, bytes: &[u8], each: impl FnMut(&Record<'_>)) -> Result<(), Error> {
        if self.stream.unreadable().is_some() {
            return Ok(());
        }
        let now = Instant::now();
        self.stream.feed(bytes);
        if let Some(ring) = &mut self.ring {
            ring.receive(now);
        } else if let Some(info) = self.stream.read_header() {
            self.ring = Some(Ring::new(self.capacity, self.storage.clone(), info, now)?);
        }
        self.read(each)
    }

    /// Ends the stream, and takes its last records.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn end(&mut self, each: impl FnMut(&Record<'_>)) -> Result<(), Error> {
        self.stream.end_of_input();
        self.read(each)
    }

    fn read(&mut self, mut each: impl FnMut(&Record<'_>)) -> Result<(), Error> {
        let Self { stream, ring, storage_error, .. } = self;
        stream.for_each(|record| {
            each(record);
            keep(ring.as_mut(), storage_error, |ring| ring.add(record))
        })?;
        keep(ring.as_mut(), storage_error, |ring| ring.turn_if_due(stream.decoder().threads()))
    }

    /// Returns the content of the ring, which another thread can write; `None` before the header of the
    /// stream.
    ///
    /// # Errors
    /// If a file of the ring cannot be read or created, or a record is larger than the format allows.
    pub fn snapshot(&mut self) -> Option<Result<Snapshot, Error>> {
        let Self { stream, ring, .. } = self;
        ring.as_mut().map(|ring| ring.snapshot(stream.decoder().threads()))
    }

    /// The stream, with its losses and its damage.
    pub const fn stream(&self) -> &RecordStream {
        &self.stream
    }

    /// The bytes that the ring holds.
    pub fn bytes(&self) -> u64 {
        self.ring.as_ref().map_or(0, Ring::bytes)
    }

    /// The time of the newest event; `None` before the header of the stream.
    pub fn newest(&self) -> Option<RelativeTime> {
        self.ring.as_ref().map(Ring::newest)
    }

    /// The error of the ring's files, after which nothing more is kept.
    pub const fn storage_error(&self) -> Option<&io::Error> {
        self.storage_error.as_ref()
    }
}

/// Changes the ring, unless its files have failed. If they fail now, the ring continues in memory, so that
/// its content can be read.
fn keep(
    ring: Option<&mut Ring>,
    storage_error: &mut Option<io::Error>,
    change: impl FnOnce(&mut Ring) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(ring) = ring.filter(|_| storage_error.is_none()) else { return Ok(()) };
    match change(ring) {
        Err(Error::Write(nettrace_writer::Error::Io { error, .. })) => {
            ring.keep_in_memory();
            *storage_error = Some(error);
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn recorder() -> RingRecorder {
        let capacity = RingCapacity { time: Some(Duration::from_secs(3600)), bytes: 64 << 20 };
        RingRecorder::new(capacity, SegmentStorage::Memory)
    }

    #[test]
    fn a_snapshot_has_the_events_that_have_arrived() {
        let recording = testdata::bytes("gcdump/recordings/net10.nettrace.xz");
        let mut ring = recorder();
        assert!(ring.snapshot().is_none());
        let mut count = 0;
        for piece in recording.chunks(10_000) {
            ring.feed(piece, |record| count += u64::from(matches!(record, Record::Event(_)))).unwrap();
        }
        ring.end(|record| count += u64::from(matches!(record, Record::Event(_)))).unwrap();
        let written = ring.snapshot().unwrap().unwrap().write(None, &mut Vec::new()).unwrap();
        assert_eq!((written.events, ring.stream().event_count()), (count, count));
        assert!(count > 1000 && ring.stream().is_whole());
    }

    #[test]
    fn a_cut_stream_keeps_all_that_a_reader_finds() {
        let recording = testdata::bytes("gcdump/recordings/net10.nettrace.xz");
        let mut had_more_at_the_end = false;
        for cut in [20_000, 50_000, 100_000, 150_000] {
            let mut ring = recorder();
            ring.feed(&recording[..cut], |_| {}).unwrap();
            let before = ring.stream().event_count();
            ring.end(|_| {}).unwrap();
            let written = ring.snapshot().unwrap().unwrap().write(None, &mut Vec::new()).unwrap();
            let mut count = 0;
            nettrace::SliceReader::new(&recording[..cut]).unwrap().for_each(|_| count += 1).unwrap();
            assert_eq!((written.events, ring.stream().is_whole()), (count, false), "{cut}");
            had_more_at_the_end |= count > before;
        }
        assert!(had_more_at_the_end);
    }

    #[test]
    fn a_folder_that_is_gone_ends_a_ring_that_can_still_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let recording = testdata::bytes("gcdump/recordings/net10.nettrace.xz");
        let capacity = RingCapacity { time: None, bytes: 200_000 };
        let mut ring = RingRecorder::new(capacity, SegmentStorage::Folder(folder.path().to_owned()));
        let mut pieces = recording.chunks(1_000);
        ring.feed(pieces.next().unwrap(), |_| {}).unwrap();
        drop(folder);
        pieces.try_for_each(|piece| ring.feed(piece, |_| {})).unwrap();
        assert_eq!(ring.storage_error().unwrap().kind(), io::ErrorKind::NotFound);
        let written = ring.snapshot().unwrap().unwrap().write(None, &mut Vec::new()).unwrap();
        assert!(written.events > 0 && written.events < ring.stream().event_count());
    }
}
