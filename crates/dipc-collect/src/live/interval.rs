//! A summary of the events of an interval.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clr_counters::{Aspect, Counters, MemoryCounters, ProcessMemory, Selection};
use clr_events::{CodeMap, ThreadState};
use dipc_client::SAMPLE_PROFILER;
use nettrace::{Event, RelativeTime, TraceInfo};
use nettrace_export::report::{
    Allocations, AllocationsReport, Collections, Exceptions, ExceptionsReport, GcReport,
};
use nettrace_export::{
    KernelTimes, Measure, Metric, Options, Profile, ProfileBuilder, ProfileSum, ThreadUse,
};

use super::IntervalSettings;
use super::counter::Counter;
use super::in_use::{FollowedObjects, InUse};
use super::threads::{self, ThreadRow};
use crate::thread_times::LiveThreadTimes;

/// Maximum number of bytes of the stream that one interval uses. Further samples are left out.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of bytes of data about code.
const MAX_CODE_SIZE: usize = 128 << 20;
/// Maximum wait for further events of an interval that is over by the clock.
const SILENCE: Duration = Duration::from_millis(500);

/// The activity of a process in an interval.
#[derive(Debug)]
#[non_exhaustive]
pub struct Interval {
    /// The calendar time of its end; from the Unix epoch if the stream's header does not name its start.
    pub time: SystemTime,
    /// The end of the interval, since the session's start.
    pub end: RelativeTime,
    /// The length of the interval.
    pub length: Duration,
    /// The samples of threads.
    pub profile: Profile,
    /// The threads, in descending order of work.
    pub threads: Vec<ThreadRow>,
    /// The sampled allocations, if they were asked for.
    pub allocations: AllocationsReport,
    /// Objects allocated since the session began that are in use, if they were asked for.
    pub in_use: Option<InUse>,
    /// The collections.
    pub collections: GcReport,
    /// The thrown exceptions.
    pub exceptions: ExceptionsReport,
    /// The last values of the runtime's counters, in the runtime's units.
    pub counters: Vec<(Counter, f64)>,
    /// The memory of the process; `None` if unknown.
    pub memory: Option<ProcessMemory>,
    /// The data missing from the interval.
    pub omissions: Omissions,
    /// The part of the working time that may actually have been waiting.
    pub unverified: u64,
}

impl Interval {
    /// Creates an interval with nothing but samples, at the Unix epoch.
    pub fn new(profile: Profile, length: Duration) -> Self {
        Self {
            time: UNIX_EPOCH,
            end: RelativeTime::after_start(length),
            length,
            profile,
            threads: Vec::new(),
            allocations: AllocationsReport::default(),
            in_use: None,
            collections: GcReport::default(),
            exceptions: ExceptionsReport::default(),
            counters: Vec::new(),
            memory: None,
            omissions: Omissions::default(),
            unverified: 0,
        }
    }

    /// The number of samples of threads that worked or were blocked, which shares of methods refer to.
    pub fn method_samples(&self) -> u64 {
        let shown = self.profile.stack_totals.iter().filter(|total| total.state != ThreadState::Idle);
        shown.filter(|total| total.stack.is_some()).map(|total| total.samples).fold(0, u64::saturating_add)
    }

    /// Returns true if at least a hundredth of the time was spent in stacks with unnamed frames.
    pub fn lacks_names(&self) -> bool {
        let (profile, mut weight) = (&self.profile, 0u64);
        let has_unknown = |stack| profile.stacks.frames(stack).any(|frame| profile.frames.is_unknown(frame));
        for total in &profile.stack_totals {
            if total.stack.is_some_and(has_unknown) {
                weight = weight.saturating_add(total.weight);
            }
        }
        weight > profile.total() / 100
    }
}

/// Counts of the data missing from an interval.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by views, for sums and for tests")]
pub struct Omissions {
    /// Events that the runtime dropped, since the session began.
    pub lost: u64,
    /// Samples beyond the limit of an interval.
    pub samples: u64,
    /// Stack frames, and events about code, beyond the limits.
    pub frames: u64,
    /// Frames without a name.
    pub unnamed: u64,
}

impl Omissions {
    /// Returns true if nothing was lost or left out. Unnamed frames do not count: helpers of the runtime have
    /// no names.
    pub const fn is_none(&self) -> bool {
        self.lost == 0 && self.samples == 0 && self.frames == 0
    }
}

