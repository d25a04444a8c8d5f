//! The reports that make up an overview, gathered in one pass.

use std::collections::{BTreeSet, HashMap};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use clr_counters::Counters;
use clr_events::KernelSample;
use clr_events::code::CodeOrigin;
use clr_events::sets;
use nettrace::{
    Event, Interest, Metadata, MetadataMap, ReadSource, Reader, RelativeTime, Thread, ThreadId, TimeOrder,
    TraceInfo,
};
use nettrace_export::report::{
    self, Allocations, AllocationsReport, BlockedTime, Collections, Contention, ContentionReport, Exceptions,
    ExceptionsReport, GcReport, Jit, JitReport, LockRow, Requests, RequestsOptions, RequestsReport,
    SessionCost, Startup, Starvation, ThreadPool, ThreadPoolReport, UserCallerName, blocked_time,
    processor_time, starvation, user_callers,
};
use nettrace_export::{Metric, NameForm, Options, Pattern, Profile, ProfileBuilder, Selection};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::inspect::crash_note::CrashNote;
use crate::inspect::memory_use::{MemoryCounters, MemoryUse};
use crate::inspect::names::Names;
use crate::inspect::recording::{Input, Origin, Recording, RecordingFile, start_time};
use crate::inspect::spans::may_have_spans;
use crate::inspect::thread_times::kernel_times_beside;
use crate::inspect::time_range::{PartTimes, recorded_range};
use crate::processors::{self, no_thread};
use crate::render::units;

/// Facts about the recording as a whole.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    /// The process; in recordings of several, the first one with a command line.
    pub(super) process_id: Option<u64>,
    /// The number of processes with threads in the recording; 0 if the threads belong to the process of the
    /// header.
    pub(super) processes: usize,
    /// The command line, if the recording has it, or else the name of the process.
    pub(super) program: Option<String>,
    /// The version of the runtime, if the recording has it.
    pub(super) runtime: Option<String>,
    /// The start in RFC 3339; `None` if the recording has no calendar time.
    pub(super) start: Option<String>,
    /// The time from the start to the last event; in a part of a session, the time of the part.
    pub(super) duration_ns: u64,
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
    /// The part of them that is samples and records of the kernel.
    pub(super) lost_samples: u64,
    /// The settings of the kernel's samples, and limits of permission, in words; `None` without samples.
    pub(super) sampling: Option<String>,
    pub(super) lost_is_lower_bound: bool,
    pub(super) truncated: bool,
    /// The memory of the process by its counters; `None` without them, and of several processes.
    pub(super) memory: Option<MemoryUse>,
}

/// The reports of a recording.
pub(super) struct OverviewData {
    pub(super) summary: Summary,
    /// The end of the process, if it lies beside the recording.
    pub(super) crash: Option<CrashNote>,
    /// Whether threads were sampled.
    pub(super) has_samples: bool,
    pub(super) gc: GcReport,
    pub(super) allocations: AllocationsReport,
    pub(super) exceptions: ExceptionsReport,
    pub(super) contention: ContentionReport,
    pub(super) thread_pool: Option<ThreadPoolReport>,
    pub(super) jit: JitReport,
    pub(super) starvation: Option<Starvation>,
    pub(super) requests: Option<RequestsReport>,
    pub(super) profile: Profile,
    /// The time in which threads were blocked.
    pub(super) blocked: BlockedTime,
    /// The time spent for the recording itself, which the profile does not show.
    pub(super) session_cost: SessionCost,
    /// Whether the kernel sampled running threads: time of work is CPU time.
    pub(super) has_kernel_samples: bool,
    /// The time of running threads by the origin of the code; empty without the kernel's samples.
    pub(super) processor_time: Vec<(CodeOrigin, u64)>,
    /// The part of the time of working threads in which they may actually have been waiting.
    pub(super) unverified: u64,
    /// The part of blocked time in which threads were runnable but had no processor.
    pub(super) without_processor: u64,
}

/// The report of requests under construction, which takes as long as all others together.
struct OfRequests {
    /// The time of a part.
    selection: Selection,
    requests: Requests,
}

impl OfRequests {
    fn new(selection: Selection) -> Self {
        Self { selection, requests: Requests::default() }
    }

    /// The interest in events of a kind. The last event of a part is needed, which may be of any kind.
    fn interest(is_part: bool, has_spans: bool, kind: &Metadata) -> Interest {
        match (is_part, has_spans) {
            (true, _) => Interest::All,
            (false, true) => Requests::interest(&RequestsOptions::default(), kind),
            (false, false) => Interest::None,
        }
    }

