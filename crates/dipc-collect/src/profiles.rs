//! Profiles of a process, each from the samples of some seconds.
//!
//! [`from_session`] has the samples of the runtime itself, [`from_samples`] those of the Linux kernel. A
//! program that profiles a process at intervals calls one of them for each interval. [`read_session`] and
//! [`read_samples`] fill [several builders](ProfileBuilders), as for profiles of several metrics.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use clr_events::CodeMap;
use dipc_client::{
    Error, Keywords, Level, LiveReader, Profile as EventProfile, ProviderConfig, RUNTIME_PROVIDER, Session,
    SessionConfig, Target,
};
use nettrace::{Event, TraceInfo};
use nettrace_export::{Measure, Metric, NeedsTimeOrder, Omissions, Options, Profile, ProfileBuilder};

use crate::kernel_samples::LiveSamples;
use crate::live_stream;
use crate::names::for_each_method;
use crate::observer::Observer;
use crate::stacks::sampler;
use crate::stream::{Limits, StreamEnd};

/// The time between two reads of the kernel's samples.
const TICK: Duration = Duration::from_millis(100);
/// Maximum time that an event waits for older events of other threads.
const MAX_DELAY: Duration = Duration::from_millis(200);

/// The profile to make of samples.
#[derive(Debug, Clone)]
pub struct ProfileRequest {
    options: Options,
    max_code_size: usize,
}

impl ProfileRequest {
    /// Creates a request for a profile with these options, and with the names of methods in at most 512 MiB.
    pub const fn new(options: Options) -> Self {
        Self { options, max_code_size: CodeMap::LIMIT }
    }

    /// Sets the maximum size of the names of methods, in bytes.
    #[must_use]
    pub fn with_max_code_size(self, max_code_size: usize) -> Self {
        Self { max_code_size, ..self }
    }

    fn into_builder(self) -> ProfileBuilder {
        let mut builder = ProfileBuilder::new(self.options);
        *builder.code_mut() = CodeMap::with_limit(self.max_code_size);
        builder
    }
}

/// Builders of profiles of the same events, which have the names of methods in common: those of the first
/// request.
#[derive(Debug)]
pub struct ProfileBuilders {
    first: ProfileBuilder,
    others: Vec<ProfileBuilder>,
}

impl ProfileBuilders {
    /// Creates a builder for each request.
    pub fn new(first: ProfileRequest, others: Vec<ProfileRequest>) -> Self {
        let others = others.into_iter().map(|other| other.into_builder().without_code()).collect();
        Self { first: first.into_builder(), others }
    }

    fn add(&mut self, event: &Event<'_>) {
        self.first.add(event);
        self.others.iter_mut().for_each(|other| other.add(event));
    }

    /// Finishes the profiles, in the order of their requests, each with the parts that it lacks.
    ///
    /// # Errors
    /// Only if the options of a request have [`Order::File`](nettrace_export::Order::File).
    pub fn finish(mut self, info: Option<&TraceInfo>) -> Result<Vec<(Profile, Omissions)>, NeedsTimeOrder> {
        let others = self.others.into_iter().map(|other| other.finish_with_code_of(info, &mut self.first));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let first = self.first.finish(info)?;
        Ok(std::iter::once(first).chain(others).collect())
    }
}

/// A profile by the samples of a runtime.
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionProfile {
    /// The profile.
    pub profile: Profile,
    /// The parts that it lacks.
    pub omissions: Omissions,
    /// The reader of the stream, which knows its losses and damage.
    pub reader: LiveReader,
    /// The end of the stream.
    pub end: StreamEnd,
}

/// A profile by the samples of the Linux kernel.
#[derive(Debug)]
#[non_exhaustive]
pub struct KernelProfile {
    /// The profile, of processor time.
    pub profile: Profile,
    /// The parts that it lacks.
    pub omissions: Omissions,
    /// The end of the samples.
    pub end: SamplesEnd,
    /// The reason for which methods have no names.
    pub names_error: Option<Error>,
}

/// The end of the samples of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SamplesEnd {
    /// The time was over, or the collection was stopped.
    Limit,
    /// The process ended.
    Process,
    /// The collection was cancelled: the last samples are missing, and so are the names of methods.
    Cancelled,
}

/// Returns the configuration of a session with the events of these metrics; `None` if one of them takes
/// another source, or more than a session. NativeAOT programs lack the sampler of [`Metric::Cpu`] and
/// [`Metric::Wall`].
pub fn session_config(metrics: &[Metric]) -> Option<SessionConfig> {
    let mut providers: Vec<ProviderConfig> = Vec::new();
    for metric in metrics {
        for config in metric_providers(*metric)? {
            match providers.iter_mut().find(|provider| provider.name == config.name) {
                Some(provider) => {
                    provider.keywords |= config.keywords;
                    provider.level = provider.level.max(config.level);
                }
                None => providers.push(config),
            }
        }
    }
    Some(SessionConfig::new(providers))
}

