//! Stacks that threads had while they worked for requests.

use std::time::Duration;

use clr_events::{CodeMap, KernelSample, KernelSampleKind, StackId, sets};
use hashbrown::{DefaultHashBuilder, HashMap};
use indexmap::IndexMap;
use nettrace::{Event, Metadata, MetadataMap, RelativeTime, ThreadId, Ticks};

use crate::decode::decode;
use crate::profile::address_stacks::AddressStacks;
use crate::profile::builder::address_generations::AddressGenerations;
use crate::profile::causality::{ContextId, Contexts};
use crate::profile::index::ProcessIndex;
use crate::profile::metric::Metric;
use crate::profile::metrics::{Sample, Sampler};
use crate::profile::options::{NameForm, Options};
use crate::profile::stack_totals::StackTotals;
use crate::profile::symbolize::{NameSources, ThreadFacts, symbolize};
use crate::profile::{Process, Profile, Thread};

/// Samples of threads, by the request that the thread worked for. A sample counts until the thread's next
/// one, or until the thread or the request has ended with that work; the kernel's say themselves for how
/// long.
///
/// # Memory
/// Bounded: 512 stacks of each request, 262,144 of all that have not ended, and 1,024 threads at once.
#[derive(Debug)]
pub(crate) struct RequestStacks<K> {
    addresses: AddressStacks,
    code: CodeMap,
    generations: AddressGenerations,
    open: HashMap<(Option<u64>, ThreadId), OpenSample<K>>,
    requests: HashMap<K, RequestSamples>,
    kept: usize,
    kinds: MetadataMap<EventKind>,
    /// True if the recording has samples at all.
    has_samples: bool,
}

/// The kind of an event, from its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Code,
    ThreadSample,
    KernelSample(KernelSampleKind),
    Other,
}

