use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogramDataPoint, ResourceMetrics,
};
use otlp_messages::Message as _;

use super::{Exporter, Process, ProcessKey, Series, Temporality};
use crate::meter::{ExponentialHistogram, MeterMeasurement};
use crate::point::tests::{
    counter, event_counter, event_sum, exponential, gauge, histogram, instrument, sample,
};
use crate::sample::Measurement;
use crate::series::Kind;

const NOW: Duration = Duration::from_secs(5);

/// An exporter of one process that started at 1000.
fn exporter(temporality: Temporality) -> Exporter {
    let mut exporter = Exporter::new(temporality, 100);
    let attributes = vec![("service.name".to_owned(), "app".to_owned())];
    exporter.begin_process(ProcessKey(1), Process { pid: Some(42), attributes, start: 1000 });
    exporter
}

fn add(exporter: &mut Exporter, id: u32, series: &Series, measurement: &Measurement) {
    exporter.add(ProcessKey(1), &sample(id, series, measurement), NOW);
}

/// The only request's only resource.
fn encode(exporter: &mut Exporter, time: u64) -> ResourceMetrics {
    let requests = exporter.encode(NOW, time);
    assert_eq!(requests.len(), 1);
    let request = ExportMetricsServiceRequest::decode(&*requests[0].bytes).unwrap();
    assert_eq!(request.resource_metrics.len(), 1);
    request.resource_metrics.into_iter().next().unwrap()
}

/// Start, end and value of the first point of a metric of numbers.
fn number(resource: &ResourceMetrics, name: &str) -> (u64, u64, f64) {
    let points = match data(resource, name) {
        Data::Sum(sum) => &sum.data_points,
        Data::Gauge(gauge) => &gauge.data_points,
        other => panic!("{name}: {other:?}"),
    };
    let Some(Value::AsDouble(value)) = points[0].value else { panic!("{name}: no number") };
    (points[0].start_time_unix_nano, points[0].time_unix_nano, value)
}

fn data<'r>(resource: &'r ResourceMetrics, name: &str) -> &'r Data {
    let metrics = resource.scope_metrics.iter().flat_map(|scope| &scope.metrics);
    let found = metrics.into_iter().find(|metric| metric.name == name);
    found.and_then(|metric| metric.data.as_ref()).unwrap_or_else(|| panic!("no {name}: {resource:?}"))
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text_attribute(key: &str, value: &str) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.to_owned()))
}

fn number_attribute(key: &str, value: i64) -> KeyValue {
    attribute(key, any_value::Value::IntValue(value))
}

fn exponential_point(resource: &ResourceMetrics) -> (i32, ExponentialHistogramDataPoint) {
    let Data::ExponentialHistogram(histogram) = data(resource, "size") else { panic!("{resource:?}") };
    (histogram.aggregation_temporality, histogram.data_points[0].clone())
}

/// A clock that is set back between two requests, and before the beginning of the process.
#[test]
fn no_point_ends_before_it_begins() {
    let series = instrument("requests", Kind::Counter, "", "");
    for temporality in [Temporality::Cumulative, Temporality::Delta] {
        let mut exporter = exporter(temporality);
        for (time, total) in [(5000, 1.0), (2000, 2.0), (500, 3.0), (6000, 4.0)] {
            add(&mut exporter, 0, &series, &counter(Some(1.0), Some(total)));
            let (start, end, _) = number(&encode(&mut exporter, time), "requests");
            assert!(start <= end && end == time, "{temporality:?}: {start} to {end}");
        }
    }
}

