//! The builder of profiles.

mod address_generations;
mod context;
mod event_interest;
mod naming;
mod process;
mod sites;
mod stacks;
mod threads;

use clr_events::code::UnresolvedReason;
use clr_events::{CodeMap, ThreadRoles};
use nettrace::{Event, TraceInfo};

use crate::lines::{LineCounts, SourceLines};
use crate::measure::Measure;
use crate::metric::Metric;
use crate::metrics::{Sample, Sampler, Samples};
use crate::profile::{Profile, Thread};
use crate::stack_filter::StackFilter;
use address_generations::AddressGenerations;
pub(crate) use context::ContextId;
use context::Contexts;
use event_interest::{EventInterest, EventInterests};
use process::Processes;
use sites::Sites;
pub(crate) use stacks::AddressStacks;
use threads::Threads;

/// Settings of a profile.
#[derive(Debug, Clone)]
pub struct Options {
    /// The metric.
    pub metric: Metric,
    /// Whether it is wanted when things happened: [`Thread::track`].
    pub tracks: bool,
    /// Whether samples of [`Metric::Wall`] end in a frame that names the [kind](crate::pseudo_frames) of time.
    pub kinds: bool,
    /// Nothing before this is looked at, in nanoseconds since the recording's start.
    pub from: Option<i64>,
    /// Nothing after this.
    pub to: Option<i64>,
    /// Only these threads, or all if empty.
    pub threads: Vec<u64>,
    /// Only these processes, or all if empty.
    pub processes: Vec<u64>,
    /// The filter of stacks.
    pub filter: StackFilter,
    /// The causes and requests that stacks are shown below.
    pub grouping: CausalGrouping,
    /// Whether frames are lines of methods, where these are known: [`ProfileBuilder::finish_with_lines`].
    pub lines: bool,
    /// In which order the events will be shown.
    pub order: Order,
}

/// Grouping of stacks by their cause, as frames above them. Requires [`Order::Time`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CausalGrouping {
    /// Work of a task stands below the stack that created the task, and that stack below what had created its own task. Loops of
    /// tasks that create each other are shown once, and no more than 32 creators above each other.
    ///
    /// The frame [`STARTING_TASK`](crate::pseudo_frames::STARTING_TASK) stands
    /// between. Frames of the scheduler are left out.
    pub tasks: bool,
    /// Everything stands below the request that it was done for: the activity that an EventSource had started, with what the event
    /// says in words, below the activity around it; or below
    /// [`NO_REQUEST`](crate::pseudo_frames::NO_REQUEST).
    pub requests: bool,
}

impl CausalGrouping {
    /// Whether anything is.
    pub const fn any(self) -> bool {
        self.tasks || self.requests
    }
}

/// An order of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// As they happened: [`Events::in_time_order`](nettrace::Events::in_time_order).
    Time,
    /// As they stand in the recording, which is read twice as fast. Nearly always that is enough; where it is not,
    /// [`ProfileBuilder::finish`] says so.
    File,
}

/// The order in which events stand in the recording does not tell what there was: it has to be read in time order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsTimeOrder;

impl std::fmt::Display for NeedsTimeOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the order in which events were written does not tell what there was; time order does")
    }
}

impl std::error::Error for NeedsTimeOrder {}

impl Options {
    /// All of a recording, with tracks.
    pub fn new(metric: Metric) -> Self {
        Self {
            metric,
            tracks: true,
            kinds: true,
            from: None,
            to: None,
            threads: Vec::new(),
            processes: Vec::new(),
            filter: StackFilter::default(),
            grouping: CausalGrouping::default(),
            lines: false,
            order: Order::Time,
        }
    }
}

/// Builds a profile from a recording's events. Requires all of them, since those that name code may come anywhere.
///
/// # Memory
/// Nothing is kept of an event but what it adds: 16 to 30 bytes for each frame of each stack that is new, 40 for each stack of
/// each thread, some 100 for each method that is told of, and, if [tracks](Options::tracks) are wanted, about 5 for each
/// sample whose stack is not that of the thread's sample before it.
#[derive(Debug)]
pub struct ProfileBuilder {
    options: Options,
    measure: Measure,
    interests: EventInterests,
    code: CodeMap,
    roles: ThreadRoles,
    address_generations: AddressGenerations,
    processes: Processes,
    addresses: AddressStacks,
    threads: Threads,
    sites: Sites,
    sampler: Sampler,
    contexts: Contexts,
    /// Events that belong together came in another order than they happened.
    goes_back: bool,
}

