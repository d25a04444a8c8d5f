//! The JSON files of `dotnet-counters collect`.

use std::fmt;
use std::io::{self, Write};

use crate::dotnet_counters::escape::write_escaped;
use crate::dotnet_counters::number::Number;
use crate::dotnet_counters::row::Row;

/// The beginning of a file.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct JsonHead<'h> {
    /// The name of the process.
    pub target: &'h str,
    /// The time of the start, as `2026-11-21T09:19:35.8802524+00:00`.
    pub start: &'h str,
}

impl<'h> JsonHead<'h> {
    /// Returns the beginning of a process's file.
    pub const fn new(target: &'h str, start: &'h str) -> Self {
        Self { target, start }
    }
}

/// Writes the beginning of a file.
pub fn write_json_head(out: &mut impl Write, head: JsonHead<'_>) -> io::Result<()> {
    let (target, start) = (Text(head.target), head.start);
    write!(out, r#"{{ "TargetProcess": "{target}", "StartTime": "{start}", "Events": ["#)
}

/// Writes a row, after a comma unless it is the first. `time` has the same format as the start.
///
/// ```
/// # use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
/// # use std::time::Duration;
/// # let series = Series::new("MyApp", "orders", Kind::Counter);
/// # let orders = Measurement::Meter(MeterMeasurement::Counter { increment: Some(6.0), total: Some(40.0) });
/// # let time = nettrace::RelativeTime::after_start(Duration::from_secs(9));
/// # let sample = Sample::new(time, SeriesId(0), &series, &orders).with_interval(Duration::from_secs(3));
/// use clr_counters::dotnet_counters::{JsonHead, rows, write_json_end, write_json_head, write_json_row};
///
/// let (mut file, time) = (Vec::new(), "2026-11-21T09:19:35.8802524+00:00");
/// write_json_head(&mut file, JsonHead::new("app", time))?;
/// for (index, row) in rows(&sample, Duration::from_secs(1)).iter().enumerate() {
///     write_json_row(&mut file, index == 0, time, row)?;
/// }
/// write_json_end(&mut file)?;
/// assert!(file.ends_with(b"\"value\": 6 }]}"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_json_row(out: &mut impl Write, is_first: bool, time: &str, row: &Row<'_>) -> io::Result<()> {
    let comma = if is_first { "" } else { "," };
    write!(
        out,
        "{comma}{{ \"timestamp\": \"{time}\",  \"provider\": \"{}\",  \"name\": \"{}\",  \"tags\": \"{}\",  \
         \"counterType\": \"{}\",  \"meterTags\": \"{}\",  \"instrumentTags\": \"{}\",  \"value\": {} }}",
        Text(row.provider),
        Text(&row.name),
        Text(&row.tags),
        row.kind.name(),
        Text(row.meter_tags),
        Text(row.instrument_tags),
        Number(row.value)
    )
}

/// Writes the end of a file.
pub fn write_json_end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"]}")
}

/// A text within quotes. The tool escapes too little, so that other control characters make its output
/// invalid JSON: here everything that steers a terminal is escaped, too.
struct Text<'t>(&'t str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '"' => f.write_str("\\\""),
            '\\' => f.write_str("\\\\"),
            c => write_escaped(f, c),
        })
    }
}
