//! `dipc monitor`: all .NET processes of a machine, over HTTP.

mod artifacts;
mod black_box;
mod check;
mod configuration;
mod file_watch;
mod otlp;
#[cfg(test)]
mod packaging;
mod profile;
#[cfg(feature = "cloud")]
mod stores;
mod tls;
mod tokens;

use std::io::{ErrorKind, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::{ArgAction, Args, Subcommand, ValueEnum, ValueHint};
use clr_counters::prometheus::NameStyle;
use clr_counters::{Selection, SelectionError};
use dipc_monitor::configuration::Configuration;
use dipc_monitor::{
    ApiKey, BlackBoxes, EgressQueue, Filter, FilterKey, ListenAddress, MatchType, Metrics, MetricsConfig,
    Monitor, MonitorConfig, MonitorError, Operations, ProcessEvent, ProcessMessage, ProcessObserver,
    ProcessReport, Rules, Server, ServerConfig, ServerError, Tokens, Watched,
};

use self::artifacts::ArtifactArgs;
use self::black_box::BlackBoxArgs;
use self::check::CheckArgs;
use self::otlp::{Export, OtlpArgs};
use self::profile::ProfileArgs;
use self::tls::TlsArgs;
use crate::args::target::ReachArgs;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::process::target;
use crate::render::escape::escape_controls;
use crate::render::messages;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MonitorArgs {
    #[command(subcommand)]
    command: Option<MonitorCommand>,
    /// Addresses to listen at, separated by semicolons: http://127.0.0.1:PORT, https://+:PORT, unix:PATH
    #[arg(short, long, value_name = "URLS", value_delimiter = ';', default_value = "http://127.0.0.1:52323")]
    urls: Vec<ListenAddress>,
    /// Addresses that serve only /metrics [default: http://127.0.0.1:52325]
    #[arg(long = "metricUrls", alias = "metric-urls", value_name = "URLS", value_delimiter = ';')]
    metric_urls: Vec<ListenAddress>,
    /// Whether to serve the counters of all processes at /metrics, with a session for each [default: true]
    #[arg(short, long, value_name = "BOOL", action = ArgAction::Set)]
    metrics: Option<bool>,
    /// The names of the metrics
    #[arg(long, value_enum, default_value_t)]
    names: MetricNames,
    /// The counters at /metrics, as in 'dipc counters' [default: the counters of .NET and ASP.NET Core]
    #[arg(long, value_name = "LIST")]
    counters: Option<String>,
    /// Seconds between values of counters [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = duration::parse_seconds)]
    refresh_interval: Option<Duration>,
    /// Configuration file of dotnet-monitor, in JSON, with the collection rules to run
    ///
    /// Comments are allowed. In addition to dotnet-monitor's, there are the trigger Condition, for any event,
    /// crash, exit or counter, and the action CollectSnapshot. The file's metrics, counters, diagnostic port
    /// and default process apply unless an option here overrides them. 'dipc monitor check' shows what is not
    /// supported; a rule that cannot run is refused at the start. A changed file is read again, and SIGHUP
    /// reads all files again; unchanged rules continue.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    configuration_file_path: Option<PathBuf>,
    /// Read the configuration of the system, as dotnet-monitor does: /etc/dotnet-monitor, DOTNETMONITOR_…
    #[arg(long)]
    system: bool,
    /// Directory of artifacts that wait for their egress provider [default: in the user's state directory]
    ///
    /// A request with egressProvider is answered at once. Its artifact arrives even if the monitor ends
    /// before: the next monitor with this directory continues.
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    queue: Option<PathBuf>,
    #[command(flatten)]
    artifacts: ArtifactArgs,
    /// Path of the socket of a diagnostic port to create, for runtimes to connect to
    ///
    /// Runtimes with DOTNET_DiagnosticPorts=PATH connect to it and are watched from their start; suspended
    /// runtimes are resumed.
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::FilePath)]
    diagnostic_port: Option<String>,
    #[command(flatten)]
    reach: ReachArgs,
    /// Watch only processes with this: ProcessName=shop, CommandLine~=--prod, ProcessId=7
    ///
    /// KEY=VALUE compares the whole value, KEY~=VALUE a part, both ignoring case. Keys are ProcessId,
    /// ProcessName, CommandLine and ManagedEntryPointAssemblyName. If given several times, all must match.
    #[arg(long = "filter", value_name = "KEY=VALUE", value_parser = parse_filter)]
    filters: Vec<Filter>,
    /// Watch only processes with diagnostic sockets in this program's TMPDIR [default: in any]
    ///
    /// Processes are found in the system's process list, wherever their sockets are: setting TMPDIR alone
    /// narrows nothing. With this option, the monitor does not connect to other processes.
    #[arg(long)]
    own_tmpdir: bool,
    /// The process for requests without pid, uid and name, in the form of --filter
    #[arg(long = "default-process", value_name = "KEY=VALUE", value_parser = parse_filter)]
    default_process: Vec<Filter>,
    #[command(flatten)]
    tls: TlsArgs,
    /// File with the tokens that clients have to send, one per line: SCOPES TOKEN
    ///
    /// The scopes are read, metrics, artifacts and admin, separated by commas. A token may be replaced by
    /// sha256: and its hash. Clients send 'Authorization: Bearer TOKEN'. The file is read again when it
    /// changes and on SIGHUP.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// Generate a token for this run, with all scopes, and print it on standard error
    #[arg(long, visible_alias = "temp-apikey")]
    temp_api_key: bool,
    /// Let every client do everything, including clients on other machines
    #[arg(long, conflicts_with_all = ["token_file", "temp_api_key"])]
    no_auth: bool,
    /// Time between two readings of the memory of a process by owner, for metrics and rules; 0s reads none
    ///
    /// Readings take 2% of a processor at most: of many or large processes they are further apart. They need
    /// the rights of a debugger. /memory reads a process at any time.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_memory_interval)]
    memory_interval: Duration,
    #[command(flatten)]
    black_box: BlackBoxArgs,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Refuse to send artifacts in responses
    #[arg(long)]
    no_http_egress: bool,
    #[command(flatten)]
    otlp: OtlpArgs,
    /// Exit when standard input is closed
    #[arg(long)]
    exit_on_stdin_disconnect: bool,
}

