//! Values of series.

use std::time::Duration;

use nettrace::RelativeTime;

use crate::aspect::Aspect;
use crate::event_counter::EventCounterValue;
use crate::meter::MeterMeasurement;
use crate::series::{Series, SeriesId};

/// A value of a series.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sample<'s> {
    /// The time of the event.
    pub time: RelativeTime,
    /// The number of the series.
    pub id: SeriesId,
    /// The series.
    pub series: &'s Series,
    /// The time that the value covers: the actual time if the runtime states it, otherwise the requested one;
    /// `None` if the recording has neither.
    pub interval: Option<Duration>,
    /// The interval in force, from which `interval` differs by delays.
    pub nominal_interval: Option<Duration>,
    /// The value.
    pub measurement: &'s Measurement,
}

impl<'s> Sample<'s> {
    /// Creates a sample without a known interval.
    pub const fn new(
        time: RelativeTime,
        id: SeriesId,
        series: &'s Series,
        measurement: &'s Measurement,
    ) -> Self {
        Self { time, id, series, interval: None, nominal_interval: None, measurement }
    }

    /// Returns the sample with an interval that was exactly the requested one.
    #[must_use]
    pub const fn with_interval(self, interval: Duration) -> Self {
        Self { interval: Some(interval), nominal_interval: Some(interval), ..self }
    }
}

/// The measurement of a sample, as the runtime sent it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Measurement {
    /// From an EventCounter.
    EventCounter(EventCounterValue),
    /// From an instrument of a Meter.
    Meter(MeterMeasurement),
}

/// Formats a value for people, with two decimals, or three significant digits if it is small.
///
/// ```
/// assert_eq!(clr_counters::value_text(12.5), "12.5");
/// assert_eq!(clr_counters::value_text(0.001_234), "1.23e-3");
/// ```
pub fn value_text(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.01 {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.2}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

impl Sample<'_> {
    /// Returns one number of the sample; `None` if it does not have the number, such as the mean of an
    /// interval in which nothing was measured.
    ///
    /// ```
    /// use clr_counters::{Aspect, Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
    /// use nettrace::RelativeTime;
    /// use std::time::Duration;
    ///
    /// let series = Series::new("MyApp", "orders", Kind::Counter);
    /// let orders = Measurement::Meter(MeterMeasurement::Counter { increment: Some(6.0), total: Some(40.0) });
    /// let time = RelativeTime::after_start(Duration::from_secs(9));
    /// let sample = Sample::new(time, SeriesId(0), &series, &orders)
    ///     .with_interval(Duration::from_secs(3));
    /// assert_eq!(sample.number(Aspect::Rate), Some(2.0));
    /// assert_eq!(sample.number(Aspect::Value), Some(40.0));
    /// ```
    pub fn number(&self, aspect: Aspect) -> Option<f64> {
        let per_second = |increment: Option<f64>| {
            let seconds = self.interval.filter(|interval| !interval.is_zero())?.as_secs_f64();
            increment.map(|increment| increment / seconds)
        };
        match (self.measurement, aspect) {
            (Measurement::EventCounter(value), aspect) => match (value, aspect) {
                (EventCounterValue::Mean { mean, count, .. }, Aspect::Value) => (*count > 0).then_some(*mean),
                (EventCounterValue::Mean { count, .. }, Aspect::Count) => Some(f64::from(*count)),
                (EventCounterValue::Mean { mean, count, .. }, Aspect::Sum) => Some(*mean * f64::from(*count)),
                (EventCounterValue::Sum { increment }, Aspect::Rate) => per_second(Some(*increment)),
                (EventCounterValue::Sum { increment }, Aspect::Value) => Some(*increment),
                _ => None,
            },
            (Measurement::Meter(measurement), aspect) => match (measurement, aspect) {
                (MeterMeasurement::Counter { total, .. }, Aspect::Value) => *total,
                (MeterMeasurement::Counter { increment, .. }, Aspect::Rate) => per_second(*increment),
                (
                    MeterMeasurement::UpDownCounter { value, .. } | MeterMeasurement::Gauge { value },
                    Aspect::Value,
                ) => *value,
                (MeterMeasurement::UpDownCounter { change, .. }, Aspect::Rate) => per_second(*change),
                (MeterMeasurement::Histogram { count, .. }, Aspect::Count) => count.map(f64::from),
                (MeterMeasurement::Histogram { sum, .. }, Aspect::Sum) => *sum,
                (MeterMeasurement::Histogram { quantiles, .. }, Aspect::Value) => quantile(quantiles, 500),
                (MeterMeasurement::Histogram { quantiles, .. }, Aspect::Quantile(thousandths)) => {
                    quantile(quantiles, thousandths)
                }
                (MeterMeasurement::Histogram { count, .. }, Aspect::Rate) => per_second(count.map(f64::from)),
                #[allow(clippy::cast_precision_loss, reason = "a count for people")]
                (MeterMeasurement::ExponentialHistogram(histogram), Aspect::Count) => {
                    Some(histogram.count as f64)
                }
                (MeterMeasurement::ExponentialHistogram(histogram), Aspect::Sum) => Some(histogram.sum),
                (MeterMeasurement::ExponentialHistogram(histogram), Aspect::Value) => histogram.quantile(0.5),
                (MeterMeasurement::ExponentialHistogram(histogram), Aspect::Quantile(thousandths)) => {
                    histogram.quantile(f64::from(thousandths) / 1000.0)
                }
                _ => None,
            },
        }
    }
}

/// Returns the value of a quantile that the runtime sent.
fn quantile(quantiles: &[(f64, f64)], thousandths: u16) -> Option<f64> {
    let wanted = f64::from(thousandths) / 1000.0;
    let found = quantiles.iter().find(|(quantile, _)| (quantile - wanted).abs() < 0.000_5);
    found.map(|(_, value)| *value)
}
