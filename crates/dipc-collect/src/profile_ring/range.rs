//! The recording of a time range, from the segments of a ring.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use nettrace::{Reader, RelativeTime, Thread, TraceInfo};
use nettrace_edit::nettrace_writer::MergerOptions;
use nettrace_edit::{Criteria, Error, MergedRecording, Slice};

use super::folder::{StoredSegment, open_segment, stored_segments};
use super::segment::Segment;
use crate::stop::StopSignal;

/// Maximum size of a segment to read into memory, in bytes; larger ones are damaged.
const MAX_SEGMENT_BYTES: u64 = 64 << 20;

/// A requested time range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct RangeRequest {
    /// The start, in milliseconds since 1970.
    pub from_ms: u64,
    /// The end, which is not part of it.
    pub to_ms: u64,
    /// The processes; all if empty.
    pub processes: Vec<u64>,
    /// Maximum size of the segments to read, in bytes.
    pub max_bytes: u64,
}

/// The recording of a range.
#[derive(Debug)]
#[non_exhaustive]
pub struct RangeRecording {
    /// The file, at its beginning. It has no name.
    pub file: File,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The time that its segments cover within the range.
    pub covered: Segment,
    /// The number of segments that could be read in part only, or not at all.
    pub damaged: usize,
}

/// A reason for which there is no recording of a range.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// The ring has nothing of the range.
    #[error("nothing was kept of this time")]
    Empty {
        /// The time of the ring; `None` if it is empty.
        kept: Option<Segment>,
    },
    /// The segments of the range are too large.
    #[error("the recordings of this time have {bytes} bytes, and {max_bytes} is the most")]
    TooLarge {
        /// The bytes of the segments.
        bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The request was given up.
    #[error("stopped")]
    Stopped,
    /// The ring cannot be read, or the recording not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The segments cannot be one recording.
    #[error(transparent)]
    Edit(#[from] Error),
}

/// Writes the recording of a time range, from the ring in a directory.
///
/// # Errors
/// If the ring has nothing of the time, or too much, or the file system fails.
pub fn read_range(
    directory: &Path,
    request: &RangeRequest,
    stop: &StopSignal,
) -> Result<RangeRecording, RangeError> {
    let all = stored_segments(directory)?;
    let is_wanted = |stored: &&StoredSegment| stored.segment.is_in(request.from_ms, request.to_ms);
    let wanted: Vec<StoredSegment> = all.iter().filter(is_wanted).copied().collect();
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
        let kept = all
            .first()
            .zip(all.last())
            .map(|(first, last)| Segment { start_ms: first.segment.start_ms, end_ms: last.segment.end_ms });
        return Err(RangeError::Empty { kept });
    };
    let bytes = wanted.iter().fold(0_u64, |sum, stored| sum.saturating_add(stored.bytes));
    if bytes > request.max_bytes {
        return Err(RangeError::TooLarge { bytes, max_bytes: request.max_bytes });
    }
    let covered = Segment {
        start_ms: first.segment.start_ms.max(request.from_ms),
        end_ms: last.segment.end_ms.min(request.to_ms),
    };
    let mut segments = Vec::new();
    let mut damaged = 0_usize;
    for stored in &wanted {
        // One that became too old meanwhile is gone.
        match open_segment(directory, stored.segment).map_err(RangeError::from).and_then(header) {
            Ok(info) => segments.push((stored.segment, info)),
            Err(_) => damaged = damaged.saturating_add(1),
        }
    }
    let mut writer = RangeWriter { directory, request, stop, damaged };
    let mut file = writer.merge(&segments)?;
    file.rewind()?;
    let start_ms = segments.first().map_or(first.segment.start_ms, |(segment, _)| segment.start_ms);
    if start_ms < request.from_ms || last.segment.end_ms > request.to_ms {
        file = cut(file, start_ms, request)?;
    }
    let bytes = file.seek(io::SeekFrom::End(0))?;
    file.rewind()?;
    Ok(RangeRecording { file, bytes, covered, damaged: writer.damaged })
}

struct RangeWriter<'r> {
    directory: &'r Path,
    request: &'r RangeRequest,
    stop: &'r StopSignal,
    damaged: usize,
}

