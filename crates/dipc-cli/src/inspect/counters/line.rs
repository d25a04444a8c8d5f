//! A sample as one JSON object.

use std::collections::BTreeMap;

use clr_counters::{Aspect, EventCounterValue, Measurement, MeterMeasurement, Sample};
use serde::{Serialize, Serializer};

use crate::inspect::counters::origin::CounterOrigin;
use crate::render::units;

/// The members of a line of `--format jsonl`: the same in each, null if the sample lacks the member.
#[derive(Debug, Serialize)]
pub(super) struct Line<'s> {
    time: String,
    /// The time since the recording's start.
    time_ns: i64,
    pid: Option<u64>,
    process: Option<&'s str>,
    provider: &'s str,
    meter_version: &'s str,
    name: &'s str,
    display_name: &'s str,
    unit: &'s str,
    kind: &'static str,
    tags: BTreeMap<&'s str, &'s str>,
    instrument_tags: &'s str,
    meter_tags: &'s str,
    instrument_id: Option<i32>,
    /// The time that the value covers.
    interval_ns: Option<u64>,
    /// The mean of means, the value of gauges and up-down counters, and the total of counters.
    #[serde(serialize_with = "number")]
    value: Option<f64>,
    /// The increase in the interval.
    #[serde(serialize_with = "number")]
    increment: Option<f64>,
    /// The increase per second.
    #[serde(serialize_with = "number")]
    rate: Option<f64>,
    count: Option<i64>,
    #[serde(serialize_with = "number")]
    sum: Option<f64>,
    #[serde(serialize_with = "number")]
    min: Option<f64>,
    #[serde(serialize_with = "number")]
    max: Option<f64>,
    #[serde(serialize_with = "number")]
    standard_deviation: Option<f64>,
    #[serde(serialize_with = "number")]
    p50: Option<f64>,
    #[serde(serialize_with = "number")]
    p95: Option<f64>,
    #[serde(serialize_with = "number")]
    p99: Option<f64>,
    /// The scale, for histograms with exponential buckets.
    scale: Option<i32>,
    zero_count: Option<i64>,
    offset: Option<i64>,
    buckets: Option<&'s [i64]>,
}

/// Writes a number; numbers that JSON lacks are strings, as in the fields of events.
#[allow(clippy::ref_option, reason = "the signature that serde calls")]
fn number<S: Serializer>(number: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) if number.is_nan() => to.serialize_str("NaN"),
        Some(number) if number.is_infinite() => {
            to.serialize_str(if *number > 0.0 { "Infinity" } else { "-Infinity" })
        }
        number => number.serialize(to),
    }
}

impl<'s> Line<'s> {
    pub(super) fn new(sample: &Sample<'s>, origin: &'s CounterOrigin) -> Self {
        let series = sample.series;
        let mut line = Self {
            time: origin.clock.rfc3339(sample.time),
            time_ns: sample.time.as_nanos(),
            pid: origin.pid.map(u64::from).or(series.process_id),
            process: origin.process.as_deref(),
            provider: &series.provider,
            meter_version: &series.meter_version,
            name: &series.name,
            display_name: &series.display_name,
            unit: &series.unit,
            kind: series.kind.name(),
            tags: series.tag_pairs().into_iter().collect(),
            instrument_tags: &series.instrument_tags,
            meter_tags: &series.meter_tags,
            instrument_id: series.instrument_id,
            interval_ns: sample.interval.map(units::nanoseconds),
            value: None,
            increment: None,
            rate: sample.number(Aspect::Rate),
            count: None,
            sum: None,
            min: None,
            max: None,
            standard_deviation: None,
            p50: sample.number(Aspect::Quantile(500)),
            p95: sample.number(Aspect::Quantile(950)),
            p99: sample.number(Aspect::Quantile(990)),
            scale: None,
            zero_count: None,
            offset: None,
            buckets: None,
        };
        line.measure(sample.measurement);
        line
    }

    fn measure(&mut self, measurement: &'s Measurement) {
        match measurement {
            Measurement::EventCounter(EventCounterValue::Mean {
                mean,
                standard_deviation,
                count,
                min,
                max,
            }) => {
                // Without a measurement the runtime's mean is 0, and its bounds are infinite.
                let known = |number: f64| (*count > 0).then_some(number);
                (self.value, self.standard_deviation) = (known(*mean), known(*standard_deviation));
                self.count = Some(i64::from(*count));
                (self.min, self.max) = (known(*min), known(*max));
            }
            Measurement::EventCounter(EventCounterValue::Sum { increment }) => {
                self.increment = Some(*increment);
            }
            Measurement::Meter(MeterMeasurement::Counter { increment, total }) => {
                (self.increment, self.value) = (*increment, *total);
            }
            Measurement::Meter(MeterMeasurement::UpDownCounter { change, value }) => {
                (self.increment, self.value) = (*change, *value);
            }
            Measurement::Meter(MeterMeasurement::Gauge { value }) => self.value = *value,
            Measurement::Meter(MeterMeasurement::Histogram { count, sum, .. }) => {
                (self.count, self.sum) = (count.map(i64::from), *sum);
            }
            Measurement::Meter(MeterMeasurement::ExponentialHistogram(histogram)) => {
                (self.count, self.sum) = (Some(histogram.count), Some(histogram.sum));
                (self.min, self.max) = (Some(histogram.min), Some(histogram.max));
                self.scale = Some(histogram.scale);
                self.zero_count = Some(histogram.zero_count);
                self.offset = histogram.offset();
                self.buckets = Some(&histogram.buckets);
            }
            _ => {}
        }
    }
}