impl EventKind {
    fn of(kind: &Metadata) -> Self {
        match KernelSampleKind::of(kind) {
            Some(kernel) => Self::KernelSample(kernel),
            None if sets::THREAD_SAMPLES.contains(kind) => Self::ThreadSample,
            None if sets::CODE.contains(kind) => Self::Code,
            None => Self::Other,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct OpenSample<K> {
    request: K,
    start: RelativeTime,
    stack: SampledStack,
}

/// A stack of addresses at a time.
#[derive(Debug, Clone, Copy)]
struct SampledStack {
    stack: StackId,
    generation: u32,
    time: Ticks,
    /// True if the thread ran or could have run, by the kernel.
    is_on_cpu: bool,
}

/// The samples of a request: the time and the number of each stack.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestSamples {
    stacks: IndexMap<(StackId, u32, bool), (SampledStack, Duration, u64), DefaultHashBuilder>,
}

impl RequestSamples {
    /// Adds the samples of another request of the same process, as long as there is room.
    pub(crate) fn add(&mut self, other: &Self) {
        self.add_up_to(other, MAX_PER_REQUEST);
    }

    /// Adds the samples of another request of the same process, with at most this number of stacks.
    pub(crate) fn add_up_to(&mut self, other: &Self, max: usize) {
        for (key, (stack, took, count)) in &other.stacks {
            if self.stacks.len() < max || self.stacks.contains_key(key) {
                let sum = self.stacks.entry(*key).or_insert((*stack, Duration::ZERO, 0));
                sum.1 = sum.1.saturating_add(*took);
                sum.2 = sum.2.saturating_add(*count);
            }
        }
    }
}

const MAX_PER_REQUEST: usize = 512;
const MAX_STACKS: usize = 1 << 18;
const MAX_THREADS: usize = 1 << 10;

impl<K> Default for RequestStacks<K> {
    fn default() -> Self {
        Self {
            addresses: AddressStacks::default(),
            code: CodeMap::default(),
            generations: AddressGenerations::default(),
            open: HashMap::new(),
            requests: HashMap::new(),
            kept: 0,
            kinds: MetadataMap::new(),
            has_samples: false,
        }
    }
}

impl<K: Copy + Eq + std::hash::Hash> RequestStacks<K> {
    /// The code that is known so far.
    pub(crate) fn code_mut(&mut self) -> &mut CodeMap {
        &mut self.code
    }

    /// Returns true if events of a kind are needed for themselves, and not for their thread's request.
    pub(crate) fn needs(kind: &Metadata) -> bool {
        EventKind::of(kind) != EventKind::Other
    }

    /// Returns true if the recording has samples.
    pub(crate) const fn has_samples(&self) -> bool {
        self.has_samples
    }

    /// Takes in an event; `request` returns the request that its thread works for then.
    pub(crate) fn add(&mut self, event: &Event<'_>, request: impl FnOnce() -> Option<K>) {
        let kind = self.kinds.get_or_insert_with(event.metadata_index(), || EventKind::of(event.metadata()));
        match kind {
            EventKind::KernelSample(kind) => return self.add_kernel_sample(kind, event, request()),
            EventKind::ThreadSample => self.has_samples = true,
            EventKind::Code => self.add_code(event),
            EventKind::Other => {}
        }
        let is_sample = kind == EventKind::ThreadSample;
        // Other events show when a thread ends its work for a request.
        if !is_sample && self.open.is_empty() {
            return;
        }
        let (request, now) = (request(), event.relative_time().max(RelativeTime::START));
        let key = (event.process_id(), event.thread_id());
        if let Some(open) = self.open.get(&key)
            && (is_sample || Some(open.request) != request)
        {
            let open = *open;
            self.open.remove(&key);
            self.keep(&open, now);
        }
        if let (true, Some(request)) = (is_sample, request)
            && self.open.len() < MAX_THREADS
        {
            let stack = self.stack_of(event, false);
            self.open.insert(key, OpenSample { request, start: now, stack });
        }
    }

    fn add_code(&mut self, event: &Event<'_>) {
        if let Some(view) = decode(event, &sets::CODE) {
            self.code.add_decoded(event, &view);
            if sets::METHODS.contains(event.metadata()) {
                self.generations.add(event.process_id(), &view);
            }
        }
    }

    fn stack_of(&mut self, event: &Event<'_>, is_on_cpu: bool) -> SampledStack {
        SampledStack {
            stack: self.addresses.of(event),
            generation: self.generations.generation(),
            time: event.time(),
            is_on_cpu,
        }
    }

    fn add_kernel_sample(&mut self, kind: KernelSampleKind, event: &Event<'_>, request: Option<K>) {
        self.has_samples = true;
        let Some(request) = request else { return };
        let (nanoseconds, is_on_cpu) = match kind.read(event) {
            KernelSample::OnCpu(nanoseconds) => (nanoseconds, true),
            KernelSample::OffCpu { nanoseconds, preempted } => (nanoseconds, preempted),
        };
        let stack = self.stack_of(event, is_on_cpu);
        self.keep_for(request, stack, Duration::from_nanos(nanoseconds));
    }

    fn keep(&mut self, open: &OpenSample<K>, end: RelativeTime) {
        self.keep_for(open.request, open.stack, end.saturating_duration_since(open.start));
    }

    fn keep_for(&mut self, request: K, stack: SampledStack, took: Duration) {
        let samples = self.requests.entry(request).or_default();
        let key = (stack.stack, stack.generation, stack.is_on_cpu);
        let is_new = !samples.stacks.contains_key(&key);
        if is_new && (samples.stacks.len() >= MAX_PER_REQUEST || self.kept >= MAX_STACKS) {
            return;
        }
        self.kept = self.kept.saturating_add(usize::from(is_new));
        let sum = samples.stacks.entry(key).or_insert((stack, Duration::ZERO, 0));
        sum.1 = sum.1.saturating_add(took);
        sum.2 = sum.2.saturating_add(1);
    }

    /// Ends a request and returns its samples.
    pub(crate) fn end(&mut self, request: K, end: RelativeTime) -> RequestSamples {
        let of_request: Vec<_> = self.open.extract_if(|_, open| open.request == request).collect();
        for (_, open) in of_request {
            self.keep(&open, end);
        }
        let samples = self.requests.remove(&request).unwrap_or_default();
        self.kept = self.kept.saturating_sub(samples.stacks.len());
        samples
    }

    /// Returns a profile that has a thread for each of these requests; of `waits`, without time on a
    /// processor.
    pub(crate) fn finish(
        &mut self,
        requests: &[(Option<u64>, RequestSamples)],
        names: NameForm,
        waits: bool,
    ) -> Profile {
        let mut totals = StackTotals::default();
        for (thread, (_, samples)) in (0..).zip(requests) {
            for (stack, took, count) in samples.stacks.values() {
                if waits && stack.is_on_cpu {
                    continue;
                }
                let sample = Sample {
                    thread,
                    start: RelativeTime::START,
                    weight: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
                    samples: *count,
                    stack: stack.stack,
                    leaf: None,
                    time: stack.time,
                    generation: stack.generation,
                    context: ContextId::default(),
                    rank: 0,
                    taken_at: None,
                };
                totals.add(&sample);
            }
        }
        let facts = |process| ThreadFacts { process, ..ThreadFacts::default() };
        let symbolized = symbolize(
            NameSources { code: self.code.symbolizer(), lines: None, has_kernel_times: false },
            &Options::new(Metric::Wall).with_names(names),
            &self.addresses,
            &totals,
            requests.iter().map(|(process, _)| facts(*process)).collect(),
            &Sampler::new(Metric::Wall, false, true),
            &Contexts::default(),
        );
        let thread = |(id, _)| Thread {
            process: ProcessIndex(0),
            id,
            name: None,
            role: None,
            frame: format!("request {id}"),
            track: None,
        };
        Profile {
            metric: Metric::Wall,
            measure: Metric::Wall.measure(),
            start_unix_ms: None,
            duration: Duration::ZERO,
            frames: symbolized.frames,
            stacks: symbolized.stacks,
            processes: vec![Process::default()],
            threads: (0..).zip(requests).map(thread).collect(),
            stack_totals: symbolized.stack_totals,
            recorded_bytes: 0,
        }
    }
}