impl RangeWriter<'_> {
    /// Writes the segments as one recording, one after the other.
    fn merge(&mut self, segments: &[(Segment, TraceInfo)]) -> Result<File, RangeError> {
        let infos: Vec<TraceInfo> = segments.iter().map(|(_, info)| info.clone()).collect();
        let options = MergerOptions::default().with_same_processes(true);
        let mut merged = MergedRecording::new(&infos, options).map_err(Error::from)?;
        let mut out = BufWriter::new(tempfile::tempfile()?);
        let mut threads: Vec<Vec<Thread>> = Vec::new();
        for (source, (segment, _)) in segments.iter().enumerate() {
            if self.stop.is_stopped() {
                return Err(RangeError::Stopped);
            }
            let of_segment = self.append(source, *segment, &mut merged, &mut out)?;
            threads.push(of_segment);
        }
        merged.finish(threads.iter().map(Vec::as_slice), &mut out).map_err(Error::from)?;
        out.into_inner().map_err(|error| error.into_error().into())
    }

    /// Writes the wanted events of a segment, and returns its threads.
    fn append(
        &mut self,
        source: usize,
        segment: Segment,
        merged: &mut MergedRecording,
        out: &mut impl io::Write,
    ) -> Result<Vec<Thread>, RangeError> {
        let mut bytes = Vec::new();
        let read = open_segment(self.directory, segment)
            .and_then(|file| file.take(MAX_SEGMENT_BYTES).read_to_end(&mut bytes));
        if read.is_err() {
            self.damaged = self.damaged.saturating_add(1);
            return Ok(Vec::new());
        }
        if !self.request.processes.is_empty() {
            let criteria = Criteria::default().with_processes(self.request.processes.clone());
            let mut part = Vec::new();
            if nettrace_edit::copy(&bytes[..], &mut part, &mut Slice::new(criteria)).is_err() {
                self.damaged = self.damaged.saturating_add(1);
                return Ok(Vec::new());
            }
            bytes = part;
        }
        let Ok(mut events) = Reader::new(&bytes[..]) else {
            self.damaged = self.damaged.saturating_add(1);
            return Ok(Vec::new());
        };
        match merged.append(source, &mut events, out) {
            Ok(()) => {}
            // The events before the damage are kept.
            Err(Error::Read(_)) => self.damaged = self.damaged.saturating_add(1),
            Err(error) => return Err(error.into()),
        }
        Ok(events.threads().to_vec())
    }
}

fn header(file: File) -> Result<TraceInfo, RangeError> {
    let reader = Reader::new(BufReader::new(file)).map_err(Error::from)?;
    Ok(reader.info().cloned().ok_or(Error::NoHeader)?)
}

/// Cuts a recording that begins at `start_ms` to the range.
fn cut(file: File, start_ms: u64, request: &RangeRequest) -> Result<File, RangeError> {
    let after_start = |ms: u64| {
        let since = Duration::from_millis(ms.saturating_sub(start_ms));
        Some(RelativeTime::after_start(since))
    };
    let from = after_start(request.from_ms).filter(|_| request.from_ms > start_ms);
    let criteria = Criteria::default().with_from(from).with_to(after_start(request.to_ms));
    let mut out = BufWriter::new(tempfile::tempfile()?);
    nettrace_edit::copy(BufReader::new(file), &mut out, &mut Slice::new(criteria))?;
    out.flush()?;
    out.into_inner().map_err(|error| error.into_error().into())
}

#[cfg(test)]
mod tests {
    use nettrace::{SliceReader, Ticks};
    use nettrace_edit::nettrace_writer::{EventKind, EventWriter};

    use super::*;
    use crate::profile_ring::ProfileRing;
    use crate::retention::Retention;

    const START_MS: u64 = 1_795_251_731_000;

