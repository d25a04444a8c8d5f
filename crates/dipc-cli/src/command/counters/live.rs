//! Counters of processes as they arrive.

pub(super) mod session;

use std::time::Duration;

use clap::Args;
use clr_conditions::Condition;
use clr_counters::{ProcessKey, ProviderRequest, Sample, SessionSettings};
use nettrace::TraceInfo;

use crate::args::sources::SourcesArgs;
use crate::command::counters::CounterSelectionArgs;
use crate::duration;
use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::record::watch::{self, SharedLimits, WatchOptions, WatchedProcess};
use session::CounterSession;

/// The counters and processes to watch, and for how long.
#[derive(Debug, Args)]
pub(super) struct LiveArgs {
    #[command(flatten)]
    sources: SourcesArgs,
    #[command(flatten)]
    selection: CounterSelectionArgs,
    /// Seconds between values, at least 0.1
    ///
    /// A process has one interval for its EventCounters: the shortest one that any session requests.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = duration::parse_seconds)]
    pub(super) refresh_interval: Duration,
    /// Maximum number of histograms that the runtime keeps for Meters
    #[arg(long = "maxHistograms", alias = "max-histograms", value_name = "N", default_value_t = 10)]
    max_histograms: u32,
    /// Maximum number of time series that the runtime keeps for Meters
    #[arg(long = "maxTimeSeries", alias = "max-time-series", value_name = "N", default_value_t = 1000)]
    max_time_series: u32,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Stop when a process meets this condition: 'cpu-usage > 80'; exit with 5 if the condition is never met
    ///
    /// Takes the same conditions as dipc trace --snapshot-on, such as 'cpu-usage > 80 or gc pause > 200ms'. A
    /// counter is PROVIDER/COUNTER:NUMBER, where PROVIDER/ may be left out and NUMBER is value, rate (per
    /// second), count, sum or p95. NUMBER defaults to the number that the table shows first.
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition)]
    until: Option<Condition>,
    /// Wait this long for a process to start again after the last one has ended: a process with the same
    /// name, or at the same endpoint or port
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
    /// Returns true if there may be several processes at once.
    pub(super) fn may_be_many(&self) -> bool {
        self.sources.may_be_many()
    }

    /// The requests of a session for the counters, and for the events of the condition.
    fn requests(&self, settings: &SessionSettings) -> Vec<ProviderRequest> {
        let selection = self.selection.counters.clone().unwrap_or_default();
        match &self.until {
            Some(condition) => condition.requests_with(&selection, settings),
            None => selection.requests(settings),
        }
    }

    /// Returns true if restarted processes are watched again.
    pub(super) const fn reconnects(&self) -> bool {
        self.reconnect.is_some()
    }
}

/// Maximum number of processes to watch at once.
const MAX_PROCESSES: usize = 1000;

/// Delivers the samples of the processes until the user, a limit or the end of the last process stops it.
pub(super) fn run(args: &LiveArgs, consumer: &mut impl SampleConsumer) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let options = WatchOptions {
        sources: args.sources.selector(args.show_child_io)?,
        may_be_many: args.may_be_many(),
        most_processes: MAX_PROCESSES,
        reuses_numbers: true,
        reconnect: args.reconnect,
        reports_ends: args.may_be_many() || args.reconnects(),
    };
    let limits = SharedLimits::new(&interrupts, args.duration, args.timeout);
    let session = CounterSession::new(args, &limits, consumer);
    watch::watch(&options, &limits, &session, &mut session.view())
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    Condition::parse_for_counters(text).map_err(|error| error.to_string())
}

/// The process id, taken from the stream if nothing else gives it.
pub(super) fn process_id(process: &WatchedProcess, info: Option<&TraceInfo>) -> Option<u32> {
    let said = info.and_then(|info| u32::try_from(info.process_id?).ok());
    process.pid.or(said).filter(|pid| *pid != 0)
}

/// The number of a process, for exporters.
pub(super) fn process_key(process: &WatchedProcess) -> ProcessKey {
    ProcessKey(u32::try_from(process.number).unwrap_or(u32::MAX))
}

/// The consumer of the samples of any number of processes. The threads of the sessions call it, one at a
/// time, so a consumer that blocks holds up all sessions.
pub(super) trait SampleConsumer: Send {
    /// Called before the first sample of a process, and again if its session had to be requested again or the
    /// process was restarted. Series numbers start over: they belong to one session.
    fn begin(&mut self, process: &WatchedProcess, info: Option<&TraceInfo>) -> Result<(), Failure>;

    fn sample(&mut self, process: &WatchedProcess, sample: &Sample<'_>) -> Result<(), Failure>;

    /// Called after the last sample of a session, whether or not the process has ended.
    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure> {
        let _ = process;
        Ok(())
    }

    /// Called after a batch of samples was delivered, and about twenty times a second while nothing arrives;
    /// always from the same thread.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Called once after the last session, even if one failed. A program that dipc started may still run.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns true if the user has seen enough.
    fn is_satisfied(&self) -> bool {
        false
    }

    /// Returns true to request histograms with exponential buckets from runtimes that have them.
    fn wants_exponential_histograms(&self) -> bool {
        false
    }
}
