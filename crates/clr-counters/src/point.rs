//! The last state of each series, with totals over all intervals, for metric systems.

use std::collections::HashMap;
use std::time::Duration;

use crate::event_counter::EventCounterValue;
use crate::meter::{ExponentialHistogram, MeterMeasurement};
use crate::sample::{Measurement, Sample};
use crate::series::SeriesId;

/// A process, by a number that the caller chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey(pub u32);

/// A series of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PointKey {
    pub(crate) process: ProcessKey,
    pub(crate) series: SeriesId,
}

/// The last state of a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PointValue {
    /// For values that only grow.
    Counter {
        /// The runtime's total if it sends one, otherwise the sum of its increments.
        total: f64,
        /// The growth in the last interval.
        increment: f64,
        /// The total before the first sample.
        baseline: f64,
    },
    /// For values that grow and shrink by changes.
    UpDownCounter(f64),
    /// For values that are measured at intervals.
    Gauge(f64),
    Histogram {
        /// Quantiles of the last interval.
        quantiles: Vec<(f64, f64)>,
        /// The number of all measurements; `None` before 8.0.
        count: Option<u64>,
        /// The sum of all measurements.
        sum: Option<f64>,
    },
    /// For all measurements: runtimes are asked for totals.
    Exponential(ExponentialHistogram),
}

/// A series with its state and an exporter's description.
#[derive(Debug)]
pub(crate) struct Point<D> {
    pub(crate) description: D,
    pub(crate) value: PointValue,
    /// True if the last sample had a value.
    is_present: bool,
    last: Duration,
    stale_after: Duration,
}

/// An exporter's description of a series.
pub(crate) trait Description {
    /// The number of bytes that it takes.
    fn bytes(&self) -> usize;
}

/// Maximum mean size of descriptions in bytes.
const MEAN_BYTES: usize = 2048;

/// A series without a sample for this many intervals has ended.
const STALE_INTERVALS: u32 = 5;
/// Minimum time after which a series has ended.
const MIN_STALE: Duration = Duration::from_secs(10);
/// Minimum time between two searches for ended series.
const PURGE_INTERVAL: Duration = Duration::from_secs(1);

/// The points of processes: bounded in number and in bytes.
#[derive(Debug)]
pub(crate) struct PointTable<D> {
    points: HashMap<PointKey, Point<D>>,
    most: usize,
    bytes: usize,
    purged: Option<Duration>,
    /// The number of values of series that were left out for lack of space.
    pub(crate) left_out: u64,
}

impl<D: Description> PointTable<D> {
    pub(crate) fn new(most: usize) -> Self {
        Self { points: HashMap::new(), most, bytes: 0, purged: None, left_out: 0 }
    }

    /// Adds a sample; `describe` is called for the first sample of a series, and may refuse it.
    pub(crate) fn add(
        &mut self,
        key: PointKey,
        sample: &Sample<'_>,
        now: Duration,
        describe: impl FnOnce() -> Option<D>,
    ) {
        if let Some(point) = self.points.get_mut(&key) {
            point.update(sample, now);
            return;
        }
        if self.is_full() {
            self.purge(now);
        }
        let description = if self.is_full() { None } else { describe() };
        let Some(description) = description else {
            if sample_has_value(sample) {
                self.left_out = self.left_out.saturating_add(1);
            }
            return;
        };
        self.bytes = self.bytes.saturating_add(description.bytes());
        let mut point = Point {
            description,
            value: PointValue::new(sample),
            is_present: false,
            last: now,
            stale_after: MIN_STALE,
        };
        point.update(sample, now);
        self.points.insert(key, point);
    }

    fn is_full(&self) -> bool {
        self.points.len() >= self.most || self.bytes >= self.most.saturating_mul(MEAN_BYTES)
    }

    /// Removes the series that have ended, to make room for others.
    fn purge(&mut self, now: Duration) {
        if self.purged.is_some_and(|purged| now.saturating_sub(purged) < PURGE_INTERVAL) {
            return;
        }
        self.purged = Some(now);
        self.points.retain(|_, point| point.is_live(now));
        self.count_bytes();
    }

    fn count_bytes(&mut self) {
        self.bytes = self.points.values().fold(0, |sum, point| sum.saturating_add(point.description.bytes()));
    }

    /// Removes the series of a process.
    pub(crate) fn remove_process(&mut self, process: ProcessKey) {
        self.points.retain(|key, _| key.process != process);
        self.count_bytes();
    }

    /// Freezes the live series of a process at its end, until it is removed.
    #[cfg(feature = "otlp")]
    pub(crate) fn keep_process(&mut self, process: ProcessKey, now: Duration) {
        self.points.retain(|key, point| key.process != process || point.is_live(now));
        for (_, point) in self.points.iter_mut().filter(|(key, _)| key.process == process) {
            point.stale_after = Duration::MAX;
        }
        self.count_bytes();
    }

    /// The points of the series that have not ended.
    pub(crate) fn live(&self, now: Duration) -> impl Iterator<Item = (PointKey, &Point<D>)> {
        let live = self.points.iter().filter(move |(_, point)| point.is_live(now));
        live.map(|(key, point)| (*key, point))
    }

    /// The same points, mutably.
    #[cfg(feature = "otlp")]
    pub(crate) fn live_mut(&mut self, now: Duration) -> impl Iterator<Item = (PointKey, &mut Point<D>)> {
        let live = self.points.iter_mut().filter(move |(_, point)| point.is_live(now));
        live.map(|(key, point)| (*key, point))
    }
}

