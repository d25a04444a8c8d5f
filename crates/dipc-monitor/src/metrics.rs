//! The counters of all processes for Prometheus.

mod memory;
mod summary;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clr_counters::prometheus::{Exporter, Format, NameStyle, OwnMetric, TargetInfo};
use clr_counters::{CounterSource, ProcessKey, Sample, Selection, SelectionError};
use dipc_client::nettrace::TraceInfo;

use crate::artifact::default_counters;
use crate::configuration::{Configuration, CounterGroup, GlobalCounter};
use crate::counters::{CounterConsumer, CounterRequest, CounterSubscription};
use crate::monitor::ProcessObserver;
use crate::owner_memory::OwnerMemory;
use crate::process::Watched;
use crate::resource;

pub(crate) use memory::add_memory;
pub use summary::CounterSummary;
use summary::Summary;

/// Maximum number of series of all processes.
const MAX_SERIES: usize = 100_000;

/// The counters by default.
const DEFAULT_COUNTERS: &str =
    "System.Runtime,Microsoft.AspNetCore.Hosting,Microsoft.AspNetCore.Server.Kestrel,System.Net.Http";

/// The settings of [`Metrics`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MetricsConfig {
    /// The names of metrics.
    pub style: NameStyle,
    /// The counters.
    pub selection: Selection,
    /// The interval between values.
    pub interval: Duration,
    /// Maximum number of histograms of Meters in a process.
    pub max_histograms: u32,
    /// Maximum number of time series of Meters in a process.
    pub max_time_series: u32,
}

impl MetricsConfig {
    /// The defaults: counters of .NET and ASP.NET Core every five seconds. With dotnet-monitor's names, they
    /// are its EventCounters; otherwise Meters if a process has them, with histograms.
    pub fn new(style: NameStyle) -> Self {
        let selection = if style == NameStyle::DotnetMonitor {
            default_counters()
        } else {
            Selection::parse(DEFAULT_COUNTERS).unwrap_or_default()
        };
        let GlobalCounter { interval, max_histograms, max_time_series, .. } = GlobalCounter::default();
        Self { style, selection, interval, max_histograms, max_time_series }
    }

    /// With this [`selection`](Self::selection).
    #[must_use]
    pub fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// With this [`interval`](Self::interval).
    #[must_use]
    pub fn with_interval(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// With this [`max_histograms`](Self::max_histograms).
    #[must_use]
    pub fn with_max_histograms(self, max_histograms: u32) -> Self {
        Self { max_histograms, ..self }
    }

    /// With this [`max_time_series`](Self::max_time_series).
    #[must_use]
    pub fn with_max_time_series(self, max_time_series: u32) -> Self {
        Self { max_time_series, ..self }
    }

    /// The counters as a consumer requests them.
    pub fn request(&self) -> CounterRequest {
        CounterRequest::new(self.selection.clone(), self.interval)
            .with_exponential_histograms(self.style == NameStyle::OpenTelemetry)
            .with_max_histograms(self.max_histograms)
            .with_max_time_series(self.max_time_series)
    }

    /// Applies the settings of a configuration. Returns `None` if it exports no counters.
    ///
    /// # Errors
    /// If the name of a counter cannot be requested.
    pub fn with_configuration(
        mut self,
        configuration: &Configuration,
    ) -> Result<Option<Self>, SelectionError> {
        let Configuration { metrics, global_counter, .. } = configuration;
        self.interval = global_counter.interval;
        self.max_histograms = global_counter.max_histograms;
        self.max_time_series = global_counter.max_time_series;
        let mut selection = metrics.include_default_providers.then(|| self.selection.clone());
        for (groups, source) in
            [(&metrics.providers, CounterSource::EventCounters), (&metrics.meters, CounterSource::Meters)]
        {
            for CounterGroup { name, counters } in groups {
                let named = Selection::of_provider(source, name, counters)?;
                selection = Some(match selection {
                    Some(known) => known.and(named),
                    None => named,
                });
            }
        }
        let is_used = metrics.enabled;
        Ok(selection.filter(|_| is_used).map(|selection| Self { selection, ..self }))
    }
}

/// The last values of the counters of all processes. Add it to the observers of a
/// [`Monitor`](crate::Monitor).
///
/// ```
/// use clr_counters::prometheus::{Format, NameStyle};
/// use dipc_monitor::{Metrics, MetricsConfig};
///
/// // Among the observers of a `Monitor`; this one is still without processes.
/// let metrics = Metrics::new(MetricsConfig::new(NameStyle::OpenTelemetry));
/// let text = String::from_utf8(metrics.encode(Format::Text, &[]))?;
/// assert!(text.contains("dipc_series 0"), "{text}");
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[allow(clippy::exhaustive_structs, reason = "a section of a configuration, with `..Default::default()`")]
pub struct Metrics {
    config: Mutex<MetricsConfig>,
    exporter: Arc<Mutex<Exporter>>,
    start: Instant,
    processes: Mutex<BTreeMap<u32, ProcessMetrics>>,
}

/// The counters of a process.
struct ProcessMetrics {
    _subscription: CounterSubscription,
    summary: Arc<Mutex<Summary>>,
    memory: Arc<OwnerMemory>,
    target: TargetInfo,
    /// True once the exporter knows the process.
    is_begun: Arc<AtomicBool>,
}

impl Metrics {
    /// Creates the state without any process.
    pub fn new(config: MetricsConfig) -> Self {
        let exporter = Exporter::new(config.style, MAX_SERIES).with_own_metrics();
        Self {
            config: Mutex::new(config),
            exporter: Arc::new(Mutex::new(exporter)),
            start: Instant::now(),
            processes: Mutex::default(),
        }
    }

