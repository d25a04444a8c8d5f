//! `dipc push`: profiles for a server that stores them: Pyroscope, Parca, or the backend of an OpenTelemetry
//! collector.

mod parca;
mod pyroscope;
mod sampling;

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use clr_counters::otlp::rejected_points;
use dipc_client::Target;
use dipc_collect::RetryWait;
use dipc_http::{Endpoint, RequestError};
use hyper::header::{HeaderName, HeaderValue};
use nettrace_export::{CausalGrouping, Format, Metric, Options, Profile, WriteOptions};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::args::awaits::AwaitArgs;
use crate::args::candidates;
use crate::args::names::NameArgs;
use crate::args::profile::MetricArg;
use crate::args::target::{ReachArgs, TARGETS, selector};
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::http::{host_name, parse_endpoint, parse_header};
use crate::inspect::profile::{self, ProfileOptions};
use crate::interrupt::Interrupts;
use crate::process::candidates::application_name;
use crate::process::peer::local_process;
use crate::process::target::{FoundTarget, TargetSelector, endpoints_of_name};
use crate::record::kernel_samples::SamplerChoice;
use crate::render::{messages, units};
use sampling::{DEFAULT_DURATION, ProcessMetrics, push_process};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).arg("files").args(TARGETS))]
#[command(group = ArgGroup::new("server").required(true).args(["pyroscope", "parca", "otlp"]))]
pub(crate) struct PushArgs {
    /// Recordings to send the profiles of, once
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    processes: ProcessesArgs,
    /// The Pyroscope server, http://HOST:PORT
    #[arg(long, value_name = "URL", value_parser = |text: &str| parse_endpoint(text, pyroscope::PATH))]
    pyroscope: Option<Endpoint>,
    /// The Parca server, http://HOST:PORT
    #[arg(long, value_name = "URL", value_parser = |text: &str| parse_endpoint(text, parca::PATH))]
    parca: Option<Endpoint>,
    /// The OpenTelemetry collector, http://HOST:PORT[/PATH]; without a path /v1development/profiles
    #[arg(long, value_name = "URL", value_parser = |text: &str| parse_endpoint(text, OTLP_PATH))]
    otlp: Option<Endpoint>,
    /// The name of the service [default: the name of the process or file]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// A label of the profiles, such as version=1.4; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_label)]
    label: Vec<(String, String)>,
    /// A header of the requests; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// The sampler of processes
    ///
    /// The kernel takes 99 samples for each second that a thread runs, of managed, native and kernel code,
    /// without stopping threads: a profile of processor time. If the kernel does not permit that (dipc doctor
    /// shows why), the runtime samples itself, with a warning: a profile of the time that threads were
    /// working or blocked, as with --by wall.
    #[arg(long, value_enum, default_value_t, conflicts_with = "files")]
    sampler: SamplerChoice,
    /// Metrics of the profiles, one profile for each [default: cpu, or that of the recording]
    ///
    /// For a process: cpu and off-cpu by the kernel's samples; wall by the runtime's; alloc, live-alloc,
    /// contention and exception by the runtime's events, all in one session. What is still in use at the end
    /// of a profile was allocated during it: give it the time of several collections (--duration).
    #[arg(long = "by", value_name = "METRIC,…", value_enum, value_delimiter = ',')]
    metrics: Vec<MetricArg>,
    /// Time from the start of one profile of a process to the start of the next
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse, conflicts_with = "files")]
    every: Duration,
    /// Time for which a process is sampled for each profile; it is left alone for the rest of --every
    /// [default: 10s, at most --every]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "files")]
    duration: Option<Duration>,
    /// Stop after this many profiles [default: with the process, or at Ctrl-C]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "files")]
    count: Option<u64>,
    #[command(flatten)]
    awaits: AwaitArgs,
    #[command(flatten)]
    names: NameArgs,
    /// Time limit for each answer of the runtime
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "20s")]
    timeout: Duration,
}

