//! Any bytes as a recording, and as the texts of events of counters, encoded for Prometheus and for OTLP:
//! what scrapers and receivers would refuse is not written.

#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use clr_counters::prometheus::{Exporter, Format, NameStyle};
use clr_counters::{Counters, ProcessKey, Sample, Selection, otlp};
use libfuzzer_sys::fuzz_target;
use nettrace::Reader;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message as _;

/// Maximum number of series: fewer than some inputs have.
const MAX_SERIES: usize = 20;

const NOW: Duration = Duration::from_secs(1);

fuzz_target!(|input: &[u8]| {
    let bytes = input.get(4..).unwrap_or_default();
    let name = String::from_utf8_lossy(bytes.get(..20).unwrap_or_default());
    dipc_fuzz::bounded(bytes.len(), || check(bytes, &name));
    let made = dipc_fuzz::counters::recording(bytes);
    dipc_fuzz::bounded(made.len(), || check(&made, &name));
    let _ = (Format::negotiate(Some(&name)), otlp::rejected_points(bytes));
});

/// Checks what is written of a recording of a process with this name.
fn check(bytes: &[u8], name: &str) {
    for style in [NameStyle::OpenTelemetry, NameStyle::DotnetMonitor] {
        let mut exporter = Exporter::new(style, MAX_SERIES).with_own_metrics();
        exporter.begin_process(ProcessKey(0), Some(name), Some(1));
        exporter.begin_process(ProcessKey(1), None, None);
        each_sample(bytes, |process, sample| exporter.add(process, sample, NOW));
        for format in [Format::Text, Format::OpenMetrics] {
            check_text(&exporter.encode(format, NOW), format == Format::OpenMetrics);
        }
        check_messages(&exporter.encode(Format::Protobuf, NOW));
        exporter.end_process(ProcessKey(0));
        check_text(&exporter.encode(Format::Text, NOW), false);
    }
    for temporality in [otlp::Temporality::Cumulative, otlp::Temporality::Delta] {
        let mut exporter = otlp::Exporter::new(temporality, MAX_SERIES);
        let attributes = vec![("service.name".to_owned(), name.to_owned())];
        exporter.begin_process(ProcessKey(0), otlp::Process::new(Some(1), 5).with_attributes(attributes));
        exporter.begin_process(ProcessKey(1), otlp::Process::default());
        each_sample(bytes, |process, sample| exporter.add(process, sample, NOW));
        check_requests(&exporter.encode(NOW, 9));
        exporter.keep_process(ProcessKey(0), NOW);
        exporter.end_process(ProcessKey(1));
        check_requests(&exporter.encode(NOW * 100, 10));
    }
}

/// Calls a function with all samples, those of every third as of another process.
fn each_sample(bytes: &[u8], mut each: impl FnMut(ProcessKey, &Sample<'_>)) {
    let Ok(mut events) = Reader::new(bytes) else { return };
    let mut counters = Counters::new(Selection::everything()).with_max_series(2 * MAX_SERIES);
    let mut number = 0;
    let mut add = |sample: Sample<'_>| {
        number += 1;
        each(ProcessKey(u32::from(number % 3 == 0)), &sample);
    };
    let _ = events.for_each(|event| counters.add(&event, &mut add));
    counters.finish(&mut add);
}

/// Checks text as a scraper reads it: comments of a family before its samples, names and labels of their
/// letters, and no sample twice.
fn check_text(bytes: &[u8], is_open_metrics: bool) {
    let text = std::str::from_utf8(bytes).expect("metrics are text");
    assert!(text.ends_with('\n') && text.ends_with("\n# EOF\n") == is_open_metrics);
    let (mut families, mut samples, mut count) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut family = "";
    for line in text.lines() {
        assert!(!line.contains(char::is_control), "{line:?}");
        if let Some(comment) = line.strip_prefix("# ") {
            if comment == "EOF" {
                continue;
            }
            let (word, rest) = comment.split_once(' ').expect("a comment is of a family");
            let (name, value) = rest.split_once(' ').expect("a comment has a value");
            assert!(is_name(name, true), "{line:?}");
            match word {
                "HELP" => {
                    assert!(families.insert(name), "a family twice: {line:?}");
                    family = name;
                }
                "TYPE" => {
                    assert!(["counter", "gauge", "summary", "histogram"].contains(&value), "{line:?}");
                }
                "UNIT" => assert!(is_open_metrics && name.ends_with(value), "{line:?}"),
                _ => panic!("{line:?}"),
            }
            if word != "HELP" {
                assert_eq!(name, family);
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
        assert!(samples.insert(series), "a sample twice: {line:?}");
        let value = value.parse::<f64>();
        assert!(value.is_ok(), "{line:?}");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert!(is_name(name, true), "{line:?}");
        assert!(name.starts_with(family), "{line:?} in {family}");
        check_labels(labels);
        if name == "dipc_series" {
            count = value.map_or(0, |value| value as usize);
        }
    }
    assert!(count <= MAX_SERIES);
}

/// Checks `name="value",…}`.
fn check_labels(text: &str) {
    let mut names = BTreeSet::new();
    let mut rest = text;
    while rest != "}" {
        let (name, behind) = rest.split_once("=\"").expect("a label has a value");
        assert!(is_name(name, false) && names.insert(name), "{text:?}");
        let mut value = behind.char_indices();
        let end = loop {
            match value.next().expect("a value has an end") {
                (at, '"') => break at,
                (_, '\\') => assert!(matches!(value.next(), Some((_, '\\' | '"' | 'n'))), "{text:?}"),
                _ => {}
            }
        };
        rest = &behind[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// Returns true if it is the name of a metric or of a label.
fn is_name(name: &str, is_metric: bool) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || is_metric && byte == b':';
    name.as_bytes().first().is_some_and(|byte| is_letter(*byte))
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Checks that messages follow one another, each behind its length.
fn check_messages(bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = prost::decode_length_delimiter(&mut rest).expect("a length");
        rest = rest.get(length..).expect("a whole message");
    }
}

/// Checks that requests are messages, with no more points than are said.
fn check_requests(requests: &[otlp::Request]) {
    for request in requests {
        let message = ExportMetricsServiceRequest::decode(&*request.bytes).expect("a request");
        let metrics = message.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
        let points: usize = metrics
            .flat_map(|scope| &scope.metrics)
            .map(|metric| match metric.data.as_ref().expect("a metric has data") {
                Data::Gauge(gauge) => gauge.data_points.len(),
                Data::Sum(sum) => sum.data_points.len(),
                Data::Histogram(histogram) => histogram.data_points.len(),
                Data::ExponentialHistogram(histogram) => histogram.data_points.len(),
                Data::Summary(summary) => summary.data_points.len(),
            })
            .sum();
        // One more says how many values were left out.
        assert!(points <= request.points + 1 && request.points <= MAX_SERIES);
    }
}