#[test]
fn a_request_says_of_which_process_scope_and_metric_its_points_are() {
    let mut exporter = exporter(Temporality::Cumulative);
    let series = Series {
        meter_tags: "team=a".to_owned(),
        ..instrument("orders", Kind::Counter, "{order}", "city=Oslo,tier=1")
    };
    add(&mut exporter, 0, &series, &counter(Some(2.0), Some(2.0)));
    let other = Series { tags: "city=Rome,tier=1".to_owned(), ..series.clone() };
    add(&mut exporter, 1, &other, &counter(Some(3.0), Some(3.0)));
    add(&mut exporter, 2, &event_counter("alloc-rate", Kind::Sum, "MB"), &event_sum(4.0));
    let resource = encode(&mut exporter, 9000);
    let expected = [text_attribute("service.name", "app"), number_attribute("process.pid", 42)];
    assert_eq!(resource.resource.as_ref().unwrap().attributes, expected);
    let [app, web] = &resource.scope_metrics[..] else { panic!("{resource:?}") };
    let scope = app.scope.as_ref().unwrap();
    assert_eq!((&*scope.name, &*scope.version), ("App", "1.2"));
    assert_eq!(scope.attributes, [text_attribute("team", "a")]);
    let Some(Data::Sum(sum)) = &app.metrics[0].data else { panic!("{app:?}") };
    assert_eq!((sum.is_monotonic, sum.aggregation_temporality()), (true, AggregationTemporality::Cumulative));
    let attributes: Vec<_> = sum.data_points.iter().map(|point| point.attributes.clone()).collect();
    let city = |city| vec![text_attribute("city", city), text_attribute("tier", "1")];
    assert_eq!(attributes, [city("Oslo"), city("Rome")]);
    assert_eq!((&*web.metrics[0].name, &*web.metrics[0].unit), ("alloc-rate", "MBy"));
}

#[test]
fn cumulative_sums_are_totals_and_deltas_are_increments() {
    let observed = instrument("cpu", Kind::Counter, "s", "");
    let counted = instrument("orders", Kind::Counter, "", "");
    for temporality in [Temporality::Cumulative, Temporality::Delta] {
        let mut exporter = exporter(temporality);
        let add_both = |exporter: &mut Exporter, total: f64, increment| {
            add(exporter, 0, &observed, &counter(increment, Some(total)));
            add(exporter, 1, &counted, &counter(Some(2.0), None));
        };
        add_both(&mut exporter, 100.0, None);
        add_both(&mut exporter, 103.0, Some(3.0));
        let first = encode(&mut exporter, 5000);
        add_both(&mut exporter, 107.0, Some(4.0));
        let second = encode(&mut exporter, 6000);
        // The process restarted.
        add_both(&mut exporter, 1.0, Some(1.0));
        let third = encode(&mut exporter, 7000);
        let of = |name| [&first, &second, &third].map(|resource| number(resource, name));
        if temporality == Temporality::Cumulative {
            assert_eq!(of("cpu"), [(0, 5000, 103.0), (0, 6000, 107.0), (0, 7000, 1.0)]);
            assert_eq!(of("orders"), [(1000, 5000, 4.0), (1000, 6000, 6.0), (1000, 7000, 8.0)]);
        } else {
            assert_eq!(of("cpu"), [(1000, 5000, 3.0), (5000, 6000, 4.0), (6000, 7000, 1.0)]);
            assert_eq!(of("orders"), [(1000, 5000, 4.0), (5000, 6000, 2.0), (6000, 7000, 2.0)]);
        }
    }
}

#[test]
fn gauges_are_gauges_and_quantiles_summaries() {
    let mut exporter = exporter(Temporality::Delta);
    add(&mut exporter, 0, &instrument("temperature", Kind::Gauge, "Cel", ""), &gauge(Some(21.5)));
    add(&mut exporter, 1, &instrument("idle", Kind::Gauge, "", ""), &gauge(Some(f64::NAN)));
    let size = instrument("size", Kind::Histogram, "kg", "");
    add(&mut exporter, 2, &size, &histogram(&[(0.5, 3.0)], 4, 12.0));
    add(&mut exporter, 2, &size, &histogram(&[(0.5, 2.0)], 1, 2.0));
    let up_down =
        Measurement::Meter(MeterMeasurement::UpDownCounter { change: Some(1.0), value: Some(-7.0) });
    add(&mut exporter, 3, &instrument("active", Kind::UpDownCounter, "", ""), &up_down);
    let resource = encode(&mut exporter, 9000);
    assert_eq!(number(&resource, "temperature"), (0, 9000, 21.5));
    let Data::Gauge(idle) = data(&resource, "idle") else { panic!() };
    assert!(idle.data_points.is_empty());
    let Data::Sum(active) = data(&resource, "active") else { panic!() };
    assert_eq!(
        (active.is_monotonic, active.aggregation_temporality()),
        (false, AggregationTemporality::Cumulative)
    );
    assert_eq!(number(&resource, "active"), (0, 9000, -7.0));
    let Data::Summary(summary) = data(&resource, "size") else { panic!() };
    let point = &summary.data_points[0];
    assert_eq!((point.count, point.sum, point.start_time_unix_nano), (5, 14.0, 1000));
    assert_eq!((point.quantile_values[0].quantile, point.quantile_values[0].value), (0.5, 2.0));
}

