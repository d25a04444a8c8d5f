//! Artifacts: data collected from a process, for a request or a rule.

mod call_stack;
mod dump;
mod heap;
mod live_metrics;
mod logs;
mod memory;
mod report;
mod request;
mod snapshot;
mod stream;
mod trace;

use std::io;
use std::time::{Duration, SystemTime};

use dipc_client::{DumpType, ErrorKind};
use dipc_collect::StopSignal;
use dipc_collect::session::StartError;
use jiff::Timestamp;

use crate::process::Watched;

pub use call_stack::exceptions::{ExceptionFilter, ExceptionsRequest};
pub use call_stack::stacks::StackFormat;
pub use live_metrics::LiveMetricsRequest;
pub use logs::{LogFormat, LogsRequest};
pub use report::{FlameGraphFormat, ProfileKind, RequestsRequest, TopFormat, TopRequest};
pub use trace::{TraceProfile, TraceRequest};

pub(crate) use logs::write_record;
pub(crate) use report::{
    ProfileFormat, ProfileReportRequest, causes_of_recording, page_of_recording, report_of_recording,
};
pub(crate) use request::{ProcessSelector, Query, RequestError, StoredRequest};
pub(crate) use trace::{default_counters, merged, parse_event_level, parse_keywords};

/// An artifact to collect.
///
/// ```
/// use dipc_monitor::{Artifact, ArtifactKind, RequestsRequest};
/// use std::time::Duration;
///
/// let duration = Some(Duration::from_secs(30));
/// let requests = Artifact::Requests(RequestsRequest { duration, slower_than: None });
/// assert_eq!((requests.kind(), requests.media_type()), (ArtifactKind::Requests, "application/json"));
/// assert_eq!(Artifact::GcDump.duration(), None);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Artifact {
    /// The stream of a session, in the nettrace format.
    Trace(TraceRequest),
    /// The heap, in dotnet-gcdump's format.
    GcDump,
    /// A core dump.
    Dump(DumpType),
    /// The values of counters, as JSON sequences.
    LiveMetrics(LiveMetricsRequest),
    /// The log records of Microsoft.Extensions.Logging.
    Logs(LogsRequest),
    /// The last seconds, as the black box keeps them, in the nettrace format.
    Snapshot,
    /// The stacks of all threads.
    Stacks(StackFormat),
    /// The exceptions that are thrown while it is collected.
    Exceptions(ExceptionsRequest),
    /// A flame graph of the threads' time, working or blocked; [`None`] is without a limit.
    FlameGraph(FlameGraphFormat, Option<Duration>),
    /// The methods by the threads' time, working or blocked.
    Top(TopRequest),
    /// The requests and outgoing calls that end while it is collected, as JSON; [`None`] is without a limit.
    Requests(RequestsRequest),
    /// The causes of what is wrong, as `dipc why` finds them; [`None`] is without a limit.
    Why(TopFormat, Option<Duration>),
    /// The resident memory by its owners, as the JSON of `dipc memory`.
    Memory,
}

/// The kind of an artifact, for limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ArtifactKind {
    /// [`Artifact::Trace`].
    Trace,
    /// [`Artifact::GcDump`].
    GcDump,
    /// [`Artifact::Dump`].
    Dump,
    /// [`Artifact::LiveMetrics`].
    LiveMetrics,
    /// [`Artifact::Logs`].
    Logs,
    /// [`Artifact::Snapshot`].
    Snapshot,
    /// [`Artifact::Stacks`].
    Stacks,
    /// [`Artifact::Exceptions`].
    Exceptions,
    /// [`Artifact::FlameGraph`].
    FlameGraph,
    /// [`Artifact::Top`].
    Top,
    /// [`Artifact::Requests`].
    Requests,
    /// [`Artifact::Why`].
    Why,
    /// [`Artifact::Memory`].
    Memory,
}

/// The destination of an artifact.
///
/// ```
/// use dipc_monitor::ArtifactSink;
/// use std::io::{self, Write as _};
///
/// /// A file that exists once the process has accepted the request.
/// struct ToFile { path: std::path::PathBuf, file: Option<std::fs::File> }
///
/// impl ArtifactSink for ToFile {
///     fn begin(&mut self) -> io::Result<()> {
///         self.file = Some(std::fs::File::create_new(&self.path)?);
///         Ok(())
///     }
///     fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
///         self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes))
///     }
/// }
///
/// # let folder = tempfile::tempdir()?;
/// let mut sink = ToFile { path: folder.path().join("heap.gcdump"), file: None };
/// // `Artifact::collect` makes these calls.
/// sink.begin()?;
/// sink.write(b"!FastSerialization.1")?;
/// assert_eq!(std::fs::metadata(&sink.path)?.len(), 20);
/// # Ok::<(), io::Error>(())
/// ```
pub trait ArtifactSink {
    /// Called once, before the first byte: the process has accepted the request. Errors before this are
    /// answers; errors after it leave an incomplete artifact.
    ///
    /// # Errors
    /// If the destination fails, which ends the collection.
    fn begin(&mut self) -> io::Result<()>;

