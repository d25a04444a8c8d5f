//! Requests of the OpenTelemetry protocol (OTLP) with metrics, as protobuf.
//!
//! [`Exporter`] takes samples of any number of processes, and encodes the state of each series: counters as
//! sums, means and gauges as gauges, histograms with quantiles as summaries, and histograms with exponential
//! buckets as exponential histograms. The caller sends the requests.

mod data;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use otlp_messages::Message as _;
use otlp_messages::common::{InstrumentationScope, KeyValue, Resource};
use otlp_messages::metrics::metric::Data;
use otlp_messages::metrics::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse, Metric, ResourceMetrics, ScopeMetrics,
};

use crate::point::{Description, Point, PointKey, PointTable, PointValue, ProcessKey};
use crate::sample::Sample;
use crate::series::Series;

use data::{PreviousPoint, Times, add_point, data_of};

/// The time over which sums and histograms count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_enums, reason = "those of the OpenTelemetry protocol that exporters choose from")]
pub enum Temporality {
    /// Since the start.
    #[default]
    Cumulative,
    /// Since the previous request. Sums that go up and down stay cumulative, and so do summaries, which
    /// support nothing else.
    Delta,
}

/// A process with exported metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Process {
    /// The process id.
    pub pid: Option<u32>,
    /// Attributes of the resource: `service.name`, `host.name` and others.
    pub attributes: Vec<(String, String)>,
    /// The time at which counting began, in nanoseconds since 1970.
    pub start: u64,
}

impl Process {
    /// Creates a process that was counted from `start` on, without attributes.
    pub fn new(pid: Option<u32>, start: u64) -> Self {
        Self { pid, attributes: Vec::new(), start }
    }

    /// Returns the process with these attributes of the resource.
    #[must_use]
    pub fn with_attributes(self, attributes: Vec<(String, String)>) -> Self {
        Self { attributes, ..self }
    }
}

/// An `ExportMetricsServiceRequest`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The message.
    pub bytes: Vec<u8>,
    /// The number of data points in it.
    pub points: usize,
}

impl Request {
    /// Creates a request with these bytes and this number of points.
    pub const fn new(bytes: Vec<u8>, points: usize) -> Self {
        Self { bytes, points }
    }
}

/// Maximum number of data points of a request. Receivers limit its bytes, to 20 MiB by default.
const MAX_POINTS: usize = 5000;

/// The last state of the series of processes, for OTLP. Times are as for
/// [`prometheus`](crate::prometheus::Exporter).
///
/// ```
/// # use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
/// # use std::time::Duration;
/// # let series = Series::new("MyApp", "orders", Kind::Counter);
/// # let orders = Measurement::Meter(MeterMeasurement::Counter { increment: Some(6.0), total: Some(40.0) });
/// # let time = nettrace::RelativeTime::after_start(Duration::from_secs(9));
/// # let sample = Sample::new(time, SeriesId(0), &series, &orders).with_interval(Duration::from_secs(3));
/// use clr_counters::ProcessKey;
/// use clr_counters::otlp::{Exporter, Process, Temporality};
///
/// let (now, unix_nanos) = (Duration::from_secs(9), 1_795_251_740_000_000_000);
/// let mut exporter = Exporter::new(Temporality::Cumulative, 10_000);
/// let attributes = vec![("service.name".to_owned(), "shop".to_owned())];
/// let process = Process::new(Some(4711), unix_nanos - 9_000_000_000).with_attributes(attributes);
/// exporter.begin_process(ProcessKey(0), process);
/// exporter.add(ProcessKey(0), &sample, now);
/// // Each request is the body of a POST to /v1/metrics.
/// let requests = exporter.encode(now, unix_nanos);
/// assert_eq!((requests.len(), requests[0].points), (1, 1));
/// ```
#[derive(Debug)]
pub struct Exporter {
    temporality: Temporality,
    processes: HashMap<ProcessKey, Process>,
    points: PointTable<Exported>,
}

/// A series, and its exported state.
#[derive(Debug)]
struct Exported {
    series: Series,
    previous: PreviousPoint,
}

