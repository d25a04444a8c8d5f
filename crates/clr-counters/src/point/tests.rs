//! Samples for tests of exporters, and their states over intervals.

use std::time::Duration;

use nettrace::RelativeTime;

use super::*;
use crate::series::{Kind, Series};

/// A series of a Meter named `App`.
pub(crate) fn instrument(name: &str, kind: Kind, unit: &str, tags: &str) -> Series {
    Series {
        process_id: None,
        provider: "App".to_owned(),
        meter_version: "1.2".to_owned(),
        name: name.to_owned(),
        display_name: String::new(),
        unit: unit.to_owned(),
        description: String::new(),
        tags: tags.to_owned(),
        instrument_tags: String::new(),
        meter_tags: String::new(),
        instrument_id: Some(1),
        instrument_type: "ObservableGauge`1".to_owned(),
        kind,
        display_rate_time_scale: String::new(),
    }
}

/// A series of an EventSource named `Web-Server`.
pub(crate) fn event_counter(name: &str, kind: Kind, unit: &str) -> Series {
    let series = instrument(name, kind, unit, "");
    let (meter_version, instrument_type) = (String::new(), String::new());
    Series {
        provider: "Web-Server".to_owned(),
        meter_version,
        instrument_type,
        instrument_id: None,
        ..series
    }
}

/// A sample of an interval of a second.
pub(crate) fn sample<'s>(id: u32, series: &'s Series, measurement: &'s Measurement) -> Sample<'s> {
    let interval = Some(Duration::from_secs(1));
    let time = RelativeTime::START;
    Sample { time, id: SeriesId(id), series, interval, nominal_interval: interval, measurement }
}

pub(crate) fn counter(increment: Option<f64>, total: Option<f64>) -> Measurement {
    Measurement::Meter(MeterMeasurement::Counter { increment, total })
}

pub(crate) fn event_sum(increment: f64) -> Measurement {
    Measurement::EventCounter(EventCounterValue::Sum { increment })
}

pub(crate) fn gauge(value: Option<f64>) -> Measurement {
    Measurement::Meter(MeterMeasurement::Gauge { value })
}

pub(crate) fn histogram(quantiles: &[(f64, f64)], count: i32, sum: f64) -> Measurement {
    let quantiles = quantiles.to_vec();
    Measurement::Meter(MeterMeasurement::Histogram { quantiles, count: Some(count), sum: Some(sum) })
}

/// Five measurements: 0, 1, 3, 3 and 4, with buckets (1, 2], (2, 4] at scale 0 halved twice: at scale 2.
pub(crate) fn exponential() -> ExponentialHistogram {
    // At scale 2 each bucket's bound is 2^(1/4) times the previous one. 1 is in bucket -1, 3 in 6, 4 in 7.
    ExponentialHistogram {
        scale: 2,
        sum: 11.0,
        count: 5,
        zero_count: 1,
        min: 0.0,
        max: 4.0,
        buckets: vec![1, 0, 0, 0, 0, 0, 0, 2, 1],
    }
}

struct Nothing;

impl Description for Nothing {
    fn bytes(&self) -> usize {
        16
    }
}

struct Table(PointTable<Nothing>);

impl Table {
    fn add(&mut self, id: u32, series: &Series, measurement: &Measurement, seconds: u64) {
        let key = PointKey { process: ProcessKey(0), series: SeriesId(id) };
        self.0.add(key, &sample(id, series, measurement), Duration::from_secs(seconds), || Some(Nothing));
    }

    fn values(&self, seconds: u64) -> Vec<PointValue> {
        let mut live: Vec<_> = self.0.live(Duration::from_secs(seconds)).collect();
        live.sort_by_key(|(key, _)| *key);
        live.into_iter().map(|(_, point)| point.value.clone()).collect()
    }
}

fn table(most: usize) -> Table {
    Table(PointTable::new(most))
}

