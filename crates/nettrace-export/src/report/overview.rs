//! The reports of a recording that its [notes](super::Note) and its causes rest on.

use std::collections::HashMap;
use std::time::Duration;

use clr_events::code::CodeOrigin;
use clr_events::sets;
use nettrace::{Event, Interest, Metadata, MetadataMap, RelativeTime, Source, ThreadId};

use crate::profile::Profile;
use crate::profile::builder::Omissions;
use crate::profile::metric::Metric;
use crate::profile::options::{NameForm, Options};
use crate::profile::pattern::Pattern;
use crate::profile::selection::Selection;
use crate::report::allocations::{Allocations, AllocationsReport};
use crate::report::blocked::{BlockedTime, Starvation, blocked_time, starvation};
use crate::report::calls::{Calls, CallsReport};
use crate::report::code_tiers::{CodeTiers, CodeTiersReport};
use crate::report::contention::{Contention, ContentionReport};
use crate::report::exceptions::{Exceptions, ExceptionsReport};
use crate::report::gc::{Collections, GcReport};
use crate::report::jit::{Jit, JitReport};
use crate::report::processor_time::processor_time;
use crate::report::requests::{Requests, RequestsOptions, RequestsReport};
use crate::report::runtime_gauges::{RuntimeGaugeValues, RuntimeGauges};
use crate::report::session_cost::SessionCost;
use crate::report::startup::{Startup, StartupReport};
use crate::report::thread_pool::{ThreadPool, ThreadPoolReport};
use crate::report::user_caller::{UserCallerName, user_callers};

/// The reports of a recording. [`notes`](Self::notes) has what to know first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Overview {
    /// The time from the start to the last event; in a part of a session, the time of the part.
    pub duration: Duration,
    /// The events.
    pub stream: StreamFacts,
    /// True if threads were sampled.
    pub has_samples: bool,
    /// Collections.
    pub gc: GcReport,
    /// Allocations.
    pub allocations: AllocationsReport,
    /// Exceptions.
    pub exceptions: ExceptionsReport,
    /// Waits for locks.
    pub contention: ContentionReport,
    /// Calls by their phases.
    pub calls: CallsReport,
    /// The thread pool; `None` without its events.
    pub thread_pool: Option<ThreadPoolReport>,
    /// Compiled methods.
    pub jit: JitReport,
    /// Code that could be faster.
    pub code_tiers: CodeTiersReport,
    /// Time in which all workers of the pool were blocked.
    pub starvation: Option<Starvation>,
    /// Requests and other spans; `None` without them.
    pub requests: Option<RequestsReport>,
    /// The time of threads, without the cost of the session.
    pub profile: Profile,
    /// Blocked time of threads.
    pub blocked: BlockedTime,
    /// The time spent for the recording itself, which the profile does not show.
    pub session_cost: SessionCost,
    /// The time of running threads by the origin of the code; empty without the kernel's samples.
    pub processor_time: Vec<(CodeOrigin, u64)>,
    /// Timers and memory over time; empty without the runtime's counters.
    pub gauges: RuntimeGaugeValues,
    /// The part of the working time that may actually have been waiting, in nanoseconds.
    pub unverified: u64,
    /// The part of blocked time in which threads were runnable but lacked a processor, in nanoseconds.
    pub without_processor: u64,
}

/// Facts about the events of a recording that was read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StreamFacts {
    /// The number of events.
    pub events: u64,
    /// The number of lost events.
    pub lost: u64,
    /// The part of them that is samples and records of the kernel.
    pub lost_samples: u64,
    /// True if more may have been lost.
    pub lost_is_lower_bound: bool,
    /// The number of processors, if the recording has it.
    pub processors: Option<u32>,
    /// The time of the last event.
    pub last: RelativeTime,
    /// True if threads were sampled.
    pub has_samples: bool,
    /// True if the kernel sampled running threads: time of work is CPU time.
    pub has_kernel_samples: bool,
}

