//! `dipc counters push`: the counters of a process for an OpenTelemetry collector.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use clr_counters::otlp::{self, Exporter};
use clr_counters::{ProcessKey, Sample};
use dipc_http::Endpoint;
use hyper::header::{HeaderName, HeaderValue};
use nettrace::TraceInfo;
use uuid::Uuid;

use crate::command::counters::HistogramKind;
use crate::command::counters::live::{self, LiveArgs, SampleConsumer};
use crate::duration;
use crate::exit::{Failure, Outcome};
use crate::http::{host_name, parse_attribute, parse_endpoint, parse_header};
use crate::otlp_sender::Sender;
use crate::record::watch::WatchedProcess;
use crate::render::messages;

#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    live: LiveArgs,
    /// The collector, http://HOST:PORT[/PATH]; without a path /v1/metrics
    #[arg(long, value_name = "URL", value_parser = |url: &str| parse_endpoint(url, "/v1/metrics"))]
    otlp: Endpoint,
    /// Time between two requests
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_interval)]
    interval: Duration,
    /// The period over which sums and histograms accumulate
    #[arg(long, value_enum, default_value_t)]
    temporality: Temporality,
    /// The form of histograms
    #[arg(long, value_enum, default_value_t)]
    histograms: HistogramKind,
    /// A header of the requests; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// An attribute of the resource, such as service.name=shop; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_attribute)]
    resource: Vec<(String, String)>,
    /// Maximum number of series; values of further series are only counted
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_series: u32,
}

/// The period over which sums and histograms accumulate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Temporality {
    /// Since the start
    #[default]
    Cumulative,
    /// Since the previous request
    Delta,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    let is_long_enough = interval >= Duration::from_millis(100);
    if is_long_enough { Ok(interval) } else { Err(format!("{text} is less than 100ms")) }
}

pub(crate) fn run(args: &PushArgs) -> Outcome {
    let temporality = match args.temporality {
        Temporality::Cumulative => otlp::Temporality::Cumulative,
        Temporality::Delta => otlp::Temporality::Delta,
    };
    let most = usize::try_from(args.max_series).unwrap_or(usize::MAX);
    let start = Instant::now();
    let mut pushed = OtlpConsumer {
        exporter: Exporter::new(temporality, most),
        sender: Sender::start("points", args.otlp.clone(), args.header.clone())?,
        resource: args.resource.clone(),
        ended: Vec::new(),
        start,
        interval: args.interval,
        due: start + args.interval,
        wants_exponential: args.histograms == HistogramKind::Exponential,
    };
    messages::note(format_args!("Pushing to     : {}", args.otlp));
    let outcome = live::run(&args.live, &mut pushed);
    let delivered = pushed.sender.finish();
    let exit = outcome?;
    delivered?;
    Ok(exit)
}

/// Samples on their way to a collector.
struct OtlpConsumer {
    exporter: Exporter,
    sender: Sender,
    /// The attributes that the user gave.
    resource: Vec<(String, String)>,
    /// The ended processes with a last state that has yet to be sent.
    ended: Vec<ProcessKey>,
    start: Instant,
    interval: Duration,
    /// The time of the next request.
    due: Instant,
    wants_exponential: bool,
}

impl OtlpConsumer {
    /// Queues the current state for sending.
    fn push(&mut self) {
        for request in self.exporter.encode(self.start.elapsed(), unix_time()) {
            self.sender.send(request);
        }
        for process in self.ended.drain(..) {
            self.exporter.end_process(process);
        }
    }

    /// The attributes of a process's resource. The user's take precedence.
    fn attributes(&self, process: &WatchedProcess) -> Vec<(String, String)> {
        let name = process.name.clone().unwrap_or_else(|| "unknown_service:dotnet".to_owned());
        let ours = [
            ("service.name", Some(name)),
            // Without it, the metrics of two processes of one service cannot be distinguished.
            ("service.instance.id", Some(Uuid::new_v4().to_string())),
            ("host.name", Some(host_name()).filter(|name| !name.is_empty())),
            ("process.executable.name", process.name.clone()),
            ("process.runtime.name", Some(".NET".to_owned())),
        ];
        let mut attributes = self.resource.clone();
        for (key, value) in ours {
            let is_given = attributes.iter().any(|(given, _)| given == key);
            attributes.extend(value.filter(|_| !is_given).map(|value| (key.to_owned(), value)));
        }
        attributes
    }
}

impl SampleConsumer for OtlpConsumer {
    fn begin(&mut self, process: &WatchedProcess, info: Option<&TraceInfo>) -> Result<(), Failure> {
        if self.ended.contains(&live::process_key(process)) {
            self.push();
        }
        let attributes = self.attributes(process);
        let of_request =
            otlp::Process::new(live::process_id(process, info), unix_time()).with_attributes(attributes);
        self.exporter.begin_process(live::process_key(process), of_request);
        Ok(())
    }

    fn sample(&mut self, process: &WatchedProcess, sample: &Sample<'_>) -> Result<(), Failure> {
        self.exporter.add(live::process_key(process), sample, self.start.elapsed());
        Ok(())
    }

    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure> {
        // The next request may follow the time at which a series without samples counts as ended.
        self.exporter.keep_process(live::process_key(process), self.start.elapsed());
        self.ended.push(live::process_key(process));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        if now >= self.due {
            self.push();
            // Missed intervals are not made up for, for example after the machine slept.
            self.due = (self.due + self.interval).max(now);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.push();
        Ok(())
    }

    fn wants_exponential_histograms(&self) -> bool {
        self.wants_exponential
    }
}

/// The current time, in nanoseconds since 1970.
fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
