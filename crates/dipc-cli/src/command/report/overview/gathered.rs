//! What is read of a recording for its overview, in one pass.

use std::path::Path;
use std::time::Duration;

use clr_events::{EventSet, sets};
use nettrace::{Event, RelativeTime};
use nettrace_export::report::{
    self, Allocations, AllocationsReport, Collections, Contention, ContentionReport, Exceptions,
    ExceptionsReport, GcReport, Jit, JitReport, Requests, RequestsReport, SpanRole, Startup, StartupReport,
    ThreadPool, ThreadPoolReport,
};
use nettrace_export::{Metric, Options, Profile, ProfileBuilder};

use crate::exit::{Exit, Failure};
use crate::inspect::recording::Recording;
use crate::render::json;

/// What reports are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Samples,
    Collections,
    Allocations,
    Exceptions,
    Contention,
    ThreadPool,
    Compilation,
    /// Known by more than the ids of its events.
    Requests,
}

impl Subject {
    const BY_EVENTS: [Self; 7] = [
        Self::Samples,
        Self::Collections,
        Self::Allocations,
        Self::Exceptions,
        Self::Contention,
        Self::ThreadPool,
        Self::Compilation,
    ];

    const fn events(self) -> Option<&'static EventSet> {
        Some(match self {
            Self::Samples => &sets::THREAD_SAMPLES,
            Self::Collections => &sets::COLLECTIONS,
            Self::Allocations => &sets::ALLOCATION_TICKS,
            Self::Exceptions => &sets::EXCEPTIONS,
            Self::Contention => &sets::CONTENTION,
            Self::ThreadPool => &sets::THREAD_POOL,
            Self::Compilation => &sets::COMPILATION,
            Self::Requests => return None,
        })
    }
}

/// The reports of a recording.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) process_id: Option<u64>,
    pub(super) start: Option<String>,
    /// From the start to the last event.
    pub(super) duration: Duration,
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) lost_is_lower_bound: bool,
    pub(super) truncated: bool,
    subjects: Vec<Subject>,
    pub(super) startup: Option<StartupReport>,
    pub(super) gc: GcReport,
    pub(super) allocations: AllocationsReport,
    pub(super) exceptions: ExceptionsReport,
    pub(super) contention: ContentionReport,
    pub(super) thread_pool: Option<ThreadPoolReport>,
    pub(super) jit: JitReport,
    pub(super) requests: Option<RequestsReport>,
    pub(super) profile: Profile,
}

/// The reports while they are made.
struct Gathering {
    /// Events by the index of their metadata.
    counts: Vec<u64>,
    last: RelativeTime,
    startup: Startup,
    gc: Collections,
    allocations: Allocations,
    exceptions: Exceptions,
    contention: Contention,
    thread_pool: ThreadPool,
    jit: Jit,
    requests: Requests,
    profile: ProfileBuilder,
}

impl Gathering {
    fn new() -> Self {
        let options = Options::new(Metric::Wall).with_tracks(false).with_kinds(false).with_idle(false);
        Self {
            counts: Vec::new(),
            last: RelativeTime::START,
            startup: Startup::default(),
            gc: Collections::default(),
            allocations: Allocations::default(),
            exceptions: Exceptions::default(),
            contention: Contention::default(),
            thread_pool: ThreadPool::default(),
            jit: Jit::default(),
            requests: Requests::default(),
            profile: ProfileBuilder::new(options),
        }
    }

    fn add(&mut self, event: &Event<'_>) {
        let index = event.metadata_index();
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.last = self.last.max(event.relative_time());
        self.startup.add(event);
        self.gc.add(event);
        self.allocations.add(event);
        self.exceptions.add(event);
        self.contention.add(event);
        self.thread_pool.add(event);
        self.jit.add(event);
        self.requests.add(event);
        self.profile.add(event);
    }
}

impl Gathered {
    /// Reads a recording. The exit code is [`Exit::Incomplete`] if it is cut or damaged.
    pub(super) fn read(file: &Path) -> Result<(Self, Exit), Failure> {
        let (events, origin) = Recording::open(file)?.into_parts();
        let mut all = Gathering::new();
        let events = report::read(events, |event| all.add(event)).map_err(|error| origin.failed(&error))?;
        let exit = origin.report_damage(&events);
        let info = events.info();
        let is_there = |subject: &Subject| {
            let mut kinds = events.metadata().iter().zip(&all.counts);
            kinds.any(|(kind, count)| *count > 0 && subject.events().is_some_and(|set| set.contains(kind)))
        };
        let mut subjects: Vec<_> = Subject::BY_EVENTS.into_iter().filter(is_there).collect();
        // Other activities than requests and calls are in nearly every recording.
        let requests = all.requests.finish();
        let requests = requests.filter(|report| report.rows.iter().any(|row| row.role != SpanRole::Other));
        subjects.extend(requests.as_ref().map(|_| Subject::Requests));
        let (profile, _) = all.profile.finish(info).expect("events come in time order");
        let gathered = Self {
            process_id: info.and_then(|info| info.process_id),
            start: info.and_then(|info| json::system_time(info.start)).map(|start| start.to_string()),
            duration: all.last.since_start(),
            bytes: origin.bytes(),
            events: all.counts.iter().sum(),
            lost: events.loss().total(),
            lost_is_lower_bound: events.loss().is_lower_bound(),
            truncated: events.truncated_at().is_some(),
            subjects,
            startup: all.startup.finish(),
            gc: all.gc.finish(),
            allocations: all.allocations.finish(),
            exceptions: all.exceptions.finish(),
            contention: all.contention.finish(),
            thread_pool: all.thread_pool.finish(),
            jit: all.jit.finish(),
            requests,
            profile,
        };
        Ok((gathered, exit))
    }

    /// Whether the recording has events of a subject.
    pub(super) fn has(&self, subject: Subject) -> bool {
        self.subjects.contains(&subject)
    }
}
