//! The reports that an overview is made of, gathered in one pass.

use std::path::Path;

use clr_events::EventSet;
use nettrace::{Event, Metadata, RelativeTime};
use nettrace_export::events::system_time;
use nettrace_export::report::{
    self, Allocations, AllocationsReport, Collections, Contention, ContentionReport, Exceptions,
    ExceptionsReport, GcReport, Jit, JitReport, Requests, RequestsReport, SpanRole, Startup, ThreadPool,
    ThreadPoolReport,
};
use nettrace_export::{Metric, NameForm, Options, Profile, ProfileBuilder};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::inspect::names::Names;
use crate::inspect::recording::Recording;
use crate::render::units;

/// Facts about the recording as a whole.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) process_id: Option<u64>,
    /// The command line, if the recording says it.
    pub(super) program: Option<String>,
    /// The version of the runtime, if the recording says it.
    pub(super) runtime: Option<String>,
    /// RFC 3339; `None` if the recording names no calendar time.
    pub(super) start: Option<String>,
    /// From the start to the last event.
    pub(super) duration_ns: u64,
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) lost_is_lower_bound: bool,
    pub(super) truncated: bool,
}

/// The reports of a recording.
pub(super) struct Gathered {
    pub(super) summary: Summary,
    /// The kinds of events, which the recording has.
    kinds: Vec<Metadata>,
    pub(super) gc: GcReport,
    pub(super) allocations: AllocationsReport,
    pub(super) exceptions: ExceptionsReport,
    pub(super) contention: ContentionReport,
    pub(super) thread_pool: Option<ThreadPoolReport>,
    pub(super) jit: JitReport,
    /// `None` if there are no requests or calls: other activities are in nearly every recording.
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
        let options = Options::new(Metric::Wall)
            .with_tracks(false)
            .with_kinds(false)
            .with_idle(false)
            .with_names(NameForm::CSharp);
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
        if let Some(names) = Names::find(file) {
            names.add_to(all.profile.code_mut())?;
        }
        let events = report::read(events, |event| all.add(event)).map_err(|error| origin.failed(&error))?;
        let exit = origin.report_damage(&events);
        let info = events.info();
        let startup = all.startup.finish();
        let (program, runtime) =
            startup.map_or((None, None), |startup| (startup.command_line, startup.runtime));
        let summary = Summary {
            process_id: info.and_then(|info| info.process_id),
            program,
            runtime,
            start: info.and_then(|info| system_time(info.start)).map(|start| start.to_string()),
            duration_ns: units::nanoseconds(all.last.since_start()),
            bytes: origin.bytes(),
            events: all.counts.iter().sum(),
            lost: events.loss().total(),
            lost_is_lower_bound: events.loss().is_lower_bound(),
            truncated: events.truncated_at().is_some(),
        };
        let counted = events.metadata().iter().zip(&all.counts);
        let kinds = counted.filter(|(_, count)| **count > 0).map(|(kind, _)| kind.clone()).collect();
        let is_known = |report: &RequestsReport| report.rows.iter().any(|row| row.role != SpanRole::Other);
        let (profile, _) = all.profile.finish(info).expect("events come in time order");
        let gathered = Self {
            summary,
            kinds,
            gc: all.gc.finish(),
            allocations: all.allocations.finish(),
            exceptions: all.exceptions.finish(),
            contention: all.contention.finish(),
            thread_pool: all.thread_pool.finish(),
            jit: all.jit.finish(),
            requests: all.requests.finish().filter(is_known),
            profile,
        };
        Ok((gathered, exit))
    }

    /// Whether the recording has an event of a set.
    pub(super) fn has(&self, events: &EventSet) -> bool {
        self.kinds.iter().any(|kind| events.contains(kind))
    }
}