    fn add(&mut self, event: &Event<'_>) {
        if self.selection.contains(event) {
            self.requests.add(event);
        }
    }

    /// Completes the report, with the other properties of the recording.
    fn finish(mut self, order: TimeOrder<ReadSource<Input>>, origin: Origin) -> ReadRecording {
        let last = order.last_time().unwrap_or_default();
        if self.selection.is_all() {
            self.requests.extend_to(last);
        }
        let counts = order.counts().collect();
        ReadRecording { requests: self.requests, last, counts, events: order.into_events(), origin }
    }
}

/// The other reports under construction, which need only a few kinds of events.
struct OfSomeKinds {
    /// The time metric that the recording supports.
    metric: Metric,
    /// The time of a part.
    selection: Selection,
    /// Whether events of a kind are needed.
    needed: MetadataMap<bool>,
    startup: Startup,
    gc: Collections,
    allocations: Allocations,
    exceptions: Exceptions,
    contention: Contention,
    thread_pool: ThreadPool,
    jit: Jit,
    memory: MemoryCounters,
    profile: ProfileBuilder,
    /// By whose stacks the user's methods are found that allocated, threw and waited for locks.
    callers: [CallersBuilder; 3],
}

/// The profile of a metric, which tells the user's methods that led to it.
struct CallersBuilder {
    options: Options,
    /// Whether events of a kind are needed.
    needed: MetadataMap<bool>,
    profile: ProfileBuilder,
}

impl CallersBuilder {
    fn new(metric: Metric, options: &Options) -> Self {
        let options = Options::new(metric)
            .with_kinds(false)
            .with_locks(true)
            .with_names(NameForm::CSharp)
            .with_selection(options.selection.clone())
            .with_user_code(options.user_code.clone());
        let profile = ProfileBuilder::new(options.clone()).without_code();
        Self { options, needed: MetadataMap::new(), profile }
    }

    fn add(&mut self, event: &Event<'_>) {
        let Self { options, needed, profile } = self;
        if needed
            .get_or_insert_with(event.metadata_index(), || ProfileBuilder::needs(options, event.metadata()))
        {
            profile.add(event);
        }
    }

    /// Returns the heaviest user method by the full name of what it led to.
    fn finish(
        self,
        info: Option<&TraceInfo>,
        code_of: &mut ProfileBuilder,
    ) -> HashMap<String, UserCallerName> {
        let built = self.profile.finish_with_code_of(info, code_of);
        let (profile, _) = built.expect("events come in time order");
        user_callers(&profile)
    }
}

/// The metrics whose user's methods the findings name.
const METRICS_OF_CALLERS: [Metric; 3] = [Metric::Alloc, Metric::Exception, Metric::Contention];

impl OfSomeKinds {
    fn new(options: Options) -> Self {
        let selection = options.selection.clone();
        let metric = options.metric.unwrap_or(Metric::Wall);
        Self {
            metric,
            needed: MetadataMap::new(),
            startup: Startup::default(),
            gc: Collections::default().with_start(selection.from.unwrap_or(RelativeTime::START)),
            allocations: Allocations::default(),
            exceptions: Exceptions::default(),
            contention: Contention::default(),
            thread_pool: ThreadPool::default(),
            jit: Jit::default(),
            memory: MemoryCounters::default(),
            callers: METRICS_OF_CALLERS.map(|metric| CallersBuilder::new(metric, &options)),
            profile: ProfileBuilder::new(options),
            selection,
        }
    }

    /// Whether any of these reports needs events of a kind.
    fn needs(metric: Metric, kind: &Metadata) -> bool {
        let reports = [
            Startup::needs,
            Collections::needs,
            Allocations::needs,
            Exceptions::needs,
            Contention::needs,
            ThreadPool::needs,
            Jit::needs,
            Counters::needs,
        ];
        let profiles = [metric].into_iter().chain(METRICS_OF_CALLERS);
        reports.into_iter().any(|needs| needs(kind))
            || profiles.map(profile_options).any(|options| ProfileBuilder::needs(&options, kind))
    }

    /// Adds an event, which may be of any kind.
    fn add_if_needed(&mut self, event: &Event<'_>) {
        let Self { needed, metric, .. } = self;
        if needed.get_or_insert_with(event.metadata_index(), || Self::needs(*metric, event.metadata())) {
            self.add(event);
        }
    }

