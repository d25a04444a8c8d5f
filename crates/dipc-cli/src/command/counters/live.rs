//! Counters of a process as they come.

use std::time::Duration;

use clap::Args;
use clr_counters::{
    Condition, Counters, Notice, SHARED_SESSION, Sample, Selection, SessionSettings, SharedSettings,
};
use dipc_client::{Rundown, SessionConfig};
use dipc_wire::ProviderConfig;
use nettrace::{Decoder, PushSource, TimeOrder, TraceInfo};
use uuid::Uuid;

use crate::args::source::SourceArgs;
use crate::command::counters::CounterSelectionArgs;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::counters::{label, report_notices};
use crate::interrupt::Interrupts;
use crate::record::recorder::{self, Consumer, Limits};
use crate::record::session::{resume, start_unless_interrupted};
use crate::record::source::{Child, PortWatcher, Source};
use crate::record::stream_stats;
use crate::render::{messages, units};

/// The buffer in the process, as dotnet-counters asks for it.
const BUFFER_MB: u32 = 256;
/// The longest time for which an event waits for older ones of other threads.
const MOST_DELAY: Duration = Duration::from_millis(200);

/// Which counters of which process, and for how long.
#[derive(Debug, Args)]
pub(super) struct LiveArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    selection: CounterSelectionArgs,
    /// Seconds between values: 0.1 at least
    ///
    /// A process has one interval for its EventCounters: the shortest that any session asks for.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
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
    /// Stop when a counter is as said: 'dotnet.gc.pause.time > 0.5'; exit with 5 if it has not been by then
    ///
    /// 'PROVIDER/COUNTER:NUMBER > BOUND', where PROVIDER/ may be left out and NUMBER is value, rate (a second), count, sum or p95. Without
    /// it, it is the one that the table shows first.
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition)]
    until: Option<Condition>,
    /// Time limit for each of the runtime's answers, and for its silence after the stop
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration::parse)]
    timeout: Duration,
    /// Let the program that is started use this terminal
    #[arg(long)]
    show_child_io: bool,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| format!("'{text}' is no number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(interval) if interval >= Duration::from_millis(100) => Ok(interval),
        _ => Err(format!("{text} s: the shortest interval that runtimes keep is 0.1 s")),
    }
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    Condition::parse(text).map_err(|error| error.to_string())
}

/// A process whose counters are shown.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) name: Option<String>,
    pub(super) pid: Option<u32>,
}

/// The consumer of a process's samples.
pub(super) trait SampleConsumer {
    /// Called before the first sample; again if the session had to be asked for again.
    fn begin(&mut self, process: &Process, info: Option<&TraceInfo>) -> Result<(), Failure>;

    fn sample(&mut self, sample: &Sample<'_>) -> Result<(), Failure>;

    /// Called when all that has arrived was handed over, and ten times a second where nothing arrives.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Whether the user has seen enough.
    fn is_satisfied(&self) -> bool {
        false
    }
}

/// Hands the samples of the process over until the user, a limit or the process ends it.
pub(super) fn run(args: &LiveArgs, consumer: &mut impl SampleConsumer) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let mut source = Source::open(&args.source.selector(args.show_child_io)?, args.timeout, &interrupts)?;
    let mut child = source.child.take();
    // Kept to the end: no runtime may wait for ever, and commands for this one go through the port.
    let _watcher = source.port.take().map(|port| {
        PortWatcher::start(port, move |runtime| {
            messages::detail(format_args!("Resumed another runtime at the port: {runtime:?}"));
            resume(&runtime.target());
        })
    });
    let outcome = watch(args, &source, &interrupts, consumer);
    if outcome.is_err() {
        child.iter_mut().for_each(Child::kill);
    }
    let code = child.map(|child| child.wait(&interrupts)).transpose();
    match (outcome?, code?) {
        (Exit::Done, Some(code)) => Ok(Exit::Program(code)),
        (exit, _) => Ok(exit),
    }
}

/// Watches the counters in one session, or in two where the first has to learn the settings of the Meters' shared session.
fn watch(
    args: &LiveArgs,
    source: &Source,
    interrupts: &Interrupts,
    consumer: &mut impl SampleConsumer,
) -> Outcome {
    let selection = args.selection.counters.clone().unwrap_or_default();
    let mut settings = SessionSettings {
        interval: args.refresh_interval,
        max_histograms: args.max_histograms,
        max_time_series: args.max_time_series,
        session: SHARED_SESSION.to_owned(),
        client: Uuid::new_v4().to_string(),
        exponential_histograms: false,
        list_instruments: false,
    };
    let limits = Limits {
        address: source.target.address().clone(),
        duration: args.duration.filter(|duration| !duration.is_zero()),
        silence: args.timeout,
        interrupts: interrupts.clone(),
    };
    let process = Process { name: source.name.clone(), pid: source.pid };
    let mut is_first = true;
    loop {
        let session = start_unless_interrupted(&source.target, &config(&selection, &settings), interrupts)?;
        if is_first {
            resume(&source.target);
        }
        let mut stream = Stream {
            events: Decoder::new().in_time_order().with_max_delay(MOST_DELAY),
            counters: Counters::new(selection.clone()),
            client: settings.client.clone(),
            until: args.until.clone(),
            process: &process,
            consumer,
            has_begun: false,
            samples: 0,
            met: None,
            expected: None,
            unreadable: None,
        };
        let end = recorder::run(session, &mut stream, &limits)?;
        if let Some(expected) = stream.expected.take().filter(|_| is_first) {
            is_first = false;
            settings = adopt(settings, expected);
            messages::detail(format_args!(
                "The Meters' shared session has other settings; asking again: {settings:?}"
            ));
            continue;
        }
        return stream.report(args, end);
    }
}

