//! Requests: how many, how long, how they ended, and where their time went.

pub(crate) mod thread_parts;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use clr_activity::{KnownParts, MeasuredParts, Span, SpanId, Spans};
pub use clr_activity::{SpanEnd, SpanRole, SpanSource, TimeParts};
use clr_events::{CodeMap, StackId};
use hashbrown::HashMap;
use hdrhistogram::Histogram;
use nettrace::{Event, Interest, Metadata, RelativeTime};
use serde::{Serialize, Serializer};

use crate::profile::frame::{FrameId, Frames};
use crate::profile::index::ThreadIndex;
use crate::profile::options::NameForm;
use crate::profile::pattern::Pattern;
use crate::profile::request_stacks::{RequestSamples, RequestStacks};
use crate::profile::{Profile, StackTotal};
use crate::report::blocked::{SleepAndIo, sleep_and_io};
use crate::report::nanoseconds;
use crate::report::span_name::row_name;
use crate::report::top_report::{TopOptions, TopReport};
pub use thread_parts::ThreadParts;
use thread_parts::{KnownThreadParts, MeasuredThreadParts, ThreadTimes};

/// Settings of the report of requests.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RequestsOptions {
    /// The number of requests to list individually, the slowest first; at most 1,000.
    pub slowest: usize,
    /// Only spans that took at least this long; of requests among them, all stacks together are in
    /// [`RequestsReport::slower`].
    pub slower_than: Option<Duration>,
    /// Only spans with such a name: the route, path or address, or `Provider/Task`.
    pub name: Option<Pattern>,
    /// The form of the names of methods: of [`RequestsReport::profile`], and whether [`SlowStack::csharp`] is
    /// there.
    pub names: NameForm,
    /// True if [sleep and I/O](ThreadParts::sleep) are told, by the samples of threads, which takes time.
    pub waits: bool,
    /// The time from which events are added, of a part of a recording: rates are of the time since then.
    pub start: RelativeTime,
}

impl RequestsOptions {
    /// Returns true if the stacks of threads are looked at.
    const fn needs_stacks(&self) -> bool {
        self.slowest > 0 || self.waits || self.slower_than.is_some()
    }

    /// With this [`start`](Self::start).
    #[must_use]
    pub fn with_start(self, start: RelativeTime) -> Self {
        Self { start, ..self }
    }

    /// With or without [`waits`](Self::waits).
    #[must_use]
    pub fn with_waits(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// With this [`slowest`](Self::slowest).
    #[must_use]
    pub fn with_slowest(self, slowest: usize) -> Self {
        Self { slowest, ..self }
    }

    /// With this [`slower_than`](Self::slower_than).
    #[must_use]
    pub fn with_slower_than(self, slower_than: Option<Duration>) -> Self {
        Self { slower_than, ..self }
    }

    /// With this [`name`](Self::name).
    #[must_use]
    pub fn with_name(self, name: Option<Pattern>) -> Self {
        Self { name, ..self }
    }

    /// With this form of [`names`](Self::names).
    #[must_use]
    pub fn with_names(self, names: NameForm) -> Self {
        Self { names, ..self }
    }
}

/// The spans of a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StatusRow {
    /// The status; `None` if no event says it.
    pub status: Option<String>,
    /// The number of spans.
    pub count: u64,
}

/// Durations in few numbers. Percentiles are at most 1 % too high, by nearest rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Latencies {
    /// All together.
    #[serde(rename = "total_ns", serialize_with = "nanoseconds::serialize")]
    pub total: Duration,
    /// The middle one.
    #[serde(rename = "p50_ns", serialize_with = "nanoseconds::serialize")]
    pub p50: Duration,
    /// 90 of 100 are at most so long.
    #[serde(rename = "p90_ns", serialize_with = "nanoseconds::serialize")]
    pub p90: Duration,
    /// 99 of 100 are at most so long.
    #[serde(rename = "p99_ns", serialize_with = "nanoseconds::serialize")]
    pub p99: Duration,
    /// Maximum duration.
    #[serde(rename = "max_ns", serialize_with = "nanoseconds::serialize")]
    pub max: Duration,
}