/// The selection of the runtime's own counters.
fn selection() -> Selection {
    Selection::parse(r"EventCounters\System.Runtime").unwrap_or_default()
}

/// A builder that sums up the events of a session, one interval after the other.
#[derive(Debug)]
pub(super) struct IntervalBuilder {
    length: Duration,
    account: Option<LiveThreadTimes>,
    info: Option<TraceInfo>,
    profile: ProfileBuilder,
    by_kernel: bool,
    allocations: Allocations,
    objects: Option<FollowedObjects>,
    collections: Collections,
    exceptions: Exceptions,
    counters: Counters,
    memory: MemoryCounters,
    values: BTreeMap<Counter, f64>,
    /// True if the processor usage has arrived once: the first value covers the time before the session.
    has_cpu: bool,
    /// The beginning of the interval; `None` before the first event.
    start: Option<RelativeTime>,
    /// The time of the last event.
    last: RelativeTime,
    begun: Instant,
    bytes: u64,
    samples_left_out: u64,
    has_events: bool,
}

impl IntervalBuilder {
    /// Creates a builder; its first interval begins with the first event. `account` is the kernel's
    /// accounting of the process's threads.
    pub(super) fn new(settings: &IntervalSettings, account: Option<LiveThreadTimes>) -> Self {
        let IntervalSettings { length, names, grouping, by_kernel, follows_objects, .. } = *settings;
        let metric = if by_kernel { Metric::Cpu } else { Metric::Wall };
        let options = Options::new(metric)
            .with_tracks(false)
            .with_kinds(false)
            .with_idle(false)
            .with_grouping(grouping)
            .with_names(names);
        let mut profile = ProfileBuilder::new(options);
        if account.is_some() {
            // Kernel times correct the runtime's samples; kernel samples do not need it.
            profile = profile.with_kernel_times(KernelTimes::default());
        }
        *profile.code_mut() = CodeMap::with_limit(MAX_CODE_SIZE);
        Self {
            length,
            account,
            info: None,
            profile,
            by_kernel,
            allocations: Allocations::default(),
            objects: follows_objects.then(FollowedObjects::default),
            collections: Collections::default(),
            exceptions: Exceptions::default(),
            counters: Counters::new(selection()),
            memory: MemoryCounters::default(),
            values: BTreeMap::new(),
            has_cpu: false,
            start: None,
            last: RelativeTime::START,
            begun: Instant::now(),
            bytes: 0,
            samples_left_out: 0,
            has_events: false,
        }
    }

    /// Adds an event about code of the process, from another session of the same process.
    pub(super) fn add_code(&mut self, event: &Event<'_>) {
        self.profile.code_mut().add(event);
    }

    /// Adds a sample of the kernel, or an event about the code that it met.
    pub(super) fn add_sample(&mut self, event: &Event<'_>) {
        self.profile.add(event);
    }

    /// Sets the information of the stream's header, once it has arrived.
    pub(super) fn set_info(&mut self, info: &TraceInfo) {
        self.info.get_or_insert_with(|| info.clone());
    }

    /// Counts bytes of the stream.
    pub(super) fn add_bytes(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_add(count as u64);
    }

    /// Returns true if an event belongs to a later interval, so that the current one has ended.
    pub(super) fn is_over(&self, event: &Event<'_>) -> bool {
        self.start.is_some_and(|start| event.relative_time() >= after(start, self.length))
    }

    /// Returns true if the interval has ended by the clock, and no more of its events are expected.
    pub(super) fn is_overdue(&self) -> bool {
        self.begun.elapsed() > self.length + SILENCE
    }