/// Counts of what a profile omits.
#[derive(Debug, Clone, Default)]
pub struct Omissions {
    /// Addresses that have no name, by reason.
    pub nameless: Vec<(UnresolvedReason, u64)>,
    /// Frames of stacks that were left out, because there were more than are kept.
    pub frames: u64,
    /// Methods whose names are longer than [`LONGEST_NAME`](crate::LONGEST_NAME), and were cut.
    pub long_names: u64,
    /// Events that told of code and were left out, because there were more than are kept.
    pub code: u64,
    /// Creators of tasks that were left out, because they lay deeper or were more than is followed.
    pub causes: u64,
    /// The groupings of [`Options::grouping`] for which the recording has no events.
    pub grouping: CausalGrouping,
    /// The samples that thread time was made of. Where hardly any is of managed code, [`Metric::Cpu`] lacks what ran: so it is of
    /// .NET 9 and early 10.0, which take all for others (dotnet/runtime issue 123996).
    pub samples: Samples,
    /// Counts of frames with and without a line, if [wanted](Options::lines).
    pub lines: LineCounts,
}

impl ProfileBuilder {
    /// Ready for the first event.
    pub fn new(options: Options) -> Self {
        Self {
            measure: options.metric.measure(),
            interests: EventInterests::default(),
            code: if options.lines { CodeMap::default().with_il_offsets() } else { CodeMap::default() },
            roles: ThreadRoles::default(),
            address_generations: AddressGenerations::default(),
            processes: Processes::default(),
            addresses: AddressStacks::default(),
            threads: Threads::default(),
            sites: Sites::default(),
            sampler: Sampler::new(options.metric, options.kinds),
            contexts: Contexts::new(options.grouping),
            goes_back: false,
            options,
        }
    }