impl<D> Point<D> {
    fn is_live(&self, now: Duration) -> bool {
        self.is_present && now.saturating_sub(self.last) <= self.stale_after
    }

    fn update(&mut self, sample: &Sample<'_>, now: Duration) {
        let interval = sample.nominal_interval.or(sample.interval).unwrap_or_default();
        self.stale_after = interval.saturating_mul(STALE_INTERVALS).max(MIN_STALE);
        self.last = now;
        let has_value = sample_has_value(sample);
        if has_value {
            self.value.update(sample);
        }
        // An instrument that the program sets keeps its value; a polled instrument that does not answer loses
        // its value.
        self.is_present = has_value || self.is_present && sample.series.is_synchronous();
    }
}

/// Returns true if a sample has a number: runtimes send an empty one if nothing was measured.
fn sample_has_value(sample: &Sample<'_>) -> bool {
    let measurement = match sample.measurement {
        // The runtime sends a mean of 0 for an EventCounter that nothing was written to.
        Measurement::EventCounter(EventCounterValue::Mean { count, .. }) => return *count > 0,
        Measurement::EventCounter(EventCounterValue::Sum { .. }) => return true,
        Measurement::Meter(measurement) => measurement,
    };
    match measurement {
        MeterMeasurement::Counter { increment, total } => increment.is_some() || total.is_some(),
        MeterMeasurement::UpDownCounter { change, value } => change.is_some() || value.is_some(),
        MeterMeasurement::Gauge { value } => value.is_some(),
        MeterMeasurement::Histogram { .. } | MeterMeasurement::ExponentialHistogram(_) => true,
    }
}

impl PointValue {
    /// Creates the state before a sample.
    fn new(sample: &Sample<'_>) -> Self {
        let counter = |baseline| Self::Counter { total: baseline, increment: 0.0, baseline };
        match sample.measurement {
            Measurement::EventCounter(EventCounterValue::Mean { .. }) => Self::Gauge(f64::NAN),
            Measurement::EventCounter(EventCounterValue::Sum { .. }) => counter(0.0),
            Measurement::Meter(measurement) => match measurement {
                MeterMeasurement::Counter { .. } if sample.series.is_misdeclared_gauge() => {
                    Self::Gauge(f64::NAN)
                }
                // The first total of an observable counter includes earlier growth.
                MeterMeasurement::Counter { increment, total } => {
                    let baseline = total.map(|total| total - increment.unwrap_or_default());
                    counter(baseline.filter(|baseline| baseline.is_finite()).unwrap_or_default())
                }
                MeterMeasurement::UpDownCounter { .. } => Self::UpDownCounter(0.0),
                MeterMeasurement::Gauge { .. } => Self::Gauge(f64::NAN),
                MeterMeasurement::Histogram { .. } => {
                    Self::Histogram { quantiles: Vec::new(), count: None, sum: None }
                }
                MeterMeasurement::ExponentialHistogram(_) => {
                    Self::Exponential(ExponentialHistogram::default())
                }
            },
        }
    }

    /// Adds a sample of the same kind. Values that are not finite are not added to totals.
    fn update(&mut self, sample: &Sample<'_>) {
        match (self, sample.measurement) {
            (Self::Gauge(gauge), Measurement::EventCounter(EventCounterValue::Mean { mean, .. })) => {
                *gauge = *mean;
            }
            (
                Self::Counter { total, increment, .. },
                Measurement::EventCounter(EventCounterValue::Sum { increment: growth }),
            ) if growth.is_finite() => {
                *increment = *growth;
                *total += growth;
            }
            (value, Measurement::Meter(measurement)) => value.update_meter(measurement),
            _ => {}
        }
    }

    fn update_meter(&mut self, measurement: &MeterMeasurement) {
        match (self, measurement) {
            (
                Self::Gauge(gauge),
                MeterMeasurement::Gauge { value: Some(value) }
                | MeterMeasurement::Counter { total: Some(value), .. },
            ) => *gauge = *value,
            (
                Self::Counter { total, increment, .. },
                MeterMeasurement::Counter { increment: growth, total: sent },
            ) => {
                let finite = |number: &Option<f64>| number.filter(|number| number.is_finite());
                match (finite(sent), finite(growth)) {
                    (Some(sent), growth) => {
                        *increment = growth.unwrap_or_default();
                        *total = sent;
                    }
                    (None, Some(growth)) => {
                        *increment = growth;
                        *total += growth;
                    }
                    (None, None) => {}
                }
            }
            (Self::UpDownCounter(now), MeterMeasurement::UpDownCounter { change, value }) => {
                match (value, change) {
                    (Some(value), _) => *now = *value,
                    (None, Some(change)) if change.is_finite() => *now += change,
                    _ => {}
                }
            }
            (
                Self::Histogram { quantiles, count, sum },
                MeterMeasurement::Histogram { quantiles: sent, count: more, sum: grown },
            ) => {
                quantiles.clone_from(sent);
                if let Some(more) = more {
                    let more = u64::try_from(*more).unwrap_or_default();
                    *count = Some(count.unwrap_or_default().saturating_add(more));
                }
                if let Some(grown) = grown.filter(|grown| grown.is_finite()) {
                    *sum = Some(sum.unwrap_or_default() + grown);
                }
            }
            (Self::Exponential(histogram), MeterMeasurement::ExponentialHistogram(sent)) => {
                histogram.clone_from(sent);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