/// Spans of one kind and name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SpanRow {
    /// The role.
    pub role: SpanRole,
    /// The EventSource, or the source that a DiagnosticSource event names.
    pub provider: String,
    /// The name that Start and Stop have in common.
    pub task: String,
    /// The route, path or address; `(others)` beyond the number of distinct rows. Numbers, GUIDs and
    /// hexadecimal numbers in the paths of HTTP are replaced: `/hello/{n}`.
    pub name: String,
    /// The whole name of the first span, where something in it was replaced.
    pub example: Option<String>,
    /// Spans that were started and stopped.
    pub count: u64,
    /// The same for each second of the recording.
    pub per_second: f64,
    /// The number of these that failed.
    pub errors: u64,
    /// By status, most first.
    pub statuses: Vec<StatusRow>,
    /// Durations of the spans.
    pub latencies: Latencies,
    /// The time of the requests among them, by the work done; `None` without requests, or if it is unknown.
    pub parts: Option<TimeParts>,
    /// The parts of their time on threads; `None` without requests, or if the recording lacks events of the
    /// parts.
    pub thread_parts: Option<ThreadParts>,
    /// Spans with an end that another event reports. They are not in the numbers above.
    pub implied: u64,
    /// Spans that had not ended when the recording did. They are not in the numbers above.
    pub cut_by_end: u64,
}

/// A request that took long.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SlowSpan {
    /// The EventSource.
    pub provider: String,
    /// The name that Start and Stop have in common.
    pub task: String,
    /// The route, path or address.
    pub name: String,
    /// The request's process; `None` if the recording does not say.
    pub process: Option<u64>,
    /// The activity, as a path: `/#4711/1/2/`.
    pub activity: Option<String>,
    /// Start of the request.
    #[serde(rename = "start_ns", serialize_with = "nanoseconds::serialize")]
    pub start: RelativeTime,
    /// The time until its end, or until the recording's.
    #[serde(rename = "duration_ns", serialize_with = "nanoseconds::serialize")]
    pub duration: Duration,
    /// The end.
    pub end: SpanEnd,
    /// The status, if an event says it.
    pub status: Option<String>,
    /// True if it failed.
    pub is_error: bool,
    /// The error's text, if an event has one.
    pub error: Option<String>,
    /// The request's time by the work done.
    pub parts: Option<TimeParts>,
    /// The parts of the request's time on threads; `None` if the recording lacks events of the parts.
    pub thread_parts: Option<ThreadParts>,
    /// Samples of its threads.
    pub samples: u64,
    /// The stacks of its threads, the heaviest first, at most 100.
    pub stacks: Vec<SlowStack>,
}

/// A stack of threads that worked for a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SlowStack {
    /// The time that threads spent with this stack, from their samples.
    #[serde(rename = "time_ns", serialize_with = "nanoseconds::serialize")]
    pub time: Duration,
    /// The number of samples.
    pub samples: u64,
    /// The frames, root first, as TraceEvent names them.
    pub frames: Vec<String>,
    /// The same in the [requested form](RequestsOptions::names), if that is C#.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub csharp: Vec<String>,
}

/// The requests and other spans of a recording.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct RequestsReport {
    /// The duration of the recording, up to its last event.
    #[serde(rename = "duration_ns", serialize_with = "nanoseconds::serialize")]
    pub duration: Duration,
    /// By role, then the longest sum first.
    pub rows: Vec<SpanRow>,
    /// The slowest requests, if wanted.
    pub slowest: Vec<SlowSpan>,
    /// The kinds of spans, with how many of their events were paired.
    pub sources: Vec<SpanSource>,
    /// The same stacks, as a profile with a thread for each of the slowest.
    #[serde(skip)]
    pub profile: Option<Profile>,
    /// The stacks of threads while they worked for the requests that are
    /// [slow enough](RequestsOptions::slower_than), if wanted: time on the processors and off them. As JSON,
    /// the first 1,000 methods of it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "first_methods")]
    pub slower: Option<Profile>,
    /// Spans, threads and kinds that were left out, because there were more than are kept.
    pub left_out: u64,
}

