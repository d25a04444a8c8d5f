//! The exposition formats of Prometheus: text, OpenMetrics and, with feature `protobuf`, protobuf with native
//! histograms.
//!
//! [`Exporter`] takes samples of any number of processes, and writes the last state of each series. Counters
//! are totals: the runtime's own if it sends them, otherwise sums of the added samples. Values do not carry
//! timestamps.

mod accept;
mod family;
mod name;
mod own;
#[cfg(feature = "protobuf")]
mod protobuf;
mod target;
mod text;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::point::{Description, Point, PointKey, PointTable, PointValue, ProcessKey};
use crate::sample::Sample;
use crate::series::Series;

pub use accept::Format;
use family::{Families, Family, FamilyKind, FamilyName, family_kind};
use name::{Unit, label_name, plain};
pub use own::OwnMetric;
use target::Process;
pub use target::TargetInfo;

/// The naming scheme of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NameStyle {
    /// Names by OpenTelemetry's specification for instruments in Prometheus; EventCounters by provider and
    /// name, in base units.
    #[default]
    OpenTelemetry,
    /// Names as in dotnet-monitor: every counter is a gauge of its last interval.
    DotnetMonitor,
}

/// The last state of the series of processes, for Prometheus.
///
/// The caller chooses the times: durations since any moment, the same for all calls. A series without a value
/// for five intervals, and at least ten seconds, has ended.
///
/// ```
/// use std::time::Duration;
/// use clr_counters::ProcessKey;
/// use clr_counters::prometheus::{Exporter, Format, NameStyle};
///
/// let mut exporter = Exporter::new(NameStyle::OpenTelemetry, 10_000);
/// exporter.begin_process(ProcessKey(0), Some("app"), Some(4711));
/// // For each sample: exporter.add(ProcessKey(0), &sample, now);
/// let text = exporter.encode(Format::negotiate(Some("application/openmetrics-text")), Duration::ZERO);
/// assert!(text.ends_with(b"# EOF\n"));
/// ```
#[derive(Debug)]
pub struct Exporter {
    style: NameStyle,
    processes: HashMap<ProcessKey, Process>,
    points: PointTable<SeriesName>,
    families: Families,
    has_own_metrics: bool,
    /// The number of values that formats could not have.
    unwritable: AtomicU64,
}

/// The name of a series: its family and its labels.
#[derive(Debug)]
struct SeriesName {
    family: Arc<Family>,
    /// Names and values alternating, each after the first preceded by NUL, which they never contain.
    labels: Box<str>,
    /// The factor between the runtime's unit and the family's.
    factor: f64,
    /// The label that it has if another series has the same name and labels.
    distinction: Option<(&'static str, Box<str>)>,
}

impl Description for SeriesName {
    fn bytes(&self) -> usize {
        self.labels.len().saturating_add(self.distinction.as_ref().map_or(0, |(_, value)| value.len()))
    }
}

/// A series in the output.
struct Metric<'e> {
    family: &'e Family,
    labels: &'e str,
    /// An additional label, if another series has the same labels.
    distinction: Option<(&'static str, Cow<'e, str>)>,
    value: &'e PointValue,
    factor: f64,
}

impl Exporter {
    /// Creates an exporter that keeps at most this many series. Values of others are
    /// [counted](Self::left_out).
    pub fn new(style: NameStyle, most_series: usize) -> Self {
        Self {
            style,
            processes: HashMap::new(),
            points: PointTable::new(most_series),
            families: Families::default(),
            has_own_metrics: false,
            unwritable: AtomicU64::new(0),
        }
    }

    /// Returns the same exporter with two families of its own, after all others: `dipc_series`, the series
    /// that are written, and `dipc_values_left_out_total`, [`left_out`](Self::left_out). These names are
    /// reserved in any case.
    #[must_use]
    pub fn with_own_metrics(self) -> Self {
        Self { has_own_metrics: true, ..self }
    }

    /// Sets the process for samples with this id. Earlier series of the id end.
    pub fn begin_process(&mut self, process: ProcessKey, name: Option<&str>, pid: Option<u32>) {
        self.points.remove_process(process);
        self.processes.insert(process, Process::named(name, pid));
    }

