//! Metrics, log records and spans of all processes as requests of the OpenTelemetry protocol (OTLP).
//!
//! A process has one session for log records and spans; counters are taken from the shared session. The
//! requests go to an [`OtlpSink`], which sends them: this module does not do network I/O.

mod batch;
mod http;
mod log;
mod metrics;
mod process;
mod span;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clr_counters::otlp::Request;
use dipc_collect::logs::LogSelection;
use serde::Serialize;

use crate::metrics::MetricsConfig;
use crate::monitor::ProcessObserver;
use crate::process::Watched;
use crate::resource;
use crate::stop::await_end;

use metrics::MetricsExport;
use process::ProcessExport;

pub use span::SamplingRatio;

/// Maximum wait for the session of a process that may wait at its start.
const MAX_START_TIME: Duration = Duration::from_secs(5);
/// The time for the sessions to stop at the end.
const LAST_SESSIONS: Duration = Duration::from_secs(5);

/// A kind of data.
///
/// ```
/// use dipc_monitor::OtlpSignal;
///
/// let paths = OtlpSignal::ALL.map(OtlpSignal::path);
/// assert_eq!(paths[0], "/v1/metrics");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_enums, reason = "those of the OpenTelemetry protocol")]
pub enum OtlpSignal {
    /// The values of counters.
    Metrics,
    /// Log records.
    Logs,
    /// Spans.
    Traces,
    /// Profiles of processor time: see [`ContinuousProfile`](crate::ContinuousProfile).
    Profiles,
}

impl OtlpSignal {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Metrics, Self::Logs, Self::Traces, Self::Profiles];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::Profiles => "profiles",
        }
    }

    /// The path of its requests at a collector.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Metrics => "/v1/metrics",
            Self::Logs => "/v1/logs",
            Self::Traces => "/v1/traces",
            // A protocol that is still in development.
            Self::Profiles => "/v1development/profiles",
        }
    }
}

/// The destination of requests. Its method must not block: it is called from the threads of sessions.
pub trait OtlpSink: Send + Sync {
    /// Takes a request, with the number of points, records, spans or profiles in it.
    fn send(&self, signal: OtlpSignal, request: Request);

    /// Returns a signal's queued, sent and dropped counts. `None` if the signal is not exported, or the sink
    /// does not count.
    fn totals(&self, _: OtlpSignal) -> Option<OtlpTotals> {
        None
    }
}

/// The requests of a signal, and the points, records or spans in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::exhaustive_structs, reason = "made by those who send")]
pub struct OtlpTotals {
    /// The bytes of requests that wait to be sent.
    pub queued_bytes: u64,
    /// The items that have arrived.
    pub sent_items: u64,
    /// The items that were dropped, or refused by the collector.
    pub dropped_items: u64,
}

/// The settings of [`OtlpExport`]. Without any signal nothing is exported.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OtlpConfig {
    /// The counters, if any; the style of names does not matter.
    pub metrics: Option<MetricsConfig>,
    /// The log records, if any. Form and duration do not matter.
    pub logs: Option<LogSelection>,
    /// The spans, if any.
    pub traces: Option<TracesConfig>,
    /// Attributes of every resource. They replace the attributes of the processes.
    pub attributes: Vec<(String, String)>,
}

impl OtlpConfig {
    /// With these [`metrics`](Self::metrics).
    #[must_use]
    pub fn with_metrics(self, metrics: Option<MetricsConfig>) -> Self {
        Self { metrics, ..self }
    }

    /// With these [`logs`](Self::logs).
    #[must_use]
    pub fn with_logs(self, logs: Option<LogSelection>) -> Self {
        Self { logs, ..self }
    }

    /// With these [`traces`](Self::traces).
    #[must_use]
    pub fn with_traces(self, traces: Option<TracesConfig>) -> Self {
        Self { traces, ..self }
    }

    /// With these [`attributes`](Self::attributes).
    #[must_use]
    pub fn with_attributes(self, attributes: Vec<(String, String)>) -> Self {
        Self { attributes, ..self }
    }
}

/// The spans to export.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct TracesConfig {
    /// The names of further ActivitySources to export spans from, besides ASP.NET Core and HttpClient; `*`
    /// for all.
    pub sources: Vec<String>,
    /// The share of traces.
    pub ratio: SamplingRatio,
}

impl TracesConfig {
    /// Returns true if the name of an ActivitySource can be part of the request to the runtime.
    pub fn is_valid_source(name: &str) -> bool {
        !name.is_empty() && !name.contains(['"', '/', ':', '+', ';']) && !name.chars().any(char::is_control)
    }
}

/// The export of all processes. Add it to the observers of a [`Monitor`](crate::Monitor), before rules: its
/// request for spans has to be that of all sessions of a process.
pub struct OtlpExport {
    shared: Arc<Shared>,
    processes: Mutex<BTreeMap<u32, Arc<ProcessExport>>>,
    metrics: Option<MetricsExport>,
}

/// The state that all processes share.
struct Shared {
    config: OtlpConfig,
    sink: Arc<dyn OtlpSink>,
}

impl OtlpExport {
    /// Starts the export.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(config: OtlpConfig, sink: Arc<dyn OtlpSink>) -> std::io::Result<Self> {
        let metrics = config.metrics.clone();
        let metrics = metrics.map(|config| MetricsExport::start(config, Arc::clone(&sink))).transpose()?;
        Ok(Self { shared: Arc::new(Shared { config, sink }), processes: Mutex::default(), metrics })
    }

    /// Returns a signal's queued, sent and dropped counts.
    pub(crate) fn totals(&self, signal: OtlpSignal) -> Option<OtlpTotals> {
        self.shared.sink.totals(signal)
    }

    /// Stops the sessions, and passes on everything that has arrived.
    pub fn stop(&self) {
        let processes: Vec<_> = std::mem::take(&mut *self.processes()).into_values().collect();
        for process in &processes {
            process.stop();
        }
        await_end(&processes, |it| it.can_answer(), |it| it.is_running(), LAST_SESSIONS);
        if let Some(metrics) = &self.metrics {
            metrics.stop();
        }
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<ProcessExport>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for OtlpExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpExport").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

impl ProcessObserver for OtlpExport {
    fn started(&self, process: &Arc<Watched>) {
        let attributes = resource::attributes(process, &self.shared.config.attributes);
        if let Some(metrics) = &self.metrics {
            metrics.add(process, attributes.clone());
        }
        let Shared { config, .. } = &*self.shared;
        if config.logs.is_none() && config.traces.is_none() {
            return;
        }
        let export = ProcessExport::start(Arc::clone(process), &attributes, Arc::clone(&self.shared));
        self.processes().insert(process.number, Arc::clone(&export));
        // The process may wait at its start, so that its first records and spans are exported, too.
        export.wait_for_session(MAX_START_TIME);
    }

    fn ended(&self, process: &Arc<Watched>) {
        if let Some(metrics) = &self.metrics {
            metrics.end(process);
        }
        // The export's thread ends with the rest of the stream.
        drop(self.processes().remove(&process.number));
    }
}

/// Nanoseconds since 1970 as messages have them.
fn unix_nanoseconds(time: i128) -> u64 {
    u64::try_from(time).unwrap_or_default()
}

/// The current time, in nanoseconds since 1970.
fn unix_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
