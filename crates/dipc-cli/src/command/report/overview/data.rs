//! The reports that make up an overview, gathered in one pass.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use clr_counters::{Counters, MemoryCounters};
use clr_events::KernelSample;
use clr_findings::{ProcessEnd, ProcessIdentity, Readings, RecordedReadings};
use nettrace::{Event, Interest, Metadata, MetadataMap, ReadSource, Reader, RelativeTime, Thread, TimeOrder};
use nettrace_export::report::{
    self, EventGroup, OverviewBuilder, OverviewCallers, OverviewReports, Requests, RequestsOptions,
    StartupReport, StreamFacts, callers_options, overview_profile_options,
};
use nettrace_export::{Metric, Options, Pattern, ProfileBuilder, Selection};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::inspect::crash_note::CrashNote;
use crate::inspect::memory_use::MemoryUse;
use crate::inspect::names::Names;
use crate::inspect::recording::{Input, Origin, Recording, RecordingFile, start_time};
use crate::inspect::spans::may_have_spans;
use crate::inspect::thread_times::kernel_times_beside;
use crate::inspect::time_range::{PartTimes, recorded_range};
use crate::processors::{self, no_thread};
use crate::record::requested_events::of_header;
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
    #[serde(skip)]
    pub(super) name: Option<String>,
    #[serde(skip)]
    pub(super) command_line: Option<String>,
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

/// The overview of a recording, with the facts of its surroundings.
pub(crate) struct OverviewData {
    pub(super) summary: Summary,
    /// The crash note, if a file next to the recording has one.
    pub(crate) crash: Option<CrashNote>,
    pub(crate) reports: report::Overview,
    /// The groups of events that the session is known to have requested.
    pub(crate) requested: Vec<EventGroup>,
    /// Readings of the process beside its events.
    pub(crate) readings: Readings,
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
struct KindReports {
    /// The time of a part.
    selection: Selection,
    reports: OverviewReports,
    memory: MemoryCounters,
    readings: RecordedReadings,
}

impl KindReports {
    fn new(selection: Selection) -> Self {
        let reports = OverviewReports::new(selection.clone());
        Self { selection, reports, memory: MemoryCounters::default(), readings: RecordedReadings::default() }
    }

    /// Returns true if any of these reports needs events of a kind.
    fn needs(kind: &Metadata) -> bool {
        OverviewReports::needs(kind) || Counters::needs(kind) || RecordedReadings::needs(kind)
    }

    fn add(&mut self, event: &Event<'_>) {
        self.reports.add(event);
        if self.selection.contains(event) {
            self.memory.add(event);
            self.readings.add(event);
        }
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
    /// Builders that find, from stacks, the user methods that allocated, threw, waited for locks and called.
    callers: [ProfileBuilder; OverviewCallers::METRICS.len()],
}

impl OfSomeKinds {
    fn new(options: Options) -> Self {
        let callers = |metric| {
            let options = callers_options(metric, options.selection.clone(), options.user_code.clone());
            ProfileBuilder::new(options).without_code()
        };
        Self {
            metric: options.metric.unwrap_or(Metric::Wall),
            needed: MetadataMap::new(),
            reports: KindReports::new(options.selection.clone()),
            callers: OverviewCallers::METRICS.map(callers),
            profile: ProfileBuilder::new(options),
        }
    }

