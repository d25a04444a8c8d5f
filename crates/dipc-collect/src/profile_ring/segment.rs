//! The times of a segment, and its name.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// The beginning of the names of segments.
const BEGINNING: &str = "profile-";
/// The end of the names of segments.
const END: &str = "ms.nettrace";

/// A part of the time of a ring, in milliseconds since 1970.
///
/// ```
/// use dipc_collect::profile_ring::Segment;
///
/// let segment = Segment { start_ms: 1_795_251_731_123, end_ms: 1_795_251_791_130 };
/// assert_eq!(segment.file_name(), "profile-20261121T090211.123Z-60007ms.nettrace");
/// assert_eq!(Segment::of_file_name(&segment.file_name()), Some(segment));
/// assert_eq!(Segment::of_file_name("notes.nettrace"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a range")]
pub struct Segment {
    /// The start.
    pub start_ms: u64,
    /// The end, which is not part of it.
    pub end_ms: u64,
}

impl Segment {
    /// The name of its file, which sorts by time.
    pub fn file_name(self) -> String {
        let start = i64::try_from(self.start_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let start = start.unwrap_or(Timestamp::MAX).strftime("%Y%m%dT%H%M%S.%3fZ");
        format!("{BEGINNING}{start}-{}{END}", self.end_ms.saturating_sub(self.start_ms))
    }

    /// The segment whose file has this name; `None` for other files.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let (start, length) = name.strip_prefix(BEGINNING)?.strip_suffix(END)?.split_once('-')?;
        let start: Timestamp = start.parse().ok()?;
        let start_ms = u64::try_from(start.as_millisecond()).ok()?;
        let segment = Self { start_ms, end_ms: start_ms.checked_add(length.parse().ok()?)? };
        // Names of one segment in other forms would be found, and not be opened.
        (segment.file_name() == name).then_some(segment)
    }

    /// Returns true if a part of it is in the range.
    pub const fn is_in(self, from_ms: u64, to_ms: u64) -> bool {
        self.start_ms < to_ms && self.end_ms > from_ms
    }

    /// The time since its end; zero for times in the future.
    pub(super) fn age(self) -> Duration {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(Duration::from_millis(self.end_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_segments_only() {
        for name in [
            "profile-20261121T090211.123Z-60007ms.nettrace.part",
            ".profile-20261121T090211.123Z-60007ms.nettrace",
            "profile-20261121T090211.123Z-060007ms.nettrace",
            "profile-2026-11-21T09:02:11.123Z-60007ms.nettrace",
            "profile-20261121T090211.123Z-18446744073709551615ms.nettrace",
            "profile-20261121T090211.123Z--1ms.nettrace",
            "profile-20261399T090211.123Z-1ms.nettrace",
            "profile--1ms.nettrace",
            "",
        ] {
            assert_eq!(Segment::of_file_name(name), None, "{name}");
        }
        let early = Segment { start_ms: 0, end_ms: 0 };
        assert_eq!(Segment::of_file_name(&early.file_name()), Some(early));
    }

    #[test]
    fn the_end_of_a_range_is_not_part_of_it() {
        let segment = Segment { start_ms: 10, end_ms: 20 };
        let is_in = |from, to| segment.is_in(from, to);
        assert!(is_in(0, 11) && is_in(19, 30) && is_in(12, 13) && is_in(0, u64::MAX));
        assert!(!is_in(0, 10) && !is_in(20, 30));
    }
}
