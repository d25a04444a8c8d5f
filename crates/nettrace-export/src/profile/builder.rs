//! The builder of profiles.

pub(in crate::profile) mod address_generations;
mod event_interest;
mod gc_pauses;
mod process;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use clr_events::code::UnresolvedReason;
use clr_events::{ClrEvent, CodeMap, KernelSampleKind, ThreadRoles};
use nettrace::{Event, Metadata, RelativeTime, TraceInfo};

use crate::profile::address_stacks::AddressStacks;
use crate::profile::async_callers::{AsyncCallers, AsyncCallersBuilder};
use crate::profile::causality::{ContextId, Contexts};
use crate::profile::kernel_times::KernelTimes;
use crate::profile::kernel_times::correction::Correction;
use crate::profile::lines::{LineCounts, SourceLines};
use crate::profile::liveness::{Liveness, NativeLiveness};
use crate::profile::measure::Measure;
use crate::profile::metric::Metric;
use crate::profile::metrics::{BY_KERNEL, Sample, SampleEvent, Sampler, Samples};
use crate::profile::options::{CausalGrouping, NeedsTimeOrder, Options, Order};
use crate::profile::selection::Selection;
use crate::profile::stack_totals::StackTotals;
use crate::profile::symbolize::{NameSources, symbolize};
use crate::profile::{Profile, Thread, pseudo_frames};
use address_generations::AddressGenerations;
use event_interest::{EventInterest, EventInterests};
use gc_pauses::GcPauses;
use process::Processes;
use threads::Threads;

/// Builds a profile from a recording's events. Requires all of them, since events that name code may occur
/// anywhere.
///
/// # Memory
/// Memory grows only with new content: 16 to 30 bytes for each frame of each new stack, 40 for each stack of
/// each thread, some 100 for each method, and, with [tracks](Options::tracks), about 5 for each sample with a
/// stack that differs from the thread's previous sample.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # for time in [1_000_000, 2_000_000] {
/// #     recording.at(time).thread(7).exception("System.TimeoutException", "no answer");
/// # }
/// # let recording = recording.bytes();
/// use nettrace_export::{Metric, Options, ProfileBuilder};
///
/// let mut builder = ProfileBuilder::new(Options::new(Metric::Exception));
/// let mut events = nettrace_export::nettrace::SliceReader::new(&recording)?.in_time_order();
/// events.for_each(|event| builder.add(&event))?;
/// let (profile, omissions) = builder.finish(events.info())?;
/// assert_eq!((profile.total(), omissions.frames), (2, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ProfileBuilder {
    options: Options,
    metric: Metric,
    /// True if no metric was requested: CPU time by the kernel is preferred to thread time.
    prefers_cpu: bool,
    measure: Measure,
    interests: EventInterests,
    code: CodeMap,
    roles: ThreadRoles,
    address_generations: AddressGenerations,
    processes: Processes,
    addresses: AddressStacks,
    threads: Threads,
    totals: StackTotals,
    sampler: Sampler,
    /// The pauses that are cut out of thread time, if they are.
    gc_pauses: Option<GcPauses>,
    contexts: Contexts,
    async_callers: AsyncCallersBuilder,
    kernel_times: Option<KernelTimes>,
    /// Events that belong together were not in the order in which they happened.
    goes_back: bool,
    /// The time of the last event.
    end: RelativeTime,
    /// The end of the profile that was [taken](Self::take) before.
    begin: RelativeTime,
}

/// Maximum number of threads, and of processes, to keep from one profile to the next: with more, none is
/// kept.
const MAX_ROLES: usize = 1 << 16;

