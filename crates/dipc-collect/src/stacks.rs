//! The current stacks of all threads, from short sessions of the sampler.

mod code_stacks;
mod thread_stacks;

use std::convert::Infallible;
use std::time::Duration;

use dipc_client::{Keywords, Level, LiveReader, ProviderConfig, SAMPLE_PROFILER, SessionConfig, Target};
use nettrace::{Event, TraceInfo};

use crate::live_stream;
use crate::observer::Observer;
use crate::session::{self, StartError};
use crate::stream::{Limits, StreamEnd};

pub use code_stacks::{AddressStack, CodeStacks};
pub use thread_stacks::{
    LiveThreadStacks, SampledStack, StackOptions, ThreadSamples, ThreadStackReader, ThreadStacks,
};

/// The extra time for the sampler, beyond that for the requested samples. It needs two rounds: a sample
/// counts once the next one has arrived.
const BEFORE_FIRST: Duration = Duration::from_millis(10);
/// The time between two rounds of the sampler, with a margin.
const ROUND: Duration = Duration::from_micros(1_200);
/// Maximum number of sessions, each ten times as long as the previous, to obtain samples: a starved process
/// yields few.
const MAX_SESSIONS: u32 = 3;
/// Maximum time that an event waits for older events. Samples are in time order, and other events are rare.
const MAX_DELAY: Duration = Duration::from_millis(100);
/// The number of unreliable first samples of a thread. The first sample has the state in which the runtime
/// last stopped the thread, if it ever did: on 3.1 and 9, sleeping threads appear to be in managed code. Seen
/// in the first session of a process.
const UNRELIABLE: u64 = 1;

/// Returns the provider that samples the stacks of threads, about once a millisecond. NativeAOT programs lack it.
pub fn sampler() -> ProviderConfig {
    ProviderConfig {
        name: SAMPLE_PROFILER.to_owned(),
        keywords: Keywords::SAMPLES,
        level: Level::INFORMATIONAL,
        arguments: String::new(),
    }
}

/// The stacks to collect.
#[derive(Debug, Clone)]
pub struct StacksRequest {
    samples: u64,
    providers: Vec<ProviderConfig>,
}

impl StacksRequest {
    /// Creates a request for this number of samples of each thread, about one for each millisecond.
    pub const fn new(samples: u64) -> Self {
        Self { samples, providers: Vec::new() }
    }

    /// Adds providers to the session.
    #[must_use]
    pub fn with_providers(mut self, providers: impl IntoIterator<Item = ProviderConfig>) -> Self {
        self.providers.extend(providers);
        self
    }

    fn session_config(&self) -> SessionConfig {
        SessionConfig::new([sampler()].into_iter().chain(self.providers.iter().cloned()))
    }

    /// The duration of the first session.
    fn duration(&self) -> Duration {
        let rounds = u32::try_from(self.samples.saturating_add(UNRELIABLE)).unwrap_or(u32::MAX);
        BEFORE_FIRST.saturating_add(ROUND.saturating_mul(rounds))
    }
}

/// The reader of the stacks in one session: [`ThreadStackReader`] or [`CodeStacks`].
pub trait StackReader {
    /// The stacks of the session.
    type Stacks;

    /// Called once the session has begun.
    fn begin(&mut self) {}

    /// Adds an event of the session.
    fn add(&mut self, event: &Event<'_>);

    /// Returns the stacks after the end of a stream with the header `info`; `None` if no thread has one.
    fn finish(self, info: Option<&TraceInfo>) -> Option<Self::Stacks>;
}

/// The outcome of the last session.
#[derive(Debug)]
#[non_exhaustive]
pub struct CollectedStacks<S> {
    /// The stacks; `None` if the sampler found no thread with managed frames.
    pub stacks: Option<S>,
    /// The reader of the stream, which knows its losses and damage.
    pub reader: LiveReader,
    /// The end of the stream.
    pub end: StreamEnd,
}

/// Samples the threads of a process for a few milliseconds. Blocks.
///
/// A session without samples is followed by one ten times as long, and that by another: a starved process yields
/// few. `new_reader` creates the reader of each session, before it begins. The duration of `limits` is not used.
///
/// # Errors
/// If a session cannot be started.
pub fn collect<R: StackReader>(
    target: &Target,
    request: &StacksRequest,
    limits: &Limits,
    observer: &mut dyn Observer,
    mut new_reader: impl FnMut() -> R,
) -> Result<CollectedStacks<R::Stacks>, StartError> {
    let stop = limits.stop_signal();
    let (config, mut duration, mut sessions) = (request.session_config(), request.duration(), 0);
    loop {
        let mut stacks = new_reader();
        let session = session::start(target, &config, || stop.is_stopped(), observer)?;
        stacks.begin();
        let add = |reader: &mut LiveReader| {
            reader.for_each(|event| stacks.add(event));
            Ok::<_, Infallible>(false)
        };
        let limits = limits.clone().with_duration(Some(duration));
        let Ok((reader, end)) =
            live_stream::read(session, LiveReader::new(MAX_DELAY), &limits, observer, add);
        let stacks = stacks.finish(reader.info());
        sessions += 1;
        if stacks.is_some() || sessions == MAX_SESSIONS || !end.is_whole() || stop.is_stopped() {
            return Ok(CollectedStacks { stacks, reader, end });
        }
        duration = duration.saturating_mul(10);
    }
}
