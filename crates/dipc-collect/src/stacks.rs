//! The current stacks of all threads, from short sessions of the sampler.

mod code_stacks;
mod thread_stacks;

use std::convert::Infallible;
use std::time::{Duration, Instant};

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
/// The ratio of the durations of two sessions in sequence.
const GROWTH: u32 = 10;
/// The default of the maximum time of all sessions until the first sample: a starved process yields few.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Maximum time that an event waits for older events. Samples are in time order, and other events are rare.
const MAX_DELAY: Duration = Duration::from_millis(100);
/// The number of unreliable first samples of a thread. The first sample has the state in which the runtime
/// last stopped the thread, if it ever did: on 3.1 and 9, sleeping threads appear to be in managed code. Seen
/// in the first session of a process.
const UNRELIABLE: u64 = 1;

/// Returns the provider that samples the stacks of threads, about once a millisecond. NativeAOT programs lack
/// it.
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
    max_wait: Duration,
}

impl StacksRequest {
    /// Creates a request for this number of samples of each thread, about one for each millisecond.
    pub const fn new(samples: u64) -> Self {
        Self { samples, providers: Vec::new(), max_wait: MAX_WAIT }
    }

    /// Adds providers to the session.
    #[must_use]
    pub fn with_providers(mut self, providers: impl IntoIterator<Item = ProviderConfig>) -> Self {
        self.providers.extend(providers);
        self
    }

    /// Sets the time after which a process without a sample is given up, 10 s by default.
    #[must_use]
    pub const fn with_max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
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

    /// The durations of the sessions, each ten times as long as the previous. The last has the rest of the
    /// maximum wait.
    fn durations(&self) -> impl Iterator<Item = Duration> + use<> {
        let first = self.duration();
        let mut rest = self.max_wait.saturating_sub(first);
        let longer = std::iter::successors(first.checked_mul(GROWTH), |last| last.checked_mul(GROWTH));
        let others = longer.map_while(move |next| {
            // No short session follows the longest.
            let duration = if rest.saturating_sub(next) < next { rest } else { next };
            rest = rest.saturating_sub(duration);
            (!duration.is_zero()).then_some(duration)
        });
        std::iter::once(first).chain(others)
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
/// A session without samples is followed by one ten times as long, up to the request's
/// [maximum](StacksRequest::with_max_wait): a starved process yields few. `new_reader` creates the reader of
/// each session, before it begins. The duration of `limits` is not used.
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
    let (config, mut durations) = (request.session_config(), request.durations().peekable());
    loop {
        let mut stacks = new_reader();
        let session = session::start(target, &config, || stop.is_stopped(), observer)?;
        stacks.begin();
        let mut first_sample = None;
        let add = |reader: &mut LiveReader| {
            reader.for_each(|event| {
                if event.provider() == SAMPLE_PROFILER && !event.stack().is_empty() {
                    first_sample.get_or_insert_with(Instant::now);
                }
                stacks.add(event);
            });
            // Those of the other threads follow soon: a long session need not last.
            let enough = request.duration().saturating_mul(GROWTH);
            Ok::<_, Infallible>(first_sample.is_some_and(|first| first.elapsed() >= enough))
        };
        let limits = limits.clone().with_duration(durations.next());
        let Ok((reader, end)) =
            live_stream::read(session, LiveReader::new(MAX_DELAY), &limits, observer, add);
        let stacks = stacks.finish(reader.info());
        if stacks.is_some() || durations.peek().is_none() || !end.is_whole() || stop.is_stopped() {
            return Ok(CollectedStacks { stacks, reader, end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starved_process_has_ten_seconds() {
        let durations = |request: StacksRequest| request.durations().collect::<Vec<_>>();
        for samples in [1, 50, 1_000] {
            let all = durations(StacksRequest::new(samples));
            assert_eq!(all.iter().sum::<Duration>(), Duration::from_secs(10), "{all:?}");
            assert!(all.is_sorted() && (2..=4).contains(&all.len()), "{all:?}");
            assert_eq!(all.first(), Some(&StacksRequest::new(samples).duration()));
        }
        // The samples take longer.
        let many = StacksRequest::new(100_000);
        assert_eq!(durations(many.clone()), [many.duration()]);
        let short = durations(StacksRequest::new(1).with_max_wait(Duration::from_millis(200)));
        assert_eq!((short.len(), short.iter().sum()), (2, Duration::from_millis(200)));
    }
}
