//! Data points of metrics.

use otlp_messages::common::{InstrumentationScope, KeyValue};
use otlp_messages::metrics::exponential_histogram_data_point::Buckets;
use otlp_messages::metrics::metric::Data;
use otlp_messages::metrics::summary_data_point::ValueAtQuantile;
use otlp_messages::metrics::{
    AggregationTemporality, ExponentialHistogram as HistogramData, ExponentialHistogramDataPoint, Gauge,
    Metric, NumberDataPoint, ScopeMetrics, Sum, Summary, SummaryDataPoint, number_data_point,
};

use crate::meter::ExponentialHistogram;
use crate::otlp::Temporality;
use crate::point::PointValue;

/// The times of a request, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// The time at which counting began.
    pub(super) start: u64,
    /// The current time.
    pub(super) time: u64,
}

/// The state of a series at the previous request.
#[derive(Debug, Default)]
pub(super) struct PreviousPoint {
    time: Option<u64>,
    total: Option<f64>,
    histogram: Option<ExponentialHistogram>,
}

/// Returns a number for the kind of data that a value becomes.
pub(super) const fn kind(value: &PointValue) -> u8 {
    match value {
        PointValue::Counter { .. } => 0,
        PointValue::UpDownCounter(_) => 1,
        PointValue::Gauge(_) => 2,
        PointValue::Histogram { .. } => 3,
        PointValue::Exponential(_) => 4,
    }
}

/// Returns data without points, of the kind that a value becomes.
pub(super) fn data_of(value: &PointValue, temporality: Temporality) -> Data {
    let chosen = match temporality {
        Temporality::Cumulative => AggregationTemporality::Cumulative,
        Temporality::Delta => AggregationTemporality::Delta,
    };
    let data_points = Vec::new();
    let sum = |temporality: AggregationTemporality, is_monotonic| {
        Data::Sum(Sum { data_points, aggregation_temporality: temporality.into(), is_monotonic })
    };
    match value {
        PointValue::Counter { .. } => sum(chosen, true),
        PointValue::UpDownCounter(_) => sum(AggregationTemporality::Cumulative, false),
        PointValue::Gauge(_) => Data::Gauge(Gauge::default()),
        PointValue::Histogram { .. } => Data::Summary(Summary::default()),
        PointValue::Exponential(_) => Data::ExponentialHistogram(HistogramData {
            data_points: Vec::new(),
            aggregation_temporality: chosen.into(),
        }),
    }
}

/// Adds a point to data of its kind. NaN is left out.
pub(super) fn add_point(
    data: &mut Data,
    value: &PointValue,
    previous: &mut PreviousPoint,
    temporality: Temporality,
    times: Times,
    attributes: Vec<KeyValue>,
) {
    let is_delta = temporality == Temporality::Delta;
    let since = previous.time.filter(|_| is_delta).unwrap_or(times.start).min(times.time);
    let number = |start, value: f64| NumberDataPoint {
        attributes: attributes.clone(),
        start_time_unix_nano: start,
        time_unix_nano: times.time,
        value: Some(number_data_point::Value::AsDouble(value)),
    };
    match (data, value) {
        (Data::Sum(sum), PointValue::Counter { total, baseline, .. }) => {
            let last = previous.total.unwrap_or(*baseline);
            sum.data_points.push(if is_delta {
                // A total that is smaller than before has restarted, unless it falls below zero.
                number(since, if *total >= last || *total < 0.0 { total - last } else { *total })
            } else {
                // A total that started before the first sample has an unknown start time.
                number(if *baseline == 0.0 { times.start } else { 0 }, *total)
            });
            previous.total = Some(*total);
        }
        (Data::Sum(sum), PointValue::UpDownCounter(value)) if !value.is_nan() => {
            sum.data_points.push(number(0, *value));
        }
        (Data::Gauge(gauge), PointValue::Gauge(value)) if !value.is_nan() => {
            gauge.data_points.push(number(0, *value));
        }
        (Data::Summary(summary), PointValue::Histogram { quantiles, count, sum }) => {
            let quantile_values = quantiles
                .iter()
                .filter(|(_, value)| !value.is_nan())
                .map(|(quantile, value)| ValueAtQuantile { quantile: *quantile, value: *value })
                .collect();
            summary.data_points.push(SummaryDataPoint {
                attributes,
                start_time_unix_nano: times.start,
                time_unix_nano: times.time,
                count: count.unwrap_or_default(),
                sum: sum.unwrap_or_default(),
                quantile_values,
            });
        }
        (Data::ExponentialHistogram(data), PointValue::Exponential(histogram)) => {
            let last = previous.histogram.take().filter(|last| is_delta && last.count <= histogram.count);
            if is_delta {
                previous.histogram = Some(histogram.clone());
            }
            let point = histogram_point(histogram, last.as_ref());
            data.data_points.push(ExponentialHistogramDataPoint {
                attributes,
                start_time_unix_nano: since,
                time_unix_nano: times.time,
                ..point
            });
        }
        _ => return,
    }
    previous.time = Some(times.time);
}

/// Returns the counts of a histogram since an earlier state of it, or since its start.
fn histogram_point(
    histogram: &ExponentialHistogram,
    last: Option<&ExponentialHistogram>,
) -> ExponentialHistogramDataPoint {
    let whole = |count: i64| u64::try_from(count).unwrap_or_default();
    let since = |count: fn(&ExponentialHistogram) -> i64| {
        whole(count(histogram)).saturating_sub(whole(last.map_or(0, count)))
    };
    let buckets = histogram.buckets_at(histogram.scale);
    let mut positive = None;
    if let Some(buckets) = &buckets {
        let mut counts = buckets.counts.clone();
        if let Some(earlier) = last.and_then(|last| last.buckets_at(buckets.scale)) {
            for (index, earlier_count) in (earlier.offset..).zip(earlier.counts) {
                let place = index.checked_sub(buckets.offset).and_then(|place| usize::try_from(place).ok());
                if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
                    *count = count.saturating_sub(earlier_count);
                }
            }
        }
        let offset = i32::try_from(buckets.offset).ok();
        positive = offset.map(|offset| Buckets { offset, bucket_counts: counts });
    }
    // The minimum and maximum are known only for all measurements together.
    let is_whole = last.is_none() && histogram.count > 0;
    ExponentialHistogramDataPoint {
        count: since(|histogram| histogram.count),
        sum: Some(histogram.sum - last.map_or(0.0, |last| last.sum)),
        scale: buckets.map_or(0, |buckets| buckets.scale),
        zero_count: since(|histogram| histogram.zero_count),
        positive,
        min: is_whole.then_some(histogram.min),
        max: is_whole.then_some(histogram.max),
        ..ExponentialHistogramDataPoint::default()
    }
}

/// Returns the number of left-out values, as a metric of its own scope.
pub(super) fn left_out(count: u64, time: u64) -> ScopeMetrics {
    let point = NumberDataPoint {
        time_unix_nano: time,
        value: Some(number_data_point::Value::AsInt(i64::try_from(count).unwrap_or(i64::MAX))),
        ..NumberDataPoint::default()
    };
    let data = Data::Sum(Sum {
        data_points: vec![point],
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
        is_monotonic: true,
    });
    let metric = Metric {
        name: "dipc.values.left_out".to_owned(),
        description: "Values that are left out, of more series than are kept.".to_owned(),
        unit: "{value}".to_owned(),
        data: Some(data),
    };
    let scope = InstrumentationScope::new("dipc");
    ScopeMetrics { scope: Some(scope), metrics: vec![metric] }
}
