//! Metrics, log records, spans and profiles for a collector of OpenTelemetry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, ValueEnum};
use clr_counters::otlp::Request;
use dipc_http::Endpoint;
use dipc_monitor::{
    LogLevel, LogSelection, MetricsConfig, OtlpConfig, OtlpExport, OtlpSignal, OtlpSink, OtlpTotals,
    ProfileExportConfig, SamplingRatio, TracesConfig,
};
use hyper::header::{HeaderName, HeaderValue};

use crate::exit::{Exit, Failure};
use crate::http::{host_name, parse_attribute, parse_endpoint, parse_header};
use crate::otlp_sender::Sender;
use crate::render::messages;

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct OtlpArgs {
    /// The OpenTelemetry collector for metrics, log records and spans, http://HOST:PORT[/PATH]
    ///
    /// Requests go to /v1/metrics, /v1/logs, /v1/traces and /v1development/profiles below it. Applications
    /// need no changes: log records are from Microsoft.Extensions.Logging, and spans from ASP.NET Core,
    /// HttpClient and ActivitySources, with the application's ids.
    #[arg(long, value_name = "URL", value_parser = Collector::parse)]
    otlp: Option<Collector>,
    /// Signals to send [default: all except profiles]
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',', requires = "otlp", default_values_t = [Signal::Metrics, Signal::Logs, Signal::Traces])]
    otlp_signals: Vec<Signal>,
    /// A header of the requests; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "otlp", value_parser = parse_header)]
    otlp_header: Vec<(HeaderName, HeaderValue)>,
    /// An attribute of all resources, such as deployment.environment.name=test; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "otlp", value_parser = parse_attribute)]
    otlp_attribute: Vec<(String, String)>,
    /// Log records to send: app, LEVEL or CATEGORY:LEVEL, separated by commas
    ///
    /// Records are filtered in the application. 'app' selects by the application's own filters, LEVEL selects
    /// the records of this level and above from all categories, and CATEGORY:LEVEL from the categories with
    /// names that begin with CATEGORY. The levels are Trace, Debug, Information, Warning, Error, Critical and
    /// None.
    #[arg(long, value_name = "LIST", requires = "otlp", default_value = "app", value_parser = parse_logs)]
    otlp_logs: LogSelection,
    /// ActivitySources with spans to send, in addition to ASP.NET Core and HttpClient, separated by commas; *
    /// for all
    #[arg(long, value_name = "LIST", requires = "otlp", value_delimiter = ',', default_value = "*", value_parser = parse_source)]
    otlp_sources: Vec<String>,
    /// Share of traces to send, from 0 to 1, chosen by trace id
    #[arg(long, value_name = "RATIO", requires = "otlp", default_value = "1", value_parser = parse_ratio)]
    otlp_sample: SamplingRatio,
}

/// A kind of data that a collector receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Signal {
    /// The counters at /metrics
    Metrics,
    /// Log records
    Logs,
    /// Spans
    Traces,
    /// Profiles of processor time of all processes, by the samples of the machine: one of each process and
    /// minute (Linux; --profile-frequency, --profile-segment)
    Profiles,
}

impl Signal {
    const fn signal(self) -> OtlpSignal {
        match self {
            Self::Metrics => OtlpSignal::Metrics,
            Self::Logs => OtlpSignal::Logs,
            Self::Traces => OtlpSignal::Traces,
            Self::Profiles => OtlpSignal::Profiles,
        }
    }
}

/// The addresses of a collector.
#[derive(Debug, Clone)]
struct Collector(BTreeMap<OtlpSignal, Endpoint>);

impl Collector {
    fn parse(text: &str) -> Result<Self, String> {
        let base = text.trim_end_matches('/');
        let endpoint = |signal: OtlpSignal| {
            let endpoint = parse_endpoint(&format!("{base}{}", signal.path()), signal.path())?;
            Ok::<_, String>((signal, endpoint))
        };
        OtlpSignal::ALL.into_iter().map(endpoint).collect::<Result<_, _>>().map(Self)
    }
}

fn parse_logs(text: &str) -> Result<LogSelection, String> {
    let mut selection = LogSelection::new(LogLevel::None);
    let level = |name: &str| {
        let known = LogLevel::ALL.map(LogLevel::name).join(", ");
        LogLevel::parse(name).ok_or_else(|| format!("'{name}' is not a level: use {known}"))
    };
    for part in text.split(',').map(str::trim) {
        match part.rsplit_once(':') {
            Some((category, name)) if LogSelection::is_valid_category(category) => {
                selection.filters.insert(category.to_owned(), level(name)?);
            }
            Some((category, _)) => return Err(format!("'{category}' is not the name of a category")),
            None if part.eq_ignore_ascii_case("app") => selection.use_app_filters = true,
            None => selection.level = level(part)?,
        }
    }
    Ok(selection)
}

fn parse_source(text: &str) -> Result<String, String> {
    if TracesConfig::is_valid_source(text) {
        Ok(text.to_owned())
    } else {
        Err("the name of an ActivitySource cannot contain '\"', '/', ':', '+' and ';'".to_owned())
    }
}