/// Returns the providers of a metric's events; `None` if it takes another source.
fn metric_providers(metric: Metric) -> Option<Vec<ProviderConfig>> {
    let of_profile = |name| {
        let profile = EventProfile::find(name)?;
        Some(profile.providers.iter().map(|provider| provider.to_config()).collect())
    };
    let of_runtime = |keywords| {
        Some(vec![ProviderConfig {
            name: RUNTIME_PROVIDER.to_owned(),
            keywords,
            level: Level::INFORMATIONAL,
            arguments: String::new(),
        }])
    };
    match metric {
        Metric::Cpu | Metric::Wall => Some(vec![sampler()]),
        Metric::Alloc => of_profile("gc-verbose"),
        Metric::LiveAlloc => of_profile("live-alloc"),
        Metric::Exception => of_runtime(Keywords::EXCEPTION),
        Metric::Contention => of_runtime(Keywords::CONTENTION),
        _ => None,
    }
}

/// Makes a profile of the samples of a [session](session_config). Blocks until a limit ends the session.
///
/// The runtime names the methods at the end of the session.
///
/// # Errors
/// Only if the options of the request have [`Order::File`](nettrace_export::Order::File).
pub fn from_session(
    session: Session,
    request: ProfileRequest,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> Result<SessionProfile, NeedsTimeOrder> {
    let mut builders = ProfileBuilders::new(request, Vec::new());
    let (reader, end) = read_session(session, &mut builders, limits, observer);
    let (profile, omissions) = builders.first.finish(reader.info())?;
    Ok(SessionProfile { profile, omissions, reader, end })
}

/// Passes the events of a [session](session_config) to builders. Blocks until a limit ends the session.
/// Returns the reader of the stream, which knows its losses and damage.
pub fn read_session(
    session: Session,
    builders: &mut ProfileBuilders,
    limits: &Limits,
    observer: &mut dyn Observer,
) -> (LiveReader, StreamEnd) {
    let add = |reader: &mut LiveReader| {
        reader.for_each(|event| builders.add(event));
        Ok::<_, Infallible>(false)
    };
    let Ok(read) = live_stream::read(session, LiveReader::new(MAX_DELAY), limits, observer, add);
    read
}

/// Makes a profile of processor time of the kernel's samples, whatever the metric of the request. Blocks
/// until the time is over, the process ends or the collection is stopped. The other limits are not used.
///
/// A `runtime` then lists its methods: give none for a program without .NET, or for a NativeAOT program.
///
/// # Errors
/// As [`from_session`].
pub fn from_samples(
    samples: LiveSamples,
    runtime: Option<&Target>,
    mut request: ProfileRequest,
    limits: &Limits,
) -> Result<KernelProfile, NeedsTimeOrder> {
    request.options.metric = Some(Metric::Cpu);
    let mut builders = ProfileBuilders::new(request, Vec::new());
    let (end, names_error) = read_samples(samples, runtime, &mut builders, limits);
    let (mut profile, omissions) = builders.first.finish(None)?;
    // Also if no thread of the process ran.
    (profile.metric, profile.measure) = (Metric::Cpu, Measure::CPU_TIME);
    Ok(KernelProfile { profile, omissions, end, names_error })
}

/// Passes the kernel's samples to builders, and then the methods that a `runtime` lists, as
/// [`from_samples`] does. Returns the end of the samples, and the reason for which methods have no names.
pub fn read_samples(
    mut samples: LiveSamples,
    runtime: Option<&Target>,
    builders: &mut ProfileBuilders,
    limits: &Limits,
) -> (SamplesEnd, Option<Error>) {
    let stop = limits.stop_signal();
    let end = read_until_end(&mut samples, builders, limits);
    if end == SamplesEnd::Cancelled {
        return (end, None);
    }
    samples.finish(|event| builders.add(event));
    let names_error = runtime.and_then(|runtime| {
        let add = |event: &Event<'_>| builders.first.code_mut().add(event);
        for_each_method(runtime, || stop.is_cancelled(), add).err()
    });
    (end, names_error)
}

fn read_until_end(samples: &mut LiveSamples, builders: &mut ProfileBuilders, limits: &Limits) -> SamplesEnd {
    let (begin, stop) = (Instant::now(), limits.stop_signal());
    loop {
        samples.read(|event| builders.add(event));
        if stop.is_cancelled() {
            return SamplesEnd::Cancelled;
        }
        if samples.is_over() {
            return SamplesEnd::Process;
        }
        let left = limits.duration().map_or(TICK, |duration| duration.saturating_sub(begin.elapsed()));
        if stop.is_stopped() || left.is_zero() {
            return SamplesEnd::Limit;
        }
        stop.wait(left.min(TICK));
    }
}
