//! The time range of a part of a recording, stated in the part.
//!
//! A part keeps the clock of its session, and names from other times. Its last event states the time that the
//! part covers, to which percentages and rates refer.

use nettrace::{Event, RelativeTime, Thread, TypeCode};
use nettrace_writer::{EventKind, FieldKind, Transcoder};

use crate::error::Error;

/// The event that states the range.
const KIND: EventKind<'_> = EventKind::new(
    "Dipc-Recording",
    1,
    "Range",
    &[
        ("Format", FieldKind::Scalar(TypeCode::GUID)),
        ("FromNanoseconds", FieldKind::Scalar(TypeCode::I64)),
        ("ToNanoseconds", FieldKind::Scalar(TypeCode::I64)),
    ],
);

/// The first field, by which the event is found in the last bytes of a file.
const FORMAT: [u8; 16] = *b"\x52\x61\x6e\x67\x9e\xd1\x4b\x4e\x9d\x5c\xe8\x27\x41\xb0\x3f\x17";

/// The bytes of the payload.
const PAYLOAD: usize = FORMAT.len() + 16;

/// The time range that a part of a recording covers, relative to the start of the session.
///
/// The last event of the part, `Dipc-Recording/Range`, states the range in the fields `Format` (a GUID that
/// identifies this form), `FromNanoseconds` and `ToNanoseconds`, signed numbers of 64 bits. The smallest and
/// the largest number stand for the limits of the session.
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
/// use nettrace::RelativeTime;
/// use nettrace_edit::{Criteria, RecordedRange, Slice};
/// use std::time::Duration;
///
/// let from = RelativeTime::after_start(Duration::from_secs(5));
/// let mut slice = Slice::new(Criteria::default().with_from(Some(from)));
/// let mut part = Vec::new();
/// nettrace_edit::copy(&recording[..], &mut part, &mut slice)?;
/// // A part states its time, in its last bytes.
/// let tail = &part[part.len().saturating_sub(RecordedRange::TAIL)..];
/// assert_eq!(RecordedRange::find(tail).map(|range| range.from), Some(from));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a pair of times")]
pub struct RecordedRange {
    /// The first time; [`RelativeTime::MIN`] for the start of the session.
    pub from: RelativeTime,
    /// The time after the last; [`RelativeTime::MAX`] for the end of the session.
    pub to: RelativeTime,
}

impl RecordedRange {
    /// The bytes at the end of a file in which [`find`](Self::find) finds the range.
    pub const TAIL: usize = 1024;

    /// The range of a whole recording.
    pub(crate) const ALL: Self = Self { from: RelativeTime::MIN, to: RelativeTime::MAX };

    /// Returns the range of a part, given the last [`TAIL`](Self::TAIL) bytes of its file.
    pub fn find(tail: &[u8]) -> Option<Self> {
        let payloads = tail.windows(PAYLOAD).rev();
        payloads.take(Self::TAIL).find_map(Self::parse)
    }

    /// Returns the range that an event states.
    pub fn of(event: &Event<'_>) -> Option<Self> {
        if event.id() == KIND.id && event.provider() == KIND.provider {
            event.payload().first_chunk::<PAYLOAD>().and_then(|payload| Self::parse(payload))
        } else {
            None
        }
    }

    /// Returns the time that is in both ranges, which may be empty.
    ///
    /// ```
    /// use nettrace::RelativeTime;
    /// use nettrace_edit::RecordedRange;
    ///
    /// let range = |from, to| RecordedRange {
    ///     from: RelativeTime::from_nanos(from),
    ///     to: RelativeTime::from_nanos(to),
    /// };
    /// assert_eq!(range(0, 50).intersection(range(20, 90)), range(20, 50));
    /// ```
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), to: self.to.min(other.to) }
    }

    /// The time up to the last event, which it includes.
    pub(crate) fn up_to(last: RelativeTime) -> Self {
        Self { to: RelativeTime::from_nanos(last.as_nanos().saturating_add(1)), ..Self::ALL }
    }

    fn parse(payload: &[u8]) -> Option<Self> {
        let (from, to) = payload.strip_prefix(&FORMAT)?.split_first_chunk()?;
        let time = |bytes: &[u8; 8]| RelativeTime::from_nanos(i64::from_le_bytes(*bytes));
        Some(Self { from: time(from), to: time(to.first_chunk()?) })
    }

    /// Ends a recording that states the range.
    pub(crate) fn finish(self, transcoder: &mut Transcoder, threads: &[Thread]) -> Result<(), Error> {
        let mut payload = FORMAT.to_vec();
        for time in [self.from, self.to] {
            payload.extend(time.as_nanos().to_le_bytes());
        }
        Ok(transcoder.finish_with(threads, &KIND, &payload)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_at_the_end_alone() {
        let at = RelativeTime::from_nanos;
        let mut bytes = vec![7; 5000];
        bytes.extend(FORMAT);
        bytes.extend([(-3_i64).to_le_bytes(), 9_i64.to_le_bytes()].concat());
        bytes.extend([0; 20]);
        let expected = RecordedRange { from: at(-3), to: at(9) };
        assert_eq!(RecordedRange::find(&bytes), Some(expected));
        for cut in 0..52 {
            assert_eq!(RecordedRange::find(&bytes[bytes.len() - cut..]), None, "{cut}");
        }
        assert_eq!(RecordedRange::find(&bytes[bytes.len() - 52..]), Some(expected));
        assert_eq!(RecordedRange::find(&bytes[..bytes.len() - 21]), None);
        bytes.extend([0; 2000]);
        assert_eq!(RecordedRange::find(&bytes), None);
    }
}
