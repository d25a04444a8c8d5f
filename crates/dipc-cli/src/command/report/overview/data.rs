//! The reports that make up an overview, gathered in one pass.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use clr_counters::{Counters, MemoryCounters};
use clr_events::KernelSample;
use clr_events::code::CodeOrigin;
use clr_events::sets;
use nettrace::{
    Event, Interest, Metadata, MetadataMap, ReadSource, Reader, RelativeTime, Thread, ThreadId, TimeOrder,
};
use nettrace_export::report::{
    self, Allocations, AllocationsReport, BlockedTime, Collections, Contention, ContentionReport, Exceptions,
    ExceptionsReport, GcReport, Jit, JitReport, Requests, RequestsOptions, RequestsReport, SessionCost,
    Startup, StartupReport, Starvation, ThreadPool, ThreadPoolReport, blocked_time, processor_time,
    starvation,
};
use nettrace_export::{Metric, NameForm, Omissions, Options, Pattern, Profile, ProfileBuilder, Selection};
use serde::Serialize;

use crate::command::report::callers::{Callers, CallersBuilder};
use crate::exit::{Exit, Failure};
use crate::inspect::crash_note::CrashNote;
use crate::inspect::memory_use::MemoryUse;
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
    /// The start in RFC 3339; `None` if the recording lacks calendar time.
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
    /// The memory of the process according to its counters; `None` without counters, and for several
    /// processes.
    pub(super) memory: Option<MemoryUse>,
}

/// The reports of a recording.
pub(super) struct OverviewData {
    pub(super) summary: Summary,
    /// The crash note, if a file next to the recording has one.
    pub(super) crash: Option<CrashNote>,
    /// True if threads were sampled.
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
    /// Blocked time of threads.
    pub(super) blocked: BlockedTime,
    /// The time spent for the recording itself, which the profile does not show.
    pub(super) session_cost: SessionCost,
    /// True if the kernel sampled running threads: time of work is CPU time.
    pub(super) has_kernel_samples: bool,
    /// The time of running threads by the origin of the code; empty without the kernel's samples.
    pub(super) processor_time: Vec<(CodeOrigin, u64)>,
    /// The part of the working time that may actually have been waiting.
    pub(super) unverified: u64,
    /// The part of blocked time in which threads were runnable but lacked a processor.
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

/// The reports under construction that need only a few kinds of events, and no stacks.
pub(super) struct KindReports {
    /// The time of a part.
    selection: Selection,
    startup: Startup,
    gc: Collections,
    allocations: Allocations,
    exceptions: Exceptions,
    contention: Contention,
    thread_pool: ThreadPool,
    jit: Jit,
    memory: MemoryCounters,
}

impl KindReports {
    pub(super) fn new(selection: Selection) -> Self {
        Self {
            startup: Startup::default(),
            gc: Collections::default().with_start(selection.from.unwrap_or(RelativeTime::START)),
            allocations: Allocations::default(),
            exceptions: Exceptions::default(),
            contention: Contention::default(),
            thread_pool: ThreadPool::default(),
            jit: Jit::default(),
            memory: MemoryCounters::default(),
            selection,
        }
    }

    /// Returns true if any of these reports needs events of a kind.
    pub(super) fn needs(kind: &Metadata) -> bool {
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
        reports.into_iter().any(|needs| needs(kind))
    }

    /// Completes the report of the start.
    pub(super) fn take_startup(&mut self) -> Option<StartupReport> {
        std::mem::take(&mut self.startup).finish()
    }

