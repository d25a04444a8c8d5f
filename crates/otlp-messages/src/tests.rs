//! Messages with all their fields, each with a value of its own, read and written by the official types.

use std::fmt::Debug;

use opentelemetry_proto::tonic::collector as official;
use prost::Message;

use crate::common::any_value::Value;
use crate::common::{AnyValue, InstrumentationScope, KeyValue, Resource};

/// Checks that the official message reads and writes the same bytes, and has the same names of fields.
#[track_caller]
fn assert_official<T: Message + Default + Debug>(ours: &(impl Message + Debug)) {
    let bytes = ours.encode_to_vec();
    let theirs = T::decode(&*bytes).unwrap();
    assert_eq!(theirs.encode_to_vec(), bytes, "{theirs:?}");
    let (ours, theirs) = (format!("{ours:?}"), format!("{theirs:?}"));
    let theirs = fields(&theirs);
    for field in fields(&ours) {
        assert!(theirs.contains(&field), "{field}: {theirs:?}");
    }
}

/// Returns the fields with plain values of a message as text: `count: 3`.
fn fields(message: &str) -> Vec<&str> {
    message.split(['{', '}', '[', ']', '(', ')', ',']).map(str::trim).filter(|it| it.contains(": ")).collect()
}

fn resource() -> Resource {
    let attributes = vec![
        KeyValue::new("string", "text"),
        KeyValue::new("bool", Value::BoolValue(true)),
        KeyValue::new("int", -7),
        KeyValue::new("double", Value::DoubleValue(1.5)),
    ];
    Resource { attributes }
}

fn scope() -> InstrumentationScope {
    let attributes = vec![KeyValue::new("", "unnamed")];
    InstrumentationScope { version: "2.0".to_owned(), attributes, ..InstrumentationScope::new("scope") }
}

#[test]
fn empty_keys_are_replaced() {
    assert_eq!(KeyValue::new("", 1).key, "_");
    assert_eq!(KeyValue::new("a", "b").value, Some(AnyValue { value: Some(Value::StringValue("b".into())) }));
}

#[test]
fn metrics_are_the_official_ones() {
    use crate::metrics::exponential_histogram_data_point::Buckets;
    use crate::metrics::metric::Data;
    use crate::metrics::summary_data_point::ValueAtQuantile;
    use crate::metrics::{
        AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint,
        ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse, Gauge,
        Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
        number_data_point,
    };

    let attributes = || vec![KeyValue::new("tag", "value")];
    let number = |start, value| NumberDataPoint {
        start_time_unix_nano: start,
        time_unix_nano: start + 1,
        value: Some(value),
        attributes: attributes(),
    };
    let gauge = Gauge { data_points: vec![number(10, number_data_point::Value::AsDouble(0.25))] };
    let sum = Sum {
        data_points: vec![number(12, number_data_point::Value::AsInt(-13))],
        aggregation_temporality: AggregationTemporality::Delta.into(),
        is_monotonic: true,
    };
    let histogram = ExponentialHistogramDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 14,
        time_unix_nano: 15,
        count: 16,
        sum: Some(17.5),
        scale: -18,
        zero_count: 19,
        positive: Some(Buckets { offset: -20, bucket_counts: vec![21, 300] }),
        min: Some(22.5),
        max: Some(23.5),
    };
    let histogram = ExponentialHistogram {
        data_points: vec![histogram],
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
    };
    let summary = SummaryDataPoint {
        start_time_unix_nano: 24,
        time_unix_nano: 25,
        count: 26,
        sum: 27.5,
        quantile_values: vec![ValueAtQuantile { quantile: 0.95, value: 28.5 }],
        attributes: attributes(),
    };
    let data = [
        Data::Gauge(gauge),
        Data::Sum(sum),
        Data::ExponentialHistogram(histogram),
        Data::Summary(Summary { data_points: vec![summary] }),
    ];
    let metrics = data.into_iter().map(|data| Metric {
        name: "name".to_owned(),
        description: "description".to_owned(),
        unit: "By".to_owned(),
        data: Some(data),
    });
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope()), metrics: metrics.collect() }];
    let resource_metrics = vec![ResourceMetrics { resource: Some(resource()), scope_metrics }];
    assert_official::<official::metrics::v1::ExportMetricsServiceRequest>(&ExportMetricsServiceRequest {
        resource_metrics,
    });
    let rejected = ExportMetricsPartialSuccess { rejected_data_points: 29, error_message: "full".to_owned() };
    let response = ExportMetricsServiceResponse { partial_success: Some(rejected) };
    assert_official::<official::metrics::v1::ExportMetricsServiceResponse>(&response);
}