#[test]
fn totals_are_the_runtimes_or_else_sums() {
    let mut table = table(10);
    let series = instrument("orders", Kind::Counter, "", "");
    for (seconds, total) in [(0, 7.0), (1, 9.0)] {
        table.add(0, &series, &counter(Some(2.0), Some(total)), seconds);
        table.add(1, &series, &counter(Some(2.0), None), seconds);
        table.add(2, &series, &counter(None, Some(total)), seconds);
        table.add(3, &event_counter("n", Kind::Sum, ""), &event_sum(2.0), seconds);
    }
    // Values that cannot be added are skipped, and do not end the series.
    table.add(3, &event_counter("n", Kind::Sum, ""), &event_sum(f64::NAN), 2);
    let counter = |total, increment, baseline| PointValue::Counter { total, increment, baseline };
    let expected =
        [counter(9.0, 2.0, 5.0), counter(4.0, 2.0, 0.0), counter(9.0, 0.0, 7.0), counter(4.0, 2.0, 0.0)];
    assert_eq!(table.values(2), expected);
}

#[test]
fn counts_and_sums_of_histograms_are_of_all_intervals_and_quantiles_of_the_last() {
    let mut table = table(10);
    let series = instrument("size", Kind::Histogram, "", "");
    table.add(0, &series, &histogram(&[(0.5, 3.0)], 10, 35.0), 0);
    table.add(0, &series, &histogram(&[(0.5, 4.0)], 5, 15.0), 1);
    let quantiles = vec![(0.5, 4.0)];
    assert_eq!(table.values(1), [PointValue::Histogram { quantiles, count: Some(15), sum: Some(50.0) }]);
    table.add(0, &series, &histogram(&[], 0, 0.0), 2);
    let quantiles = Vec::new();
    assert_eq!(table.values(2), [PointValue::Histogram { quantiles, count: Some(15), sum: Some(50.0) }]);
}

#[test]
fn a_series_without_a_value_ends_unless_the_program_sets_it() {
    let mut table = table(10);
    let observed = instrument("temperature", Kind::Gauge, "", "");
    let set = Series { instrument_type: "Gauge`1".to_owned(), ..observed.clone() };
    for value in [Some(1.5), None] {
        table.add(0, &observed, &gauge(value), 0);
        table.add(1, &set, &gauge(value), 0);
    }
    assert_eq!(table.values(0), [PointValue::Gauge(1.5)]);
    table.add(0, &observed, &gauge(Some(2.5)), 1);
    assert_eq!(table.values(1), [PointValue::Gauge(2.5), PointValue::Gauge(1.5)]);
    // No samples at all for ten seconds.
    table.add(1, &set, &gauge(None), 11);
    assert_eq!(table.values(11), [PointValue::Gauge(2.5), PointValue::Gauge(1.5)]);
    assert_eq!(table.values(12), [PointValue::Gauge(1.5)]);
}

#[test]
fn further_series_are_counted_until_others_end() {
    let mut table = table(2);
    let series = instrument("orders", Kind::Counter, "", "");
    for id in 0..3 {
        table.add(id, &series, &counter(Some(1.0), Some(1.0)), 0);
    }
    assert_eq!((table.values(0).len(), table.0.left_out), (2, 1));
    table.add(0, &series, &counter(Some(1.0), Some(2.0)), 20);
    table.add(2, &series, &counter(Some(1.0), Some(3.0)), 20);
    assert_eq!((table.values(20).len(), table.0.left_out), (2, 1));
}

#[test]
fn buckets_of_a_smaller_scale_add_up_the_merged_buckets() {
    let histogram = exponential();
    assert_eq!(histogram.offset(), Some(-1));
    let buckets = histogram.buckets_at(0).unwrap();
    assert_eq!((buckets.scale, buckets.offset, &*buckets.counts), (0, -1, &[1, 0, 3][..]));
    assert_eq!(buckets.bounds().collect::<Vec<_>>(), [(1.0, 1), (2.0, 0), (4.0, 3)]);
    assert_eq!(histogram.buckets_at(8).unwrap().scale, 2);
    let coarse = histogram.buckets_at(-11).unwrap();
    assert_eq!((coarse.offset, &*coarse.counts), (-1, &[1, 3][..]));
    // Hostile values.
    for scale in [i32::MIN, -12, 21, i32::MAX] {
        assert_eq!(ExponentialHistogram { scale, ..exponential() }.buckets_at(0), None);
    }
    let negative = ExponentialHistogram { buckets: vec![-5, i64::MAX, 3], ..exponential() };
    assert_eq!(negative.buckets_at(0).unwrap().counts, [9_223_372_036_854_775_810]);
}