#[derive(Debug, Subcommand)]
enum MonitorCommand {
    /// Check a configuration of dotnet-monitor, and show its rules
    Check(CheckArgs),
}

/// The names of the metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum MetricNames {
    /// As in OpenTelemetry for Meters, with the provider for EventCounters, in base units
    #[default]
    Opentelemetry,
    /// As in dotnet-monitor: each counter is a gauge over the interval
    DotnetMonitor,
}

/// Minimum time between two readings of memory, apart from none.
const MIN_MEMORY_INTERVAL: Duration = Duration::from_secs(1);

fn parse_memory_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    if !interval.is_zero() && interval < MIN_MEMORY_INTERVAL {
        return Err("the shortest interval is 1s; 0s reads none".to_owned());
    }
    Ok(interval)
}

fn parse_filter(text: &str) -> Result<Filter, String> {
    let (key, value) = text.split_once('=').ok_or("a filter is KEY=VALUE or KEY~=VALUE")?;
    let (key, match_type) = match key.strip_suffix('~') {
        Some(key) => (key, MatchType::Contains),
        None => (key, MatchType::Exact),
    };
    let keys = [
        ("ProcessId", FilterKey::ProcessId),
        ("ProcessName", FilterKey::ProcessName),
        ("CommandLine", FilterKey::CommandLine),
        ("ManagedEntryPointAssemblyName", FilterKey::ManagedEntryPointAssemblyName),
    ];
    let found = keys.iter().find(|(name, _)| name.eq_ignore_ascii_case(key.trim()));
    let Some((_, key)) = found else {
        return Err(format!(
            "'{key}' is not a key: use ProcessId, ProcessName, CommandLine or ManagedEntryPointAssemblyName"
        ));
    };
    Ok(Filter { key: *key, value: value.to_owned(), match_type })
}

/// Prints a message about the sessions of a process.
fn report(message: &ProcessMessage) {
    let text = message.to_string();
    let text = escape_controls(&text);
    if matches!(message.event, ProcessEvent::SourcesRenewed { is_foreign: false, .. }) {
        messages::detail(text);
    } else {
        messages::warning(text);
    }
}