    fn add(&mut self, event: &Event<'_>) {
        self.startup.add(event);
        self.profile.add(event);
        self.callers.iter_mut().for_each(|callers| callers.add(event));
        if !self.selection.contains(event) {
            return;
        }
        self.gc.add(event);
        self.allocations.add(event);
        self.exceptions.add(event);
        self.contention.add(event);
        self.thread_pool.add(event);
        self.jit.add(event);
        self.memory.add(event);
    }
}

/// Whether events of a kind are the kernel's samples of running threads.
fn is_cpu_sample(kind: &Metadata) -> bool {
    kind.provider() == "Universal.Events" && kind.name() == "cpu"
}

fn profile_options(metric: Metric) -> Options {
    Options::new(metric).with_tracks(true).with_kinds(false).with_idle(false).with_names(NameForm::CSharp)
}

/// A recording that was read to its end.
/// The kernel's losses are those of thread 0, which runs nothing.
fn lost_samples(threads: &[Thread]) -> u64 {
    threads.iter().filter(|thread| thread.id() == ThreadId(0)).map(Thread::lost).sum()
}

struct ReadRecording {
    requests: Requests,
    /// The time of the last event.
    last: RelativeTime,
    /// The number of events of each kind.
    counts: Vec<(usize, u64)>,
    events: Reader<Input>,
    origin: Origin,
}

fn read_once(
    recording: Recording,
    has_spans: bool,
    some: &mut OfSomeKinds,
) -> Result<ReadRecording, Failure> {
    let (events, origin) = recording.into_parts();
    let (metric, is_part) = (some.metric, !some.selection.is_all());
    let mut all = OfRequests::new(some.selection.clone());
    let interest = move |kind: &Metadata| {
        OfRequests::interest(is_part, has_spans, kind).max(Interest::all_if(OfSomeKinds::needs(metric, kind)))
    };
    let read = report::read_by(events, interest, |event| {
        all.add(event);
        some.add_if_needed(event);
    });
    let read = read.map_err(|error| origin.failed(&error))?;
    Ok(all.finish(read, origin))
}

/// Reads a file with two readers at the same time: one is for the requests, the other for all else.
fn read_twice(file: &RecordingFile, some: &mut OfSomeKinds) -> Result<ReadRecording, Failure> {
    let (events, origin) = file.open()?.into_parts();
    let (events_of_kinds, origin_of_kinds) = file.open()?.into_parts();
    let (metric, is_part) = (some.metric, !some.selection.is_all());
    let mut all = OfRequests::new(some.selection.clone());
    thread::scope(|scope| {
        let read_kinds = || {
            let each = |event: &Event<'_>| some.add(event);
            report::read_kinds(events_of_kinds, move |kind| OfSomeKinds::needs(metric, kind), each).map(drop)
        };
        let second = thread::Builder::new().name("kinds".to_owned()).spawn_scoped(scope, read_kinds);
        let second = second.map_err(|error| no_thread(&error))?;
        let read = report::read_by(
            events,
            move |kind| OfRequests::interest(is_part, true, kind),
            |event| all.add(event),
        );
        let read_kinds = second.join().unwrap_or_else(|panic| resume_unwind(panic));
        let read = read.map_err(|error| origin.failed(&error))?;
        read_kinds.map_err(|error| origin_of_kinds.failed(&error))?;
        Ok(all.finish(read, origin))
    })
}

