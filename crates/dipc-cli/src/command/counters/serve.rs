//! `dipc counters serve`: the counters of a process for Prometheus.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use clap::{Args, ValueEnum};
use clr_counters::Sample;
use clr_counters::prometheus::{Exporter, Format, NameStyle};
use dipc_http::{Content, Site, SiteServer};
use nettrace::TraceInfo;

use crate::command::counters::HistogramKind;
use crate::command::counters::live::{self, LiveArgs, SampleConsumer};
use crate::exit::{Exit, Failure, Outcome};
use crate::record::watch::WatchedProcess;
use crate::render::messages;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    live: LiveArgs,
    /// The address to listen on; metrics are at /metrics
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
    /// Let other machines connect, without passwords or encryption
    #[arg(long)]
    allow_remote: bool,
    /// The names of the metrics
    #[arg(long, value_enum, default_value_t)]
    names: Names,
    /// The form of histograms
    #[arg(long, value_enum, default_value_t)]
    histograms: HistogramKind,
    /// Maximum number of series; values of further series are only counted
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_series: u32,
}

/// The names of the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Names {
    /// As in OpenTelemetry for Meters, with the provider for EventCounters, in base units
    #[default]
    Opentelemetry,
    /// As in dotnet-monitor: each counter is a gauge over the interval
    DotnetMonitor,
}

pub(crate) fn run(args: &ServeArgs) -> Outcome {
    if !args.listen.ip().is_loopback() && !args.allow_remote {
        return Err(Failure::usage(format_args!(
            "counters: --listen {}: other machines could connect, and there are neither passwords nor encryption",
            args.listen
        ))
        .with_help("--allow-remote lets them"));
    }
    let style = match args.names {
        Names::Opentelemetry => NameStyle::OpenTelemetry,
        Names::DotnetMonitor => NameStyle::DotnetMonitor,
    };
    let most = usize::try_from(args.max_series).unwrap_or(usize::MAX);
    let exporter = Arc::new(Mutex::new(Exporter::new(style, most).with_own_metrics()));
    let start = Instant::now();
    let unheard = |error: std::io::Error| {
        Failure::new(Exit::Failed, format_args!("counters: --listen {}: {error}", args.listen))
            .with_help("--listen chooses another address; port 0 is any free port")
    };
    let listener = TcpListener::bind(args.listen).map_err(unheard)?;
    let read = Arc::clone(&exporter);
    let http = SiteServer::start(listener, Metrics { exporter: read, start }).map_err(unheard)?;
    messages::note(format_args!("Listening at   : http://{}/metrics", http.address()));
    let wants_exponential = args.histograms == HistogramKind::Exponential;
    let mut served = PrometheusConsumer { exporter, start, wants_exponential };
    let outcome = live::run(&args.live, &mut served);
    http.stop();
    outcome
}

/// The metrics, at `/metrics`.
struct Metrics {
    exporter: Arc<Mutex<Exporter>>,
    start: Instant,
}

impl Site for Metrics {
    const HINT: &'static str = "metrics are at /metrics\n";

    fn has(&self, path: &str) -> bool {
        path == "/metrics"
    }

    fn content(&self, _: &str, accept: Option<&str>) -> Content {
        let format = Format::negotiate(accept);
        let exporter = self.exporter.lock().unwrap_or_else(PoisonError::into_inner);
        let body = exporter.encode(format, self.start.elapsed()).into();
        Content { body, media_type: format.content_type(), is_private: false }
    }
}

/// Samples to serve to scrapers.
struct PrometheusConsumer {
    exporter: Arc<Mutex<Exporter>>,
    start: Instant,
    wants_exponential: bool,
}

impl PrometheusConsumer {
    fn exporter(&self) -> MutexGuard<'_, Exporter> {
        self.exporter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SampleConsumer for PrometheusConsumer {
    fn begin(&mut self, process: &WatchedProcess, info: Option<&TraceInfo>) -> Result<(), Failure> {
        self.exporter().begin_process(
            live::process_key(process),
            process.name.as_deref(),
            live::process_id(process, info),
        );
        Ok(())
    }

    fn sample(&mut self, process: &WatchedProcess, sample: &Sample<'_>) -> Result<(), Failure> {
        self.exporter().add(live::process_key(process), sample, self.start.elapsed());
        Ok(())
    }

    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure> {
        self.exporter().end_process(live::process_key(process));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn wants_exponential_histograms(&self) -> bool {
        self.wants_exponential
    }
}
