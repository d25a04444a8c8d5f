//! The profiles of a running process: by the kernel's samples, by the runtime's session, or by both at the
//! same time.

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::Target;
use dipc_collect::profiles::{self, ProfileBuilders, ProfileRequest, SamplesEnd};
use dipc_collect::stream;
use nettrace_export::{Metric, Profile};

use super::{ProfiledProcess, PushArgs, Pusher};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::profile::diagnostics::warn_of_omissions;
use crate::interrupt::Interrupts;
use crate::record::kernel_samples::{LiveSamples, SamplerChoice};
use crate::record::notes::Messages;
use crate::record::recorder::Limits;
use crate::record::session::start_unless_interrupted;
use crate::record::stream_stats;
use crate::render::messages;

/// The default time for which a process is sampled, if the interval between profiles is not shorter.
pub(super) const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// The metrics of the profiles of a process.
#[derive(Debug, Clone)]
pub(super) struct ProcessMetrics {
    /// The metrics that the user asked for; none for processor time.
    asked: Vec<Metric>,
    sampler: SamplerChoice,
}

impl ProcessMetrics {
    /// Assigns metrics to their sources; processor time if there are none.
    ///
    /// # Errors
    /// For a metric that no source has, or a sampler without a metric to sample.
    pub(super) fn new(asked: Vec<Metric>, sampler: SamplerChoice) -> Result<Self, Failure> {
        let is_of_samples = |metric| matches!(metric, Metric::Cpu | Metric::OffCpu | Metric::Wall);
        if sampler != SamplerChoice::Auto && !asked.is_empty() && !asked.iter().copied().any(is_of_samples) {
            return Err(Failure::usage(
                "push: --sampler is for --by cpu, off-cpu and wall: other metrics have events",
            ));
        }
        let metrics = Self { asked, sampler };
        if sampler == SamplerChoice::Runtime && metrics.has_waits() {
            return Err(Failure::usage("push: --by off-cpu: the runtime does not sample threads that wait")
                .with_help("--by wall has their time"));
        }
        if profiles::session_config(&metrics.session()).is_none() {
            return Err(no_such_metric());
        }
        Ok(metrics)
    }

    /// Metrics by the kernel's samples.
    fn kernel(&self) -> Vec<Metric> {
        let usual = [Metric::Cpu];
        let asked = if self.asked.is_empty() { &usual[..] } else { &self.asked };
        asked.iter().copied().filter(|metric| self.is_of_kernel(*metric)).collect()
    }

    /// Metrics by the runtime's samples and events.
    fn session(&self) -> Vec<Metric> {
        if self.asked.is_empty() && self.sampler == SamplerChoice::Runtime {
            // Without a choice of the user, all the time that its sampler sees.
            return vec![Metric::Wall];
        }
        self.asked.iter().copied().filter(|metric| !self.is_of_kernel(*metric)).collect()
    }

    fn is_of_kernel(&self, metric: Metric) -> bool {
        match metric {
            Metric::OffCpu => true,
            Metric::Cpu => self.sampler != SamplerChoice::Runtime,
            Metric::Wall => self.sampler == SamplerChoice::Kernel,
            _ => false,
        }
    }

    /// Returns true if the kernel's samples have all of them, which need no runtime.
    pub(super) fn are_of_kernel(&self) -> bool {
        self.session().is_empty()
    }

    /// Returns true if times off the processors are sampled.
    fn has_waits(&self) -> bool {
        self.kernel().iter().any(|metric| *metric != Metric::Cpu)
    }

    /// Has the runtime sample itself in place of the kernel.
    ///
    /// # Errors
    /// If it has no samples of this kind.
    fn fall_back(&mut self) -> Result<(), Failure> {
        if self.has_waits() {
            return Err(Failure::new(
                Exit::Refused,
                "push: --by off-cpu: the kernel does not permit samples, and the runtime has none of threads that wait",
            )
            .with_help("dipc doctor shows why; --by wall has their time"));
        }
        self.sampler = SamplerChoice::Runtime;
        Ok(())
    }
}

