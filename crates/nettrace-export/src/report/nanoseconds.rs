//! Times and durations as whole nanoseconds, which serialized reports have.

use std::time::Duration;

use nettrace::RelativeTime;
use serde::{Serialize, Serializer};

/// A value that is serialized as a number of nanoseconds.
pub(super) trait Nanoseconds {
    fn nanoseconds(&self) -> impl Serialize;
}

impl Nanoseconds for RelativeTime {
    fn nanoseconds(&self) -> impl Serialize {
        self.as_nanos()
    }
}

impl Nanoseconds for Duration {
    fn nanoseconds(&self) -> impl Serialize {
        saturating(*self)
    }
}

impl Nanoseconds for Option<Duration> {
    fn nanoseconds(&self) -> impl Serialize {
        self.as_ref().map(Nanoseconds::nanoseconds)
    }
}

/// Returns the nanoseconds of a duration. Saturates after 584 years.
pub(crate) fn saturating(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Serializes a value as a number of nanoseconds.
pub(super) fn serialize<S: Serializer>(value: &impl Nanoseconds, serializer: S) -> Result<S::Ok, S::Error> {
    value.nanoseconds().serialize(serializer)
}