impl StreamFacts {
    /// The facts of a recording: its events after reading, the number of events of each kind by the index of
    /// its metadata, and the time of the last one.
    pub fn of<S: Source>(events: &nettrace::Events<S>, counts: &[(usize, u64)], last: RelativeTime) -> Self {
        let kinds = || counts.iter().filter_map(|(index, _)| events.metadata().get(*index));
        let info = events.info();
        let is_sampled = info.is_some_and(|info| {
            info.key_values.iter().any(|(key, _)| key == clr_events::KernelSample::SAMPLING_KEY)
        });
        // Kernel losses are counted for thread 0, which runs nothing.
        let of_kernel = events.threads().iter().filter(|thread| is_sampled && thread.id() == ThreadId(0));
        Self {
            events: counts.iter().map(|(_, count)| count).sum(),
            lost: events.loss().total(),
            lost_samples: of_kernel.map(nettrace::Thread::lost).sum(),
            lost_is_lower_bound: events.loss().is_lower_bound(),
            processors: info.and_then(|info| info.processors),
            last,
            has_samples: kinds().any(|kind| sets::THREAD_SAMPLES.contains(kind)),
            has_kernel_samples: kinds().any(is_cpu_sample),
        }
    }
}

/// Returns true if events of a kind are the kernel's samples of running threads.
fn is_cpu_sample(kind: &Metadata) -> bool {
    kind.provider() == "Universal.Events" && kind.name() == "cpu"
}

/// Returns the options of the profile of an overview.
pub fn overview_profile_options(metric: Metric) -> Options {
    Options::new(metric).with_tracks(true).with_kinds(false).with_idle(false).with_names(NameForm::CSharp)
}

/// Returns the options of a profile that has the callers of a metric's subjects, such as of allocated types:
/// see [`user_callers`].
pub fn callers_options(metric: Metric, selection: Selection, user_code: Vec<Pattern>) -> Options {
    Options::new(metric)
        .with_kinds(false)
        .with_locks(true)
        .with_names(NameForm::CSharp)
        .with_selection(selection)
        .with_user_code(user_code)
}

/// The user's methods that allocated, threw, waited for locks and called, by the subject that each led to.
#[derive(Debug, Clone, Default)]
pub struct OverviewCallers([HashMap<String, UserCallerName>; Self::METRICS.len()]);

impl OverviewCallers {
    /// The metrics of the profiles that have them, with [these options](callers_options).
    pub const METRICS: [Metric; 4] = [Metric::Alloc, Metric::Exception, Metric::Contention, Metric::Call];

    /// The callers in profiles of the [metrics](Self::METRICS), in their order. Profiles may be missing.
    pub fn of<'p>(profiles: impl IntoIterator<Item = &'p Profile>) -> Self {
        let mut callers = Self::default();
        for (place, profile) in callers.0.iter_mut().zip(profiles) {
            *place = user_callers(profile);
        }
        callers
    }

    fn add_to(
        self,
        allocations: &mut AllocationsReport,
        exceptions: &mut ExceptionsReport,
        contention: &mut ContentionReport,
        calls: &mut CallsReport,
    ) {
        let [of_allocations, of_exceptions, of_locks, of_calls] = self.0;
        for row in &mut allocations.types {
            row.from = of_allocations.get(&row.name).cloned();
        }
        for row in &mut exceptions.types {
            row.from = of_exceptions.get(&row.name).cloned();
        }
        for row in &mut contention.locks {
            row.from = of_locks.get(&format!("lock {:#x}", row.lock)).cloned();
        }
        for row in &mut calls.rows {
            row.from = of_calls.get(&row.name).cloned();
        }
    }
}

/// The reports of an overview that need few kinds of events, and no stacks. Events must be in time order.
#[derive(Debug, Default)]
pub struct OverviewReports {
    /// The time of a part.
    selection: Selection,
    startup: Startup,
    gc: Collections,
    allocations: Allocations,
    exceptions: Exceptions,
    contention: Contention,
    calls: Calls,
    thread_pool: ThreadPool,
    jit: Jit,
    code_tiers: CodeTiers,
    gauges: RuntimeGauges,
}

impl OverviewReports {
    /// The reports of a part of a recording.
    pub fn new(selection: Selection) -> Self {
        let start = selection.from.unwrap_or(RelativeTime::START);
        Self { gc: Collections::default().with_start(start), selection, ..Self::default() }
    }