impl Description for Exported {
    fn bytes(&self) -> usize {
        let Series { provider, meter_version, name, display_name, unit, description, .. } = &self.series;
        let Series { tags, instrument_tags, meter_tags, instrument_type, .. } = &self.series;
        [provider, meter_version, name, display_name, unit, description, tags, instrument_tags]
            .into_iter()
            .chain([meter_tags, instrument_type])
            .fold(0, |sum, text| sum.saturating_add(text.len()))
    }
}

impl Exporter {
    /// Creates an exporter that keeps at most this many series. Values of others are counted, in
    /// `dipc.values.left_out`.
    pub fn new(temporality: Temporality, most_series: usize) -> Self {
        Self { temporality, processes: HashMap::new(), points: PointTable::new(most_series) }
    }

    /// Sets the process for samples with this id. Earlier series of the id end.
    pub fn begin_process(&mut self, id: ProcessKey, process: Process) {
        self.points.remove_process(id);
        self.processes.insert(id, process);
    }

    /// Records the end of a process. Its series at that time are encoded unchanged until
    /// [`end_process`](Self::end_process), however late that is.
    pub fn keep_process(&mut self, id: ProcessKey, now: Duration) {
        self.points.keep_process(id, now);
    }

    /// Ends the series of a process.
    pub fn end_process(&mut self, id: ProcessKey) {
        self.points.remove_process(id);
        self.processes.remove(&id);
    }

    /// Adds a sample.
    pub fn add(&mut self, process: ProcessKey, sample: &Sample<'_>, now: Duration) {
        let key = PointKey { process, series: sample.id };
        self.points.add(key, sample, now, || {
            Some(Exported { series: sample.series.clone(), previous: PreviousPoint::default() })
        });
    }

    /// The number of values of series that were left out for lack of space.
    pub fn left_out(&self) -> u64 {
        self.points.left_out
    }

    /// Encodes all series that have not ended, in as many requests as necessary. `time` is the current time,
    /// in nanoseconds since 1970.
    pub fn encode(&mut self, now: Duration, time: u64) -> Vec<Request> {
        let left_out = self.left_out();
        let mut points: Vec<_> = self.points.live_mut(now).collect();
        points.sort_unstable_by(order);
        let mut requests = Vec::new();
        for part in points.chunks_mut(MAX_POINTS) {
            let mut resources = Vec::new();
            for of_process in part.chunk_by_mut(|left, right| left.0.process == right.0.process) {
                let Some(process) = of_process.first().and_then(|(key, _)| self.processes.get(&key.process))
                else {
                    continue;
                };
                resources.push(resource_metrics(process, of_process, self.temporality, time));
            }
            if requests.is_empty()
                && left_out > 0
                && let Some(first) = resources.first_mut()
            {
                first.scope_metrics.push(data::left_out(left_out, time));
            }
            let request = ExportMetricsServiceRequest { resource_metrics: resources };
            requests.push(Request { bytes: request.encode_to_vec(), points: part.len() });
        }
        requests
    }
}

/// Returns the number of points that a receiver rejected although it accepted the request, and its reason.
///
/// ```
/// use clr_counters::otlp::rejected_points;
///
/// // The empty response of a collector that accepted everything.
/// assert_eq!(rejected_points(&[]), None);
/// ```
pub fn rejected_points(response: &[u8]) -> Option<(u64, String)> {
    let partial = ExportMetricsServiceResponse::decode(response).ok()?.partial_success?;
    let rejected = u64::try_from(partial.rejected_data_points).unwrap_or_default();
    (rejected > 0 || !partial.error_message.is_empty()).then_some((rejected, partial.error_message))
}

type Entry<'p> = (PointKey, &'p mut Point<Exported>);

/// The order of points in a request: points of the same process, scope and metric are adjacent.
fn order(left: &Entry<'_>, right: &Entry<'_>) -> Ordering {
    let ((key, point), (other_key, other)) = (left, right);
    let (series, other_series) = (&point.description.series, &other.description.series);
    let process = key.process.cmp(&other_key.process);
    let of_scope = process.then_with(|| scope_key(series).cmp(&scope_key(other_series)));
    let of_metric = of_scope.then_with(|| metric_key(point).cmp(&metric_key(other)));
    of_metric.then_with(|| tags(series).cmp(&tags(other_series))).then(key.cmp(other_key))
}

