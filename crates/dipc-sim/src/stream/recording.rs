//! A recording that is replayed.

use super::layout::Layout;
use crate::Error;
use nettrace::SliceReader;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Whose events come when a session is stopped, and not before.
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// How far apart the moments are that a recording is divided into.
const RESOLUTION_NS: u64 = 1_000_000;

/// A recording, and what is known of it once somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    bytes: Arc<[u8]>,
    timeline: OnceLock<Result<Timeline, Unusable>>,
    layout: OnceLock<Result<Arc<Layout>, Unusable>>,
}

/// Why a recording cannot be played as it should be.
#[derive(Clone, Debug)]
pub(super) struct Unusable(pub(super) String);

impl Recording {
    pub(crate) fn new(bytes: Arc<[u8]>) -> Self {
        Self { bytes, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// When each of its bytes is due.
    pub(super) fn timeline(&self) -> Result<&Timeline, Error> {
        let timeline = self.timeline.get_or_init(|| Timeline::read(&self.bytes));
        timeline.as_ref().map_err(Unusable::error)
    }

    /// Where its blocks lie.
    pub(super) fn layout(&self) -> Result<Arc<Layout>, Error> {
        let layout = self.layout.get_or_init(|| Layout::read(&self.bytes).map(Arc::new));
        layout.as_ref().map(Arc::clone).map_err(Unusable::error)
    }

    /// Where that begins which a runtime sends when the session is stopped: the rundown, or the mark of the stream's end. All of
    /// what is no recording comes before that.
    pub(super) fn tail(&self) -> usize {
        let rundown = self.timeline().ok().and_then(|timeline| timeline.rundown);
        match (self.layout(), rundown) {
            (Ok(layout), rundown) => layout.tail(rundown),
            (Err(_), rundown) => rundown.unwrap_or(self.bytes.len()),
        }
    }
}

impl Unusable {
    fn error(&self) -> Error {
        Error::Recording { reason: self.0.clone() }
    }
}

/// When each byte of a recording is due.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Times, and how many bytes have been sent by then; both rise.
    marks: Vec<(Duration, usize)>,
    /// Where the first event of the rundown is.
    pub(super) rundown: Option<usize>,
}

impl Timeline {
    fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        let unusable = |error: nettrace::Error| Unusable(error.to_string());
        let mut reader = SliceReader::new(bytes).map_err(unusable)?;
        let mut marks: Vec<(Duration, usize)> = Vec::new();
        let mut rundown = None;
        let (mut newest, mut last) = (0, None);
        while let Some(event) = reader.next().map_err(unusable)? {
            let offset = usize::try_from(event.offset()).unwrap_or(usize::MAX);
            if rundown.is_none() && event.provider() == RUNDOWN {
                rundown = Some(offset);
            }
            let time = u64::try_from(event.time_ns()).unwrap_or(0);
            if time > newest {
                if last.is_none_or(|last: u64| newest.saturating_sub(last) >= RESOLUTION_NS) {
                    marks.push((Duration::from_nanos(newest), offset));
                    last = Some(newest);
                }
                newest = time;
            }
        }
        marks.push((Duration::from_nanos(newest), bytes.len()));
        Ok(Self { marks, rundown })
    }

    /// How many bytes have been sent once `elapsed` has passed.
    pub(super) fn due(&self, elapsed: Duration) -> usize {
        let passed = self.marks.partition_point(|(time, _)| *time <= elapsed);
        let last = passed.checked_sub(1).and_then(|last| self.marks.get(last));
        last.map_or(0, |(_, offset)| *offset)
    }
}