    /// Returns true if any of these reports needs events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        let reports = [
            Startup::needs,
            Collections::needs,
            Allocations::needs,
            Exceptions::needs,
            Contention::needs,
            Calls::needs,
            ThreadPool::needs,
            Jit::needs,
            CodeTiers::needs,
            RuntimeGauges::needs,
        ];
        reports.into_iter().any(|needs| needs(kind))
    }

    /// Adds an event, which may be of any kind.
    pub fn add(&mut self, event: &Event<'_>) {
        self.startup.add(event);
        if !self.selection.contains(event) {
            return;
        }
        self.gc.add(event);
        self.allocations.add(event);
        self.exceptions.add(event);
        self.contention.add(event);
        self.calls.add(event);
        self.thread_pool.add(event);
        self.jit.add(event);
        self.code_tiers.add(event);
        self.gauges.add(event);
    }

    /// Completes the report of the start.
    pub fn take_startup(&mut self) -> Option<StartupReport> {
        std::mem::take(&mut self.startup).finish()
    }
}

/// Gathers an overview of a recording, apart from the profile of its threads. Events must be in time order.
///
/// # Memory
/// As of [its reports](crate::report), each of which is bounded.
#[derive(Debug, Default)]
pub struct OverviewBuilder {
    /// True for kinds of events that the reports need.
    needed: MetadataMap<bool>,
    requests: Requests,
    reports: OverviewReports,
}

impl OverviewBuilder {
    /// An overview with these reports, which may have events already.
    pub fn new(requests: Requests, reports: OverviewReports) -> Self {
        Self { needed: MetadataMap::new(), requests, reports }
    }

    /// The interest in events of a kind, in a recording with or without spans.
    pub fn interest(kind: &Metadata, has_spans: bool) -> Interest {
        let of_spans =
            if has_spans { Requests::interest(&RequestsOptions::default(), kind) } else { Interest::None };
        of_spans.max(Interest::all_if(OverviewReports::needs(kind)))
    }

    /// Adds an event, which may be of any kind.
    pub fn add(&mut self, event: &Event<'_>) {
        self.requests.add(event);
        if self.needed.get_or_insert_with(event.metadata_index(), || OverviewReports::needs(event.metadata()))
        {
            self.reports.add(event);
        }
    }

    /// Extends the recording to the time of an event that need not be added.
    pub fn extend_to(&mut self, time: RelativeTime) {
        self.requests.extend_to(time);
    }

    /// Returns the overview of a recording that was read to its end. `profile` has [these
    /// options](overview_profile_options).
    pub fn finish(
        self,
        mut profile: Profile,
        omissions: &Omissions,
        callers: OverviewCallers,
        stream: StreamFacts,
    ) -> Overview {
        let Self { requests, reports, .. } = self;
        let OverviewReports { selection, gc, .. } = reports;
        let start = selection.from.unwrap_or(RelativeTime::START).max(RelativeTime::START);
        let end = selection.to.unwrap_or(stream.last);
        let has_samples = stream.has_samples || profile.samples() > 0;
        let (mut allocations, mut exceptions) = (reports.allocations.finish(), reports.exceptions.finish());
        let mut contention = reports.contention.finish();
        contention
            .name_threads(|_, tid| profile.threads.iter().find(|thread| thread.id == tid)?.name.clone());
        let mut calls = reports.calls.with_range(start, end).finish();
        callers.add_to(&mut allocations, &mut exceptions, &mut contention, &mut calls);
        let gc = gc.with_range(start, end).finish();
        let session_cost = SessionCost::take(&mut profile);
        Overview {
            duration: end.saturating_duration_since(start),
            has_samples,
            allocations,
            exceptions,
            contention,
            calls,
            thread_pool: reports.thread_pool.finish(),
            jit: reports.jit.finish(),
            code_tiers: reports.code_tiers.finish(),
            starvation: starvation(&profile, stream.processors),
            requests: requests.with_range(start, end).finish(),
            blocked: blocked_time(&profile),
            session_cost,
            processor_time: if stream.has_kernel_samples {
                processor_time(&profile, &gc.pause_list)
            } else {
                Vec::new()
            },
            gauges: reports.gauges.finish(),
            unverified: omissions.unverified,
            without_processor: omissions.without_processor,
            gc,
            stream,
            profile,
        }
    }
}