pub(crate) fn run(args: &MonitorArgs) -> Outcome {
    if let Some(MonitorCommand::Check(check)) = &args.command {
        return check::run(check);
    }
    let is_asked_to_reload = Arc::new(AtomicBool::new(false));
    // A terminal that is closed ends the program.
    let interrupts = if std::io::stdin().is_terminal() {
        Interrupts::watch()?
    } else {
        Interrupts::watch_with_reload(&is_asked_to_reload)?
    };
    let (tokens, mut token_file) = tokens::tokens(args)?;
    let source = configuration::Source::new(args);
    let configuration = source.as_ref().map(configuration::Source::read).transpose()?.unwrap_or_default();
    if !args.no_auth {
        tokens.set_api_key(usable_api_key(&configuration));
    }
    let metrics = metrics(args, &configuration)?;
    let black_boxes = black_box::start(&args.black_box, metrics.as_ref());
    let export = Export::start(&args.otlp, metrics.clone())?;
    let metrics = metrics.map(Metrics::new).map(Arc::new);
    let configured = configuration.port_address().filter(|_| args.diagnostic_port.is_none());
    let port = args.diagnostic_port.as_ref().or(configured.as_ref());
    let port = port.map(|address| target::parse_address(address, args.reach.tcp())).transpose()?;
    let config = MonitorConfig::default()
        .with_report(Some(ProcessReport::new(report)))
        .with_filters(args.filters.clone())
        .with_socket_folder(args.own_tmpdir.then(std::env::temp_dir))
        .with_port(port)
        // In listen mode dotnet-monitor does not look for processes.
        .with_only_port(configured.is_some())
        .with_dump_folder(configuration.dump_folder())
        .with_memory_interval(Some(args.memory_interval).filter(|interval| !interval.is_zero()));
    let operations = Operations::default();
    let queue = queue(args, &configuration)?;
    let rules = source.is_some().then(|| configuration::rules(&configuration, &operations, queue.clone()));
    let mut observers: Vec<Arc<dyn ProcessObserver>> = Vec::new();
    observers.extend(metrics.iter().map(|metrics| Arc::clone(metrics) as Arc<dyn ProcessObserver>));
    // Precedes the rules: their sessions have to ask for the same spans.
    observers.extend(export.iter().map(|it| Arc::clone(&it.observer) as Arc<dyn ProcessObserver>));
    observers.extend(rules.iter().map(|rules| Arc::clone(rules) as Arc<dyn ProcessObserver>));
    observers.extend(black_boxes.iter().map(|boxes| Arc::clone(boxes) as Arc<dyn ProcessObserver>));
    messages::show_times();
    let profiles = export.as_ref().and_then(|export| export.profiles.clone());
    let configured = &configuration.continuous_profiling;
    let profile = profile::start(&args.profile, configured, &args.filters, profiles, source.is_some())?;
    observers.extend(profile.iter().map(|profile| Arc::clone(profile) as Arc<dyn ProcessObserver>));
    let monitor = Arc::new(Monitor::start(config, observers).map_err(not_started)?);
    let config = server_config(args, tokens.clone(), &configuration)?;
    let mut certificate = args.tls.certificate(&config)?;
    let config = match &certificate {
        Some(certificate) => certificate.apply(config),
        None => config,
    };
    let config = config
        .with_rules(rules.clone())
        .with_queue(queue.clone())
        .with_black_boxes(black_boxes.clone())
        .with_profiles(profile.clone())
        .with_export(export.as_ref().map(|export| Arc::clone(&export.observer)));
    let server = Server::start(config, Arc::clone(&monitor), metrics.clone(), operations.clone())
        .map_err(|error| not_served(&error))?;
    if let Some(queue) = &queue {
        queue.resume(&monitor, &operations);
    }
    warn_of_root(&tokens, &server);
    print_addresses(&monitor, &server, &configuration);
    let is_disconnected = is_disconnected(args.exit_on_stdin_disconnect);
    let api_key = (!args.no_auth).then_some(tokens);
    let mut changes = source.map(|source| configuration::Changes::new(source, api_key, configuration));
    while !interrupts.wait(Duration::from_millis(500)) && !is_disconnected.load(Ordering::Acquire) {
        let is_asked = is_asked_to_reload.swap(false, Ordering::AcqRel);
        if let (Some(changes), Some(rules)) = (&mut changes, &rules) {
            let running = configuration::Running {
                args,
                rules,
                queue: queue.as_ref(),
                metrics: metrics.as_deref(),
                server: &server,
                monitor: &monitor,
                profile: profile.as_deref(),
                has_bundles: black_boxes.is_some(),
                has_export: export.is_some(),
            };
            changes.apply(&running, is_asked);
        }
        if let Some(file) = &mut token_file {
            file.reload(is_asked);
        }
        if let Some(certificate) = &mut certificate {
            certificate.reload(is_asked);
        }
    }
    // The last profiles are sent with the rest.
    if let Some(profile) = &profile {
        profile.stop();
    }
    stop(queue.as_ref(), rules.as_deref(), black_boxes.as_deref(), export.as_ref(), &monitor);
    drop(server);
    for process in monitor.stop() {
        messages::warning(format_args!("the counters of {} were not stopped in time", described(&process)));
    }
    Ok(Exit::Done)
}

