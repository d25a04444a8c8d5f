//! Arguments that select a time range of a recording.

use clap::Args;

use crate::inspect::time_range::TimeRange;
use crate::time_point::{self, TimePoint};

/// A time range of a recording.
#[derive(Debug, Clone, Copy, Default, Args)]
#[group(skip)]
pub(crate) struct TimeArgs {
    /// Start of the time range: since the recording's start, as 30s, with a date, as 2026-11-21T09:02:44Z, or
    /// a time of day, as 09:02Z
    #[arg(long, value_name = "TIME", value_parser = time_point::parse)]
    pub(crate) from: Option<TimePoint>,
    /// End of the time range, which is not part of it
    #[arg(long, value_name = "TIME", value_parser = time_point::parse)]
    pub(crate) to: Option<TimePoint>,
}

impl TimeArgs {
    /// Returns the range that the arguments stand for.
    pub(crate) const fn range(self) -> TimeRange {
        TimeRange { from: self.from, to: self.to }
    }
}