    pub(super) fn add(&mut self, event: &Event<'_>) {
        self.startup.add(event);
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

/// All parts of an overview under construction but the requests.
struct OfSomeKinds {
    /// The time metric that the recording supports.
    metric: Metric,
    /// True for kinds of events that are needed.
    needed: MetadataMap<bool>,
    reports: KindReports,
    profile: ProfileBuilder,
    /// Builders that find, from stacks, the user methods that allocated, threw and waited for locks.
    callers: [CallersBuilder; 3],
}

/// The metrics for which findings name user methods.
pub(super) const METRICS_OF_CALLERS: [Metric; 3] = [Metric::Alloc, Metric::Exception, Metric::Contention];

impl OfSomeKinds {
    fn new(options: Options) -> Self {
        let callers = |metric| {
            CallersBuilder::new(metric, options.selection.clone(), options.user_code.clone()).without_code()
        };
        Self {
            metric: options.metric.unwrap_or(Metric::Wall),
            needed: MetadataMap::new(),
            reports: KindReports::new(options.selection.clone()),
            callers: METRICS_OF_CALLERS.map(callers),
            profile: ProfileBuilder::new(options),
        }
    }

    /// Returns true if events of a kind are needed.
    fn needs(metric: Metric, kind: &Metadata) -> bool {
        KindReports::needs(kind)
            || ProfileBuilder::needs(&profile_options(metric), kind)
            || METRICS_OF_CALLERS.into_iter().any(|metric| CallersBuilder::needs(metric, kind))
    }

    /// Adds an event, which may be of any kind.
    fn add_if_needed(&mut self, event: &Event<'_>) {
        let Self { needed, metric, .. } = self;
        if needed.get_or_insert_with(event.metadata_index(), || Self::needs(*metric, event.metadata())) {
            self.add(event);
        }
    }

    fn add(&mut self, event: &Event<'_>) {
        self.profile.add(event);
        self.callers.iter_mut().for_each(|callers| callers.add(event));
        self.reports.add(event);
    }
}

/// Returns true if events of a kind are the kernel's samples of running threads.
fn is_cpu_sample(kind: &Metadata) -> bool {
    kind.provider() == "Universal.Events" && kind.name() == "cpu"
}

/// Returns the options of the profile of an overview.
pub(super) fn profile_options(metric: Metric) -> Options {
    Options::new(metric).with_tracks(true).with_kinds(false).with_idle(false).with_names(NameForm::CSharp)
}

/// Returns the events lost of samples and records of the kernel. Kernel losses are counted for thread 0,
/// which runs nothing.
fn lost_samples(threads: &[Thread]) -> u64 {
    threads.iter().filter(|thread| thread.id() == ThreadId(0)).map(Thread::lost).sum()
}

/// A recording that was read to its end.
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
    let selection = some.reports.selection.clone();
    let (metric, is_part) = (some.metric, !selection.is_all());
    let mut all = OfRequests::new(selection);
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

/// Reads a file with two readers at the same time: the first for the requests, the second for all else.
fn read_twice(file: &RecordingFile, some: &mut OfSomeKinds) -> Result<ReadRecording, Failure> {
    let (events, origin) = file.open()?.into_parts();
    let (events_of_kinds, origin_of_kinds) = file.open()?.into_parts();
    let selection = some.reports.selection.clone();
    let (metric, is_part) = (some.metric, !selection.is_all());
    let mut all = OfRequests::new(selection);
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

/// The parts of an overview at the end of the reading.
pub(super) struct ReadOverview<'r> {
    pub(super) requests: Requests,
    pub(super) reports: KindReports,
    pub(super) startup: Option<StartupReport>,
    pub(super) profile: Profile,
    pub(super) omissions: Omissions,
    pub(super) callers: [Callers; 3],
    /// The name of the process, for programs without a command line.
    pub(super) process_name: Option<String>,
    /// The time of the last event.
    pub(super) last: RelativeTime,
    /// The number of events of each kind.
    pub(super) counts: &'r [(usize, u64)],
    pub(super) events: &'r Reader<Input>,
    pub(super) bytes: u64,
}

impl OverviewData {
    /// Reads a recording. The exit code is [`Exit::Incomplete`] if it is cut or damaged.
    pub(super) fn read(file: &Path, user_code: &[Pattern]) -> Result<(Self, Exit), Failure> {
        let recording = Recording::open(file)?;
        let has_spans = may_have_spans(&recording);
        // Without spans, one reader takes as long as each of two.
        let second = if has_spans && processors::count() > 1 { recording.file() } else { None };
        let metric = Metric::of_work_and_waits(recording.events.info());
        let times = PartTimes { recorded: recorded_range(file), ..PartTimes::default() };
        let (from, to) = times.selected();
        let options = profile_options(metric)
            .with_selection(Selection::of_time(from, to))
            .with_user_code(user_code.to_vec());
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
        let ReadRecording { requests, last, counts, events, origin } = read;
        let exit = origin.report_damage(&events);
        let OfSomeKinds { mut profile, callers, mut reports, .. } = some;
        let callers = callers.map(|callers| callers.finish_with_code_of(&mut profile));
        let startup = reports.take_startup();
        let process = startup.as_ref().and_then(|startup| startup.process);
        let process = events.info().and_then(|info| info.process_id).or(process);
        let process_name = process.and_then(|process| profile.process_name(process)).map(str::to_owned);
        let (profile, omissions) = profile.finish(events.info()).expect("events come in time order");
        let read = ReadOverview {
            requests,
            reports,
            startup,
            profile,
            omissions,
            callers,
            process_name,
            last,
            counts: &counts,
            events: &events,
            bytes: origin.bytes(),
        };
        Ok((Self::of(file, read), exit))
    }

    /// Returns the overview of a recording that was read to its end.
    pub(super) fn of(file: &Path, read: ReadOverview<'_>) -> Self {
        let ReadOverview { mut requests, reports, mut profile, omissions, callers, events, last, .. } = read;
        let KindReports { selection, mut gc, memory, .. } = reports;
        let start = selection.from.unwrap_or(RelativeTime::START).max(RelativeTime::START);
        let end = selection.to.unwrap_or(last);
        gc.set_range(start, end);
        requests.set_range(start, end);
        let kinds = || read.counts.iter().filter_map(|(index, _)| events.metadata().get(*index));
        let has_kernel_samples = kinds().any(is_cpu_sample);
        let has_samples = kinds().any(|kind| sets::THREAD_SAMPLES.contains(kind)) || profile.samples() > 0;
        let processors = events.info().and_then(|info| info.processors);
        let summary = Summary {
            duration_ns: units::nanoseconds(end.saturating_duration_since(start)),
            bytes: read.bytes,
            ..Summary::of(events, read.counts, read.startup, read.process_name)
        };
        let memory = if summary.processes > 1 { None } else { memory.last().map(MemoryUse::from) };
        let mut contention = reports.contention.finish();
        contention
            .name_threads(|_, tid| profile.threads.iter().find(|thread| thread.id == tid)?.name.clone());
        let gc = gc.finish();
        let session_cost = SessionCost::take(&mut profile);
        let processor_time =
            if has_kernel_samples { processor_time(&profile, &gc.pause_list) } else { Vec::new() };
        let mut gathered = Self {
            summary: Summary { memory, ..summary },
            crash: CrashNote::beside(file),
            has_samples,
            gc,
            allocations: reports.allocations.finish(),
            exceptions: reports.exceptions.finish(),
            contention,
            thread_pool: reports.thread_pool.finish(),
            jit: reports.jit.finish(),
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
        gathered
    }

    /// Adds the user's methods that allocated, threw and waited for locks.
    fn add_user_callers(&mut self, [of_allocations, of_exceptions, of_locks]: [Callers; 3]) {
        self.allocations.types.iter_mut().for_each(|row| row.from = of_allocations.of_subject(&row.name));
        self.exceptions.types.iter_mut().for_each(|row| row.from = of_exceptions.of_subject(&row.name));
        self.contention.locks.iter_mut().for_each(|row| row.from = of_locks.of_lock(row.lock));
    }
}

impl Summary {
    /// Returns the facts that the reader and the events of the start have.
    fn of(
        events: &Reader<Input>,
        counts: &[(usize, u64)],
        startup: Option<StartupReport>,
        process_name: Option<String>,
    ) -> Self {
        let info = events.info();
        let (process, program, runtime) = startup
            .map_or((None, None, None), |startup| (startup.process, startup.command_line, startup.runtime));
        let processes: BTreeSet<_> = events.threads().iter().filter_map(Thread::process_id).collect();
        let sampling =
            info.and_then(|info| info.key_values.iter().find(|(key, _)| key == KernelSample::SAMPLING_KEY));
        let sampling = sampling.map(|(_, value)| value.clone());
        Self {
            process_id: info.and_then(|info| info.process_id).or(process),
            processes: processes.len(),
            // Programs without a runtime lack a command line.
            program: program.or_else(|| process_name.filter(|name| !name.is_empty())),
            runtime,
            start: info.and_then(|info| start_time(info.start)).map(|start| start.to_string()),
            events: counts.iter().map(|(_, count)| count).sum(),
            lost: events.loss().total(),
            lost_samples: if sampling.is_some() { lost_samples(events.threads()) } else { 0 },
            sampling,
            lost_is_lower_bound: events.loss().is_lower_bound(),
            truncated: events.truncated_at().is_some(),
            ..Self::default()
        }
    }
}
