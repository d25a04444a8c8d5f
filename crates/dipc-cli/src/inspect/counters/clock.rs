//! Times of samples, in the forms used in files.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use nettrace::{RelativeTime, TraceInfo};

use crate::inspect::recording::start_time;

/// The calendar times of a recording.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    /// The start; the Unix epoch if the recording's header lacks a calendar time.
    start: Timestamp,
    zone: TimeZone,
}

impl Clock {
    /// The clock of a recording, which shows local time.
    pub(crate) fn of(info: Option<&TraceInfo>) -> Self {
        let start = info.and_then(|info| start_time(info.start));
        Self { start: start.unwrap_or_default(), zone: TimeZone::system() }
    }

    fn at(&self, time: RelativeTime) -> Timestamp {
        let since_start = SignedDuration::from_nanos(time.as_nanos());
        self.start.checked_add(since_start).unwrap_or(self.start)
    }

    fn zoned(&self, time: RelativeTime) -> Zoned {
        self.at(time).to_zoned(self.zone.clone())
    }

    /// The local time as in dotnet-counters' CSV files: `11/21/2026 09:18:46`.
    pub(crate) fn csv(&self, time: RelativeTime) -> String {
        self.zoned(time).strftime("%m/%d/%Y %H:%M:%S").to_string()
    }

    /// The local time as in dotnet-counters' JSON files: `2026-11-21T09:19:38.0563735+00:00`.
    pub(crate) fn json(&self, time: RelativeTime) -> String {
        self.zoned(time).strftime("%Y-%m-%dT%H:%M:%S.%7f%:z").to_string()
    }

    /// The time in RFC 3339, UTC.
    pub(crate) fn rfc3339(&self, time: RelativeTime) -> String {
        self.at(time).to_string()
    }

    /// The local time of day: `09:18:46`.
    pub(crate) fn time_of_day(&self, time: RelativeTime) -> String {
        self.zoned(time).strftime("%H:%M:%S").to_string()
    }
}