#[allow(clippy::ref_option, reason = "serde passes references")]
fn first_methods<S: Serializer>(profile: &Option<Profile>, serializer: S) -> Result<S::Ok, S::Error> {
    let options = TopOptions::default().with_number(MAX_SLOWER_METHODS);
    profile.as_ref().map(|profile| TopReport::new(profile, options)).serialize(serializer)
}

/// Gathers requests and other spans: see [`Spans`].
///
/// # Memory
/// Bounded: that of [`Spans`], and 2,048 rows of some 30 KB at most.
///
/// ```no_run
/// use nettrace_export::{nettrace::Reader, report::{Requests, RequestsOptions, read_by}};
///
/// let recording = Reader::new(std::fs::File::open("app.nettrace")?)?;
/// let options = RequestsOptions::default().with_slowest(3);
/// let mut requests = Requests::new(options.clone());
/// read_by(recording, move |kind| Requests::interest(&options, kind), |event| requests.add(event))?;
/// if let Some(report) = requests.finish() {
///     println!("{report:?}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Requests {
    options: RequestsOptions,
    /// The end of the time that rates are of, if it is not that of the last event.
    end: Option<RelativeTime>,
    spans: Spans,
    finished: Finished,
    stacks: RequestStacks<SpanId>,
    thread_times: ThreadTimes<SpanId>,
}

/// The sums over spans that have ended, and the slowest of these.
#[derive(Debug, Default)]
struct Finished {
    rows: HashMap<RowKey, Row>,
    slowest: Vec<Slow>,
    /// Calls that are not part of a request: they are listed only in a recording without requests.
    slowest_calls: Vec<Slow>,
    /// The samples of all requests that are slow enough, by process.
    slower: BTreeMap<Option<u64>, RequestSamples>,
}

/// A span that is listed, before the end of the recording.
#[derive(Debug)]
struct Slow {
    span: SlowSpan,
    parts: Option<MeasuredParts>,
    thread_parts: MeasuredThreadParts,
    samples: RequestSamples,
}

type RowKey = (SpanRole, String, String, String);

#[derive(Debug)]
struct Row {
    example: Option<String>,
    durations: Histogram<u32>,
    total: Duration,
    max: Duration,
    count: u64,
    errors: u64,
    statuses: BTreeMap<Option<String>, u64>,
    parts: Option<MeasuredParts>,
    thread_parts: MeasuredThreadParts,
    /// The process of the samples.
    process: Option<RowProcess>,
    samples: RequestSamples,
    implied: u64,
    cut_by_end: u64,
}

/// The process of the first span of a row, if the recording names processes.
#[derive(Debug, Clone, Copy)]
struct RowProcess(Option<u64>);

/// The number of distinct rows, and of statuses of a row.
const MAX_ROWS: usize = 1 << 11;
const MAX_STATUSES: usize = 64;
/// Maximum number of processes, and of stacks of each, of requests that are slow enough.
const MAX_PROCESSES: usize = 64;
const MAX_SLOWER_STACKS: usize = 1 << 14;
/// Maximum number of methods of slow requests as JSON.
const MAX_SLOWER_METHODS: usize = 1000;
/// The requests that are listed individually.
const MAX_SLOWEST: usize = 1000;
/// Maximum duration that percentiles distinguish from longer ones: twelve days.
const MAX_DURATION: u64 = 1 << 50;
/// The name of the row for everything above the limit.
const OTHERS: &str = "(others)";

impl Default for Row {
    fn default() -> Self {
        Self {
            // Two digits are a valid precision.
            durations: Histogram::new(2).unwrap_or_else(|_| unreachable!("a precision of 0 to 5 digits")),
            example: None,
            total: Duration::ZERO,
            max: Duration::ZERO,
            count: 0,
            errors: 0,
            statuses: BTreeMap::new(),
            parts: None,
            thread_parts: MeasuredThreadParts::default(),
            process: None,
            samples: RequestSamples::default(),
            implied: 0,
            cut_by_end: 0,
        }
    }
}

impl Requests {
    /// With these settings.
    pub fn new(options: RequestsOptions) -> Self {
        let slowest = options.slowest.min(MAX_SLOWEST);
        Self { options: RequestsOptions { slowest, ..options }, ..Self::default() }
    }

