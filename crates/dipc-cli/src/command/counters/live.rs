//! Counters of processes as they arrive.

mod processes;
pub(super) mod session;

use std::time::Duration;

use clap::Args;
use clr_counters::{Condition, ProcessKey, Sample};
use nettrace::TraceInfo;

use crate::args::sources::SourcesArgs;
use crate::command::counters::CounterSelectionArgs;
use crate::duration;
use crate::exit::Failure;
use crate::render::escape::escape_controls;

pub(super) use processes::run;

/// The counters and processes to watch, and for how long.
#[derive(Debug, Args)]
pub(super) struct LiveArgs {
    #[command(flatten)]
    sources: SourcesArgs,
    #[command(flatten)]
    selection: CounterSelectionArgs,
    /// Seconds between values: 0.1 at least
    ///
    /// A process has one interval for its EventCounters: the shortest that any session asks for.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = duration::parse_seconds)]
    pub(super) refresh_interval: Duration,
    /// The largest number of histograms that the runtime keeps for Meters
    #[arg(long = "maxHistograms", alias = "max-histograms", value_name = "N", default_value_t = 10)]
    max_histograms: u32,
    /// The largest number of time series that the runtime keeps for Meters
    #[arg(long = "maxTimeSeries", alias = "max-time-series", value_name = "N", default_value_t = 1000)]
    max_time_series: u32,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Stop when a counter meets this condition: 'dotnet.gc.pause.time > 0.5'; exit with 5 if it never did
    ///
    /// 'PROVIDER/COUNTER:NUMBER > BOUND', where PROVIDER/ may be left out and NUMBER is value, rate (per
    /// second), count, sum or p95. NUMBER defaults to the one that the table shows first.
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition)]
    until: Option<Condition>,
    /// Wait this long for a process to start again after the last one has ended: with the same name, or at
    /// the same endpoint or port
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with_all = ["process_ids", "command"])]
    reconnect: Option<Duration>,
    /// Time limit for each of the runtime's answers, and for its silence after the stop
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration::parse)]
    timeout: Duration,
    /// Let the started program use this terminal
    #[arg(long)]
    show_child_io: bool,
}

impl LiveArgs {
    /// Whether there may be several processes at once.
    pub(super) fn may_be_many(&self) -> bool {
        self.sources.may_be_many()
    }

    /// Whether restarted processes are watched again.
    pub(super) const fn reconnects(&self) -> bool {
        self.reconnect.is_some()
    }
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    Condition::parse(text).map_err(|error| error.to_string())
}

/// A process whose counters are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    /// Its number among the watched processes, from 0. A restarted process keeps the number of its
    /// predecessor.
    pub(super) number: usize,
    pub(super) name: Option<String>,
    pub(super) pid: Option<u32>,
}

impl Process {
    /// The process id, taken from the stream if nothing else gives it.
    pub(super) fn pid(&self, info: Option<&TraceInfo>) -> Option<u32> {
        let said = info.and_then(|info| u32::try_from(info.process_id?).ok());
        self.pid.or(said).filter(|pid| *pid != 0)
    }

    /// Its number, for exporters.
    pub(super) fn id(&self) -> ProcessKey {
        ProcessKey(u32::try_from(self.number).unwrap_or(u32::MAX))
    }

    /// Its name and pid for people: `web (4711)`.
    pub(super) fn title(&self) -> String {
        let name = escape_controls(self.name.as_deref().unwrap_or("process"));
        match self.pid {
            Some(pid) => format!("{name} ({pid})"),
            None => name.into_owned(),
        }
    }
}

/// The consumer of the samples of any number of processes. Calls come from the threads of the sessions, one
/// at a time, so a consumer that blocks holds up all sessions.
pub(super) trait SampleConsumer: Send {
    /// Called before the first sample of a process, and again if its session had to be requested again or the
    /// process was restarted. Series numbers start over: they belong to one session.
    fn begin(&mut self, process: &Process, info: Option<&TraceInfo>) -> Result<(), Failure>;

    fn sample(&mut self, process: &Process, sample: &Sample<'_>) -> Result<(), Failure>;

    /// Called after the last sample of a session, whether or not the process has ended.
    fn end(&mut self, process: &Process) -> Result<(), Failure> {
        let _ = process;
        Ok(())
    }

    /// Called after a batch of samples was delivered, and ten times a second while nothing arrives; always
    /// from the same thread.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Called once after the last session, even if one failed. A program that dipc started may still run.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether the user has seen enough.
    fn is_satisfied(&self) -> bool {
        false
    }

    /// Whether to request histograms with exponential buckets, from runtimes that have them.
    fn wants_exponential_histograms(&self) -> bool {
        false
    }
}