    /// Adds an event.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let time = event.relative_time().max(RelativeTime::START);
        let start = *self.start.get_or_insert(time);
        // A gap is not an interval.
        if !self.has_events && time > after(start, self.length) {
            self.start = Some(time);
        }
        self.has_events = true;
        self.last = self.last.max(time);
        let is_sample = event.provider() == SAMPLE_PROFILER;
        if is_sample && self.bytes > MAX_BYTES {
            self.samples_left_out = self.samples_left_out.saturating_add(1);
            return;
        }
        if self.by_kernel {
            // Kinds of events are numbered by stream, and the builder reads the stream of kernel samples.
            self.profile.code_mut().add(event);
        } else {
            self.profile.add(event);
        }
        if is_sample {
            return;
        }
        self.collections.add(event);
        self.exceptions.add(event);
        self.allocations.add(event);
        if let Some(objects) = &mut self.objects {
            objects.add(event);
        }
        self.memory.add(event);
        let Self { values, has_cpu, .. } = self;
        self.counters.add(event, |sample| {
            let number = sample.number(Aspect::Rate).or_else(|| sample.number(Aspect::Value));
            if let (Some(counter), Some(number)) = (Counter::of(sample.series), number)
                && (counter != Counter::Cpu || std::mem::replace(has_cpu, true))
            {
                values.insert(counter, number);
            }
        });
    }

    /// Returns true if anything was added since the last interval.
    pub(super) const fn has_events(&self) -> bool {
        self.has_events
    }

    /// Ends the interval, and begins the next one. An interval that waited for names is longer than others,
    /// and the last interval (`is_last`) ends with its last event. The caller counts events that the runtime
    /// dropped.
    pub(super) fn take(&mut self, is_last: bool) -> Interval {
        let start = self.start.unwrap_or(self.last);
        let end = if is_last { self.last } else { self.last.max(after(start, self.length)) };
        let length = end.abs_diff(start);
        self.start = Some(end);
        self.begun = Instant::now();
        self.bytes = 0;
        self.has_events = false;
        if let (Some(account), Some(times)) = (&self.account, self.profile.kernel_times_mut()) {
            // An overloaded machine reads late.
            account.add_until(self.info.as_ref().map(|info| info.ticks(end)), &[], times);
        }
        // This cannot fail: events are in time order, so nothing stays open.
        let taken = self.profile.take(self.info.as_ref()).ok();
        let uses = self.thread_uses(start, end);
        if let (Some(info), Some(times)) = (&self.info, self.profile.kernel_times_mut()) {
            times.forget_before(info.ticks(end));
        }
        let (mut profile, omitted) = taken.unwrap_or_else(|| {
            (ProfileSum::new(Metric::Wall, 0).into_profile(), nettrace_export::Omissions::default())
        });
        if self.by_kernel {
            profile.metric = Metric::Cpu;
            profile.measure = Measure::CPU_TIME;
        }
        let unnamed = omitted.unresolved.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
        Interval {
            time: calendar_time(self.info.as_ref(), end),
            end,
            length,
            threads: threads::rows(&profile, &uses),
            profile,
            allocations: std::mem::take(&mut self.allocations).finish(),
            in_use: self.objects.as_ref().map(FollowedObjects::in_use),
            collections: self.collections.take(length),
            exceptions: std::mem::take(&mut self.exceptions).finish(),
            counters: self.values.iter().map(|(counter, value)| (*counter, *value)).collect(),
            memory: self.memory.last(),
            omissions: Omissions {
                lost: 0,
                samples: std::mem::take(&mut self.samples_left_out),
                frames: omitted.frames.saturating_add(omitted.code),
                unnamed,
            },
            unverified: omitted.unverified,
        }
    }

    /// Returns the kernel's times of the threads in an interval, unless the runtime takes
    /// samples: others show no thread that waits.
    fn thread_uses(&mut self, start: RelativeTime, end: RelativeTime) -> Vec<(ThreadUse, String)> {
        let by_kernel = self.by_kernel;
        let (Some(info), Some(times)) = (&self.info, self.profile.kernel_times_mut().filter(|_| by_kernel))
        else {
            return Vec::new();
        };
        let uses = times.in_range(info, start, end).into_iter();
        uses.map(|it| (it, times.name(it.thread).unwrap_or_default().to_owned())).collect()
    }
}

fn calendar_time(info: Option<&TraceInfo>, time: RelativeTime) -> SystemTime {
    let start = info.and_then(|info| info.start.unix_milliseconds());
    let start = start.and_then(|start| u64::try_from(start).ok()).map(Duration::from_millis);
    let since_start = u64::try_from(time.as_nanos()).map(Duration::from_nanos).unwrap_or_default();
    UNIX_EPOCH.checked_add(start.unwrap_or_default().saturating_add(since_start)).unwrap_or(UNIX_EPOCH)
}

fn after(start: RelativeTime, length: Duration) -> RelativeTime {
    let nanoseconds = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    RelativeTime::from_nanos(start.as_nanos().saturating_add(nanoseconds))
}