/// The selection of processes.
#[derive(Debug, Args)]
#[group(skip)]
struct ProcessesArgs {
    /// A process id; may be given several times, to profile all of them at the same time
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(candidates::pids))]
    process_id: Vec<u32>,
    /// The name of the processes, or else of their entry assemblies; takes all that run at the start
    #[arg(short, long, value_name = "NAME", conflicts_with = "process_id", add = ArgValueCandidates::new(candidates::names))]
    name: Option<String>,
    /// The process's diagnostic socket, as a sidecar sees it: its path, its folder, a pattern with '*', or
    /// 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["process_id", "name"], value_hint = ValueHint::FilePath)]
    endpoint: Option<String>,
    #[command(flatten)]
    reach: ReachArgs,
}

/// A process that is profiled.
#[derive(Debug)]
struct ProfiledProcess {
    /// The runtime; `None` for a program without .NET, which only the kernel samples.
    runtime: Option<Target>,
    pid: Option<u32>,
    name: Option<String>,
}

impl From<FoundTarget> for ProfiledProcess {
    fn from(found: FoundTarget) -> Self {
        let name = found.endpoint.as_ref().map(|it| application_name(it.pid, &it.name));
        Self { runtime: Some(found.target), pid: found.endpoint.map(|endpoint| endpoint.pid), name }
    }
}

impl ProfiledProcess {
    /// Returns the process of a program without .NET, and says so.
    ///
    /// # Errors
    /// The failure to find its runtime, if the process does not exist.
    fn without_runtime(pid: u32, failure: Failure) -> Result<Self, Failure> {
        let Ok(name) = dipc_transport::process_name(pid) else { return Err(failure) };
        messages::warning(format_args!("{failure}; sampling it without a runtime"));
        Ok(Self { runtime: None, pid: Some(pid), name: Some(name) })
    }

    /// The number of the process, for the kernel.
    fn kernel_pid(&self) -> Result<u32, Failure> {
        match (&self.runtime, self.pid) {
            (Some(runtime), pid) => local_process(pid, runtime),
            (None, Some(pid)) => Ok(pid),
            (None, None) => Err(Failure::new(Exit::NotReachable, "push: the process is not known")),
        }
    }
}

impl ProcessesArgs {
    /// Finds the processes; at least one. Processes without a runtime are found only by pid, if the kernel
    /// may sample them.
    fn find(&self, timeout: Duration, may_be_native: bool) -> Result<Vec<ProfiledProcess>, Failure> {
        let Self { process_id, name, endpoint, reach } = self;
        let find = |pid| match FoundTarget::find(&TargetSelector::Pid(pid), timeout) {
            Ok(found) => Ok(found.into()),
            Err(failure) if may_be_native && failure.exit == Exit::NotReachable => {
                ProfiledProcess::without_runtime(pid, failure)
            }
            Err(failure) => Err(failure),
        };
        if let Some(name) = name {
            let named = endpoints_of_name(name, Some(timeout));
            if named.len() > 1 {
                // A process that has ended meanwhile is left out.
                return Ok(named.iter().filter_map(|endpoint| find(endpoint.pid).ok()).collect());
            }
        }
        if process_id.is_empty() {
            let selector = selector(None, name.as_ref(), endpoint.as_ref(), *reach)?;
            return Ok(vec![FoundTarget::find(&selector, timeout)?.into()]);
        }
        let mut pids = process_id.clone();
        pids.sort_unstable();
        pids.dedup();
        pids.into_iter().map(find).collect()
    }
}

impl PushArgs {
    /// The time for which a process is sampled for a profile.
    fn duration(&self) -> Duration {
        self.duration.unwrap_or_else(|| self.every.min(DEFAULT_DURATION))
    }

