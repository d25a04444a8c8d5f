//! The rows that dotnet-counters makes of a sample.

use std::fmt::Write as _;
use std::time::Duration;

use crate::dotnet_counters::number::Number;
use crate::event_counter::EventCounterValue;
use crate::meter::MeterMeasurement;
use crate::sample::{Measurement, Sample};

/// A row of dotnet-counters' files.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Row<'s> {
    /// The EventSource, or the Meter.
    pub provider: &'s str,
    /// The name with its unit, and of rates the interval: `orders ({order} / 1 sec)`.
    pub name: String,
    /// The tags of the value, `key=value` separated by commas.
    pub tags: String,
    /// The Meter's tags.
    pub meter_tags: &'s str,
    /// The instrument's tags.
    pub instrument_tags: &'s str,
    /// The kind of the row: the growth in an interval, or a value.
    pub kind: RowKind,
    /// The value.
    pub value: f64,
}

/// The column `Counter Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "those of dotnet-counters")]
pub enum RowKind {
    /// The growth in an interval; not divided by it.
    Rate,
    /// A value.
    Metric,
}

impl RowKind {
    /// The column's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "Rate",
            Self::Metric => "Metric",
        }
    }
}

/// Returns the rows of a sample as in `dotnet-counters collect`: three for a histogram, none for a missing
/// value.
///
/// `interval` is the interval shown for rates if the stream does not state it.
///
/// ```
/// # use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
/// # use std::time::Duration;
/// # let series = Series::new("MyApp", "orders", Kind::Counter);
/// # let orders = Measurement::Meter(MeterMeasurement::Counter { increment: Some(6.0), total: Some(40.0) });
/// # let time = nettrace::RelativeTime::after_start(Duration::from_secs(9));
/// # let sample = Sample::new(time, SeriesId(0), &series, &orders).with_interval(Duration::from_secs(3));
/// use clr_counters::dotnet_counters::{RowKind, rows};
///
/// let rows = rows(&sample, Duration::from_secs(1));
/// // The growth in the interval of 3 s, not divided by it.
/// assert_eq!((rows.len(), rows[0].kind, rows[0].value), (1, RowKind::Rate, 6.0));
/// ```
pub fn rows<'s>(sample: &Sample<'s>, interval: Duration) -> Vec<Row<'s>> {
    let series = sample.series;
    let row = |kind, value| {
        let label = if series.display_name.is_empty() { &series.name } else { &series.display_name };
        let mut name = label.clone();
        let unit = match &*series.unit {
            "" if kind == RowKind::Rate => "Count",
            // The units of the runtime's EventCounters.
            "count" => "Count",
            unit => unit,
        };
        // Writing to a String cannot fail.
        let _ = match kind {
            RowKind::Rate => {
                let interval = sample.nominal_interval.unwrap_or(interval);
                // In clock ticks, 1 s becomes 1.0000001.
                let seconds = (interval.as_secs_f64() * 1000.0).round() / 1000.0;
                write!(name, " ({unit} / {} sec)", Number(seconds))
            }
            RowKind::Metric if unit.is_empty() => Ok(()),
            RowKind::Metric => write!(name, " ({unit})"),
        };
        Row {
            provider: &series.provider,
            name,
            tags: series.tags.clone(),
            meter_tags: &series.meter_tags,
            instrument_tags: &series.instrument_tags,
            kind,
            value,
        }
    };
    match sample.measurement {
        Measurement::EventCounter(EventCounterValue::Mean { mean, .. }) => vec![row(RowKind::Metric, *mean)],
        Measurement::EventCounter(EventCounterValue::Sum { increment }) => {
            vec![row(RowKind::Rate, *increment)]
        }
        Measurement::Meter(measurement) => match measurement {
            MeterMeasurement::Counter { increment, .. } => {
                increment.map(|increment| row(RowKind::Rate, increment)).into_iter().collect()
            }
            MeterMeasurement::UpDownCounter { value, .. } | MeterMeasurement::Gauge { value } => {
                value.map(|value| row(RowKind::Metric, value)).into_iter().collect()
            }
            MeterMeasurement::Histogram { quantiles, .. } => {
                let of = |(quantile, value): &(f64, f64)| {
                    let mut row = row(RowKind::Metric, *value);
                    let comma = if row.tags.is_empty() { "" } else { "," };
                    let _ = write!(row.tags, "{comma}Percentile={}", Number((quantile * 100.0).round()));
                    row
                };
                quantiles.iter().map(of).collect()
            }
            // The tool does not know such values.
            MeterMeasurement::ExponentialHistogram(_) => Vec::new(),
        },
    }
}