    /// Takes the next bytes.
    ///
    /// # Errors
    /// If the destination fails, which ends the collection.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// An error of collecting an artifact.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The process could not be asked, or refused.
    #[error(transparent)]
    Client(#[from] dipc_client::Error),
    /// The destination failed.
    #[error("write the artifact: {0}")]
    Sink(io::Error),
    /// The process does not have such an artifact.
    #[error("{0}")]
    Unsupported(String),
    /// The artifact could not be read.
    #[error("{0}")]
    Failed(String),
    /// The collection was cancelled.
    #[error("the collection was cancelled")]
    Cancelled,
}

impl From<StartError> for ArtifactError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Failed(error) => Self::Client(error),
            _ => Self::Cancelled,
        }
    }
}

impl ArtifactError {
    /// Returns true if the request can succeed later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Client(error) => matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Disconnected),
            Self::Sink(_) | Self::Failed(_) => true,
            Self::Unsupported(_) | Self::Cancelled => false,
        }
    }
}

impl Artifact {
    /// The kind.
    pub const fn kind(&self) -> ArtifactKind {
        match self {
            Self::Trace(_) => ArtifactKind::Trace,
            Self::GcDump => ArtifactKind::GcDump,
            Self::Dump(_) => ArtifactKind::Dump,
            Self::LiveMetrics(_) => ArtifactKind::LiveMetrics,
            Self::Logs(_) => ArtifactKind::Logs,
            Self::Snapshot => ArtifactKind::Snapshot,
            Self::Stacks(_) => ArtifactKind::Stacks,
            Self::Exceptions(_) => ArtifactKind::Exceptions,
            Self::FlameGraph(..) => ArtifactKind::FlameGraph,
            Self::Top(_) => ArtifactKind::Top,
            Self::Requests(_) => ArtifactKind::Requests,
            Self::Why(..) => ArtifactKind::Why,
            Self::Memory => ArtifactKind::Memory,
        }
    }

    /// The collection time; [`None`] for artifacts without one, and without a limit.
    pub const fn duration(&self) -> Option<Duration> {
        match self {
            Self::Trace(request) => request.duration,
            Self::LiveMetrics(request) => request.duration,
            Self::Logs(request) => request.duration,
            Self::Exceptions(request) => request.duration,
            Self::Top(request) => request.duration,
            Self::FlameGraph(_, duration) | Self::Why(_, duration) => *duration,
            Self::Requests(request) => request.duration,
            Self::GcDump | Self::Dump(_) | Self::Snapshot | Self::Stacks(_) | Self::Memory => None,
        }
    }

