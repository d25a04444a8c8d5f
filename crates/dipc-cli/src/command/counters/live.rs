//! Counters of a process as they come.

use std::mem;
use std::time::Duration;

use clap::Args;
use clr_counters::{
    Condition, Counters, Notice, SHARED_SESSION, Sample, Selection, SessionSettings, SharedSettings,
};
use dipc_client::{Rundown, SessionConfig};
use dipc_wire::ProviderConfig;
use nettrace::TraceInfo;
use uuid::Uuid;

use crate::args::source::SourceArgs;
use crate::command::counters::CounterSelectionArgs;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::counters::{label, report_notices};
use crate::inspect::live_reader::LiveReader;
use crate::interrupt::Interrupts;
use crate::record::recorder::{self, Consumer, Limits};
use crate::record::session::{resume, resume_other, start_unless_interrupted};
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
    let _watcher = source.port.take().map(|port| PortWatcher::start(port, |runtime| resume_other(&runtime)));
    let outcome = watch(args, &source, &interrupts, consumer);
    if outcome.is_err() {
        child.iter_mut().for_each(Child::kill);
    }
    let code = child.map(|child| child.wait(&interrupts)).transpose();
    Ok(outcome?.or_program(code?))
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
            reader: LiveReader::new(MOST_DELAY),
            counters: Counters::new(selection.clone()),
            client: settings.client.clone(),
            process: &process,
            samples: Samples { consumer, until: args.until.as_ref(), count: 0, met: None, result: Ok(()) },
            has_begun: false,
            expected: None,
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
    reader: LiveReader,
    counters: Counters,
    /// Our name in the Meters' shared session.
    client: String,
    process: &'c Process,
    samples: Samples<'c, C>,
    has_begun: bool,
    /// The settings of the shared session, where they are others than ours.
    expected: Option<SharedSettings>,
}

/// The samples of a session, on their way to the consumer.
struct Samples<'c, C> {
    consumer: &'c mut C,
    until: Option<&'c Condition>,
    count: u64,
    /// The counter that met the condition.
    met: Option<String>,
    /// The consumer's failure, after which it gets no more.
    result: Result<(), Failure>,
}

impl<C: SampleConsumer> Samples<'_, C> {
    /// Looks whether a sample meets the condition, and hands it over.
    fn take(&mut self, sample: &Sample<'_>) {
        if self.result.is_err() {
            return;
        }
        self.count += 1;
        if let Some(condition) = self.until.filter(|_| self.met.is_none())
            && let Some(number) = condition.number_that_meets(sample)
        {
            let series = sample.series;
            let name = series.aspects().first().map_or_else(String::new, |aspect| label(series, *aspect));
            self.met = Some(format!("{} {name}: {}", series.provider, units::number(number)));
        }
        self.result = self.consumer.sample(sample);
    }

    /// Ends a round of samples; the failure of any of them is that of the round.
    fn flush(&mut self) -> Result<(), Failure> {
        mem::replace(&mut self.result, Ok(()))?;
        self.consumer.flush()
    }
}

impl<C: SampleConsumer> Stream<'_, C> {
    /// Hands over what has arrived.
    fn drain(&mut self) -> Result<(), Failure> {
        self.begin()?;
        let (counters, samples) = (&mut self.counters, &mut self.samples);
        while samples.result.is_ok()
            && let Some(event) = self.reader.next()
        {
            counters.add(&event, |sample| samples.take(&sample));
        }
        self.expected = self.counters.notices().iter().find_map(|notice| match notice {
            Notice::OtherSettings { client, expected } if *client == self.client => Some(*expected),
            _ => None,
        });
        self.samples.flush()
    }

    /// Tells the consumer that the session runs, once its stream's header is read.
    fn begin(&mut self) -> Result<(), Failure> {
        if !self.has_begun && self.reader.events().info().is_some() {
            self.has_begun = true;
            self.samples.consumer.begin(self.process, self.reader.events().info())?;
        }
        Ok(())
    }

    /// Says what the session lacked, and returns the exit code.
    fn report(self, args: &LiveArgs, end: recorder::StreamEnd) -> Outcome {
        report_notices(&self.counters);
        let events = self.reader.events();
        let lost = stream_stats::lost_in_words(events.loss());
        if events.loss().total() > 0 {
            stream_stats::warn_of_loss(&lost);
        }
        let inside =
            stream_stats::report_damage(events, self.reader.unreadable(), "what could be read was used");
        let values = units::count(self.samples.count);
        let exit = match end.report(&format!("{values} values were shown"), "shown")? {
            Exit::Done => inside,
            exit => exit,
        };
        if let Some(met) = &self.samples.met {
            messages::note(format_args!("Met            : {met}"));
            return Ok(exit);
        }
        if args.until.is_some() {
            return Err(Failure::new(Exit::TimedOut, "counters: --until: it has not been met"));
        }
        if self.samples.count == 0 && exit == Exit::Done {
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

impl<C: SampleConsumer> Consumer for Stream<'_, C> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.reader.feed(bytes);
        self.drain()
    }

    fn pause(&mut self) -> Result<(), Failure> {
        self.reader.release();
        self.drain()
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.reader.end_of_input();
        self.drain()?;
        let (counters, samples) = (&mut self.counters, &mut self.samples);
        counters.finish(|sample| samples.take(&sample));
        self.samples.flush()
    }

    fn is_satisfied(&self) -> bool {
        self.samples.met.is_some() || self.expected.is_some() || self.samples.consumer.is_satisfied()
    }

    fn is_whole(&self) -> bool {
        self.reader.is_whole()
    }
}