/// The failure for a metric of which a session has no events.
fn no_such_metric() -> Failure {
    Failure::usage(
        "push: for a process, the metrics are cpu, off-cpu, wall, alloc, live-alloc, contention and exception",
    )
    .with_help("dipc trace records the data for other metrics, and dipc push FILE --by sends it")
}

/// Samples a process repeatedly, and sends its profiles each time.
pub(super) fn push_process(
    args: &PushArgs,
    metrics: &ProcessMetrics,
    process: &ProfiledProcess,
    pusher: &mut Pusher<'_>,
    interrupts: &Interrupts,
) -> Outcome {
    let mut metrics = metrics.clone();
    let runtime = process.runtime.as_ref();
    pusher.is_dotnet = runtime.is_some();
    let managed = runtime.filter(|runtime| !runtime.is_native_aot().unwrap_or(false));
    if metrics.session().contains(&Metric::Wall) && metrics.sampler == SamplerChoice::Auto {
        messages::note(
            "Samples        : by the runtime: --by wall distinguishes threads that wait for work; --sampler kernel has the kernel's times of all",
        );
    }
    if managed.is_none() && !metrics.are_of_kernel() {
        return Err(Failure::new(
            Exit::Refused,
            "push: the process is a NativeAOT program: its runtime has no sampler, and no names of methods",
        )
        .with_help("--by cpu has the kernel sample it"));
    }
    let title = process.pid.map_or_else(|| "process".to_owned(), |pid| format!("process {pid}"));
    let mut left = args.count;
    let mut exit = Exit::Done;
    let mut is_first = true;
    let mut empty = EmptyProfiles::default();
    while left != Some(0) && interrupts.count() == 0 {
        let begin = Instant::now();
        let mut samples = None;
        if !metrics.kernel().is_empty() {
            let (pid, has_sampler) = (process.kernel_pid(), managed.is_some());
            samples = metrics.sampler.start(pid, metrics.has_waits(), &title, has_sampler, is_first)?;
            if samples.is_none() {
                // The reason was given.
                metrics.fall_back()?;
            }
        }
        is_first = false;
        let taken = sample(args, &metrics, managed, samples, interrupts)?;
        exit = exit.join(taken.exit);
        for profile in &taken.profiles {
            empty.note(profile, taken.profiles.len() > 1);
            if profile.samples() > 0 {
                pusher.push(profile, process.name.as_deref())?;
            }
        }
        if taken.is_unasked {
            messages::note("Process ended.");
            break;
        }
        left = left.map(|left| left - 1);
        if left != Some(0) {
            interrupts.wait(args.every.saturating_sub(begin.elapsed()));
        }
    }
    Ok(exit)
}

/// The metrics without samples, which are reported when they become empty, not each time.
#[derive(Debug, Default)]
struct EmptyProfiles(Vec<Metric>);

impl EmptyProfiles {
    fn note(&mut self, profile: &Profile, is_one_of_many: bool) {
        let metric = profile.metric;
        if profile.samples() > 0 {
            self.0.retain(|empty| *empty != metric);
        } else if !self.0.contains(&metric) {
            self.0.push(metric);
            report_empty(metric, is_one_of_many);
        }
    }
}

/// Says that a profile is empty: of several kinds, some usually are.
fn report_empty(metric: Metric, is_one_of_many: bool) {
    if is_one_of_many {
        messages::note(format_args!("Not pushed     : {}: nothing was recorded", metric.name()));
    } else if matches!(metric, Metric::Cpu | Metric::Wall) {
        messages::warning("no working thread was sampled: there is no profile to send");
    } else {
        messages::warning("nothing of this kind was recorded: there is no profile to send");
    }
}

/// The profiles of one time.
struct Taken {
    profiles: Vec<Profile>,
    exit: Exit,
    /// True if the process ended by itself.
    is_unasked: bool,
}

impl Taken {
    /// Adds the profiles of another source of the same time.
    fn join(self, other: Self) -> Self {
        Self {
            profiles: self.profiles.into_iter().chain(other.profiles).collect(),
            exit: self.exit.join(other.exit),
            is_unasked: self.is_unasked || other.is_unasked,
        }
    }
}