    /// A ring with three segments of ten seconds; each has an event of two processes in each second.
    fn ring(directory: &Path) {
        let ring = ProfileRing::open(directory, Retention::default()).unwrap();
        for number in 0..3_u64 {
            let start_ms = START_MS + number * 10_000;
            let ticks = 5_000 + number * 10_000_000_000;
            let info = TraceInfo::new_v6(start_ms, Ticks(ticks), Vec::new());
            let mut writer = EventWriter::new(&info).unwrap();
            let tick = writer.define(&EventKind::new("Demo", 1, "Tick", &[])).unwrap();
            let threads = [7, 8].map(|process| writer.thread(process, process, None).unwrap());
            for second in 0..10 {
                for thread in threads {
                    let time = Ticks(ticks + second * 1_000_000_000);
                    writer.event(tick, time, thread, None, &[], &[]).unwrap();
                }
            }
            writer.finish().unwrap();
            let segment = Segment { start_ms, end_ms: start_ms + 10_000 };
            ring.store(segment, writer.bytes()).unwrap();
        }
    }

    fn request(from: u64, to: u64) -> RangeRequest {
        let (from_ms, to_ms) = (START_MS + from * 1000, START_MS + to * 1000);
        RangeRequest { from_ms, to_ms, processes: Vec::new(), max_bytes: 1 << 20 }
    }

    /// The seconds and processes of the events in a range.
    fn events(directory: &Path, request: &RangeRequest) -> Vec<(u64, u64)> {
        let mut range = read_range(directory, request, &StopSignal::new()).unwrap();
        let mut bytes = Vec::new();
        range.file.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len() as u64, range.damaged), (range.bytes, 0));
        let mut found = Vec::new();
        let mut add = |event: &nettrace::Event<'_>| {
            if event.provider() == "Demo" {
                found.push(((event.time().0 - 5_000) / 1_000_000_000, event.process_id().unwrap()));
            }
        };
        SliceReader::new(&bytes).unwrap().for_each(|event| add(&event)).unwrap();
        found
    }

    #[test]
    fn a_range_has_the_events_of_its_time_and_processes() {
        let folder = tempfile::tempdir().unwrap();
        ring(folder.path());
        let all = events(folder.path(), &request(0, 30));
        assert_eq!(all.len(), 60);
        let part = events(folder.path(), &request(8, 21));
        let expected: Vec<_> = (8..21).flat_map(|second| [(second, 7), (second, 8)]).collect();
        assert_eq!(part, expected);
        let one = events(folder.path(), &RangeRequest { processes: vec![8], ..request(12, 14) });
        assert_eq!(one, [(12, 8), (13, 8)]);
        let range = read_range(folder.path(), &request(12, 100), &StopSignal::new()).unwrap();
        assert_eq!(range.covered, Segment { start_ms: START_MS + 12_000, end_ms: START_MS + 30_000 });
    }

    #[test]
    fn empty_and_large_ranges_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let read = |request: &RangeRequest| read_range(folder.path(), request, &StopSignal::new());
        assert!(matches!(read(&request(0, 30)), Err(RangeError::Empty { kept: None })));
        ring(folder.path());
        let Err(RangeError::Empty { kept: Some(kept) }) = read(&request(30, 40)) else { panic!() };
        assert_eq!(kept, Segment { start_ms: START_MS, end_ms: START_MS + 30_000 });
        let large = read(&RangeRequest { max_bytes: 100, ..request(0, 30) });
        assert!(matches!(large, Err(RangeError::TooLarge { max_bytes: 100, .. })));
        let stop = StopSignal::new();
        stop.stop();
        assert!(matches!(read_range(folder.path(), &request(0, 30), &stop), Err(RangeError::Stopped)));
    }

    #[test]
    fn damaged_segments_are_counted_and_the_others_kept() {
        let folder = tempfile::tempdir().unwrap();
        ring(folder.path());
        let stored = stored_segments(folder.path()).unwrap();
        let path = |number: usize| folder.path().join(stored[number].segment.file_name());
        std::fs::write(path(0), "Nettrace").unwrap();
        let bytes = std::fs::read(path(1)).unwrap();
        std::fs::write(path(1), &bytes[..bytes.len() / 2]).unwrap();
        let range = read_range(folder.path(), &request(0, 30), &StopSignal::new()).unwrap();
        assert!(range.damaged >= 1, "{}", range.damaged);
        let mut events = Reader::new(range.file).unwrap();
        let mut last = 0;
        while let Some(event) = events.next().unwrap() {
            last = (event.time().0 - 5_000) / 1_000_000_000;
        }
        assert_eq!(last, 29);
    }
}
