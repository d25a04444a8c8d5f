//! The recording that a runtime replays.

use super::block_index::BlockIndex;
use crate::error::{Error, UnsupportedRecording};
use nettrace::SliceReader;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The provider of the events that a runtime sends when a session is stopped.
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// Minimum time between two marks of a timeline.
const RESOLUTION_NS: u64 = 1_000_000;

/// The bytes of a recording, with facts that are read from them on first use.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    bytes: Arc<[u8]>,
    timeline: OnceLock<Result<Timeline, UnsupportedRecording>>,
    index: OnceLock<Result<Arc<BlockIndex>, UnsupportedRecording>>,
}

impl Recording {
    pub(crate) fn new(bytes: Arc<[u8]>) -> Self {
        Self { bytes, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the times at which its bytes are due.
    pub(super) fn timeline(&self) -> Result<&Timeline, Error> {
        let timeline = self.timeline.get_or_init(|| Timeline::read(&self.bytes));
        timeline.as_ref().map_err(Error::from)
    }

    /// Returns the positions of its blocks.
    pub(super) fn index(&self) -> Result<Arc<BlockIndex>, Error> {
        let index = self.index.get_or_init(|| BlockIndex::read(&self.bytes).map(Arc::new));
        index.as_ref().map(Arc::clone).map_err(Error::from)
    }

    /// Returns the offset of the first byte that a runtime sends when the session is stopped: of the rundown,
    /// or of the mark of the stream's end; the length if the bytes are not a recording.
    pub(super) fn rundown_start(&self) -> usize {
        let event = self.timeline().ok().and_then(|timeline| timeline.rundown_event);
        match self.index() {
            Ok(index) => index.rundown_start(event),
            Err(_) => event.unwrap_or(self.bytes.len()),
        }
    }
}

/// The times at which a recording's bytes are due.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Both times and offsets rise.
    marks: Vec<Mark>,
    /// The offset of the first event of the rundown.
    rundown_event: Option<usize>,
}

/// A time, with the offset up to which bytes are due by then.
#[derive(Debug)]
struct Mark {
    time: Duration,
    offset: usize,
}

impl Timeline {
    fn read(bytes: &[u8]) -> Result<Self, UnsupportedRecording> {
        let unsupported = |error: nettrace::Error| UnsupportedRecording(error.to_string());
        let mut reader = SliceReader::new(bytes).map_err(unsupported)?;
        let mut marks: Vec<Mark> = Vec::new();
        let mut rundown_event = None;
        let mut newest = 0;
        let mut last_mark = None;
        while let Some(event) = reader.next().map_err(unsupported)? {
            let offset = usize::try_from(event.offset()).unwrap_or(usize::MAX);
            if rundown_event.is_none() && event.provider() == RUNDOWN {
                rundown_event = Some(offset);
            }
            let time = u64::try_from(event.relative_time().as_nanos()).unwrap_or(0);
            if time > newest {
                if last_mark.is_none_or(|last: u64| newest.saturating_sub(last) >= RESOLUTION_NS) {
                    marks.push(Mark { time: Duration::from_nanos(newest), offset });
                    last_mark = Some(newest);
                }
                newest = time;
            }
        }
        marks.push(Mark { time: Duration::from_nanos(newest), offset: bytes.len() });
        Ok(Self { marks, rundown_event })
    }

    /// Returns the length of the recording's part that is due after `elapsed`.
    pub(super) fn bytes_due(&self, elapsed: Duration) -> usize {
        let passed = self.marks.partition_point(|mark| mark.time <= elapsed);
        let last = passed.checked_sub(1).and_then(|last| self.marks.get(last));
        last.map_or(0, |mark| mark.offset)
    }
}