    /// The code that is known so far. Add code from other sources than the recording before its first event.
    pub fn code_mut(&mut self) -> &mut CodeMap {
        self.stacks.code_mut()
    }

    /// With this time range for rates: the requested range, or the time of a process.
    #[must_use]
    pub fn with_range(mut self, start: RelativeTime, end: RelativeTime) -> Self {
        self.options.start = start;
        self.end = Some(end);
        self
    }

    /// The events of a kind that a report with these options needs. It also needs the time of the recording's
    /// last event: see [`extend_to`](Self::extend_to).
    pub fn interest(options: &RequestsOptions, kind: &Metadata) -> Interest {
        let of_stacks = options.needs_stacks() && RequestStacks::<SpanId>::needs(kind);
        let of_threads = ThreadTimes::<SpanId>::needs(kind);
        Interest::all_if(of_stacks || of_threads).max(Spans::interest(kind))
    }

    /// Extends the recording to the time of an event that need not be added.
    pub fn extend_to(&mut self, time: RelativeTime) {
        self.spans.extend_to(time);
    }

    /// Adds an event. Looks at all of them.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>) {
        let Self { options, spans, finished, stacks, thread_times, .. } = self;
        spans.add(event, |span| finished.add(&span, options, stacks, thread_times));
        let request = || spans.request_of(event.process_id(), event.thread_id());
        thread_times.add(event, request);
        if options.needs_stacks() {
            stacks.add(event, request);
        }
    }

    /// Returns the report; `None` without spans.
    pub fn finish(mut self) -> Option<RequestsReport> {
        let Self { options, spans, finished, stacks, thread_times, .. } = &mut self;
        spans.finish(|span| finished.add(&span, options, stacks, thread_times));
        let sources: Vec<_> = self.spans.sources().cloned().collect();
        if sources.is_empty() {
            return None;
        }
        let duration =
            self.end.unwrap_or_else(|| self.spans.last()).saturating_duration_since(self.options.start);
        let has_samples = self.options.waits && self.stacks.has_samples();
        let known = (self.spans.known(), self.thread_times.known(has_samples));
        let Finished { rows, mut slowest, slowest_calls, slower } = std::mem::take(&mut self.finished);
        let slower: Vec<_> = slower.into_iter().collect();
        let slower = (!slower.is_empty()).then(|| self.stacks.finish(&slower, self.options.names, false));
        let mut rows: Vec<_> = rows.into_iter().collect();
        let samples = rows
            .iter_mut()
            .map(|(_, row)| (row.process.and_then(|process| process.0), std::mem::take(&mut row.samples)));
        let waits = self.waits_of(&samples.collect::<Vec<_>>());
        let rows = rows.into_iter().zip(waits);
        let mut rows: Vec<_> =
            rows.map(|((key, row), waits)| row.report(key, duration, known, waits)).collect();
        rows.sort_by(|a, b| {
            let key = |row: &SpanRow| (row.role, Reverse(row.latencies.total), Reverse(row.cut_by_end));
            let names = |a: &SpanRow, b: &SpanRow| {
                a.provider
                    .cmp(&b.provider)
                    .then_with(|| a.task.cmp(&b.task))
                    .then_with(|| a.name.cmp(&b.name))
            };
            key(a).cmp(&key(b)).then_with(|| names(a, b))
        });
        if slowest.is_empty() {
            slowest = slowest_calls;
        }
        let (mut slowest, samples): (Vec<_>, Vec<_>) = slowest
            .into_iter()
            .map(|slow| {
                let sample = (slow.span.process, slow.samples);
                ((slow.span, slow.parts, slow.thread_parts), sample)
            })
            .unzip();
        let waits = self.waits_of(&samples);
        let mut slowest: Vec<_> = slowest
            .drain(..)
            .zip(waits)
            .map(|((mut span, parts, thread_parts), waits): ((SlowSpan, _, _), _)| {
                let parts: Option<MeasuredParts> = parts;
                let thread_parts: MeasuredThreadParts = thread_parts;
                span.parts = parts.map(|parts| parts.known(known.0));
                let on_thread = span.parts.and_then(|parts| parts.on_thread);
                span.thread_parts = thread_parts.known(known.1, (on_thread, span.duration), waits);
                span
            })
            .collect();
        let profile = (!slowest.is_empty()).then(|| self.stacks.finish(&samples, self.options.names, false));
        for (index, span) in (0..).map(ThreadIndex).zip(&mut slowest) {
            if let Some(profile) = &profile {
                (span.samples, span.stacks) = stacks_of(profile, index, self.options.names);
            }
        }
        let left_out = self.spans.left_out();
        Some(RequestsReport { duration, rows, slowest, sources, profile, slower, left_out })
    }

    /// Returns the sleep and I/O in the samples of each request, or of each row.
    fn waits_of(&mut self, samples: &[(Option<u64>, RequestSamples)]) -> Vec<SleepAndIo> {
        if self.options.waits {
            sleep_and_io(&self.stacks.finish(samples, NameForm::Full, true))
        } else {
            vec![SleepAndIo::default(); samples.len()]
        }
    }
}

