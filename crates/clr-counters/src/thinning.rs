//! Samples of a longer interval, combined from samples of a shorter interval.

use std::time::Duration;

use nettrace::RelativeTime;

use crate::event_counter::EventCounterValue;
use crate::meter::MeterMeasurement;
use crate::sample::{Measurement, Sample};
use crate::series::{Series, SeriesId};

/// Samples at the interval that a consumer wants, for a process that reports at a shorter interval because
/// another session requested that.
///
/// Growth in an interval adds up, and so do the counts and sums of histograms; totals and gauges are the last
/// values. Quantiles cannot be combined: the last interval with measurements counts. Means are weighted by
/// count. Samples of the wanted interval, or of a longer interval, pass unchanged.
///
/// ```
/// # use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
/// # use std::time::Duration;
/// # let series = Series::new("MyApp", "orders", Kind::Counter);
/// # let orders = Measurement::Meter(MeterMeasurement::Counter { increment: Some(6.0), total: Some(40.0) });
/// # let time = nettrace::RelativeTime::after_start(Duration::from_secs(9));
/// # let sample = Sample::new(time, SeriesId(0), &series, &orders).with_interval(Duration::from_secs(3));
/// use clr_counters::{Aspect, Thinning};
///
/// // Another session has requested values every 3 s.
/// let (mut thinning, mut rates) = (Thinning::new(Duration::from_secs(6)), Vec::new());
/// for _ in 0..4 {
///     thinning.add(&sample, |sample| rates.push(sample.number(Aspect::Rate)));
/// }
/// assert_eq!(rates, [Some(2.0); 2]);
/// ```
#[derive(Debug)]
pub struct Thinning {
    interval: Duration,
    /// The current sums, by the numbers of their series.
    waiting: Vec<Option<WaitingSample>>,
}

/// The sum of samples that do not fill an interval yet.
#[derive(Debug)]
struct WaitingSample {
    time: RelativeTime,
    interval: Duration,
    nominal_interval: Option<Duration>,
    measurement: Measurement,
}

impl Thinning {
    /// Creates a state before the first sample.
    pub const fn new(interval: Duration) -> Self {
        Self { interval, waiting: Vec::new() }
    }

    /// Adds a sample, and passes the sample of its series that it completes to `emit`. An interval is
    /// complete if the next sample would miss its end by more.
    pub fn add(&mut self, sample: &Sample<'_>, mut emit: impl FnMut(Sample<'_>)) {
        let covered = sample.interval.or(sample.nominal_interval).unwrap_or_default();
        let is_complete = |interval: Duration| {
            covered.is_zero() || interval.saturating_add(covered.div_f64(2.0)) >= self.interval
        };
        let place = usize::try_from(sample.id.0).unwrap_or(usize::MAX);
        let waiting = self.waiting.get_mut(place).and_then(Option::take);
        let sum = match waiting {
            None if is_complete(covered) => return emit(*sample),
            None => WaitingSample {
                time: sample.time,
                interval: covered,
                nominal_interval: sample.nominal_interval,
                measurement: sample.measurement.clone(),
            },
            Some(waiting) => waiting.and(sample, covered),
        };
        if is_complete(sum.interval) {
            sum.emit(sample.id, sample.series, emit);
            return;
        }
        if self.waiting.len() <= place {
            // Numbers of series are consecutive, so this is bounded as the series are.
            self.waiting.resize_with(place.saturating_add(1), || None);
        }
        if let Some(free) = self.waiting.get_mut(place) {
            *free = Some(sum);
        }
    }

    /// Passes the samples that are still held to `emit`. `series` are the series of the same
    /// [`Counters`](crate::Counters).
    pub fn finish(&mut self, series: &[Series], mut emit: impl FnMut(Sample<'_>)) {
        for (number, (waiting, series)) in (0..).zip(self.waiting.iter_mut().zip(series)) {
            if let Some(waiting) = waiting.take() {
                waiting.emit(SeriesId(number), series, &mut emit);
            }
        }
    }
}