    /// Sets the process for samples with this id, like [`begin_process`](Self::begin_process). Its series
    /// have the label `service_instance_id` as well, and it has a `target_info`.
    pub fn begin_target(&mut self, process: ProcessKey, target: &TargetInfo) {
        self.points.remove_process(process);
        self.processes.insert(process, Process::of_target(target));
    }

    /// Ends the series of a process.
    pub fn end_process(&mut self, process: ProcessKey) {
        self.points.remove_process(process);
        self.processes.remove(&process);
    }

    /// Adds a sample.
    ///
    /// ```
    /// # use clr_counters::{Kind, Measurement, MeterMeasurement, Sample, Series, SeriesId};
    /// # use std::time::Duration;
    /// # let series = Series::new("MyApp", "orders", Kind::Counter);
    /// # let counter = MeterMeasurement::Counter { increment: Some(6.0), total: Some(40.0) };
    /// # let orders = Measurement::Meter(counter);
    /// # let time = nettrace::RelativeTime::after_start(Duration::from_secs(9));
    /// # let sample = Sample::new(time, SeriesId(0), &series, &orders).with_interval(Duration::from_secs(3));
    /// use clr_counters::ProcessKey;
    /// use clr_counters::prometheus::{Exporter, Format, NameStyle};
    ///
    /// let (mut exporter, now) = (Exporter::new(NameStyle::OpenTelemetry, 10_000), Duration::from_secs(9));
    /// exporter.begin_process(ProcessKey(0), Some("shop"), Some(4711));
    /// exporter.add(ProcessKey(0), &sample, now);
    /// let text = String::from_utf8(exporter.encode(Format::Text, now))?;
    /// assert!(text.lines().any(|line| line.contains("orders") && line.ends_with(" 40.0")), "{text}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add(&mut self, process: ProcessKey, sample: &Sample<'_>, now: Duration) {
        let key = PointKey { process, series: sample.id };
        let Self { style, processes, points, families, .. } = self;
        points.add(key, sample, now, || {
            let labels = processes.get(&process).map_or(&[][..], |process| &process.labels);
            describe(*style, families, labels, sample)
        });
    }

    /// The number of values that were left out: of series for lack of space, and in each encoding the values
    /// that its format cannot have, such as totals and, in OpenMetrics, quantiles below zero.
    pub fn left_out(&self) -> u64 {
        self.points.left_out.saturating_add(self.unwritable.load(Ordering::Relaxed))
    }

    /// Writes all series that have not ended.
    pub fn encode(&self, format: Format, now: Duration) -> Vec<u8> {
        self.encode_with(format, now, &[])
    }

    /// Writes all series that have not ended, and metrics of the calling program.
    ///
    /// ```
    /// use std::time::Duration;
    /// use clr_counters::prometheus::{Exporter, Format, NameStyle, OwnMetric};
    ///
    /// let exporter = Exporter::new(NameStyle::OpenTelemetry, 10_000);
    /// let own = OwnMetric::gauge("dipc_monitor_sessions", "Open sessions.", 2.0);
    /// let text = String::from_utf8(exporter.encode_with(Format::Text, Duration::ZERO, &[own]))?;
    /// assert!(text.lines().any(|line| line == "dipc_monitor_sessions 2"), "{text}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode_with(&self, format: Format, now: Duration, more: &[OwnMetric]) -> Vec<u8> {
        let series = self.metrics(now, format);
        let mut own = more.to_vec();
        if self.has_own_metrics {
            own.extend(self.own_metrics(series.len()));
        }
        let family = target::family();
        // `target_info` is the first family, as OpenMetrics recommends.
        let mut metrics = target::metrics(&family, self.processes.values());
        metrics.extend(series);
        match format {
            Format::Text | Format::OpenMetrics => text::encode(&metrics, &own, format).into_bytes(),
            #[cfg(feature = "protobuf")]
            Format::Protobuf => protobuf::encode(&metrics, &own),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "numbers below 2^53")]
    fn own_metrics(&self, series: usize) -> [OwnMetric; 2] {
        let left_out = "Values that are left out, of more series than are kept or impossible in the format.";
        [
            OwnMetric::gauge("dipc_series", "Series that are served.", series as f64),
            OwnMetric::counter("dipc_values_left_out", left_out, self.left_out() as f64),
        ]
    }

    /// Returns the series that the format can have, by family and labels, and counts the values that it
    /// cannot.
    fn metrics(&self, now: Duration, format: Format) -> Vec<Metric<'_>> {
        let mut metrics = self.named_metrics(now);
        let mut unwritable = 0u64;
        metrics.retain(|metric| {
            let (values, impossible) = metric.values(format);
            unwritable = unwritable.saturating_add(impossible);
            values > 0
        });
        self.unwritable.fetch_add(unwritable, Ordering::Relaxed);
        metrics
    }

    /// Returns the series by family and labels, no two with the same.
    fn named_metrics(&self, now: Duration) -> Vec<Metric<'_>> {
        let mut live: Vec<(PointKey, &Point<SeriesName>)> = self.points.live(now).collect();
        live.sort_unstable_by(|(key, point), (other_key, other)| {
            let (name, other_name) = (&point.description, &other.description);
            let families = name.family.name.cmp(&other_name.family.name);
            families.then_with(|| name.labels.cmp(&other_name.labels)).then(key.cmp(other_key))
        });
        let mut metrics = Vec::<Metric<'_>>::with_capacity(live.len());
        // The labels that series with the same names could have to differ.
        let mut taken = Vec::new();
        for (key, point) in live {
            let SeriesName { family, labels, factor, distinction } = &point.description;
            let is_twin = metrics
                .last()
                .is_some_and(|last| last.family.name == family.name && last.labels == &**labels);
            if !is_twin {
                taken.clear();
            }
            let own = distinction.as_ref().map(|(name, value)| (*name, Cow::Borrowed(&**value)));
            let label = own
                .filter(|own| !taken.contains(own))
                .unwrap_or_else(|| (SERIES_ID, Cow::Owned(format!("{}.{}", key.process.0, key.series.0))));
            taken.push(label.clone());
            metrics.push(Metric {
                family,
                labels,
                distinction: is_twin.then_some(label),
                value: &point.value,
                factor: *factor,
            });
        }
        metrics
    }
}