    /// Sets the counters and their interval, of processes that are watched now and of later ones. The names
    /// of metrics stay.
    pub fn set_config(&self, config: MetricsConfig, watched: &[Arc<Watched>]) {
        let style = lock(&self.config).style;
        let config = MetricsConfig { style, ..config };
        if std::mem::replace(&mut *lock(&self.config), config.clone()) == config {
            return;
        }
        for process in watched {
            // The process's values belong to another session from now on.
            let replaced = lock(&self.processes).remove(&process.number);
            if replaced.is_some() && !process.has_ended() {
                self.started(process);
                if process.has_ended() {
                    self.ended(process);
                }
            }
            // The consumer leaves without the lock.
            drop(replaced);
        }
    }

    /// Writes the metrics of all processes, and the program's own metrics.
    pub fn encode(&self, format: Format, own: &[OwnMetric]) -> Vec<u8> {
        self.add_memory();
        lock(&self.exporter).encode_with(format, self.start.elapsed(), own)
    }

    /// Adds the last readings of the memory of processes.
    fn add_memory(&self) {
        let processes = lock(&self.processes);
        for (number, process) in &*processes {
            let Some(sizes) = process.memory.sizes() else { continue };
            let (key, now) = (ProcessKey(*number), self.start.elapsed());
            let mut exporter = lock(&self.exporter);
            // A process without counters has memory, too.
            if !process.is_begun.swap(true, Ordering::AcqRel) {
                exporter.begin_target(key, &process.target);
            }
            add_memory(&sizes, now, |sample| exporter.add(key, sample, now));
        }
    }

    /// The last values of the counters of a process that a table of processes shows.
    pub fn summary(&self, process: &Watched) -> CounterSummary {
        let processes = lock(&self.processes);
        processes.get(&process.number).map(|it| lock(&it.summary).values()).unwrap_or_default()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProcessObserver for Metrics {
    fn started(&self, process: &Arc<Watched>) {
        let request = lock(&self.config).request();
        let summary = Arc::default();
        let target = TargetInfo {
            name: process.title().to_owned(),
            pid: process.facts.pid,
            attributes: resource::attributes(process, &[]),
        };
        process.owner_memory.want();
        let is_begun = Arc::<AtomicBool>::default();
        let consumer = MetricsConsumer {
            is_begun: Arc::clone(&is_begun),
            key: ProcessKey(process.number),
            target: target.clone(),
            exporter: Arc::clone(&self.exporter),
            start: self.start,
            summary: Arc::clone(&summary),
        };
        let subscription = process.counters.subscribe(request, Box::new(consumer));
        let memory = Arc::clone(&process.owner_memory);
        let metrics = ProcessMetrics { _subscription: subscription, summary, memory, target, is_begun };
        lock(&self.processes).insert(process.number, metrics);
    }

    fn ended(&self, process: &Arc<Watched>) {
        // The consumer leaves without the lock.
        let metrics = lock(&self.processes).remove(&process.number);
        drop(metrics);
        lock(&self.exporter).end_process(ProcessKey(process.number));
    }
}

/// The consumer of a process's samples.
struct MetricsConsumer {
    is_begun: Arc<AtomicBool>,
    key: ProcessKey,
    target: TargetInfo,
    exporter: Arc<Mutex<Exporter>>,
    start: Instant,
    summary: Arc<Mutex<Summary>>,
}

impl CounterConsumer for MetricsConsumer {
    fn begin(&mut self, _: &TraceInfo) {
        lock(&self.summary).clear();
        let mut exporter = lock(&self.exporter);
        self.is_begun.store(true, Ordering::Release);
        exporter.begin_target(self.key, &self.target);
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        lock(&self.summary).add(sample);
        lock(&self.exporter).add(self.key, sample, self.start.elapsed());
    }
}