/// The number of stacks of a request.
const MAX_STACKS: usize = 100;

/// The samples and the heaviest stacks of a thread of a profile.
fn stacks_of(profile: &Profile, thread: ThreadIndex, names: NameForm) -> (u64, Vec<SlowStack>) {
    let of_thread = profile.stack_totals.iter().filter(|total| total.thread == thread);
    let samples = of_thread.clone().map(|total| total.samples).fold(0, u64::saturating_add);
    let mut heaviest: Vec<_> = of_thread.filter_map(|total| Some((total, total.stack?))).collect();
    heaviest.sort_by_key(|(total, stack)| (Reverse(total.weight), stack.index()));
    let mut frames = Vec::new();
    let stack = |(total, stack): (&StackTotal, StackId)| {
        profile.frames_of(stack, &mut frames);
        let texts = |name: fn(&Frames, FrameId) -> &str| {
            frames.iter().map(|frame| name(&profile.frames, *frame).to_owned()).collect()
        };
        SlowStack {
            time: Duration::from_nanos(total.weight),
            samples: total.samples,
            frames: texts(Frames::full_name),
            csharp: if names == NameForm::CSharp { texts(Frames::name) } else { Vec::new() },
        }
    };
    (samples, heaviest.into_iter().take(MAX_STACKS).map(stack).collect())
}

impl Finished {
    fn add(
        &mut self,
        span: &Span<'_>,
        options: &RequestsOptions,
        stacks: &mut RequestStacks<SpanId>,
        thread_times: &mut ThreadTimes<SpanId>,
    ) {
        let thread_parts =
            if span.is_request() { thread_times.end(span.id) } else { MeasuredThreadParts::default() };
        let samples = if options.needs_stacks() && span.is_request() {
            let end = RelativeTime::after_start(span.start.since_start().saturating_add(span.duration));
            stacks.end(span.id, end)
        } else {
            RequestSamples::default()
        };
        let row_name = row_name(span);
        let is_wanted = options
            .name
            .as_ref()
            .is_none_or(|pattern| span.is_named(|name| pattern.matches(name)) || pattern.matches(&row_name));
        if !is_wanted || options.slower_than.is_some_and(|least| span.duration < least) {
            return;
        }
        if options.slower_than.is_some()
            && span.is_request()
            && (self.slower.len() < MAX_PROCESSES || self.slower.contains_key(&span.process))
        {
            self.slower.entry(span.process).or_default().add_up_to(&samples, MAX_SLOWER_STACKS);
        }
        self.row(span, &row_name).add(span, &thread_parts, &samples);
        if span.is_request() && options.slowest > 0 {
            self.add_slow(span, (samples, thread_parts), options.slowest);
        }
    }