    /// The media type of its bytes.
    pub const fn media_type(&self) -> &'static str {
        match self {
            Self::Trace(_) | Self::GcDump | Self::Dump(_) | Self::Snapshot => "application/octet-stream",
            Self::LiveMetrics(_) => "application/json-seq",
            Self::Logs(request) => request.format.media_type(),
            Self::Stacks(format) => format.media_type(),
            Self::Exceptions(request) => request.format.media_type(),
            Self::FlameGraph(format, _) => format.media_type(),
            Self::Top(request) => request.format.media_type(),
            Self::Requests(_) | Self::Memory => "application/json",
            Self::Why(format, _) => format.media_type(),
        }
    }

    /// The file name, as dotnet-monitor names it.
    pub fn file_name(&self, process: &Watched, now: SystemTime) -> String {
        let now = Timestamp::try_from(now).unwrap_or_default();
        let time = now.strftime("%Y%m%d_%H%M%S_%3f");
        let pid = process.facts.pid;
        match self {
            Self::Trace(_) | Self::Snapshot => format!("{time}_{pid}.nettrace"),
            Self::GcDump => format!("{time}_{pid}.gcdump"),
            Self::Dump(_) => format!("dump_{time}.dmp"),
            Self::LiveMetrics(_) => format!("{time}_{pid}.metrics.json"),
            Self::Logs(_) => format!("{time}_{pid}.txt"),
            Self::Stacks(format) => format!("{time}_{pid}.{}", format.extension()),
            Self::Exceptions(request) => {
                let ending = if request.format == LogFormat::PlainText { "txt" } else { "json" };
                format!("{time}_{pid}.exceptions.{ending}")
            }
            Self::FlameGraph(format, _) => format!("{time}_{pid}.flamegraph.{}", format.extension()),
            Self::Top(request) => format!("{time}_{pid}.top.{}", request.format.extension()),
            Self::Requests(_) => format!("{time}_{pid}.requests.json"),
            Self::Why(format, _) => format!("{time}_{pid}.why.{}", format.extension()),
            Self::Memory => format!("{time}_{pid}.memory.json"),
        }
    }

    /// Collects the artifact into `sink`, until it is complete or `stop` is given. Blocks.
    ///
    /// # Errors
    /// [`ArtifactError`]; before [`ArtifactSink::begin`] nothing was written.
    pub fn collect(
        &self,
        process: &Watched,
        stop: &StopSignal,
        sink: &mut dyn ArtifactSink,
    ) -> Result<(), ArtifactError> {
        match self {
            Self::Trace(request) => trace::collect(request, process, stop, sink),
            Self::GcDump => heap::collect(process, stop, sink),
            Self::Dump(dump_type) => dump::collect(*dump_type, process, stop, sink),
            Self::LiveMetrics(request) => live_metrics::collect(request, process, stop, sink),
            Self::Logs(request) => logs::collect(request, process, stop, sink),
            Self::Snapshot => snapshot::collect(process, sink),
            Self::Stacks(format) => call_stack::stacks::collect(*format, process, stop, sink),
            Self::Exceptions(request) => call_stack::exceptions::collect(request, process, stop, sink),
            Self::FlameGraph(format, duration) => {
                report::flame_graph(*format, *duration, process, stop, sink)
            }
            Self::Top(request) => report::top_methods(request, process, stop, sink),
            Self::Requests(request) => report::requests(*request, process, stop, sink),
            Self::Why(format, duration) => report::causes(*format, *duration, process, stop, sink),
            Self::Memory => memory::collect(process, sink),
        }
    }
}

impl ArtifactKind {
    /// Maximum number of artifacts of this kind that are collected at once.
    pub const fn limit(self) -> usize {
        match self {
            Self::GcDump
            | Self::Dump
            | Self::Stacks
            | Self::Exceptions
            | Self::FlameGraph
            | Self::Top
            | Self::Requests
            | Self::Why
            | Self::Memory => 1,
            Self::Trace | Self::LiveMetrics | Self::Logs | Self::Snapshot => 3,
        }
    }

    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::GcDump => "gcdump",
            Self::Dump => "dump",
            Self::LiveMetrics => "livemetrics",
            Self::Logs => "logs",
            Self::Snapshot => "snapshot",
            Self::Stacks => "stacks",
            Self::Exceptions => "exceptions",
            Self::FlameGraph => "flamegraph",
            Self::Top => "top",
            Self::Requests => "requests",
            Self::Why => "why",
            Self::Memory => "memory",
        }
    }

    /// Returns true if it can be ended early and is complete then.
    pub const fn is_stoppable(self) -> bool {
        !matches!(self, Self::GcDump | Self::Dump | Self::Snapshot | Self::Stacks | Self::Memory)
    }
}

/// Refuses a process with a runtime that does not take samples.
fn require_sampler(process: &Watched) -> Result<(), ArtifactError> {
    if matches!(process.target().is_native_aot(), Ok(true)) {
        let what = "the process is a NativeAOT program: its runtime has no sampler";
        return Err(ArtifactError::Unsupported(what.to_owned()));
    }
    Ok(())
}

/// Begins the artifact.
fn begin(sink: &mut dyn ArtifactSink) -> Result<(), ArtifactError> {
    sink.begin().map_err(ArtifactError::Sink)
}

/// Passes bytes on.
fn write(sink: &mut dyn ArtifactSink, bytes: &[u8]) -> Result<(), ArtifactError> {
    sink.write(bytes).map_err(ArtifactError::Sink)
}

/// Returns true if a collection that began at `start` has lasted its time; `None` is without a limit.
fn is_over(start: std::time::Instant, duration: Option<Duration>) -> bool {
    duration.is_some_and(|duration| start.elapsed() >= duration)
}