/// Makes the profiles of a time: of the kernel's samples, and of a session of the `managed` runtime.
fn sample(
    args: &PushArgs,
    metrics: &ProcessMetrics,
    managed: Option<&Target>,
    samples: Option<LiveSamples>,
    interrupts: &Interrupts,
) -> Result<Taken, Failure> {
    let of_session = managed.filter(|_| !metrics.are_of_kernel());
    let by_kernel = |samples| sample_by_kernel(args, &metrics.kernel(), managed, samples, interrupts);
    match (samples, of_session) {
        (Some(samples), None) => by_kernel(samples),
        (None, Some(runtime)) => sample_by_runtime(args, &metrics.session(), runtime, interrupts),
        (Some(samples), Some(runtime)) => thread::scope(|scope| {
            let by_kernel = scope.spawn(move || by_kernel(samples));
            let by_runtime = sample_by_runtime(args, &metrics.session(), runtime, interrupts);
            let by_kernel = by_kernel.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok(by_kernel?.join(by_runtime?))
        }),
        (None, None) => Err(Failure::new(Exit::Refused, "push: the program has no sampler")),
    }
}

/// Makes profiles of the kernel's samples of a process. A `managed` runtime lists its methods.
fn sample_by_kernel(
    args: &PushArgs,
    metrics: &[Metric],
    managed: Option<&Target>,
    samples: LiveSamples,
    interrupts: &Interrupts,
) -> Result<Taken, Failure> {
    let mut builders = builders(args, metrics, false)?;
    let limits = stream::Limits::new(interrupts.stop_signal()).with_duration(Some(args.duration()));
    let (end, names_error) = profiles::read_samples(samples, managed, &mut builders, &limits);
    let mut exit = Exit::Done;
    if let Some(error) = names_error {
        messages::warning(format_args!("names of methods are missing: {error}"));
        exit = Exit::Incomplete;
    }
    let profiles = finish(builders, None)?;
    Ok(Taken { profiles, exit, is_unasked: end == SamplesEnd::Process })
}

/// Makes profiles of the runtime's samples and events.
fn sample_by_runtime(
    args: &PushArgs,
    metrics: &[Metric],
    runtime: &Target,
    interrupts: &Interrupts,
) -> Result<Taken, Failure> {
    let config = profiles::session_config(metrics).ok_or_else(no_such_metric)?;
    let session = start_unless_interrupted(runtime, &config, interrupts)?;
    let mut builders = builders(args, metrics, true)?;
    let limits = Limits::new(runtime, None, args.timeout, interrupts).with_duration(Some(args.duration()));
    let (reader, end) = profiles::read_session(session, &mut builders, &limits.stream, &mut Messages);
    let inside =
        stream_stats::report_damage(reader.events(), reader.unreadable(), "the readable part is sent");
    let end = limits.end(end);
    let is_unasked = end.is_unasked();
    let exit = end.report("a profile was sampled", "sent")?;
    let profiles = finish(builders, reader.info())?;
    Ok(Taken { profiles, exit: exit.join(inside), is_unasked })
}

fn builders(args: &PushArgs, metrics: &[Metric], has_kinds: bool) -> Result<ProfileBuilders, Failure> {
    let request = |metric: &Metric| ProfileRequest::new(args.profile_options(*metric).with_kinds(has_kinds));
    let mut requests = metrics.iter().map(request);
    let first = requests.next().ok_or_else(no_such_metric)?;
    Ok(ProfileBuilders::new(first, requests.collect()))
}

/// Finishes the profiles, and says what they lack.
fn finish(builders: ProfileBuilders, info: Option<&nettrace::TraceInfo>) -> Result<Vec<Profile>, Failure> {
    let mut profiles = Vec::new();
    for (profile, omissions) in builders.finish(info)? {
        warn_of_omissions(&omissions);
        profiles.push(profile);
    }
    Ok(profiles)
}
