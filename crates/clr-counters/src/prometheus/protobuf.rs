//! Prometheus's protobuf format.

use prost::Message;

use crate::meter::{ExponentialBuckets, ExponentialHistogram};
use crate::point::PointValue;
use crate::prometheus::Metric;
use crate::prometheus::family::FamilyKind;
use crate::prometheus::own::OwnMetric;

/// The messages of `io.prometheus.client`, with the field numbers of `metrics.proto`; unused fields are left
/// out.
mod message {
    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct MetricFamily {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(string, tag = "2")]
        pub(super) help: String,
        #[prost(int32, tag = "3")]
        pub(super) kind: i32,
        #[prost(message, repeated, tag = "4")]
        pub(super) metric: Vec<Metric>,
        #[prost(string, tag = "5")]
        pub(super) unit: String,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct Metric {
        #[prost(message, repeated, tag = "1")]
        pub(super) label: Vec<LabelPair>,
        #[prost(message, optional, tag = "2")]
        pub(super) gauge: Option<Number>,
        #[prost(message, optional, tag = "3")]
        pub(super) counter: Option<Number>,
        #[prost(message, optional, tag = "4")]
        pub(super) summary: Option<Summary>,
        #[prost(message, optional, tag = "7")]
        pub(super) histogram: Option<Histogram>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct LabelPair {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(string, tag = "2")]
        pub(super) value: String,
    }