#[test]
fn exponential_histograms_keep_their_buckets_and_deltas_are_differences_at_the_smaller_scale() {
    let series = instrument("size", Kind::Histogram, "", "");
    let of = |histogram: &ExponentialHistogram| {
        Measurement::Meter(MeterMeasurement::ExponentialHistogram(histogram.clone()))
    };
    // Later 16 was measured, twice, with half the resolution: 1 in bucket -1, 3 and 4 in 3, 16 in 7.
    let later = ExponentialHistogram {
        scale: 1,
        sum: 43.0,
        count: 7,
        max: 16.0,
        buckets: vec![1, 0, 0, 0, 3, 0, 0, 0, 2],
        ..exponential()
    };
    let mut cumulative = exporter(Temporality::Cumulative);
    add(&mut cumulative, 0, &series, &of(&exponential()));
    let (temporality, point) = exponential_point(&encode(&mut cumulative, 5000));
    assert_eq!(temporality, i32::from(AggregationTemporality::Cumulative));
    assert_eq!((point.count, point.sum, point.zero_count, point.scale), (5, Some(11.0), 1, 2));
    assert_eq!((point.min, point.max), (Some(0.0), Some(4.0)));
    let positive = point.positive.unwrap();
    assert_eq!((positive.offset, positive.bucket_counts), (-1, vec![1, 0, 0, 0, 0, 0, 0, 2, 1]));

    let mut delta = exporter(Temporality::Delta);
    add(&mut delta, 0, &series, &of(&exponential()));
    assert_eq!(exponential_point(&encode(&mut delta, 5000)).1.count, 5);
    add(&mut delta, 0, &series, &of(&later));
    let (temporality, point) = exponential_point(&encode(&mut delta, 6000));
    assert_eq!(temporality, i32::from(AggregationTemporality::Delta));
    assert_eq!((point.count, point.sum, point.zero_count, point.scale), (2, Some(32.0), 0, 1));
    assert_eq!((point.min, point.max, point.start_time_unix_nano), (None, None, 5000));
    let positive = point.positive.unwrap();
    assert_eq!((positive.offset, positive.bucket_counts), (-1, vec![0, 0, 0, 0, 0, 0, 0, 0, 2]));
}

#[test]
fn many_points_make_several_requests_and_further_series_are_counted() {
    let mut exporter = Exporter::new(Temporality::Cumulative, 12_000);
    exporter.begin_process(ProcessKey(1), Process::default());
    let series = instrument("up", Kind::Gauge, "", "");
    for id in 0..12_003u32 {
        add(
            &mut exporter,
            id,
            &Series { tags: format!("n={id}"), ..series.clone() },
            &gauge(Some(f64::from(id))),
        );
    }
    let requests = exporter.encode(NOW, 1);
    assert_eq!(requests.iter().map(|request| request.points).collect::<Vec<_>>(), [5000, 5000, 2000]);
    let first = ExportMetricsServiceRequest::decode(&*requests[0].bytes).unwrap();
    let Data::Sum(left_out) = data(&first.resource_metrics[0], "dipc.values.left_out") else { panic!() };
    assert_eq!(left_out.data_points[0].value, Some(Value::AsInt(3)));
}

#[test]
fn the_last_state_of_an_ended_process_waits_for_its_request() {
    let late = NOW + Duration::from_secs(3600);
    let series = instrument("orders", Kind::Counter, "", "");
    for temporality in [Temporality::Cumulative, Temporality::Delta] {
        let mut exporter = exporter(temporality);
        add(&mut exporter, 0, &series, &counter(Some(2.0), None));
        exporter.keep_process(ProcessKey(1), NOW);
        let requests = exporter.encode(late, 5000);
        assert_eq!(requests.iter().map(|request| request.points).sum::<usize>(), 1);
        exporter.end_process(ProcessKey(1));
        assert!(exporter.encode(late, 6000).is_empty());
    }
    // A series that had ended before its process stays ended.
    let mut exporter = exporter(Temporality::Cumulative);
    add(&mut exporter, 0, &series, &counter(Some(2.0), None));
    exporter.keep_process(ProcessKey(1), late);
    assert!(exporter.encode(late, 5000).is_empty());
}