/// Counts of a profile's omissions.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Omissions {
    /// Addresses without a name, by reason.
    pub unresolved: Vec<(UnresolvedReason, u64)>,
    /// Frames of stacks that were left out, because there were more than are kept.
    pub frames: u64,
    /// Methods with names longer than [`MAX_NAME_LENGTH`](crate::MAX_NAME_LENGTH), which were cut.
    pub long_names: u64,
    /// Events about code that were left out because their number exceeded the limit.
    pub code: u64,
    /// Creators of tasks that were left out, because they lay deeper or were more than is followed.
    pub causes: u64,
    /// The groupings of [`Options::grouping`] that the recording lacks events for. Without events of awaits,
    /// a continuation's callers are unknown.
    pub grouping: CausalGrouping,
    /// The samples that thread time is computed from. If hardly any is of managed code, [`Metric::Cpu`] lacks
    /// the time that ran: .NET 9 and early 10.0 mark all samples as other code (dotnet/runtime issue 123996).
    pub samples: Samples,
    /// The time of working threads that were not in managed code according to the samples, without an
    /// [account of the kernel](KernelTimes) that shows whether they ran: they may have waited. .NET 9 and
    /// early 10.0 mark all samples so; locks of .NET 8 and 9 lack a frame, as do waits that were compiled
    /// into their callers.
    pub unverified: u64,
    /// The part of blocked time in which threads were ready but not running, by the kernel's account.
    pub without_processor: u64,
    /// The time of threads off the processors, by the kernel's samples, where CPU time is shown because [no
    /// metric](Options::metric) was requested.
    pub off_cpu: u64,
    /// The methods of [`Options::waits_for_work`], by index, that are on no stack of a thread.
    pub unmatched_waits: Vec<usize>,
    /// Counts of frames with and without a line, if [wanted](Options::lines).
    pub lines: LineCounts,
    /// Facts about the allocations of [`Metric::LiveAlloc`]; `None` for other metrics.
    pub live: Option<Liveness>,
    /// Facts about the allocations of [`Metric::NativeAlloc`]; `None` for other metrics.
    pub native: Option<NativeLiveness>,
}

impl ProfileBuilder {
    /// Ready for the first event.
    pub fn new(options: Options) -> Self {
        let metric = options.metric.unwrap_or(Metric::Wall);
        let prefers_cpu = options.metric.is_none();
        let options = Options { metric: Some(metric), ..options };
        let (sampler, gc_pauses) = sampler(metric, prefers_cpu, &options);
        Self {
            metric,
            prefers_cpu,
            measure: metric.measure(),
            interests: EventInterests::default(),
            code: if options.lines { CodeMap::default().with_il_offsets() } else { CodeMap::default() },
            roles: ThreadRoles::default(),
            address_generations: AddressGenerations::default(),
            processes: Processes::default(),
            addresses: AddressStacks::default(),
            threads: Threads::default(),
            totals: StackTotals::default(),
            sampler,
            gc_pauses,
            contexts: Contexts::new(options.grouping),
            async_callers: AsyncCallersBuilder::default(),
            kernel_times: None,
            goes_back: false,
            end: RelativeTime::START,
            begin: RelativeTime::START,
            options,
        }
    }

    /// Takes the code of stacks from another builder of the same events, when it is [finished with
    /// it](Self::finish_with_code_of): code need not be held twice.
    #[must_use]
    pub const fn without_code(mut self) -> Self {
        self.interests.leave_out_code();
        self
    }

    /// Returns true if a profile with these options needs events of a kind. It also needs the time of the
    /// recording's last event: see [`extend_to`](Self::extend_to).
    pub fn needs(options: &Options, kind: &Metadata) -> bool {
        let metric = options.metric.or(Some(Metric::Wall));
        EventInterest::new(kind, &Options { metric, ..options.clone() }).is_any()
    }

    /// The code that is known so far. Add code from other sources than the recording before its first event.
    pub fn code_mut(&mut self) -> &mut CodeMap {
        &mut self.code
    }

    /// Returns the name of a process by the events so far: of its program's file, or in V6 its own.
    pub fn process_name(&self, process: u64) -> Option<&str> {
        self.processes.name(Some(process)).or_else(|| self.processes.name(None))
    }

    /// Lets the kernel's account of the process's threads decide how long they worked. Call it before the
    /// first event.
    ///
    /// In each interval between two of its rounds, a thread with more time of work than the kernel ran it
    /// counts as blocked for the rest, in the stacks that it had. For [`Metric::Cpu`] it takes the place of
    /// the samples' own mark of managed code, which .NET 9 and early 10.0 lack. It has no effect unless [idle
    /// time](Options::idle) is distinguished, nor on metrics other than time.
    #[must_use]
    pub fn with_kernel_times(mut self, times: KernelTimes) -> Self {
        self.set_kernel_times(times);
        self
    }

    fn set_kernel_times(&mut self, times: KernelTimes) {
        self.kernel_times = Some(times);
        if self.metric == Metric::Cpu && !self.options.idle {
            self.measure = Measure::WORKING_TIME;
            self.sampler.count_all_samples();
        }
    }