impl OverviewData {
    /// Reads a recording. The exit code is [`Exit::Incomplete`] if it is cut or damaged.
    pub(super) fn read(file: &Path, user_code: &[Pattern]) -> Result<(Self, Exit), Failure> {
        let recording = Recording::open(file)?;
        let has_spans = may_have_spans(&recording);
        // Without spans, one reader takes as long as each of two.
        let second = if has_spans && processors::count() > 1 { recording.file() } else { None };
        let (metric, processors) = match recording.events.info() {
            Some(info) => (Metric::of_time(Some(info)), info.processors),
            None => (Metric::Wall, None),
        };
        let times = PartTimes { recorded: recorded_range(file), ..PartTimes::default() };
        let (from, to) = times.selected();
        let selection = Selection::of_time(from, to);
        let options =
            profile_options(metric).with_selection(selection.clone()).with_user_code(user_code.to_vec());
        let mut some = OfSomeKinds::new(options.clone());
        if let Some(times) = kernel_times_beside(file) {
            some.profile = ProfileBuilder::new(options).with_kernel_times(times);
        }
        if let Some(names) = Names::find(file) {
            names.add_to(some.profile.code_mut())?;
        }
        let read = match second {
            Some(file) => read_twice(&file, &mut some),
            None => read_once(recording, has_spans, &mut some),
        }?;
        let ReadRecording { mut requests, last, counts, events, origin } = read;
        let start = from.unwrap_or(RelativeTime::START).max(RelativeTime::START);
        let end = to.unwrap_or(last);
        some.gc.set_range(start, end);
        requests.set_range(start, end);
        let exit = origin.report_damage(&events);
        let info = events.info();
        let startup = some.startup.finish();
        let (process, program, runtime) = startup
            .map_or((None, None, None), |startup| (startup.process, startup.command_line, startup.runtime));
        let process_id = info.and_then(|info| info.process_id).or(process);
        // Programs without a runtime have no command line.
        let name = |id| some.profile.process_name(id).filter(|name| !name.is_empty()).map(str::to_owned);
        let program = program.or_else(|| process_id.and_then(name));
        let processes: BTreeSet<_> = events.threads().iter().filter_map(Thread::process_id).collect();
        let sampling =
            info.and_then(|info| info.key_values.iter().find(|(key, _)| key == KernelSample::SAMPLING_KEY));
        let sampling = sampling.map(|(_, value)| value.clone());
        let summary = Summary {
            process_id,
            processes: processes.len(),
            program,
            runtime,
            start: info.and_then(|info| start_time(info.start)).map(|start| start.to_string()),
            duration_ns: units::nanoseconds(end.saturating_duration_since(start)),
            bytes: origin.bytes(),
            events: counts.iter().map(|(_, count)| count).sum(),
            lost: events.loss().total(),
            lost_samples: if sampling.is_some() { lost_samples(events.threads()) } else { 0 },
            sampling,
            lost_is_lower_bound: events.loss().is_lower_bound(),
            truncated: events.truncated_at().is_some(),
            memory: if processes.len() > 1 { None } else { some.memory.last() },
        };
        let kinds = || counts.iter().filter_map(|(index, _)| events.metadata().get(*index));
        let has_kernel_samples = kinds().any(is_cpu_sample);
        let has_samples = kinds().any(|kind| sets::THREAD_SAMPLES.contains(kind));
        let mut contention = some.contention.finish();
        if let Some(kernel) = some.profile.kernel_times_mut() {
            contention.name_threads(|_, tid| kernel.name(tid).map(str::to_owned));
        }
        let callers = some.callers.map(|callers| callers.finish(info, &mut some.profile));
        let (mut profile, omissions) = some.profile.finish(info).expect("events come in time order");
        let has_samples = has_samples || profile.samples() > 0;
        let gc = some.gc.finish();
        let session_cost = SessionCost::take(&mut profile);
        let processor_time =
            if has_kernel_samples { processor_time(&profile, &gc.pause_list) } else { Vec::new() };
        let (allocations, exceptions) = (some.allocations.finish(), some.exceptions.finish());
        let mut gathered = Self {
            summary,
            crash: CrashNote::beside(file),
            has_samples,
            gc,
            allocations,
            exceptions,
            contention,
            thread_pool: some.thread_pool.finish(),
            jit: some.jit.finish(),
            requests: requests.finish(),
            starvation: starvation(&profile, processors),
            blocked: blocked_time(&profile),
            profile,
            session_cost,
            has_kernel_samples,
            processor_time,
            unverified: omissions.unverified,
            without_processor: omissions.without_processor,
        };
        gathered.add_user_callers(callers);
        Ok((gathered, exit))
    }

    /// Adds the user's methods that allocated, threw and waited for locks.
    fn add_user_callers(&mut self, callers: [HashMap<String, UserCallerName>; 3]) {
        let [mut of_allocations, mut of_exceptions, mut of_locks] = callers;
        self.allocations.types.iter_mut().for_each(|row| row.from = of_allocations.remove(&row.name));
        self.exceptions.types.iter_mut().for_each(|row| row.from = of_exceptions.remove(&row.name));
        let lock = |row: &LockRow| format!("lock {:#x}", row.lock);
        self.contention.locks.iter_mut().for_each(|row| row.from = of_locks.remove(&lock(row)));
    }
}
