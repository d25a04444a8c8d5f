//! The header of a recording.

use crate::Bytes;

/// A calendar time: UTC where it is the start of a trace.
///
/// | offset | size | meaning |
/// |---|---|---|
/// | 0 | 2 | year |
/// | 2 | 2 | month, from 1 |
/// | 4 | 2 | day of the week, Sunday = 0 |
/// | 6 | 2 | day, from 1 |
/// | 8 | 2 | hour |
/// | 10 | 2 | minute |
/// | 12 | 2 | second |
/// | 14 | 2 | millisecond |
///
/// ```
/// use nettrace_synth::{SystemTime, TraceHeader};
///
/// let start = SystemTime { year: 2026, month: 11, day_of_week: 6, day: 28, ..SystemTime::default() };
/// let header = TraceHeader { start, frequency: 10_000_000, ..TraceHeader::default() };
/// assert_eq!((header.start.day, header.sync_ticks), (28, 0));
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat.md`, "TraceBlock"; Windows' `SYSTEMTIME`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table above names them")]
pub struct SystemTime {
    pub year: u16,
    pub month: u16,
    pub day_of_week: u16,
    pub day: u16,
    pub hour: u16,
    pub minute: u16,
    pub second: u16,
    pub millisecond: u16,
}

impl SystemTime {
    /// Writes the sixteen bytes.
    pub fn write(&self, out: &mut Bytes) {
        for part in [
            self.year,
            self.month,
            self.day_of_week,
            self.day,
            self.hour,
            self.minute,
            self.second,
            self.millisecond,
        ] {
            out.u16(part);
        }
    }
}

/// The values before the first event. Each version writes the fields that it has:
///
/// | field | versions | encoding |
/// |---|---|---|
/// | `start`, `sync_ticks`, `frequency` | all | 16 bytes, i64, i64 |
/// | `pointer_size` | V3–V6 | i32 |
/// | `process_id`, `processors`, `sampling_rate` | V3–V5 | i32 each; V6 has them as key values, where it has them |
/// | `minor` | V6 | u32 in the stream's first bytes |
/// | `key_values` | V6 | i32 count, pairs of `string8` |
///
/// ```
/// use nettrace_synth::{TraceHeader, v6::Trace};
///
/// let key_values = vec![("ProcessId".to_owned(), "4711".to_owned())];
/// let header = TraceHeader { pointer_size: 4, key_values, ..TraceHeader::default() };
/// let recording = Trace::new(&header).finish();
/// assert!(recording.windows(9).any(|bytes| bytes == b"ProcessId"));
/// ```
///
/// # Source
/// microsoft/perfview, `src/TraceEvent/EventPipe/NetTraceFormat_v5.md`, "The First Object";
/// `NetTraceFormat.md`, "TraceBlock".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// The wall-clock time of `sync_ticks`.
    pub start: SystemTime,
    /// The timestamp, in ticks, of the start.
    pub sync_ticks: i64,
    /// Ticks a second.
    pub frequency: i64,
    /// Bytes of an address in stacks: 4 or 8.
    pub pointer_size: i32,
    /// The traced process.
    pub process_id: i32,
    /// Processors of the machine.
    pub processors: i32,
    /// Nanoseconds between two samples of the runtime's sampler.
    pub sampling_rate: i32,
    /// The minor version.
    pub minor: u32,
    /// Further keys and values; readers know `HardwareThreadCount`, `ProcessId` and
    /// `ExpectedCPUSamplingRate`.
    pub key_values: Vec<(String, String)>,
}

impl Default for TraceHeader {
    /// Midnight of Saturday, 2022-01-01; tick 0; a tick is a nanosecond; 64-bit; process 4242; two
    /// processors.
    fn default() -> Self {
        Self {
            start: SystemTime { year: 2022, month: 1, day_of_week: 6, day: 1, ..SystemTime::default() },
            sync_ticks: 0,
            frequency: 1_000_000_000,
            pointer_size: 8,
            process_id: 4242,
            processors: 2,
            sampling_rate: 1_000_000,
            minor: 0,
            key_values: Vec::new(),
        }
    }
}

impl TraceHeader {
    /// Writes the part that all versions have.
    pub(crate) fn write_clock(&self, out: &mut Bytes) {
        self.start.write(out);
        out.i64(self.sync_ticks).i64(self.frequency);
    }

    /// Writes the data of the `Trace` object of V3, V4 and V5: 48 bytes.
    pub fn write_object_data(&self, out: &mut Bytes) {
        self.write_clock(out);
        out.i32(self.pointer_size).i32(self.process_id).i32(self.processors).i32(self.sampling_rate);
    }

    /// Writes the content of the trace block of V6.
    pub fn write_v6_content(&self, out: &mut Bytes) {
        self.write_clock(out);
        out.i32(self.pointer_size);
        out.u32(crate::bytes::length32(self.key_values.len()));
        for (key, value) in &self.key_values {
            out.string8(key).string8(value);
        }
    }
}