/// The labels of series with the same names in Prometheus: the number of an instrument, the provider and name
/// of an EventCounter, and the exporter's own number.
const INSTRUMENT_ID: &str = "instrument_id";
const EVENT_COUNTER: &str = "event_counter";
const SERIES_ID: &str = "dipc_series_id";

/// Names a series; `None` if no name is free.
fn describe(
    style: NameStyle,
    families: &mut Families,
    process: &[(&'static str, String)],
    sample: &Sample<'_>,
) -> Option<SeriesName> {
    let series = sample.series;
    let kind = family_kind(style, sample);
    let (unit, base) = match style {
        NameStyle::DotnetMonitor => {
            let provider = name::dotnet_monitor_provider(&series.provider);
            let base = format!("{provider}_{}", name::replace_invalid(&series.name));
            (Unit::of_dotnet_monitor(&series.unit), base)
        }
        NameStyle::OpenTelemetry if series.kind.is_meter() => {
            let is_gauge = kind == FamilyKind::Gauge;
            (Unit::of_instrument(&series.unit, is_gauge), name::metric_name(&series.name))
        }
        NameStyle::OpenTelemetry => {
            let base = name::metric_name(&format!("{}_{}", series.provider, series.name));
            (Unit::of_event_counter(&series.unit), base.to_ascii_lowercase())
        }
    };
    let name = FamilyName { base, provider: name::metric_name(&series.provider), unit: unit.words, kind };
    let family = families.family(&name, || help(series))?;
    Some(SeriesName {
        family,
        labels: labels(style, process, series, kind),
        factor: unit.factor,
        distinction: distinction(series),
    })
}

/// Returns the label that a series has if another one has the same name and labels.
fn distinction(series: &Series) -> Option<(&'static str, Box<str>)> {
    if series.kind.is_meter() {
        return series.instrument_id.map(|id| (INSTRUMENT_ID, id.to_string().into()));
    }
    Some((EVENT_COUNTER, plain(&format!("{}/{}", series.provider, series.name)).into()))
}

/// Returns the help text of a metric.
fn help(series: &Series) -> String {
    let texts = [&series.description, &series.display_name];
    match texts.into_iter().find(|text| !text.trim().is_empty()) {
        Some(text) => plain(text),
        None => plain(&format!("{} of {}", series.name, series.provider)),
    }
}

/// Returns the labels of a series: the labels of its process and its Meter, and its tags.
fn labels(
    style: NameStyle,
    process: &[(&'static str, String)],
    series: &Series,
    kind: FamilyKind,
) -> Box<str> {
    let mut labels: Vec<(String, String)> =
        process.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    if style == NameStyle::OpenTelemetry && series.kind.is_meter() {
        labels.push(("otel_scope_name".to_owned(), plain(&series.provider)));
        if !series.meter_version.is_empty() {
            labels.push(("otel_scope_version".to_owned(), plain(&series.meter_version)));
        }
        for (key, value) in series.meter_tag_pairs() {
            add_tag(&mut labels, format!("otel_scope_{}", label_name(key)), value);
        }
    }
    let reserved = labels.len();
    for (key, value) in series.instrument_tag_pairs().into_iter().chain(series.tag_pairs()) {
        let mut name = label_name(key);
        let is_ours = labels.iter().take(reserved).any(|(ours, _)| *ours == name)
            || matches!(&*name, "process_name" | "process_pid" | "service_instance_id")
            || matches!(&*name, INSTRUMENT_ID | EVENT_COUNTER | SERIES_ID)
            || kind == FamilyKind::Summary && name == "quantile"
            || kind == FamilyKind::Histogram && name == "le";
        if is_ours {
            name.insert_str(0, "tag_");
        }
        add_tag(&mut labels, name, value);
    }
    joined(labels)
}

/// Joins labels to the form of [`SeriesName::labels`].
fn joined(labels: Vec<(String, String)>) -> Box<str> {
    let mut text = String::new();
    for (name, value) in labels {
        if !text.is_empty() {
            text.push('\0');
        }
        text.push_str(&name);
        text.push('\0');
        text.push_str(&value);
    }
    text.into_boxed_str()
}

/// Adds a tag. If two tags become the same name, their values are joined, as in OpenTelemetry.
fn add_tag(labels: &mut Vec<(String, String)>, name: String, value: &str) {
    match labels.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => {
            known.push(';');
            known.push_str(&plain(value));
        }
        None => labels.push((name, plain(value))),
    }
}

impl<'e> Metric<'e> {
    /// The labels, including the distinguishing label if that is needed.
    fn labels(&self) -> impl Iterator<Item = (&'e str, Cow<'e, str>)> + use<'e> {
        let mut parts = self.labels.split('\0');
        let pairs = std::iter::from_fn(move || {
            let name = parts.next().filter(|name| !name.is_empty())?;
            Some((name, parts.next().unwrap_or_default().into()))
        });
        pairs.chain(self.distinction.clone())
    }

    /// Returns the numbers of values that a format can and cannot have.
    fn values(&self, format: Format) -> (u64, u64) {
        let of = |is_possible: bool| if is_possible { (1, 0) } else { (0, 1) };
        match self.value {
            PointValue::Histogram { quantiles, count, sum } => {
                let mut all = vec![(u64::from(count.is_some()), 0)];
                all.extend(quantiles.iter().map(|(_, value)| of(format.can_have_quantile(*value))));
                all.extend(sum.map(|sum| of(format.can_have_sum(sum))));
                all.into_iter().fold((0, 0), |sum: (u64, u64), (possible, impossible)| {
                    (sum.0.saturating_add(possible), sum.1.saturating_add(impossible))
                })
            }
            PointValue::Exponential(histogram) => (1, u64::from(!format.can_have_sum(histogram.sum))),
            PointValue::Counter { .. } | PointValue::UpDownCounter(_) | PointValue::Gauge(_) => {
                of(self.number().is_some())
            }
        }
    }

    /// The number of a counter or a gauge; `None` if the number is invalid for a counter.
    fn number(&self) -> Option<f64> {
        let number = match self.value {
            PointValue::Counter { total, .. } if self.family.kind == FamilyKind::Counter => *total,
            PointValue::Counter { increment, .. } => *increment,
            PointValue::UpDownCounter(value) | PointValue::Gauge(value) => *value,
            PointValue::Histogram { .. } | PointValue::Exponential(_) => return None,
        };
        let is_possible = self.family.kind != FamilyKind::Counter || number.is_finite() && number >= 0.0;
        is_possible.then_some(number * self.factor)
    }
}

#[cfg(test)]
mod tests;