    /// Returns true if events of a kind are needed.
    fn needs(metric: Metric, kind: &Metadata) -> bool {
        let callers = |metric| callers_options(metric, Selection::default(), Vec::new());
        KindReports::needs(kind)
            || ProfileBuilder::needs(&overview_profile_options(metric), kind)
            || OverviewCallers::METRICS
                .into_iter()
                .any(|metric| ProfileBuilder::needs(&callers(metric), kind))
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

impl OverviewData {
    /// The process as the recording describes it.
    pub(crate) fn process(&self) -> ProcessIdentity {
        let Summary { process_id, name, command_line, runtime, .. } = &self.summary;
        ProcessIdentity::default()
            .with_process_id(*process_id)
            .with_name(name.clone())
            .with_command_line(command_line.clone())
            .with_runtime(runtime.clone())
    }

    /// The end of the process, from the crash note, or by its exit code.
    pub(crate) fn end(&self) -> Option<ProcessEnd> {
        self.crash.as_ref().map(CrashNote::end).or_else(|| self.readings.end())
    }

    /// Returns true if the end of the recording is missing.
    pub(crate) const fn is_truncated(&self) -> bool {
        self.summary.truncated
    }

    /// Reads a recording. The exit code is [`Exit::Incomplete`] if it is cut or damaged.
    pub(crate) fn read(file: &Path, user_code: &[Pattern]) -> Result<(Self, Exit), Failure> {
        let recording = Recording::open(file)?;
        let has_spans = may_have_spans(&recording);
        // Without spans, one reader takes as long as each of two.
        let second = if has_spans && processors::count() > 1 { recording.file() } else { None };
        let metric = Metric::of_work_and_waits(recording.events.info());
        let times = PartTimes { recorded: recorded_range(file), ..PartTimes::default() };
        let (from, to) = times.selected();
        let options = overview_profile_options(metric)
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
        // Of events that were lost, any may have been the only one of its group.
        let is_whole = events.truncated_at().is_none() && events.loss().total() == 0;
        let requested = events.info().filter(|_| is_whole).map(of_header).unwrap_or_default();
        let exit = origin.report_damage(&events);
        let OfSomeKinds { mut profile, callers, reports: kinds, .. } = some;
        let KindReports { mut reports, memory, readings, .. } = kinds;
        let callers = callers.map(|callers| {
            // Neither times nor process names matter, so the recording's header is not needed.
            let built = callers.finish_with_code_of(None, &mut profile);
            built.expect("events come in time order").0
        });
        let startup = reports.take_startup();
        let process = startup.as_ref().and_then(|startup| startup.process);
        let process = events.info().and_then(|info| info.process_id).or(process);
        let process_name = process.and_then(|process| profile.process_name(process)).map(str::to_owned);
        let (profile, omissions) = profile.finish(events.info()).expect("events come in time order");
        let stream = StreamFacts::of(&events, &counts, last);
        let summary = Summary::of(&events, &stream, startup, process_name);
        let overview = OverviewBuilder::new(requests, reports).finish(
            profile,
            &omissions,
            OverviewCallers::of(&callers),
            stream,
        );
        let summary = Summary {
            duration_ns: units::nanoseconds(overview.duration),
            bytes: origin.bytes(),
            memory: if summary.processes > 1 { None } else { memory.last().map(MemoryUse::from) },
            ..summary
        };
        let readings = readings.finish().unwrap_or_default();
        Ok((Self { summary, crash: CrashNote::beside(file), reports: overview, requested, readings }, exit))
    }
}

impl Summary {
    /// Returns the facts that the reader and the events of the start have.
    fn of(
        events: &Reader<Input>,
        stream: &StreamFacts,
        startup: Option<StartupReport>,
        process_name: Option<String>,
    ) -> Self {
        let info = events.info();
        let (process, command_line, runtime) = startup
            .map_or((None, None, None), |startup| (startup.process, startup.command_line, startup.runtime));
        let name = process_name.filter(|name| !name.is_empty());
        let processes: BTreeSet<_> = events.threads().iter().filter_map(Thread::process_id).collect();
        let sampling =
            info.and_then(|info| info.key_values.iter().find(|(key, _)| key == KernelSample::SAMPLING_KEY));
        let sampling = sampling.map(|(_, value)| value.clone());
        Self {
            process_id: info.and_then(|info| info.process_id).or(process),
            processes: processes.len(),
            // Programs without a runtime lack a command line.
            program: command_line.clone().or_else(|| name.clone()),
            name,
            command_line,
            runtime,
            start: info.and_then(|info| start_time(info.start)).map(|start| start.to_string()),
            events: stream.events,
            lost: stream.lost,
            lost_samples: stream.lost_samples,
            sampling,
            lost_is_lower_bound: stream.lost_is_lower_bound,
            truncated: events.truncated_at().is_some(),
            ..Self::default()
        }
    }
}