    /// Uses what an earlier reading has found of asynchronous operations. Call it before the first event.
    pub(super) fn with_async_callers(mut self, callers: Option<Arc<AsyncCallers>>) -> Self {
        self.contexts = self.contexts.with_async_callers(callers);
        self
    }

    /// Returns what this reading has found of asynchronous operations.
    pub(super) fn take_async_callers(&mut self) -> Option<Arc<AsyncCallers>> {
        std::mem::take(&mut self.async_callers).finish().map(Arc::new)
    }

    /// The kernel's account, to which rounds may be added until the profile is finished; `None` without one.
    pub const fn kernel_times_mut(&mut self) -> Option<&mut KernelTimes> {
        self.kernel_times.as_mut()
    }

    /// Extends the recording to the time of an event that need not be added.
    pub fn extend_to(&mut self, time: RelativeTime) {
        self.end = self.end.max(time);
    }

    /// The time of the last event; `None` if no event is later than the start.
    pub(super) fn last_time(&self) -> Option<RelativeTime> {
        Some(self.end).filter(|end| *end > RelativeTime::START)
    }

    /// Returns true if it is known that the recording has to be read in time order.
    #[inline]
    pub(super) fn needs_time_order(&self) -> bool {
        self.goes_back
    }

    /// Adds an event.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        self.end = self.end.max(event.relative_time());
        // Most events are unused. Only used ones are copied: a reference would force every event into memory.
        if self.interests.is_used(event.metadata_index()) {
            self.take_in(*event);
        }
    }

    #[inline(never)]
    fn take_in(&mut self, event: Event<'_>) {
        let interest = self.interests.of(&event, &self.options);
        if interest.is_context() {
            self.contexts.add(&event, &mut self.addresses, self.address_generations.generation());
        }
        if interest.is_async_buffer() {
            self.async_callers.add_buffer(&event);
        }
        let view = interest.decode(&event);
        if interest.is_weighed() {
            self.weigh(&event, view.as_ref(), interest.kernel_sample());
        }
        if interest.is_process() {
            self.processes.add(&event, view.as_ref());
        }
        if interest.is_thread_role() {
            self.roles.add_decoded(&event, view.as_ref());
        }
        let Some(view) = &view else { return };
        if interest.is_gc_pause()
            && let Some(pauses) = &mut self.gc_pauses
        {
            pauses.add(&event, view);
        }
        if interest.is_code() && self.options.collects_async_callers() {
            self.async_callers.add_method(event.process_id(), view);
        }
        if interest.is_code() {
            self.code.add_decoded(&event, view);
        }
        if interest.is_method() {
            self.address_generations.add(event.process_id(), view);
        }
    }

    #[inline]
    fn weigh(
        &mut self,
        event: &Event<'_>,
        view: Option<&ClrEvent<'_>>,
        kernel_sample: Option<KernelSampleKind>,
    ) {
        if kernel_sample.is_some() && self.metric == Metric::Cpu {
            self.measure = Measure::CPU_TIME;
        }
        // The threads of a collection allocate nothing.
        if self.sampler.add_to_liveness(event, view) {
            return;
        }
        let is_sample = kernel_sample.is_some() || matches!(view, Some(ClrEvent::ThreadSample(_)));
        let thread = if is_sample || !self.sampler.is_thread_time() {
            self.threads.of(event)
        } else if let Some(thread) = self.threads.known(event) {
            thread
        } else {
            // Threads without samples do not get time. In file order the samples may follow.
            self.goes_back = true;
            return;
        };
        self.sampler.add_of_any_thread(event, view, thread);
        let selection = &self.options.selection;
        let is_wanted = || selection.contains_thread(event);
        if !self.threads.is_wanted(thread, is_wanted) {
            return;
        }
        // Pauses begin and end on any thread, everything else on its own.
        self.goes_back |= self.threads.goes_back(thread, event.relative_time(), self.metric == Metric::Gc);
        let context = if self.options.grouping.any() {
            self.contexts.of(event, &mut self.addresses, self.address_generations.generation())
        } else {
            ContextId::default()
        };
        let is_corrected = self.is_corrected();
        let Self {
            sampler,
            gc_pauses,
            addresses,
            totals,
            threads,
            address_generations,
            options,
            measure,
            ..
        } = self;
        let id = (event.process_id(), event.thread_id());
        let is_time = measure.unit.is_time();
        let mut keep = |sample| keep(sample, is_time, options, is_corrected, totals, threads);
        sampler.add(
            SampleEvent {
                event,
                view,
                thread,
                kernel_sample,
                generation: address_generations.generation(),
                context,
            },
            addresses,
            |sample| match gc_pauses {
                // The kernel's stacks show pauses themselves, but the samples of a thread stay in their
                // order.
                Some(pauses) if is_time && (kernel_sample.is_none() || pauses.holds_any()) => {
                    pauses.push(id, sample, kernel_sample.is_none(), &mut keep);
                }
                _ => keep(sample),
            },
        );
    }

    /// Returns true if the kernel's account of threads decides which of them worked.
    fn is_corrected(&self) -> bool {
        self.kernel_times.is_some() && self.tells_waits()
    }

    /// Returns true if working threads are distinguished from waiting ones.
    fn tells_waits(&self) -> bool {
        self.sampler.is_thread_time()
            && !self.options.idle
            && self.measure.unit.is_time()
            && self.measure != Measure::CPU_TIME
    }

    /// Returns the profile of all added events, and its omissions.
    ///
    /// # Errors
    /// Only with [`Order::File`], if [grouping](Options::grouping) is requested, or if that order leaves a
    /// question open: which code was at an address of some stack, or in which order a thread's samples were
    /// taken.
    pub fn finish(mut self, info: Option<&TraceInfo>) -> Result<(Profile, Omissions), NeedsTimeOrder> {
        let (profile, omissions, outcome) = self.build(info, None);
        outcome.map(|()| (profile, omissions))
    }

    /// Finishes like [`finish`](Self::finish), with the code that another builder has by then.
    ///
    /// # Errors
    /// Returns the errors of [`finish`](Self::finish).
    pub fn finish_with_code_of(
        mut self,
        info: Option<&TraceInfo>,
        other: &mut Self,
    ) -> Result<(Profile, Omissions), NeedsTimeOrder> {
        std::mem::swap(&mut self.code, &mut other.code);
        let (profile, omissions, outcome) = self.build(info, None);
        std::mem::swap(&mut self.code, &mut other.code);
        outcome.map(|()| (profile, omissions))
    }

    /// Returns the profile of the events added since the last call, and begins the next one with the code and
    /// the threads' roles known by then: a profile for each interval of a live session.
    ///
    /// A thread's last sample before the call weighs nothing, as at the end of a recording, and no cause is
    /// followed across the call. A wait that has not ended counts in each interval for its part of it. Memory
    /// is bounded by an interval, and the code.
    ///
    /// # Errors
    /// Returns the errors of [`finish`](Self::finish). The added events are dropped then, too.
    pub fn take(&mut self, info: Option<&TraceInfo>) -> Result<(Profile, Omissions), NeedsTimeOrder> {
        let mut open = self.sampler.open_waits();
        if open.len() > MAX_ROLES {
            open.clear();
        }
        let identities: Vec<_> = open.iter().map(|wait| self.threads.identity(wait.thread)).collect();
        let (profile, omissions, outcome) = self.build(info, None);
        if self.prefers_cpu {
            self.metric = Metric::Wall;
            self.options.metric = Some(Metric::Wall);
        }
        self.measure = self.metric.measure();
        let addresses = std::mem::take(&mut self.addresses);
        self.threads = Threads::default();
        self.totals = StackTotals::default();
        (self.sampler, self.gc_pauses) = sampler(self.metric, self.prefers_cpu, &self.options);
        for (wait, identity) in open.iter_mut().zip(identities) {
            let (key, name) = identity.unwrap_or_default();
            wait.thread = self.threads.resume(key, name);
            wait.stack = self.addresses.add_of(&addresses, wait.stack);
        }
        if let Some(times) = self.kernel_times.take() {
            self.set_kernel_times(times);
        }
        self.sampler.begin_interval(self.end, open);
        self.begin = self.end;
        self.contexts = Contexts::new(self.options.grouping);
        self.goes_back = false;
        if self.roles.len() > MAX_ROLES {
            self.roles = ThreadRoles::default();
        }
        if self.processes.len() > MAX_ROLES {
            self.processes = Processes::default();
        }
        outcome.map(|()| (profile, omissions))
    }

    /// The same; each line of a method is a frame, where `lines` knows it. It must have been
    /// [wanted](Options::lines).
    ///
    /// # Errors
    /// Returns the errors of [`finish`](Self::finish).
    pub fn finish_with_lines(
        mut self,
        info: Option<&TraceInfo>,
        lines: &mut dyn SourceLines,
    ) -> Result<(Profile, Omissions), NeedsTimeOrder> {
        let (profile, omissions, outcome) = self.build(info, Some(lines));
        outcome.map(|()| (profile, omissions))
    }

    /// Returns the time of threads off the processors.
    fn off_cpu(&self) -> u64 {
        let is_off_cpu =
            |leaf| matches!(&*self.sampler.leaf_name(leaf), pseudo_frames::OFF_CPU | pseudo_frames::READY);
        let totals = self.totals.iter().filter(|(key, _)| key.leaf.is_some_and(is_off_cpu));
        totals.map(|(_, sum)| sum.weight).fold(0, u64::saturating_add)
    }

    /// Returns the selected part of the time of the events that were added since the last call of
    /// [`take`](Self::take).
    fn duration(&self) -> Duration {
        let Selection { from, to, .. } = &self.options.selection;
        let start = from.map_or(self.begin, |from| from.max(self.begin));
        to.map_or(self.end, |to| to.min(self.end)).saturating_duration_since(start)
    }

    pub(super) fn build(
        &mut self,
        info: Option<&TraceInfo>,
        lines: Option<&mut dyn SourceLines>,
    ) -> (Profile, Omissions, Result<(), NeedsTimeOrder>) {
        let is_corrected = self.is_corrected();
        let Self { sampler, gc_pauses, totals, threads, options, measure, end, .. } = &mut *self;
        let is_time = measure.unit.is_time();
        let mut keep = |sample| keep(sample, is_time, options, is_corrected, totals, threads);
        sampler.finish(*end, &mut keep);
        while gc_pauses.as_mut().is_some_and(|pauses| pauses.pass_on(&mut keep)) {}
        let is_late = gc_pauses.as_ref().is_some_and(GcPauses::is_late);
        if self.prefers_cpu && self.totals.iter().any(|(key, _)| key.rank == BY_KERNEL) {
            (self.metric, self.measure) = (Metric::Cpu, Measure::CPU_TIME);
            self.options.metric = Some(Metric::Cpu);
        }
        let is_corrected = self.is_corrected();
        let off_cpu = if self.prefers_cpu && self.metric == Metric::Cpu { self.off_cpu() } else { 0 };
        let (found, wanted) = (self.contexts.found(), self.options.grouping);
        let mut omissions = Omissions {
            off_cpu,
            frames: self.addresses.cut(),
            code: self.code.left_out(),
            causes: self.contexts.left_out(),
            grouping: CausalGrouping {
                tasks: wanted.tasks && !found.tasks,
                requests: wanted.requests && !found.requests,
                awaits: wanted.awaits && !self.contexts.links_awaits(),
            },
            samples: self.sampler.samples(),
            live: self.sampler.liveness(),
            native: self.sampler.native_liveness(),
            ..Omissions::default()
        };
        let named = symbolize(
            NameSources { code: self.code.symbolizer(), lines, has_kernel_times: is_corrected },
            &self.options,
            &self.addresses,
            &self.totals,
            self.threads.facts().collect(),
            &self.sampler,
            &self.contexts,
        );
        omissions.unmatched_waits = named.unmatched_waits;
        let is_open = self.options.order == Order::File
            && (wanted.tasks
                || wanted.requests
                || wanted.awaits && found.awaits
                || self.metric.needs_time_order()
                || self.goes_back
                || is_late
                || named.is_ambiguous);
        omissions.unresolved = named.unresolved;
        omissions.frames = omissions.frames.saturating_add(named.left_out);
        omissions.long_names = named.long_names;
        let recorded_bytes = recorded_bytes(&self.addresses, &self.totals);
        omissions.lines = named.lines;
        let (threads, numbers) = std::mem::take(&mut self.threads).finish();
        let pointer_size = info.map_or(8, |info| info.pointer_size);
        let (processes, of_thread) =
            self.processes.finish(threads.iter().map(|thread| thread.key.0), pointer_size);
        let (roles, kernel_times) = (&self.roles, self.kernel_times.as_ref());
        let threads = threads.into_iter().zip(of_thread);
        let mut threads: Vec<_> = threads
            .map(|(thread, process)| {
                let (pid, id) = thread.key;
                let by_kernel = || kernel_times?.name(id.0).map(str::to_owned);
                let (name, role) = (thread.name.or_else(by_kernel), roles.get(pid, id));
                let frame = threads::frame(id, name.as_deref(), role);
                Thread { process, id: id.0, name, role, frame, track: thread.track }
            })
            .collect();
        let mut stack_totals = named.stack_totals;
        for total in &mut stack_totals {
            debug_assert!(total.thread.index() < numbers.len(), "a total of no thread");
            total.thread = numbers.get(total.thread.index()).copied().unwrap_or(total.thread);
        }
        match (&mut self.kernel_times, info) {
            (Some(times), Some(info)) if is_corrected => {
                let selection = &self.options.selection;
                let mut correction = Correction::new(times, info, &mut stack_totals, named.asleep, selection);
                correction.apply(&mut threads, self.options.tracks);
                omissions.unverified = correction.unverified;
                omissions.without_processor = correction.queued;
                correction.into_carries().keep_in(times);
            }
            _ => omissions.unverified = named.unverified,
        }
        let profile = Profile {
            metric: self.metric,
            measure: self.measure,
            start_unix_ms: info.and_then(|info| info.start.unix_milliseconds()),
            duration: self.duration(),
            frames: named.frames,
            stacks: named.stacks,
            processes,
            threads,
            stack_totals,
            recorded_bytes,
        };
        omissions.without_processor = omissions.without_processor.saturating_add(profile.ready());
        (profile, omissions, if is_open { Err(NeedsTimeOrder) } else { Ok(()) })
    }
}