/// Prints the addresses, and the rules.
fn print_addresses(monitor: &Monitor, server: &Server, configuration: &Configuration) {
    if let Some(address) = monitor.port_address() {
        messages::lines(format_args!("Diagnostic port: {address}\n"));
    }
    for address in server.addresses() {
        messages::lines(format_args!("Listening at   : {address}\n"));
    }
    for address in server.metrics_addresses() {
        messages::lines(format_args!("Metrics at     : {address}/metrics\n"));
    }
    for rule in &configuration.rules {
        messages::lines(format_args!("Rule           : {}\n", escape_controls(&rule.name)));
    }
}

/// Returns a flag that becomes true when standard input is closed, if `is_watched`.
fn is_disconnected(is_watched: bool) -> Arc<AtomicBool> {
    let is_disconnected = Arc::new(AtomicBool::new(false));
    if is_watched {
        let is_disconnected = Arc::clone(&is_disconnected);
        thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            while matches!(input.read(&mut [0; 1024]), Ok(1..)) {}
            is_disconnected.store(true, Ordering::Release);
        });
    }
    is_disconnected
}

/// Ends the work for all processes, side by side, in a limited time. What was promised stays in the queue.
/// The artifacts of rules are completed.
fn stop(
    queue: Option<&EgressQueue>,
    rules: Option<&Rules>,
    black_boxes: Option<&BlackBoxes>,
    export: Option<&Export>,
    monitor: &Monitor,
) {
    for process in monitor.processes() {
        if let Some(state) = process.obstacle() {
            messages::note(format_args!(
                "Cannot answer  : {} {state}; its sessions end when it continues",
                described(&process)
            ));
        }
    }
    if let Some(queue) = queue {
        queue.close();
    }
    thread::scope(|scope| {
        if let Some(rules) = rules {
            scope.spawn(|| rules.stop());
        }
        if let Some(black_boxes) = black_boxes {
            scope.spawn(|| black_boxes.stop());
        }
        if let Some(export) = export {
            scope.spawn(|| export.finish());
        }
    });
}

/// A process in messages.
fn described(process: &Watched) -> String {
    format!("process {} ({})", process.facts.pid, escape_controls(process.title()))
}

/// Opens the queue of promised artifacts, if a provider could receive them.
fn queue(args: &MonitorArgs, configuration: &Configuration) -> Result<Option<EgressQueue>, Failure> {
    if configuration.egress.is_empty() && args.queue.is_none() {
        return Ok(None);
    }
    let usual = || Some(black_box::state_directory()?.join("queue"));
    let Some(directory) = args.queue.clone().or_else(usual) else {
        messages::warning("no directory for queued artifacts is known: requests with egressProvider fail");
        messages::help("--queue names one");
        return Ok(None);
    };
    let queue = match EgressQueue::open(&directory) {
        Ok(queue) => queue,
        Err(error) => {
            let what = match error.kind() {
                ErrorKind::WouldBlock => "another monitor uses it".to_owned(),
                _ => error.to_string(),
            };
            let what = format!("the queue {}: {what}", directory.display());
            if args.queue.is_some() {
                return Err(Failure::new(Exit::Failed, format_args!("monitor: {what}"))
                    .with_help("--queue names another directory"));
            }
            messages::warning(format_args!("{what}, and requests with egressProvider fail"));
            messages::help("--queue names another directory");
            return Ok(None);
        }
    };
    #[cfg(feature = "cloud")]
    let queue = queue.with_stores(Arc::new(stores::Stores));
    queue.set_providers(configuration.egress.clone());
    if !queue.is_empty() {
        messages::note(format_args!("Queue          : {} artifacts of an earlier run", queue.len()));
    }
    Ok(Some(queue))
}