fn scope_key(series: &Series) -> (&str, &str, &str) {
    (&series.provider, &series.meter_version, &series.meter_tags)
}

fn metric_key(point: &Point<Exported>) -> (&str, &str, u8) {
    let series = &point.description.series;
    (&series.name, &series.unit, data::kind(&point.value))
}

fn tags(series: &Series) -> (&str, &str) {
    (&series.tags, &series.instrument_tags)
}

fn resource_metrics(
    process: &Process,
    points: &mut [Entry<'_>],
    temporality: Temporality,
    time: u64,
) -> ResourceMetrics {
    let mut attributes: Vec<KeyValue> =
        process.attributes.iter().map(|(key, value)| KeyValue::new(key, &**value)).collect();
    attributes.extend(process.pid.map(|pid| KeyValue::new("process.pid", i64::from(pid))));
    // A clock that was set back: no value ends before it begins.
    let times = Times { start: process.start.min(time), time };
    let scopes = points.chunk_by_mut(|left, right| {
        scope_key(&left.1.description.series) == scope_key(&right.1.description.series)
    });
    let scope_metrics = scopes.map(|points| scope_metrics(points, temporality, times)).collect();
    let resource = Some(Resource { attributes });
    ResourceMetrics { resource, scope_metrics }
}

fn scope_metrics(points: &mut [Entry<'_>], temporality: Temporality, times: Times) -> ScopeMetrics {
    let scope = points.first().map(|(_, point)| {
        let series = &point.description.series;
        InstrumentationScope {
            name: series.provider.clone(),
            version: series.meter_version.clone(),
            attributes: attributes(series.meter_tag_pairs()),
        }
    });
    let metrics = points.chunk_by_mut(|left, right| metric_key(left.1) == metric_key(right.1));
    let metrics = metrics.filter_map(|points| metric(points, temporality, times)).collect();
    ScopeMetrics { scope, metrics }
}

fn metric(points: &mut [Entry<'_>], temporality: Temporality, times: Times) -> Option<Metric> {
    let (_, first) = points.first()?;
    let series = &first.description.series;
    let (name, unit) = (series.name.clone(), unit(series).to_owned());
    let texts = [&series.description, &series.display_name];
    let description = texts.into_iter().find(|text| !text.is_empty()).cloned().unwrap_or_default();
    let mut data = data_of(&first.value, temporality);
    // A total that falls, as of a rate that is negative, is not a monotonic sum.
    let falls = |value: &PointValue| matches!(value, PointValue::Counter { total, .. } if *total < 0.0);
    if let Data::Sum(sum) = &mut data {
        sum.is_monotonic &= !points.iter().any(|(_, point)| falls(&point.value));
    }
    let mut last = None;
    for (_, point) in points {
        let Exported { series, previous } = &mut point.description;
        let mut attributes = attributes(series.instrument_tag_pairs().into_iter().chain(series.tag_pairs()));
        // Meters that share all their names differ in the numbers of their instruments.
        let identity = (series.tags.clone(), series.instrument_tags.clone());
        if last.as_ref() == Some(&identity) {
            let Some(id) = series.instrument_id else { continue };
            attributes.push(KeyValue::new("dotnet.instrument.id", i64::from(id)));
        }
        last = Some(identity);
        add_point(&mut data, &point.value, previous, temporality, times, attributes);
    }
    Some(Metric { name, description, unit, data: Some(data) })
}

/// Returns the unit in UCUM, which EventCounters do not use.
fn unit(series: &Series) -> &str {
    match &*series.unit {
        unit if series.kind.is_meter() => unit,
        "B" => "By",
        "KB" => "kBy",
        "MB" => "MBy",
        "GB" => "GBy",
        unit => unit,
    }
}

/// Returns tags as attributes. Keys are unique: the values of duplicate keys are joined.
fn attributes<'t>(tags: impl IntoIterator<Item = (&'t str, &'t str)>) -> Vec<KeyValue> {
    let mut unique = Vec::<(&str, String)>::new();
    for (key, value) in tags {
        match unique.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => {
                known.push(';');
                known.push_str(value);
            }
            None => unique.push((key, value.to_owned())),
        }
    }
    unique.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect()
}

#[cfg(test)]
mod tests;
