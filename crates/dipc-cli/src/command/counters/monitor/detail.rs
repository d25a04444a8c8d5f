//! All details of the last value of a series.

use std::fmt::Write as _;
use std::time::Duration;

use clr_counters::{EventCounterValue, ExponentialHistogram, Measurement, MeterMeasurement, Sample, Series};

use crate::render::escape::escape_controls;
use crate::render::{units, width};

/// The number of buckets shown of a histogram: neighbouring ones are merged.
const BUCKETS: usize = 8;
/// The width of the largest bar.
const BAR: usize = 30;
/// The largest number of columns kept of a text.
const WIDEST: usize = 500;

/// The last value of a series.
#[derive(Debug)]
pub(super) struct Detail {
    series: Series,
    interval: Option<Duration>,
    measurement: Measurement,
}

impl Detail {
    pub(super) fn of(sample: &Sample<'_>) -> Self {
        Self {
            series: sample.series.clone(),
            interval: sample.interval,
            measurement: sample.measurement.clone(),
        }
    }

    /// Takes in the next value of the series.
    pub(super) fn update(&mut self, sample: &Sample<'_>) {
        self.interval = sample.interval;
        self.measurement.clone_from(sample.measurement);
    }

    /// Lines for people.
    pub(super) fn text(&self) -> String {
        let series = &self.series;
        let mut text = String::new();
        let mut line = |label: &str, value: &str| {
            if !value.is_empty() {
                let value = escape_controls(width::prefix(value, WIDEST)).into_owned();
                // Writing to a String cannot fail.
                let _ = writeln!(text, " {label:<12} {value}");
            }
        };
        let of = if series.display_name.is_empty() { "" } else { &*series.name };
        line("counter", if of.is_empty() { &series.name } else { &series.display_name });
        line("name", of);
        line("provider", &format!("{} {}", series.provider, series.meter_version));
        line("meaning", &series.description);
        line("kind", &format!("{} in {}", series.kind.name(), or_none(&series.unit)));
        line("tags", &series.tags);
        line("its own tags", &series.instrument_tags);
        line("Meter's tags", &series.meter_tags);
        let seconds = self
            .interval
            .map_or_else(|| "?".to_owned(), |interval| format!("{:.3} s", interval.as_secs_f64()));
        line("interval", &seconds);
        for (label, value) in self.numbers() {
            line(label, &value);
        }
        if let Measurement::Meter(MeterMeasurement::ExponentialHistogram(histogram)) = &self.measurement {
            text.push_str(&bars(histogram, &series.unit));
        }
        text
    }

    /// The numbers of the value, each with its name.
    fn numbers(&self) -> Vec<(&'static str, String)> {
        let unit = &self.series.unit;
        let value = |number: f64| units::quantity(number, unit);
        let rate = |number: f64| {
            let seconds =
                self.interval.map(|interval| interval.as_secs_f64()).filter(|seconds| *seconds > 0.0)?;
            Some(units::quantity(number / seconds, &format!("{unit}/s")))
        };
        let grown = |increment: Option<f64>| {
            let with_rate = |number: f64| match rate(number) {
                Some(rate) => format!("{}, {rate}", value(number)),
                None => value(number),
            };
            ("grown by", increment.map(with_rate).unwrap_or_default())
        };
        let optional = |number: Option<f64>| number.map(value).unwrap_or_default();
        match &self.measurement {
            Measurement::EventCounter(EventCounterValue::Sum { increment }) => vec![grown(Some(*increment))],
            Measurement::EventCounter(EventCounterValue::Mean {
                mean,
                standard_deviation,
                count,
                min,
                max,
            }) => {
                vec![
                    ("mean", value(*mean)),
                    ("deviation", value(*standard_deviation)),
                    ("least, most", format!("{}, {}", value(*min), value(*max))),
                    ("measured", units::count(u64::try_from(*count).unwrap_or_default())),
                ]
            }
            Measurement::Meter(MeterMeasurement::Counter { increment, total }) => {
                vec![grown(*increment), ("total", optional(*total))]
            }
            Measurement::Meter(MeterMeasurement::UpDownCounter { change, value }) => {
                vec![grown(*change), ("value", optional(*value))]
            }
            Measurement::Meter(MeterMeasurement::Gauge { value }) => vec![("value", optional(*value))],
            Measurement::Meter(MeterMeasurement::Histogram { quantiles, count, sum }) => {
                let count = count.map(f64::from);
                let quantiles =
                    quantiles.iter().map(|(quantile, of)| format!("p{} {}", quantile * 100.0, value(*of)));
                let mean = sum.zip(count).filter(|(_, count)| *count > 0.0).map(|(sum, count)| sum / count);
                let per_second = count.and_then(|count| {
                    let seconds = self.interval?.as_secs_f64();
                    (seconds > 0.0).then(|| format!("{count}, {}", units::quantity(count / seconds, "/s")))
                });
                vec![
                    ("measured", per_second.unwrap_or_default()),
                    ("sum", optional(*sum)),
                    ("mean", optional(mean)),
                    ("quantiles", quantiles.collect::<Vec<_>>().join(", ")),
                ]
            }
            Measurement::Meter(MeterMeasurement::ExponentialHistogram(histogram)) => {
                let quantile = |percent: f64| {
                    let bound = histogram.quantile(percent / 100.0)?;
                    Some(format!("p{percent} {}", value(bound)))
                };
                let quantiles = [50.0, 90.0, 95.0, 99.0, 99.9].into_iter().filter_map(quantile);
                let count = u64::try_from(histogram.count).unwrap_or_default();
                vec![
                    ("measured", format!("{} since the session began", units::count(count))),
                    ("sum", value(histogram.sum)),
                    ("least, most", format!("{}, {}", value(histogram.min), value(histogram.max))),
                    ("quantiles", quantiles.collect::<Vec<_>>().join(", ")),
                ]
            }
            _ => Vec::new(),
        }
    }
}

fn or_none(unit: &str) -> &str {
    if unit.is_empty() { "no unit" } else { unit }
}

/// The buckets as bars, with their upper bounds.
fn bars(histogram: &ExponentialHistogram, unit: &str) -> String {
    let mut text = String::new();
    let Some(first) = histogram.offset() else { return text };
    let group = histogram.buckets.len().div_ceil(BUCKETS).max(1);
    let groups: Vec<(usize, i64)> = histogram
        .buckets
        .chunks(group)
        .enumerate()
        .map(|(index, counts)| {
            (index * group + counts.len(), counts.iter().fold(0, |sum: i64, it| sum.saturating_add(*it)))
        })
        .collect();
    let most = groups.iter().map(|(_, count)| *count).max().unwrap_or_default().max(1);
    for (end, count) in groups {
        let end = i64::try_from(end).map_or(first, |end| first.saturating_add(end));
        let bound = histogram.upper_bound(end.saturating_sub(1));
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a bar, of at most its width"
        )]
        let bar = (count.max(0) as f64 / most as f64 * BAR as f64).round() as usize;
        let bound = escape_controls(&units::quantity(bound, unit)).into_owned();
        let _ = writeln!(text, " {:>12} {} {count}", format!("≤ {bound}"), "█".repeat(bar.min(BAR)));
    }
    text
}