/// Warns if every user of the machine can have root read the memory of all processes.
fn warn_of_root(tokens: &Tokens, server: &Server) {
    let is_tcp = |address: &ListenAddress| !matches!(address, ListenAddress::Unix(_));
    if tokens.is_empty() && server.addresses().iter().any(is_tcp) && is_root() {
        messages::warning(
            "this runs as root and has no tokens: every user of this machine can have dumps of all processes",
        );
        messages::help("--token-file names a file of tokens, and --urls unix:PATH is a socket of root alone");
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
const fn is_root() -> bool {
    false
}

/// The API key of a configuration, if this program accepts its tokens.
fn usable_api_key(configuration: &Configuration) -> Option<ApiKey> {
    configuration.api_key.clone().filter(|_| cfg!(feature = "cloud"))
}

/// The settings of the metrics: options override the configuration.
fn metrics(args: &MonitorArgs, configuration: &Configuration) -> Result<Option<MetricsConfig>, Failure> {
    if args.metrics == Some(false) {
        return Ok(None);
    }
    let usual = MetricsConfig::new(match args.names {
        MetricNames::Opentelemetry => NameStyle::OpenTelemetry,
        MetricNames::DotnetMonitor => NameStyle::DotnetMonitor,
    });
    let wrong = |error: SelectionError| Failure::usage(format_args!("monitor: counters: {error}"));
    let configured = usual.clone().with_configuration(configuration).map_err(wrong)?;
    // --metrics true and --counters ask for them whatever the configuration says.
    let is_asked = args.metrics.is_some() || args.counters.is_some();
    let Some(mut config) = configured.or_else(|| is_asked.then_some(usual)) else { return Ok(None) };
    if let Some(interval) = args.refresh_interval {
        config = config.with_interval(interval);
    }
    if let Some(list) = &args.counters {
        config = config.with_selection(Selection::parse(list).map_err(wrong)?);
    }
    Ok(Some(config))
}

/// The filters of the default process: options override the configuration.
fn default_process(args: &MonitorArgs, configuration: &Configuration) -> Vec<Filter> {
    let configured = &configuration.default_process;
    if args.default_process.is_empty() { configured.clone() } else { args.default_process.clone() }
}

/// The interval between values of counters.
fn counter_interval(args: &MonitorArgs, configuration: &Configuration) -> Duration {
    args.refresh_interval.unwrap_or(configuration.global_counter.interval)
}

fn server_config(
    args: &MonitorArgs,
    tokens: Tokens,
    configuration: &Configuration,
) -> Result<ServerConfig, Failure> {
    let metrics_addresses = if !args.metrics.unwrap_or(configuration.metrics.enabled) {
        Vec::new()
    } else if args.metric_urls.is_empty() {
        configuration::metric_addresses(configuration)?
    } else {
        args.metric_urls.clone()
    };
    Ok(ServerConfig::default()
        .with_addresses(args.urls.clone())
        .with_metrics_addresses(metrics_addresses)
        .with_tokens(tokens)
        .with_open_access(args.no_auth)
        .with_default_process(default_process(args, configuration))
        .with_counter_interval(Some(counter_interval(args, configuration)))
        .with_no_http_egress(args.no_http_egress)
        .with_version(concat!("dipc ", env!("CARGO_PKG_VERSION")).to_owned()))
}

fn not_started(error: MonitorError) -> Failure {
    match error {
        MonitorError::Port(error) => error.into(),
        error => Failure::new(Exit::Failed, format_args!("monitor: {error}")),
    }
}

fn not_served(error: &ServerError) -> Failure {
    match error {
        ServerError::Open(_) => Failure::usage(format_args!("monitor: {error}")).with_help(
            "--token-file names a file of tokens, --temp-api-key makes one, --no-auth lets everyone in",
        ),
        ServerError::Bind { .. } => Failure::new(Exit::Failed, format_args!("monitor: listen at {error}"))
            .with_help("--urls and --metricUrls choose other addresses; port 0 is any free port"),
        error => Failure::new(Exit::Failed, format_args!("monitor: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_the_keys_of_dotnet_monitor() {
        let filter = parse_filter("processname=shop").unwrap();
        assert_eq!(
            (filter.key, filter.match_type, &*filter.value),
            (FilterKey::ProcessName, MatchType::Exact, "shop")
        );
        let filter = parse_filter("CommandLine~=--a=b").unwrap();
        assert_eq!(
            (filter.key, filter.match_type, &*filter.value),
            (FilterKey::CommandLine, MatchType::Contains, "--a=b")
        );
        assert!(parse_filter("shop").is_err() && parse_filter("Name=x").is_err());
    }
}