/// Returns the metric, and the pauses to cut out of its time.
fn sampler(metric: Metric, prefers_cpu: bool, options: &Options) -> (Sampler, Option<GcPauses>) {
    let mut sampler = Sampler::new(metric, prefers_cpu, options.idle);
    if options.locks {
        sampler.show_locks();
    }
    let gc_pauses = options.cuts_gc_pauses().then(|| GcPauses::new(sampler.pause_leaves()));
    (sampler, gc_pauses)
}

/// Bytes of a recording that these take in it, at least: the addresses of each stack once, and each sample.
fn recorded_bytes(addresses: &AddressStacks, totals: &StackTotals) -> u64 {
    let samples = totals.iter().map(|(_, sum)| sum.samples).fold(0, u64::saturating_add);
    samples.saturating_add(addresses.tree().len() as u64).saturating_mul(8)
}

/// Keeps the part of a sample that lies within the time range of the options; all of it if its weight will be
/// corrected.
#[inline]
fn keep(
    sample: Sample,
    is_time: bool,
    options: &Options,
    is_corrected: bool,
    totals: &mut StackTotals,
    threads: &mut Threads,
) {
    // The kernel's account covers more than the time range, so the corrected parts are clipped later.
    let is_corrected = is_corrected && sample.rank != BY_KERNEL;
    let clipped = if is_corrected { Some(sample) } else { within(sample, is_time, options) };
    if let Some(sample) = clipped {
        let total = totals.add(&sample);
        if options.tracks || is_corrected {
            threads.push(&sample, total, is_time);
        }
    }
}

/// Clips a sample to the time range of the options; `None` if it lies outside.
fn within(sample: Sample, is_time: bool, options: &Options) -> Option<Sample> {
    let from = options.selection.from.unwrap_or(RelativeTime::MIN);
    let to = options.selection.to.unwrap_or(RelativeTime::MAX);
    if let Some(time) = sample.taken_at {
        return (from <= time && time < to).then(|| Sample { start: sample.start.max(from), ..sample });
    }
    if !is_time {
        return (from <= sample.start && sample.start < to).then_some(sample);
    }
    let end = RelativeTime::from_nanos(sample.start.as_nanos().saturating_add_unsigned(sample.weight));
    if from <= sample.start && end <= to {
        return Some(sample);
    }
    let (start, end) = (sample.start.max(from), end.min(to));
    (start < end).then(|| Sample { start, weight: end.as_nanos().abs_diff(start.as_nanos()), ..sample })
}