impl WaitingSample {
    fn and(self, sample: &Sample<'_>, covered: Duration) -> Self {
        let nominal = self.nominal_interval.zip(sample.nominal_interval);
        Self {
            time: sample.time,
            interval: self.interval.saturating_add(covered),
            nominal_interval: nominal.map(|(one, other)| one.saturating_add(other)),
            measurement: self.measurement.and(sample.measurement),
        }
    }

    fn emit(&self, id: SeriesId, series: &Series, mut emit: impl FnMut(Sample<'_>)) {
        emit(Sample {
            time: self.time,
            id,
            series,
            interval: Some(self.interval),
            nominal_interval: self.nominal_interval,
            measurement: &self.measurement,
        });
    }
}

impl Measurement {
    /// Returns the combined measurement of two intervals, of which `next` is the later one.
    #[must_use]
    pub fn and(self, next: &Self) -> Self {
        match (self, next) {
            (Self::EventCounter(one), Self::EventCounter(next)) => Self::EventCounter(one.and(*next)),
            (Self::Meter(one), Self::Meter(next)) => Self::Meter(one.and(next)),
            (_, next) => next.clone(),
        }
    }
}

impl EventCounterValue {
    /// Returns the combined value of two intervals, of which `next` is the later. For polled values, which
    /// always have count 1, the result is the last value.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::Sum { increment: one }, Self::Sum { increment: next }) => {
                Self::Sum { increment: one + next }
            }
            (one @ Self::Mean { count: 1.., .. }, Self::Mean { count: ..=0, .. }) => one,
            (
                Self::Mean { mean, standard_deviation, count, min, max },
                Self::Mean {
                    mean: next_mean,
                    standard_deviation: next_deviation,
                    count: next_count,
                    min: next_min,
                    max: next_max,
                },
            ) if count > 0 && (count, next_count) != (1, 1) => {
                let (n, m) = (f64::from(count), f64::from(next_count));
                let (all, apart) = (n + m, next_mean - mean);
                // The sum of squares about the common mean.
                let squares =
                    n * standard_deviation.powi(2) + m * next_deviation.powi(2) + apart.powi(2) * n * m / all;
                Self::Mean {
                    mean: mean + apart * m / all,
                    standard_deviation: (squares / all).sqrt(),
                    count: count.saturating_add(next_count),
                    min: min.min(next_min),
                    max: max.max(next_max),
                }
            }
            (_, next) => next,
        }
    }
}

impl MeterMeasurement {
    /// Returns the combined measurement of two intervals, of which `next` is the later one. Exponential
    /// buckets count from the session's start: the last ones cover both intervals.
    #[must_use]
    pub fn and(self, next: &Self) -> Self {
        match (self, next) {
            (
                Self::Counter { increment, total },
                Self::Counter { increment: next_increment, total: next_total },
            ) => Self::Counter { increment: sum(increment, *next_increment), total: next_total.or(total) },
            (
                Self::UpDownCounter { change, value },
                Self::UpDownCounter { change: next_change, value: next },
            ) => Self::UpDownCounter { change: sum(change, *next_change), value: next.or(value) },
            (Self::Gauge { value }, Self::Gauge { value: next }) => Self::Gauge { value: next.or(value) },
            (
                Self::Histogram { quantiles, count, sum: total },
                Self::Histogram { quantiles: next_quantiles, count: next_count, sum: next_total },
            ) => Self::Histogram {
                quantiles: if next_quantiles.is_empty() { quantiles } else { next_quantiles.clone() },
                count: match (count, *next_count) {
                    (Some(count), Some(next)) => Some(count.saturating_add(next)),
                    (count, next) => count.or(next),
                },
                sum: sum(total, *next_total),
            },
            (_, next) => next.clone(),
        }
    }
}

/// Returns the sum of the values; `None` if there is neither.
fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}