    /// The metrics, each once.
    fn metrics(&self) -> Vec<Metric> {
        let mut metrics: Vec<Metric> = Vec::new();
        for metric in self.metrics.iter().map(|metric| metric.metric()) {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        metrics
    }

    fn grouping(&self) -> CausalGrouping {
        self.awaits.grouping(CausalGrouping::default())
    }

    /// The options of a process's profile.
    fn profile_options(&self, metric: Metric) -> Options {
        Options::new(metric).with_tracks(false).with_names(self.names.form()).with_grouping(self.grouping())
    }
}

/// The path of OTLP profiles, a protocol still in development.
const OTLP_PATH: &str = "/v1development/profiles";

/// The number of tries for a request that fails temporarily.
const TRIES: u32 = 4;
/// The waits between tries. A server may ask for another one, up to the maximum.
const RETRY: RetryWait = RetryWait::new(Duration::from_secs(1), Duration::from_secs(30));

/// Reads a label. Metrics servers have to accept its name.
fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    let is_name = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_name && !key.starts_with("__") {
        Ok((key.to_owned(), value.to_owned()))
    } else {
        Err(format!("'{key}' is not a valid label name: use letters, digits and '_'"))
    }
}

pub(crate) fn run(args: &PushArgs) -> Outcome {
    let interrupts = Interrupts::watch()?;
    if args.files.is_empty() {
        return push_processes(args, &interrupts);
    }
    let mut pusher = Pusher::new(args, &interrupts)?;
    let mut exit = Exit::Done;
    for (read, file) in args.files.iter().enumerate() {
        if interrupts.count() > 0 {
            let left = args.files.len() - read;
            messages::warning(format_args!(
                "interrupted: {left} of {} recordings were not read",
                args.files.len()
            ));
            exit = exit.join(Exit::Incomplete);
            break;
        }
        exit = exit.join(push_file(args, &mut pusher, file)?);
    }
    pusher.finish(exit)
}

/// Sends the profiles of a recording.
fn push_file(args: &PushArgs, pusher: &mut Pusher<'_>, file: &Path) -> Outcome {
    let options =
        ProfileOptions { names: args.names.form(), grouping: args.grouping(), ..ProfileOptions::default() };
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut metrics: Vec<_> = args.metrics().into_iter().map(Some).collect();
    if metrics.is_empty() {
        metrics.push(None);
    }
    let mut exit = Exit::Done;
    for metric in metrics {
        let request = profile::ProfileRequest { metric, tracks: false, kinds: true, idle_stacks: false };
        // Profiles pushed before remain pushed.
        let read = pusher.interrupts.while_computing(|| profile::read(file, &options, request))?;
        pusher.push(&read.profile, stem.as_deref())?;
        exit = exit.join(read.exit);
    }
    Ok(exit)
}