    /// `Gauge` or `Counter`.
    #[derive(Clone, PartialEq, Message)]
    pub(super) struct Number {
        #[prost(double, tag = "1")]
        pub(super) value: f64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct Summary {
        #[prost(uint64, tag = "1")]
        pub(super) sample_count: u64,
        #[prost(double, tag = "2")]
        pub(super) sample_sum: f64,
        #[prost(message, repeated, tag = "3")]
        pub(super) quantile: Vec<Quantile>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct Quantile {
        #[prost(double, tag = "1")]
        pub(super) quantile: f64,
        #[prost(double, tag = "2")]
        pub(super) value: f64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct Histogram {
        #[prost(uint64, tag = "1")]
        pub(super) sample_count: u64,
        #[prost(double, tag = "2")]
        pub(super) sample_sum: f64,
        #[prost(sint32, tag = "5")]
        pub(super) schema: i32,
        #[prost(double, tag = "6")]
        pub(super) zero_threshold: f64,
        #[prost(uint64, tag = "7")]
        pub(super) zero_count: u64,
        #[prost(message, repeated, tag = "12")]
        pub(super) positive_span: Vec<BucketSpan>,
        #[prost(sint64, repeated, tag = "13")]
        pub(super) positive_delta: Vec<i64>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub(super) struct BucketSpan {
        #[prost(sint32, tag = "1")]
        pub(super) offset: i32,
        #[prost(uint32, tag = "2")]
        pub(super) length: u32,
    }
}

use message::{BucketSpan, Histogram, LabelPair, MetricFamily, Number, Quantile, Summary};

/// The scales of native histograms.
const MAX_SCHEMA: i32 = 8;
const MIN_SCHEMA: i32 = -4;

/// Writes metrics, which are ordered by family, and then the program's own metrics, each family as a
/// length-delimited message.
pub(super) fn encode(metrics: &[Metric<'_>], own: &[OwnMetric]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut write = |family: MetricFamily| bytes.extend(family.encode_length_delimited_to_vec());
    for family in metrics.chunk_by(|metric, next| metric.family.name == next.family.name) {
        let Some(first) = family.first() else { continue };
        let of = first.family;
        let metric: Vec<_> = family.iter().filter_map(message).collect();
        if !metric.is_empty() {
            let head = head(&of.name, of.kind, &of.help);
            write(MetricFamily { metric, unit: of.unit.clone(), ..head });
        }
    }
    for family in own.chunk_by(|metric, next| metric.name == next.name) {
        let Some(first) = family.first() else { continue };
        let metric = family.iter().map(own_message).collect();
        write(MetricFamily { metric, ..head(first.name, first.kind, first.help) });
    }
    bytes
}

fn own_message(metric: &OwnMetric) -> message::Metric {
    let label = metric
        .label
        .iter()
        .map(|(name, value)| LabelPair { name: (*name).to_owned(), value: (*value).to_owned() });
    let message = message::Metric { label: label.collect(), ..message::Metric::default() };
    let number = Some(Number { value: metric.value });
    if metric.kind == FamilyKind::Counter {
        message::Metric { counter: number, ..message }
    } else {
        message::Metric { gauge: number, ..message }
    }
}

fn head(name: &str, kind: FamilyKind, help: &str) -> MetricFamily {
    let (suffix, kind) = match kind {
        FamilyKind::Counter => ("_total", 0),
        FamilyKind::Gauge => ("", 1),
        FamilyKind::Info => ("_info", 1),
        FamilyKind::Summary => ("", 2),
        FamilyKind::Histogram => ("", 4),
    };
    MetricFamily { name: format!("{name}{suffix}"), help: help.to_owned(), kind, ..MetricFamily::default() }
}

fn message(metric: &Metric<'_>) -> Option<message::Metric> {
    let label = metric.labels();
    let label = label.map(|(name, value)| LabelPair { name: name.to_owned(), value: value.into_owned() });
    let mut message = message::Metric { label: label.collect(), ..message::Metric::default() };
    match metric.value {
        PointValue::Histogram { quantiles, count, sum } => {
            let quantile = quantiles
                .iter()
                .map(|(quantile, value)| Quantile { quantile: *quantile, value: *value * metric.factor })
                .collect();
            message.summary = Some(Summary {
                sample_count: count.unwrap_or_default(),
                sample_sum: sum.unwrap_or_default() * metric.factor,
                quantile,
            });
        }
        PointValue::Exponential(histogram) => message.histogram = Some(native(histogram)),
        PointValue::Counter { .. } | PointValue::UpDownCounter(_) | PointValue::Gauge(_) => {
            let number = Some(Number { value: metric.number()? });
            if metric.family.kind == FamilyKind::Counter {
                message.counter = number;
            } else {
                message.gauge = number;
            }
        }
    }
    Some(message)
}

/// Returns a native histogram. Without buckets it has an empty span, which marks it as native.
fn native(histogram: &ExponentialHistogram) -> Histogram {
    let buckets = histogram.buckets_at(MAX_SCHEMA).filter(|buckets| buckets.scale >= MIN_SCHEMA);
    let schema = buckets.as_ref().map_or(MAX_SCHEMA, |buckets| buckets.scale);
    let (span, positive_delta) = buckets.as_ref().and_then(span).unwrap_or_default();
    let zero_count = u64::try_from(histogram.zero_count).unwrap_or_default();
    let counts = buckets.iter().flat_map(|buckets| &buckets.counts).filter(|_| !positive_delta.is_empty());
    Histogram {
        // The sum of the buckets: Prometheus refuses everything if the two differ.
        sample_count: counts.fold(zero_count, |sum, count| sum.saturating_add(*count)),
        sample_sum: histogram.sum,
        schema,
        zero_threshold: 0.0,
        zero_count,
        positive_span: vec![span],
        positive_delta,
    }
}

/// Returns the position of the buckets, with indexes one above OpenTelemetry's, and the differences of their
/// counts.
fn span(buckets: &ExponentialBuckets) -> Option<(BucketSpan, Vec<i64>)> {
    let offset = i32::try_from(buckets.offset.checked_add(1)?).ok()?;
    let length = u32::try_from(buckets.counts.len()).ok()?;
    let mut last = 0i64;
    let mut deltas = Vec::with_capacity(buckets.counts.len());
    for count in &buckets.counts {
        let count = i64::try_from(*count).ok()?;
        deltas.push(count.checked_sub(last)?);
        last = count;
    }
    Some((BucketSpan { offset, length }, deltas))
}