    /// Adds an event.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        // Most events are good for nothing. A copy: what a function is handed must be in memory, and those need not be.
        if self.interests.is_of_use(event.metadata_index()) {
            self.take_in(*event);
        }
    }

    #[inline(never)]
    fn take_in(&mut self, event: Event<'_>) {
        let interest = self.interests.of(&event, self.options.metric, self.options.grouping);
        if interest.contains(EventInterest::CONTEXT) {
            self.contexts.add(&event, &mut self.addresses, self.address_generations.generation());
        }
        if interest.is_weighed() {
            self.weigh(&event, interest);
        }
        if interest.tells() {
            self.tell(&event, interest);
        }
    }

    #[inline(never)]
    fn tell(&mut self, event: &Event<'_>, interest: EventInterest) {
        if interest.contains(EventInterest::CODE) {
            self.code.add(event);
            if self.options.order == Order::Time {
                self.address_generations.add(event);
            }
            self.roles.add(event);
        }
        if interest.contains(EventInterest::PROCESS) {
            self.processes.add(event);
        }
    }

    #[inline]
    fn weigh(&mut self, event: &Event<'_>, interest: EventInterest) {
        let is_of_processor = interest.contains(EventInterest::PROCESSOR_SAMPLE);
        if is_of_processor {
            self.measure = crate::metric::PROCESSOR_SAMPLES;
        }
        let thread = self.threads.of(event);
        let options = &self.options;
        let is_wanted = || {
            (options.threads.is_empty() || options.threads.contains(&event.thread_id().0))
                && (options.processes.is_empty()
                    || event.process_id().is_some_and(|process| options.processes.contains(&process)))
        };
        if !self.threads.is_wanted(thread, is_wanted) {
            return;
        }
        // Pauses begin and end on any thread, everything else on its own.
        self.goes_back |= self.threads.goes_back(thread, event.time_ns(), self.options.metric == Metric::Gc);
        let context =
            if self.options.grouping.any() { self.contexts.of(event) } else { ContextId::default() };
        let Self { sampler, addresses, sites, threads, address_generations, options, measure, .. } = self;
        sampler.add(
            (event, is_of_processor),
            thread,
            (address_generations.generation(), context),
            addresses,
            |sample| {
                keep(sample, measure.unit.is_time(), options, sites, threads);
            },
        );
    }

    /// Returns the profile of all events added, and what it omits.
    ///
    /// # Errors
    /// Only with [`Order::File`], if something is to be [joined](Options::grouping), or if that order has left something open: which
    /// code lay at an address of some stack, or in which order a thread's samples were taken.
    pub fn finish(self, info: Option<&TraceInfo>) -> Result<(Profile, Omissions), NeedsTimeOrder> {
        self.end(info, None)
    }

    /// The same; each line of a method is a frame, where `lines` knows it. It must have been [wanted](Options::lines).
    ///
    /// # Errors
    /// Those of [`finish`](Self::finish).
    pub fn finish_with_lines(
        self,
        info: Option<&TraceInfo>,
        lines: &mut dyn SourceLines,
    ) -> Result<(Profile, Omissions), NeedsTimeOrder> {
        self.end(info, Some(lines))
    }

    fn end(
        mut self,
        info: Option<&TraceInfo>,
        lines: Option<&mut dyn SourceLines>,
    ) -> Result<(Profile, Omissions), NeedsTimeOrder> {
        let Self { sampler, sites, threads, options, measure, .. } = &mut self;
        sampler.finish(|sample| {
            keep(sample, measure.unit.is_time(), options, sites, threads);
        });
        let (found, wanted) = (self.contexts.found(), self.options.grouping);
        let mut omissions = Omissions {
            frames: self.addresses.cut(),
            code: self.code.left_out(),
            causes: self.contexts.left_out(),
            grouping: CausalGrouping {
                tasks: wanted.tasks && !found.tasks,
                requests: wanted.requests && !found.requests,
            },
            samples: self.sampler.samples(),
            ..Omissions::default()
        };
        let named = naming::name(
            (self.code.symbolizer(), lines),
            &self.options,
            &self.addresses,
            &self.sites,
            self.threads.keys().map(|(process, _)| process).collect(),
            &self.sampler,
            &self.contexts,
        );
        if self.options.order == Order::File
            && (self.options.grouping.any() || self.goes_back || named.is_ambiguous)
        {
            return Err(NeedsTimeOrder);
        }
        omissions.nameless = named.nameless;
        omissions.frames = omissions.frames.saturating_add(named.left_out);
        omissions.long_names = named.long_names;
        let recorded_bytes = recorded_bytes(&self.addresses, &self.sites);
        omissions.lines = named.lines;
        let (threads, numbers) = self.threads.finish();
        let pointer_size = info.map_or(8, |info| info.pointer_size);
        let (processes, of_thread) =
            self.processes.finish(threads.iter().map(|thread| thread.key.0), pointer_size);
        let roles = &self.roles;
        let threads = threads.into_iter().zip(of_thread).map(|(thread, process)| Thread {
            process,
            id: thread.key.1.0,
            frame: threads::frame(
                thread.key.1,
                thread.name.as_deref(),
                roles.get(thread.key.0, thread.key.1),
            ),
            track: thread.track,
        });
        let mut sites = named.sites;
        for site in &mut sites {
            site.thread = numbers.get(site.thread as usize).copied().unwrap_or(site.thread);
        }
        let profile = Profile {
            measure: self.measure,
            start_unix_ms: info.and_then(|info| info.start.unix_milliseconds()),
            frames: named.frames,
            stacks: named.stacks,
            processes,
            threads: threads.collect(),
            sites,
            recorded_bytes,
        };
        Ok((profile, omissions))
    }
}

/// Bytes of a recording that these take in it, at least: the addresses of each stack once, and each sample.
fn recorded_bytes(addresses: &AddressStacks, sites: &Sites) -> u64 {
    let samples = sites.all().iter().map(|sum| sum.samples).fold(0, u64::saturating_add);
    samples.saturating_add(addresses.tree().len() as u64).saturating_mul(8)
}

/// Keeps the part of a sample that lies within the time range of the options.
#[inline]
fn keep(sample: Sample, is_time: bool, options: &Options, sites: &mut Sites, threads: &mut Threads) {
    if let Some(sample) = within(sample, is_time, options) {
        let site = sites.add(&sample);
        if options.tracks {
            threads.push(&sample, site, is_time);
        }
    }
}

/// Clips a sample to the time range of the options; `None` if it lies outside.
fn within(sample: Sample, is_time: bool, options: &Options) -> Option<Sample> {
    let from = options.from.unwrap_or(i64::MIN);
    let to = options.to.unwrap_or(i64::MAX);
    if !is_time {
        return (from <= sample.start && sample.start < to).then_some(sample);
    }
    let end = sample.start.saturating_add_unsigned(sample.weight);
    if from <= sample.start && end <= to {
        return Some(sample);
    }
    let (start, end) = (sample.start.max(from), end.min(to));
    (start < end).then(|| Sample { start, weight: end.abs_diff(start), ..sample })
}
