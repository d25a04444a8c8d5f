//! Time ranges of a recording, as users give them.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jiff::Timestamp;
use nettrace::RelativeTime;
use nettrace_edit::RecordedRange;

use crate::exit::{Exit, Failure};
use crate::inspect::recording::{Recording, start_time};
use crate::inspect::ring_folder;
use crate::time_point::TimePoint;

/// A time range, not yet relative to a recording, with a beginning, an end or both.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeRange {
    pub(crate) from: Option<TimePoint>,
    pub(crate) to: Option<TimePoint>,
}

impl TimeRange {
    /// Returns true if it has a calendar time or a time of day, for which the recording's start must be
    /// known.
    pub(crate) fn has_dates(self) -> bool {
        let is_date =
            |point: &Option<TimePoint>| matches!(point, Some(TimePoint::At(_) | TimePoint::TimeOfDay(_)));
        [self.from, self.to].iter().any(is_date)
    }

    /// Returns beginning and end relative to the start of a recording. Its header is read if there are
    /// calendar times. Of the folder of a ring, the recording of the range is made: then the whole of it is
    /// wanted.
    ///
    /// In that case, fails if the recording is not a file, because it could be read only once, or if its
    /// header lacks a calendar time.
    pub(crate) fn resolve(
        self,
        file: &Path,
    ) -> Result<(Option<RelativeTime>, Option<RelativeTime>), Failure> {
        if file.is_dir() && ring_folder::select(file, (self.from, self.to))? {
            return Ok((None, None));
        }
        let start = if self.has_dates() { start_of(file)? } else { Timestamp::UNIX_EPOCH };
        let at = |time: Timestamp| {
            let nanoseconds = time.as_nanosecond() - start.as_nanosecond();
            // The limit of 292 years is longer than any recording.
            let limit = if nanoseconds < 0 { i64::MIN } else { i64::MAX };
            RelativeTime::from_nanos(i64::try_from(nanoseconds).unwrap_or(limit))
        };
        let resolved = |point| match point {
            TimePoint::SinceStart(duration) => RelativeTime::after_start(duration),
            TimePoint::At(time) => at(time),
            TimePoint::TimeOfDay(time) => at(time.nearest(start)),
        };
        Ok((self.from.map(resolved), self.to.map(resolved)))
    }

    /// The same, with the range of the recording itself if it is a part of a session. Percentages and rates
    /// of a part refer to that.
    pub(crate) fn resolve_in_part(self, file: &Path) -> Result<PartTimes, Failure> {
        Ok(PartTimes { requested: self.resolve(file)?, recorded: recorded_range(file) })
    }
}

/// A time range of a recording that may be a part of a session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PartTimes {
    /// The requested beginning and end.
    pub(crate) requested: (Option<RelativeTime>, Option<RelativeTime>),
    /// The range that the recording states, if it is a part.
    pub(crate) recorded: Option<RecordedRange>,
}

impl PartTimes {
    /// Returns beginning and end of the requested part of the recording.
    pub(crate) fn selected(&self) -> (Option<RelativeTime>, Option<RelativeTime>) {
        let (from, to) = self.requested;
        let Some(recorded) = self.recorded else { return (from, to) };
        let selected = recorded.intersection(RecordedRange {
            from: from.unwrap_or(RelativeTime::MIN),
            to: to.unwrap_or(RelativeTime::MAX),
        });
        (Some(selected.from), Some(selected.to))
    }
}

/// Returns the range that a recording states at its end, if it is a part and a file.
pub(crate) fn recorded_range(file: &Path) -> Option<RecordedRange> {
    let mut file = match ring_folder::made(file) {
        Some(made) => made.try_clone().ok()?,
        // Opening a pipe would wait for its writer.
        None => dipc_transport::open_regular(file).ok()?,
    };
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(RecordedRange::TAIL as u64))).ok()?;
    let mut tail = Vec::new();
    file.take(RecordedRange::TAIL as u64).read_to_end(&mut tail).ok()?;
    RecordedRange::find(&tail)
}

/// Returns the start of a recording, which its header gives in milliseconds.
fn start_of(file: &Path) -> Result<Timestamp, Failure> {
    // A device or a pipe would give its header only to this reader.
    if file.as_os_str() == "-"
        || std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    {
        return Err(Failure::usage(
            "--from and --to with a date need the start of the recording first, which takes a file",
        )
        .with_help("give the time from the recording's start: 30s"));
    }
    let (events, _) = Recording::open(file)?.into_parts();
    events.info().and_then(|info| start_time(info.start)).ok_or_else(|| {
        let what = format!("{}: its header has no time of day", file.display());
        Failure::new(Exit::Failed, what).with_help("give the time from the recording's start: 30s")
    })
}
