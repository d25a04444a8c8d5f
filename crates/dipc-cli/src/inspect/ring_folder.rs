//! The folder of a ring, which `dipc monitor --profile-keep` fills, in the place of a recording: its segments
//! of a time are read as one recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dipc_collect::StopSignal;
use dipc_collect::profile_ring::{RangeError, RangeRequest, Segment, read_range, stored_segments};
use jiff::Timestamp;

use crate::exit::{Exit, Failure};
use crate::render::messages;
use crate::time_point::TimePoint;

/// Maximum size of the segments to read, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// A requested range.
type Range = (Option<TimePoint>, Option<TimePoint>);

/// The last recording that was made of each ring, by folder, with its range.
static RECORDINGS: Mutex<BTreeMap<PathBuf, (Range, Arc<File>)>> = Mutex::new(BTreeMap::new());

fn recordings() -> MutexGuard<'static, BTreeMap<PathBuf, (Range, Arc<File>)>> {
    RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the recording that was made of a folder; `None` if none was.
pub(crate) fn made(folder: &Path) -> Option<Arc<File>> {
    Some(Arc::clone(&recordings().get(folder)?.1))
}

/// Returns the recording of the ring in a folder: the one that was [selected](select), or else all of it.
pub(crate) fn open(folder: &Path) -> Result<Arc<File>, Failure> {
    made(folder).map_or_else(|| read(folder, (None, None)), Ok)
}

/// Selects a time range of the ring in a folder: a recording is made of it, which [`open`] returns from then
/// on. Times since the start refer to that of the ring. Returns false if the whole ring was opened before:
/// then the range is to be found in that.
pub(crate) fn select(folder: &Path, range: Range) -> Result<bool, Failure> {
    let before = recordings().get(folder).map(|(range, _)| *range);
    match before {
        Some((None, None)) => return Ok(range == (None, None)),
        Some(before) if before == range => {}
        _ => drop(read(folder, range)?),
    }
    Ok(true)
}

fn read(folder: &Path, requested: Range) -> Result<Arc<File>, Failure> {
    let shown = folder.display();
    let segments = stored_segments(folder)
        .map_err(|error| Failure::new(Exit::Failed, format_args!("open: {shown}: {error}")))?;
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
        let what = format_args!("open: {shown}: it is a folder without recordings of the machine");
        return Err(Failure::new(Exit::Failed, what)
            .with_help("dipc monitor --profile-keep 24h fills one; other recordings are files"));
    };
    let kept = Segment { start_ms: first.segment.start_ms, end_ms: last.segment.end_ms };
    let (from_ms, to_ms) = range_ms(kept, requested);
    if from_ms >= to_ms {
        return Err(Failure::usage("--to: it is not after --from"));
    }
    let request = RangeRequest { from_ms, to_ms, processes: Vec::new(), max_bytes: MAX_BYTES };
    let range =
        read_range(folder, &request, &StopSignal::new()).map_err(|error| refusal(folder, kept, &error))?;
    if range.damaged > 0 {
        messages::warning(format_args!(
            "{shown}: {} recordings of this time are damaged, and may be read in part",
            range.damaged
        ));
    }
    let file = Arc::new(range.file);
    recordings().insert(folder.to_owned(), (requested, Arc::clone(&file)));
    Ok(file)
}

/// The milliseconds since 1970 of a range. A time of day is the last one of the ring, and for an end the
/// first one after the beginning.
fn range_ms(kept: Segment, (from, to): Range) -> (u64, u64) {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let ms = |point: TimePoint, not_after_ms: u64| match point {
        TimePoint::SinceStart(time) => {
            kept.start_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        }
        TimePoint::At(time) => milliseconds(time),
        TimePoint::TimeOfDay(time) => milliseconds(time.last_until(timestamp(not_after_ms))),
    };
    let from_ms = from.map(|from| ms(from, kept.end_ms));
    let to_ms = to.map(|to| ms(to, from_ms.map_or(kept.end_ms, |from_ms| from_ms.saturating_add(DAY_MS))));
    (from_ms.unwrap_or(kept.start_ms), to_ms.unwrap_or(kept.end_ms))
}

fn refusal(folder: &Path, kept: Segment, error: &RangeError) -> Failure {
    let failure = Failure::new(Exit::Failed, format_args!("read: {}: {error}", folder.display()));
    match error {
        RangeError::Empty { .. } => failure.with_help(format_args!(
            "it has samples from {} to {}",
            timestamp(kept.start_ms),
            timestamp(kept.end_ms)
        )),
        RangeError::TooLarge { .. } => failure.with_help("--from and --to select a shorter time"),
        _ => failure,
    }
}

fn milliseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or(0)
}

fn timestamp(ms: u64) -> Timestamp {
    i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time_point;

    #[test]
    fn times_of_day_are_the_last_ones_of_the_ring() {
        let ms = |text: &str| milliseconds(text.parse().unwrap());
        let kept = Segment { start_ms: ms("2026-11-20T03:00:00Z"), end_ms: ms("2026-11-21T09:00:00Z") };
        let range = |from: &str, to: &str| {
            let point = |text: &str| (!text.is_empty()).then(|| time_point::parse(text).unwrap());
            let (from, to) = range_ms(kept, (point(from), point(to)));
            (timestamp(from).to_string(), timestamp(to).to_string())
        };
        let expected = |from: &str, to: &str| (format!("2026-11-{from}Z"), format!("2026-11-{to}Z"));
        assert_eq!(range("03:10Z", "03:15Z"), expected("21T03:10:00", "21T03:15:00"));
        assert_eq!(range("23:55Z", "00:05Z"), expected("20T23:55:00", "21T00:05:00"));
        assert_eq!(range("04:10+01:00", "04:15:30+01:00"), expected("21T03:10:00", "21T03:15:30"));
        assert_eq!(range("", "10:00Z"), expected("20T03:00:00", "20T10:00:00"));
        assert_eq!(range("2026-11-20T04:00:00Z", ""), expected("20T04:00:00", "21T09:00:00"));
        assert_eq!(range("1h", "90m"), expected("20T04:00:00", "20T04:30:00"));
        assert_eq!(time_point::parse("1h"), Ok(TimePoint::SinceStart(Duration::from_secs(3600))));
    }

    #[test]
    fn other_folders_are_not_recordings() {
        let folder = tempfile::tempdir().unwrap();
        let failure = open(folder.path()).unwrap_err();
        assert!(failure.to_string().contains("a folder without recordings of the machine"), "{failure}");
        assert!(made(folder.path()).is_none());
    }
}