    fn row(&mut self, span: &Span<'_>, name: &str) -> &mut Row {
        let mut key: RowKey = (span.role, span.provider.to_owned(), span.task.to_owned(), name.to_owned());
        if self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&key) {
            OTHERS.clone_into(&mut key.3);
            // Kinds are fewer than rows; should they not be, they share one.
            if !self.rows.contains_key(&key) && self.rows.len() >= 2 * MAX_ROWS {
                key = (SpanRole::Other, String::new(), String::new(), OTHERS.to_owned());
            }
        }
        let is_template = key.3 == name && name != span.name;
        self.rows
            .entry(key)
            .or_insert_with(|| Row { example: is_template.then(|| span.name.to_owned()), ..Row::default() })
    }

    /// Keeps a span if it is among the slowest.
    fn add_slow(
        &mut self,
        span: &Span<'_>,
        (samples, thread_parts): (RequestSamples, MeasuredThreadParts),
        most: usize,
    ) {
        let list = if span.role == SpanRole::Outgoing { &mut self.slowest_calls } else { &mut self.slowest };
        let place = list.partition_point(|other| other.span.duration >= span.duration);
        if place >= most {
            return;
        }
        let path = span.activity.map(|id| {
            clr_events::ActivityPath::new(id, span.process)
                .map_or_else(|| id.to_string(), |path| path.to_string())
        });
        list.insert(
            place,
            Slow {
                span: SlowSpan {
                    provider: span.provider.to_owned(),
                    task: span.task.to_owned(),
                    name: span.name.to_owned(),
                    process: span.process,
                    activity: path,
                    start: span.start,
                    duration: span.duration,
                    end: span.end,
                    status: span.status.map(str::to_owned),
                    is_error: span.is_error,
                    error: span.error.map(str::to_owned),
                    parts: None,
                    thread_parts: None,
                    samples: 0,
                    stacks: Vec::new(),
                },
                parts: span.parts,
                thread_parts,
                samples,
            },
        );
        list.truncate(most);
    }
}

impl Row {
    fn add(&mut self, span: &Span<'_>, thread_parts: &MeasuredThreadParts, samples: &RequestSamples) {
        match span.end {
            SpanEnd::Stopped => {}
            SpanEnd::Implied => {
                self.implied = self.implied.saturating_add(1);
                return;
            }
            _ => {
                self.cut_by_end = self.cut_by_end.saturating_add(1);
                return;
            }
        }
        self.count = self.count.saturating_add(1);
        self.errors = self.errors.saturating_add(u64::from(span.is_error));
        self.total = self.total.saturating_add(span.duration);
        self.max = self.max.max(span.duration);
        // The histogram grows on demand; longer durations than it can count do not occur.
        let nanoseconds = nanoseconds::saturating(span.duration).min(MAX_DURATION);
        let _ = self.durations.record(nanoseconds);
        let status = span.status.map(str::to_owned);
        if self.statuses.len() < MAX_STATUSES || self.statuses.contains_key(&status) {
            let count = self.statuses.entry(status).or_default();
            *count = count.saturating_add(1);
        }
        if let Some(parts) = &span.parts {
            self.parts.get_or_insert_default().add(parts);
            self.thread_parts.add(thread_parts);
            // All addresses are of one process.
            let process = *self.process.get_or_insert(RowProcess(span.process));
            if process.0 == span.process {
                self.samples.add(samples);
            }
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    fn report(
        self,
        (role, provider, task, name): RowKey,
        duration: Duration,
        (known, known_of_threads): (KnownParts, KnownThreadParts),
        waits: SleepAndIo,
    ) -> SpanRow {
        let parts = self.parts.map(|parts| parts.known(known));
        let on_thread = parts.and_then(|parts| parts.on_thread);
        let at = |quantile: f64| {
            let value = Duration::from_nanos(self.durations.value_at_quantile(quantile));
            value.min(self.max)
        };
        let mut statuses: Vec<_> = self
            .statuses
            .iter()
            .map(|(status, count)| StatusRow { status: status.clone(), count: *count })
            .collect();
        statuses.sort_by_key(|row| Reverse(row.count));
        let seconds = duration.as_secs_f64();
        SpanRow {
            role,
            provider,
            task,
            name,
            example: self.example,
            count: self.count,
            per_second: if seconds > 0.0 { self.count as f64 / seconds } else { 0.0 },
            errors: self.errors,
            statuses,
            latencies: Latencies {
                total: self.total,
                p50: at(0.5),
                p90: at(0.9),
                p99: at(0.99),
                max: self.max,
            },
            parts,
            thread_parts: self
                .thread_parts
                .known(known_of_threads, (on_thread, self.total), waits)
                .filter(|_| parts.is_some()),
            implied: self.implied,
            cut_by_end: self.cut_by_end,
        }
    }
}
