//! Messages about the sessions of a process.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use clr_counters::{CounterSource, Notice};

/// A message about the sessions of a process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProcessMessage {
    /// The pid of the process.
    pub pid: u32,
    /// The name of the process. It is untrusted.
    pub process_name: String,
    /// The event.
    pub event: ProcessEvent,
}

/// An event in the life of the sessions of a process.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ProcessEvent {
    /// Counters that have reported no longer do, while their session runs. They are requested again.
    CountersSilent {
        /// The counters.
        source: CounterSource,
        /// The time since their last report.
        time: Duration,
    },
    /// There are more series of counters than are kept. Values of further ones are left out.
    CountersLeftOut {
        /// Maximum number of series that are kept.
        most: usize,
    },
    /// A limit or a fault of the process's Meters.
    CounterNotice(Notice),
    /// Another session of EventSources with filters has ended, and the filters were sent again.
    SourcesRenewed {
        /// The names of the EventSources.
        names: Vec<String>,
        /// True if the session was another program's.
        is_foreign: bool,
    },
    /// The filters could not be sent again, for this reason. It is tried again.
    RenewalFailed(String),
}

impl fmt::Display for ProcessMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.process_name, self.pid, self.event)
    }
}

impl fmt::Display for ProcessEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CountersSilent { source, time } => write!(
                f,
                "its {source} have been silent for {} s, while the session runs: asking for them again",
                time.as_secs()
            ),
            Self::CountersLeftOut { most } => {
                write!(f, "it has more than {most} series of counters: values of further ones are left out")
            }
            Self::CounterNotice(notice) => f.write_str(&notice_text(notice)),
            Self::SourcesRenewed { names, is_foreign } => {
                let whose = if *is_foreign { "another program's" } else { "a" };
                write!(f, "{whose} session has ended: asking again for {}", names.join(", "))
            }
            Self::RenewalFailed(error) => write!(f, "its events could not be requested again: {error}"),
        }
    }
}

fn notice_text(notice: &Notice) -> Cow<'static, str> {
    match notice {
        Notice::Error(message) => {
            format!("its runtime has ended the session of its Meters: {message}").into()
        }
        Notice::CallbackError(message) => {
            format!("an observable instrument of it has failed: {message}").into()
        }
        Notice::TimeSeriesLimit => {
            "its runtime leaves out time series of Meters: there are more than GlobalCounter:MaxTimeSeries"
                .into()
        }
        Notice::HistogramLimit => {
            "its runtime leaves out histograms of Meters: there are more than GlobalCounter:MaxHistograms"
                .into()
        }
        Notice::OtherSession(name) => {
            format!("its Meters report to the session of another client alone, {name:?}").into()
        }
        notice => format!("{notice:?}").into(),
    }
}

/// A receiver of messages.
#[derive(Clone)]
pub struct ProcessReport(Arc<dyn Fn(&ProcessMessage) + Send + Sync>);

impl ProcessReport {
    /// Creates a receiver. It is called from many threads, and must not block.
    pub fn new(report: impl Fn(&ProcessMessage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }
}

impl fmt::Debug for ProcessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessReport").finish_non_exhaustive()
    }
}

/// The receiver of the messages about a process, if any.
#[derive(Clone, Default)]
pub(crate) struct ProcessLog {
    pub(crate) pid: u32,
    pub(crate) process_name: String,
    pub(crate) report: Option<ProcessReport>,
}

impl ProcessLog {
    pub(crate) fn report(&self, event: ProcessEvent) {
        if let Some(ProcessReport(report)) = &self.report {
            report(&ProcessMessage { pid: self.pid, process_name: self.process_name.clone(), event });
        }
    }
}
