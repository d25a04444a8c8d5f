//! Format, version, clock and process of a recording.

use alloc::string::String;
use alloc::vec::Vec;

use crate::time::{RelativeTime, SystemTime, Ticks};

/// The family of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Versions 1 to 3: .NET Core 2.0 to 3.0 previews, and any runtime that is asked for format 0.
    Netperf,
    /// Versions 4 to 6.
    Nettrace,
}

impl core::fmt::Display for Format {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Netperf => "netperf",
            Self::Nettrace => "nettrace",
        })
    }
}

/// Format, version, clock and process of a recording, from its header.
///
/// ```
/// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
/// let events = nettrace::SliceReader::new(bytes)?;
/// let info = events.info().expect("a header");
/// assert_eq!((info.version, info.process_id), (6, Some(7)));
/// assert_eq!(info.start.unix_milliseconds(), Some(1_795_251_731_000));
/// # Ok::<(), nettrace::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceInfo {
    /// The family.
    pub format: Format,
    /// Version of the format: 1 to 3 are netperf, 4 (which V5's metadata tags do not change) and 6 are
    /// nettrace.
    pub version: u32,
    /// Minor version; 0 before V6.
    pub minor_version: u32,
    /// The beginning of the recording, UTC.
    pub start: SystemTime,
    /// The clock's time at `start`.
    pub start_ticks: Ticks,
    /// Ticks a second; never 0.
    pub frequency: u64,
    /// Size of an address in bytes: 4 or 8.
    pub pointer_size: u8,
    /// The recorded process. V6 recordings may have several: see
    /// [`Thread::process_id`](crate::Thread::process_id).
    pub process_id: Option<u64>,
    /// The number of processors that the process could run on.
    pub processors: Option<u32>,
    /// The sampling interval of the header: nanoseconds in practice, although no reader is known to use it.
    pub sampling_rate: Option<u64>,
    /// The key/value pairs of V6, as they are.
    pub key_values: Vec<(String, String)>,
}

impl TraceInfo {
    /// The header of a new recording of V6 for a machine with 64-bit addresses and a clock that counts
    /// nanoseconds: `start_ticks` is its time at `start_unix_ms`, in milliseconds since 1970.
    pub fn new_v6(start_unix_ms: u64, start_ticks: Ticks, key_values: Vec<(String, String)>) -> Self {
        let number = |name: &str| key_values.iter().find(|(key, _)| key == name)?.1.parse().ok();
        Self {
            format: Format::Nettrace,
            version: 6,
            minor_version: 0,
            start: SystemTime::from_unix_milliseconds(start_unix_ms),
            start_ticks,
            frequency: 1_000_000_000,
            pointer_size: 8,
            process_id: number("ProcessId"),
            processors: number("HardwareThreadCount").and_then(|count| u32::try_from(count).ok()),
            sampling_rate: number("ExpectedCPUSamplingRate"),
            key_values,
        }
    }

    /// Returns a time of the recording's clock relative to the recording's start.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let mut events = nettrace::SliceReader::new(bytes)?;
    /// let ticks = events.next()?.expect("an event").time();
    /// let info = events.info().expect("a header");
    /// assert_eq!(info.relative_time(ticks).as_nanos(), 100_000_000);
    /// assert_eq!(info.ticks(info.relative_time(ticks)), ticks);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    #[inline]
    pub fn relative_time(&self, time: Ticks) -> RelativeTime {
        let ticks =
            i128::from(time.0.cast_signed()).saturating_sub(i128::from(self.start_ticks.0.cast_signed()));
        if self.frequency == 1_000_000_000 {
            return relative(ticks);
        }
        relative(ticks.saturating_mul(1_000_000_000).checked_div(i128::from(self.frequency)).unwrap_or(0))
    }

    /// Returns the clock's time of a time relative to the recording's start, rounded down. Saturates.
    pub fn ticks(&self, time: RelativeTime) -> Ticks {
        let since_start = i128::from(time.as_nanos()).saturating_mul(self.frequency.into());
        let ticks = i128::from(self.start_ticks.0.cast_signed())
            .saturating_add(since_start.checked_div_euclid(1_000_000_000).unwrap_or(0));
        let limit = if ticks < 0 { i64::MIN } else { i64::MAX };
        Ticks(i64::try_from(ticks).unwrap_or(limit).cast_unsigned())
    }
}

/// Saturates.
fn relative(nanoseconds: i128) -> RelativeTime {
    let limit = if nanoseconds < 0 { RelativeTime::MIN } else { RelativeTime::MAX };
    i64::try_from(nanoseconds).map_or(limit, RelativeTime::from_nanos)
}