#[test]
fn logs_are_the_official_ones() {
    use crate::logs::{ExportLogsServiceRequest, LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};

    let severities = [
        SeverityNumber::Trace,
        SeverityNumber::Debug,
        SeverityNumber::Info,
        SeverityNumber::Warn,
        SeverityNumber::Error,
        SeverityNumber::Fatal,
    ];
    let log_records = severities.into_iter().map(|severity| LogRecord {
        time_unix_nano: 30,
        severity_number: severity.into(),
        severity_text: "severity".to_owned(),
        body: Some("body".into()),
        attributes: vec![KeyValue::new("key", "value")],
        dropped_attributes_count: 31,
        flags: 32,
        trace_id: vec![33; 16],
        span_id: vec![34; 8],
        observed_time_unix_nano: 35,
        event_name: "event".to_owned(),
    });
    let scope_logs = vec![ScopeLogs { scope: Some(scope()), log_records: log_records.collect() }];
    let resource_logs = vec![ResourceLogs { resource: Some(resource()), scope_logs }];
    assert_official::<official::logs::v1::ExportLogsServiceRequest>(&ExportLogsServiceRequest {
        resource_logs,
    });
}

#[test]
fn spans_are_the_official_ones() {
    use crate::trace::span::{Event, Link, SpanKind};
    use crate::trace::status::StatusCode;
    use crate::trace::{ExportTraceServiceRequest, ResourceSpans, ScopeSpans, Span, Status};

    let attributes = || vec![KeyValue::new("key", "value")];
    let event = Event { time_unix_nano: 40, name: "event".to_owned(), attributes: attributes() };
    let link = Link {
        trace_id: vec![41; 16],
        span_id: vec![42; 8],
        trace_state: "state".to_owned(),
        attributes: attributes(),
        flags: 43,
    };
    let kinds = [
        (SpanKind::Internal, StatusCode::Ok),
        (SpanKind::Server, StatusCode::Error),
        (SpanKind::Client, StatusCode::Ok),
        (SpanKind::Producer, StatusCode::Ok),
        (SpanKind::Consumer, StatusCode::Ok),
    ];
    let spans = kinds.into_iter().map(|(kind, code)| Span {
        trace_id: vec![44; 16],
        span_id: vec![45; 8],
        parent_span_id: vec![46; 8],
        name: "span".to_owned(),
        kind: kind.into(),
        start_time_unix_nano: 47,
        end_time_unix_nano: 48,
        attributes: attributes(),
        events: vec![event.clone()],
        links: vec![link.clone()],
        status: Some(Status { message: "message".to_owned(), code: code.into() }),
        flags: 49,
    });
    let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans: spans.collect() }];
    let resource_spans = vec![ResourceSpans { resource: Some(resource()), scope_spans }];
    assert_official::<official::trace::v1::ExportTraceServiceRequest>(&ExportTraceServiceRequest {
        resource_spans,
    });
}

#[test]
fn profiles_are_the_official_ones() {
    use crate::profiles::{
        ExportProfilesServiceRequest, Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile,
        ProfilesDictionary, ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
    };

    let profile = Profile {
        sample_type: Some(ValueType { type_strindex: 50, unit_strindex: 51 }),
        samples: vec![Sample { stack_index: 52, attribute_indices: vec![53], values: vec![54] }],
        time_unix_nano: 55,
        duration_nano: 56,
        period_type: Some(ValueType { type_strindex: 57, unit_strindex: 58 }),
        period: 59,
    };
    let location = Location {
        mapping_index: 60,
        lines: vec![Line { function_index: 61, line: 62 }],
        attribute_indices: vec![63],
    };
    let function = Function { name_strindex: 64, system_name_strindex: 65, filename_strindex: 66 };
    let dictionary = ProfilesDictionary {
        mapping_table: vec![Mapping { filename_strindex: 67 }],
        location_table: vec![location],
        function_table: vec![function],
        link_table: vec![Link {}],
        string_table: vec!["string".to_owned()],
        attribute_table: vec![KeyValueAndUnit { key_strindex: 68, value: Some("value".into()) }],
        stack_table: vec![Stack { location_indices: vec![69] }],
    };
    let scope_profiles = vec![ScopeProfiles { scope: Some(scope()), profiles: vec![profile] }];
    assert_official::<official::profiles::v1development::ExportProfilesServiceRequest>(
        &ExportProfilesServiceRequest {
            resource_profiles: vec![ResourceProfiles { resource: Some(resource()), scope_profiles }],
            dictionary: Some(dictionary),
        },
    );
}