fn parse_ratio(text: &str) -> Result<SamplingRatio, String> {
    text.parse().ok().and_then(SamplingRatio::new).ok_or_else(|| "a ratio is from 0 to 1: 0.1".to_owned())
}

/// A running export.
pub(super) struct Export {
    pub(super) observer: Arc<OtlpExport>,
    /// The destination of profiles, if they are exported.
    pub(super) profiles: Option<ProfileExportConfig>,
    senders: Arc<Senders>,
}

/// The threads that send requests.
struct Senders(Mutex<BTreeMap<OtlpSignal, Sender>>);

impl OtlpSink for Senders {
    fn send(&self, signal: OtlpSignal, request: Request) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(&signal) {
            sender.send(request);
        }
    }

    fn totals(&self, signal: OtlpSignal) -> Option<OtlpTotals> {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        senders.get(&signal).map(Sender::totals)
    }
}

impl Export {
    /// Starts the export; `None` without a collector. `metrics` are the counters that are exported.
    pub(super) fn start(args: &OtlpArgs, metrics: Option<MetricsConfig>) -> Result<Option<Self>, Failure> {
        let Some(Collector(endpoints)) = &args.otlp else { return Ok(None) };
        let mut senders = BTreeMap::new();
        for signal in args.otlp_signals.iter().map(|signal| signal.signal()) {
            let Some(endpoint) = endpoints.get(&signal) else { continue };
            if signal == OtlpSignal::Metrics && metrics.is_none() {
                messages::warning("--otlp: metrics are switched off, and are not sent");
                continue;
            }
            let items = match signal {
                OtlpSignal::Metrics => "points",
                OtlpSignal::Logs => "log records",
                OtlpSignal::Traces => "spans",
                OtlpSignal::Profiles => "profiles",
            };
            messages::note(format_args!("Pushing to     : {endpoint}"));
            senders.insert(signal, Sender::start(items, endpoint.clone(), args.otlp_header.clone())?);
        }
        if senders.is_empty() {
            let failure = Failure::usage("--otlp: there is nothing to send");
            return Err(
                failure.with_help("--metrics true collects counters; --otlp-signals lists other signals")
            );
        }
        let mut attributes = args.otlp_attribute.clone();
        let host = host_name();
        if !host.is_empty() && attributes.iter().all(|(key, _)| key != "host.name") {
            attributes.push(("host.name".to_owned(), host));
        }
        let has = |signal| senders.contains_key(&signal);
        let traces = TracesConfig { sources: args.otlp_sources.clone(), ratio: args.otlp_sample };
        let config = OtlpConfig::default()
            .with_metrics(metrics.filter(|_| has(OtlpSignal::Metrics)))
            .with_logs(has(OtlpSignal::Logs).then(|| args.otlp_logs.clone()))
            .with_traces(has(OtlpSignal::Traces).then_some(traces))
            .with_attributes(attributes.clone());
        let has_profiles = has(OtlpSignal::Profiles);
        let senders = Arc::new(Senders(Mutex::new(senders)));
        let unstarted = |error| Failure::new(Exit::Failed, format_args!("monitor: start a thread: {error}"));
        let sink = || Arc::clone(&senders) as Arc<dyn OtlpSink>;
        let profiles = has_profiles.then(|| ProfileExportConfig { sink: sink(), attributes });
        let observer = OtlpExport::start(config, sink()).map_err(unstarted)?;
        Ok(Some(Self { observer: Arc::new(observer), profiles, senders }))
    }

    /// Ends the sessions, and sends the remaining data.
    pub(super) fn finish(&self) {
        self.observer.stop();
        let senders = std::mem::take(&mut *self.senders.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, sender) in senders {
            if let Err(failure) = sender.finish() {
                messages::warning(&failure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_a_path_for_each_signal() {
        let paths = |url: &str| {
            let Collector(endpoints) = Collector::parse(url).unwrap();
            endpoints.values().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            paths("http://127.0.0.1:4318"),
            "http://127.0.0.1:4318/v1/metrics http://127.0.0.1:4318/v1/logs http://127.0.0.1:4318/v1/traces http://127.0.0.1:4318/v1development/profiles"
        );
        assert_eq!(
            paths("http://host/otlp/"),
            "http://host/otlp/v1/metrics http://host/otlp/v1/logs http://host/otlp/v1/traces http://host/otlp/v1development/profiles"
        );
        assert!(Collector::parse("https://host").is_err());
    }

    #[test]
    fn log_records_are_selected_by_level_and_category() {
        let request = parse_logs("warning, Shop:Debug,Shop.Cart:none").unwrap();
        assert_eq!((request.level, request.use_app_filters), (LogLevel::Warning, false));
        let filters: Vec<_> = request.filters.iter().map(|(name, level)| (&**name, *level)).collect();
        assert_eq!(filters, [("Shop", LogLevel::Debug), ("Shop.Cart", LogLevel::None)]);
        assert!(parse_logs("app").unwrap().use_app_filters);
        for text in ["Loud", "Shop:Loud", "a;b:Debug", ""] {
            assert!(parse_logs(text).is_err(), "{text}");
        }
    }
}