/// Returns the settings that the shared session has, as far as they are known.
fn adopt(settings: SessionSettings, expected: SharedSettings) -> SessionSettings {
    let interval = expected.refresh_interval.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    SessionSettings {
        interval: interval.unwrap_or(settings.interval),
        max_histograms: expected.max_histograms.unwrap_or(settings.max_histograms),
        max_time_series: expected.max_time_series.unwrap_or(settings.max_time_series),
        client: Uuid::new_v4().to_string(),
        ..settings
    }
}

fn config(selection: &Selection, settings: &SessionSettings) -> SessionConfig {
    let requests = selection.requests(settings).into_iter();
    let providers = requests.map(|request| ProviderConfig {
        keywords: request.keywords,
        level: request.level,
        name: request.name,
        arguments: request.arguments,
    });
    SessionConfig::new(providers).with_buffer_mb(BUFFER_MB).with_rundown(Rundown::Off)
}

/// The stream of a session of counters.
struct Stream<'c, C> {
    events: TimeOrder<PushSource>,
    counters: Counters,
    /// Our name in the Meters' shared session.
    client: String,
    until: Option<Condition>,
    process: &'c Process,
    consumer: &'c mut C,
    has_begun: bool,
    samples: u64,
    /// The counter that met the condition.
    met: Option<String>,
    /// The settings of the shared session, where they are others than ours.
    expected: Option<SharedSettings>,
    unreadable: Option<nettrace::Error>,
}

impl<C: SampleConsumer> Stream<'_, C> {
    /// Hands over what has arrived.
    fn drain(&mut self) -> Result<(), Failure> {
        let mut result = self.begin();
        while self.unreadable.is_none() && result.is_ok() {
            let event = match self.events.next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => {
                    self.unreadable = Some(error);
                    break;
                }
            };
            let (until, met, samples) = (&self.until, &mut self.met, &mut self.samples);
            let consumer = &mut *self.consumer;
            self.counters.add(&event, |sample| {
                if result.is_ok() {
                    *samples += 1;
                    look(until.as_ref(), met, &sample);
                    result = consumer.sample(&sample);
                }
            });
        }
        self.expected = self.counters.notices().iter().find_map(|notice| match notice {
            Notice::OtherSettings { client, expected } if *client == self.client => Some(*expected),
            _ => None,
        });
        result?;
        self.consumer.flush()
    }

    /// Tells the consumer that the session runs, once its stream's header is read.
    fn begin(&mut self) -> Result<(), Failure> {
        if !self.has_begun && self.events.events().info().is_some() {
            self.has_begun = true;
            self.consumer.begin(self.process, self.events.events().info())?;
        }
        Ok(())
    }

    /// Says what the session lacked, and returns the exit code.
    fn report(self, args: &LiveArgs, end: recorder::StreamEnd) -> Outcome {
        report_notices(&self.counters);
        let events = self.events.events();
        let lost = stream_stats::lost_in_words(events.loss());
        if events.loss().total() > 0 {
            stream_stats::warn_of_loss(&lost);
        }
        let inside =
            stream_stats::report_damage(events, self.unreadable.as_ref(), "what could be read was used");
        let values = units::count(self.samples);
        let exit = match end.report(&format!("{values} values were shown"), "shown")? {
            Exit::Done => inside,
            exit => exit,
        };
        if let Some(met) = &self.met {
            messages::note(format_args!("Met            : {met}"));
            return Ok(exit);
        }
        if args.until.is_some() {
            return Err(Failure::new(Exit::TimedOut, "counters: --until: it has not been met"));
        }
        if self.samples == 0 && exit == Exit::Done {
            let refused =
                self.counters.notices().iter().any(|notice| matches!(notice, Notice::OtherSession(_)));
            let exit = if refused { Exit::Refused } else { Exit::Failed };
            return Err(Failure::new(exit, "counters: no value came").with_help(
                "values come once every --refresh-interval; dipc counters list names what .NET has, --counters asks for more",
            ));
        }
        Ok(exit)
    }
}

/// Looks whether a sample meets the condition.
fn look(until: Option<&Condition>, met: &mut Option<String>, sample: &Sample<'_>) {
    let Some(condition) = until.filter(|_| met.is_none()) else { return };
    if let Some(number) = condition.number_that_meets(sample) {
        let name =
            sample.series.aspects().first().map_or_else(String::new, |aspect| label(sample.series, *aspect));
        *met = Some(format!("{} {name}: {}", sample.series.provider, units::number(number)));
    }
}

impl<C: SampleConsumer> Consumer for Stream<'_, C> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.events.feed(bytes);
        self.drain()
    }

    fn pause(&mut self) -> Result<(), Failure> {
        self.events.release();
        self.drain()
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.events.end_of_input();
        self.drain()?;
        let mut result = Ok(());
        let (until, met, samples) = (&self.until, &mut self.met, &mut self.samples);
        let consumer = &mut *self.consumer;
        self.counters.finish(|sample| {
            if result.is_ok() {
                *samples += 1;
                look(until.as_ref(), met, &sample);
                result = consumer.sample(&sample);
            }
        });
        result?;
        self.consumer.flush()
    }

    fn is_satisfied(&self) -> bool {
        self.met.is_some() || self.expected.is_some() || self.consumer.is_satisfied()
    }

    fn is_whole(&self) -> bool {
        self.unreadable.is_none() && self.events.events().truncated_at().is_none()
    }
}