/// Samples processes repeatedly, all at the same time, and sends a profile of each every time.
fn push_processes(args: &PushArgs, interrupts: &Interrupts) -> Outcome {
    let metrics = ProcessMetrics::new(args.metrics(), args.sampler)?;
    if let Some(duration) = args.duration.filter(|duration| *duration > args.every) {
        return Err(Failure::usage(format_args!(
            "push: --duration {} is longer than --every {}",
            duration::display(duration),
            duration::display(args.every)
        ))
        .with_help("a profile ends before the next one begins: give a longer --every"));
    }
    let processes = args.processes.find(args.timeout, metrics.are_of_kernel())?;
    if let [process] = &*processes {
        let mut pusher = Pusher::new(args, interrupts)?;
        let exit = push_process(args, &metrics, process, &mut pusher, interrupts)?;
        return pusher.finish(exit);
    }
    messages::note(format_args!("Processes      : {}", processes.len()));
    let pushed: Vec<_> = thread::scope(|scope| {
        let push = |process: &ProfiledProcess| {
            let mut pusher = Pusher::new(args, interrupts)?;
            pusher.pid = process.pid;
            let end = push_process(args, &metrics, process, &mut pusher, interrupts);
            if let Err(failure) = &end {
                messages::warning(format_args!("process {}: {failure}", pusher.pid_text()));
            }
            Ok::<_, Failure>((pusher.sent, pusher.failed, end))
        };
        let started: Vec<_> = processes.iter().map(|process| scope.spawn(move || push(process))).collect();
        started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut all = Pusher::new(args, interrupts)?;
    let mut exit = Exit::Done;
    let mut failure = None;
    for pushed in pushed {
        let (sent, (failed, reason), end): (_, _, Outcome) = pushed?;
        all.sent = all.sent.saturating_add(sent);
        if failed > 0 {
            all.failed = (all.failed.0.saturating_add(failed), reason);
        }
        match end {
            Ok(end) => exit = exit.join(end),
            // Profiles already sent of a process count, whatever happens to it later.
            Err(end) => {
                exit = exit.join(Exit::Incomplete);
                failure.get_or_insert(end);
            }
        }
    }
    match failure {
        Some(failure) if (all.sent, all.failed.0) == (0, 0) => Err(failure),
        _ => all.finish(exit),
    }
}

/// The name of this program in OpenTelemetry scopes.
const EXPORTER: &str = concat!("dipc ", env!("CARGO_PKG_VERSION"));

/// A profile as gzipped pprof.
fn pprof(profile: &Profile) -> Result<Vec<u8>, Failure> {
    let mut pprof = Vec::new();
    nettrace_export::write(profile, Format::Pprof, WriteOptions::default(), &mut pprof)
        .map_err(|error| Failure::new(Exit::Failed, format_args!("push: {error}")))?;
    Ok(pprof)
}

/// The resource attributes that correspond to labels, with the names of OpenTelemetry's conventions.
fn resource(labels: &[(String, String)], is_dotnet: bool) -> Vec<(String, String)> {
    let attributes = labels.iter().filter(|(key, _)| key != NAME).map(|(key, value)| {
        let key = match key.as_str() {
            "service_name" => "service.name",
            "version" => "service.version",
            "hostname" => "host.name",
            "pid" => "process.pid",
            key => key,
        };
        (key.to_owned(), value.clone())
    });
    let runtime = is_dotnet.then(|| ("process.runtime.name".to_owned(), ".NET".to_owned()));
    attributes.chain(runtime).collect()
}

/// The label that names the kind of profile.
const NAME: &str = "__name__";

/// A profile server, and the results of sending profiles to it.
struct Pusher<'a> {
    args: &'a PushArgs,
    interrupts: &'a Interrupts,
    runtime: Runtime,
    /// The process, if there are several: they may share a name.
    pid: Option<u32>,
    /// True for a .NET program.
    is_dotnet: bool,
    sent: u64,
    /// The number of profiles that were not delivered, and the last reason.
    failed: (u64, String),
}

impl<'a> Pusher<'a> {
    fn new(args: &'a PushArgs, interrupts: &'a Interrupts) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(Exit::Failed, format_args!("push: {error}")))?;
        Ok(Self {
            args,
            interrupts,
            runtime,
            pid: None,
            is_dotnet: true,
            sent: 0,
            failed: Default::default(),
        })
    }

    /// Sends a profile. A failed delivery is reported and does not end the command: later ones may succeed.
    fn push(&mut self, profile: &Profile, source: Option<&str>) -> Result<(), Failure> {
        let PushArgs { pyroscope, parca, otlp, .. } = self.args;
        let labels = self.labels(profile, source);
        let (endpoint, content_type, message) = if let Some(endpoint) = pyroscope {
            let message = pyroscope::request(&labels, pprof(profile)?, Uuid::new_v4().to_string());
            (endpoint, pyroscope::CONTENT_TYPE, message)
        } else if let Some(endpoint) = parca {
            (endpoint, parca::CONTENT_TYPE, parca::request(&labels, &pprof(profile)?))
        } else if let Some(endpoint) = otlp {
            let resource = resource(&labels, self.is_dotnet);
            let message = nettrace_export::otlp_request(profile, &resource, EXPORTER);
            (endpoint, "application/x-protobuf", message)
        } else {
            return Err(Failure::usage("--pyroscope, --parca or --otlp is needed"));
        };
        match self.deliver(endpoint, content_type, &message) {
            Ok(()) => {
                self.sent = self.sent.saturating_add(1);
                let (samples, bytes) = (units::count(profile.samples()), units::bytes(message.len() as u64));
                let of = self.pid.map_or_else(String::new, |pid| format!(" of process {pid}"));
                let kind = if self.args.metrics.len() > 1 { profile.metric.name() } else { "" };
                let space = if kind.is_empty() { "" } else { " " };
                messages::note(format_args!(
                    "Pushed         : {samples}{space}{kind} samples{of}, {bytes}, to {endpoint}"
                ));
            }
            Err(reason) => {
                messages::warning(format_args!("{endpoint}: {reason}"));
                self.failed = (self.failed.0.saturating_add(1), reason);
            }
        }
        Ok(())
    }

    /// The labels of a profile; the user's take precedence.
    fn labels(&self, profile: &Profile, source: Option<&str>) -> Vec<(String, String)> {
        let name = match profile.metric {
            Metric::Cpu => "process_cpu",
            Metric::Wall => "wall",
            Metric::OffCpu => "off_cpu",
            Metric::Alloc | Metric::LiveAlloc | Metric::NativeAlloc => "memory",
            Metric::Contention => "mutex",
            Metric::Exception => "exceptions",
            _ => "dotnet",
        };
        let service = self.args.service.as_deref().or(source).unwrap_or("unknown_service:dotnet");
        let mut labels = self.args.label.clone();
        let mut add = |key: &str, value: String| {
            if !value.is_empty() && labels.iter().all(|(given, _)| given != key) {
                labels.push((key.to_owned(), value));
            }
        };
        add(NAME, name.to_owned());
        add("service_name", service.to_owned());
        // A recording does not name the machine on which it was made.
        if self.args.files.is_empty() {
            add("hostname", host_name());
        }
        if let Some(pid) = self.pid {
            add("pid", pid.to_string());
        }
        labels
    }

    fn pid_text(&self) -> String {
        self.pid.map_or_else(String::new, |pid| pid.to_string())
    }

    fn deliver(&self, endpoint: &Endpoint, content_type: &'static str, message: &[u8]) -> Result<(), String> {
        let (mut retry, mut tries) = (RETRY, 1);
        loop {
            let sent = self.runtime.block_on(endpoint.send(content_type, message, &self.args.header));
            match sent {
                // The answer for profiles has the same form as that for points.
                Ok(answer) if self.args.otlp.is_some() => match rejected_points(&answer) {
                    Some((profiles @ 1.., why)) => {
                        return Err(format!("{profiles} profiles were not taken: {why}"));
                    }
                    Some((0, why)) => {
                        messages::warning(format_args!("{endpoint}: {why}"));
                        return Ok(());
                    }
                    None => return Ok(()),
                },
                Ok(_) => return Ok(()),
                Err(RequestError::Refused { reason }) => return Err(reason),
                Err(RequestError::Temporary { reason, wait: asked }) => {
                    let wait = retry.next_wait();
                    let pause = asked.unwrap_or(wait).min(retry.max());
                    if tries == TRIES || self.interrupts.wait(pause) {
                        return Err(reason);
                    }
                    tries += 1;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Reports how many profiles were not delivered. Fails if no profile was delivered.
    fn finish(&self, exit: Exit) -> Outcome {
        let (failed, reason) = &self.failed;
        match (self.sent, failed) {
            (_, 0) => Ok(exit),
            (0, _) => {
                Err(Failure::new(Exit::NotReachable, format_args!("push: no profile arrived: {reason}")))
            }
            (sent, failed) => {
                messages::warning(format_args!("{failed} of {} profiles did not arrive", sent + failed));
                Ok(exit.join(Exit::Incomplete))
            }
        }
    }
}
