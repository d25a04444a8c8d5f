//! Pairing of the events that start and stop spans, and the threads that work for them.

use clr_events::{ClrEvent, Provider, sets};
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use nettrace::{Event, Interest, Metadata, MetadataMap, RelativeTime, ThreadId};
use serde::Serialize;
use uuid::Uuid;

use crate::causes::CauseId;
use crate::diagnostic::{DiagnosticEvent, DiagnosticPhase, RequestMessage, request_message, route};
use crate::event_kind::{self, EventKind, Format};
use crate::fields::{self, SpanOutcome};
use crate::live::{LiveSpans, NewSpan};
use crate::queue::Queue;
use crate::span::{Span, SpanEnd, SpanId, SpanRole, StartedSpan};
use crate::step::{Step, Steps, WorkId, has_step};
use crate::suspension::Suspensions;
use crate::tasks::Tasks;
use crate::threads::Threads;
use crate::time_parts::KnownParts;

/// The event counts of one kind of span.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpanSource {
    /// The EventSource, or the source that a DiagnosticSource event names.
    pub provider: String,
    /// The common name of Start and Stop; empty without one.
    pub task: String,
    /// Start events.
    pub starts: u64,
    /// Stop events.
    pub stops: u64,
    /// Spans with a paired Start and Stop.
    pub paired: u64,
    /// Starts with an end implied by another event.
    pub implied: u64,
    /// Starts that were not stopped when the recording ended.
    pub cut_by_end: u64,
    /// Stops of spans that began before the recording.
    pub cut_by_start: u64,
    /// Starts and stops without an activity, and without fields for pairing.
    pub unpaired: u64,
}

/// Pairs the events of spans, in time order.
///
/// Spans are started and stopped by an EventSource, including .NET's own for servers and for HTTP and SQL
/// clients, and spans passed on by the DiagnosticSource bridge. They are paired by their activity if
/// activities are recorded (TplEventSource keyword 0x80), otherwise by their fields if these identify them.
///
/// ```no_run
/// use clr_activity::Spans;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let recording = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// let mut spans = Spans::default();
/// recording.in_time_order().for_each(|event| {
///     spans.add(&event, |span| println!("{} {} {:?}", span.provider, span.name, span.duration));
/// })?;
/// spans.finish(|span| println!("{} had not ended", span.name));
/// # Ok(())
/// # }
/// ```
///
/// # Memory
/// Bounded: 65,536 spans that have not ended, as many threads, 4,096 kinds of spans. Further ones are left
/// out and counted.
#[derive(Debug, Default)]
pub struct Spans {
    kinds: MetadataMap<Kind>,
    sources: IndexMap<(String, String), SpanSource, DefaultHashBuilder>,
    steps: Steps,
    tasks: Tasks,
    threads: Threads,
    suspensions: Suspensions<()>,
    live: LiveSpans,
    queue: Queue,
    known: KnownParts,
    last: RelativeTime,
    /// The span that the last event started.
    started: Option<SpanId>,
    left_out: u64,
}

/// The role of a kind of event.
#[derive(Debug, Clone, Copy)]
struct Kind {
    event: EventKind,
    /// The number of its source, if it starts or stops spans.
    source: u32,
    /// True if it belongs to a pause of the collector.
    is_pause: bool,
    /// True for the runtime's own events.
    is_of_runtime: bool,
}

/// Maximum number of kinds of spans.
const MAX_SOURCES: usize = 1 << 12;
/// The source of the kinds beyond the limit.
const NO_SOURCE: u32 = u32::MAX;

impl Spans {
    /// With the [intervals](Span::intervals) of requests.
    ///
    /// ```no_run
    /// use clr_activity::Spans;
    ///
    /// let recording = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
    /// let mut spans = Spans::default().with_intervals();
    /// recording.in_time_order().for_each(|event| {
    ///     spans.add(&event, |span| println!("{}: {:?}", span.name, span.intervals));
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_intervals(mut self) -> Self {
        self.live.keeps_intervals = true;
        self
    }

    /// The events of a kind that make a difference, for [`in_time_order_by`]. The recording ends with its
    /// last event of any kind: see [`extend_to`](Self::extend_to).
    ///
    /// [`in_time_order_by`]: nettrace::Events::in_time_order_by
    ///
    /// ```no_run
    /// use clr_activity::Spans;
    ///
    /// // Most events of a recording make no difference, and are not held.
    /// let recording = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
    /// let (mut spans, mut requests) = (Spans::default(), 0);
    /// let mut events = recording.in_time_order_by(Spans::interest);
    /// events.for_each(|event| spans.add(&event, |span| requests += u64::from(span.is_served_request())))?;
    /// println!("{requests} requests");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interest(kind: &Metadata) -> Interest {
        match EventKind::of(kind) {
            EventKind::Unrelated => Interest::None,
            EventKind::Other if !has_step(kind) && !sets::PAUSES.contains(kind) => Interest::Activity,
            _ => Interest::All,
        }
    }

    /// Returns true if events of a kind may start or stop spans. A recording without such kinds does not
    /// contain spans.
    pub fn is_start_or_stop(kind: &Metadata) -> bool {
        matches!(EventKind::of(kind), EventKind::Start(_) | EventKind::Stop(_) | EventKind::Diagnostic(_))
    }

    /// Extends the recording to the time of an event that need not be added.
    pub fn extend_to(&mut self, time: RelativeTime) {
        self.last = self.last.max(time);
    }

    /// Adds an event, and passes the spans that it ends to `each`.
    #[inline]
    pub fn add(&mut self, event: &Event<'_>, mut each: impl FnMut(Span<'_>)) {
        let index = event.metadata_index();
        let kind = match self.kinds.get(index) {
            Some(known) => *known,
            None => self.new_kind(event.metadata(), index),
        };
        let now = event.relative_time().max(RelativeTime::START);
        self.last = self.last.max(now);
        self.started = None;
        if kind.event != EventKind::Unrelated {
            self.take_in(*event, kind, now, &mut each);
        }
    }

    #[cold]
    fn new_kind(&mut self, metadata: &Metadata, index: usize) -> Kind {
        let mut kind = EventKind::of(metadata);
        let source = match kind {
            EventKind::Start(_) | EventKind::Stop(_) => {
                self.source(metadata.provider(), event_kind::task(metadata))
            }
            _ => NO_SOURCE,
        };
        if matches!(kind, EventKind::Start(_) | EventKind::Stop(_)) && source == NO_SOURCE {
            kind = EventKind::Other;
        }
        let kind = Kind {
            event: kind,
            source,
            is_pause: sets::PAUSES.contains(metadata),
            is_of_runtime: Provider::of(metadata).is_some(),
        };
        self.kinds.insert(index, kind);
        kind
    }

    /// The number of a kind of span.
    fn source(&mut self, provider: &str, task: &str) -> u32 {
        let key = (provider.to_owned(), task.to_owned());
        let is_full = self.sources.len() >= MAX_SOURCES;
        let index = match self.sources.get_index_of(&key) {
            Some(index) => index,
            None if is_full => {
                self.left_out = self.left_out.saturating_add(1);
                return NO_SOURCE;
            }
            None => {
                let source =
                    SpanSource { provider: key.0.clone(), task: key.1.clone(), ..SpanSource::default() };
                self.sources.insert_full(key, source).0
            }
        };
        u32::try_from(index).unwrap_or(NO_SOURCE)
    }

    #[inline(never)]
    fn take_in(&mut self, event: Event<'_>, kind: Kind, now: RelativeTime, each: &mut dyn FnMut(Span<'_>)) {
        let event = &event;
        let process = event.process_id();
        if kind.is_pause {
            self.pause(event, now);
        }
        let step = self.steps.of(event);
        let Some(index) = self.threads.index(event.thread_slot(), (process, event.thread_id())) else {
            self.left_out = self.left_out.saturating_add(1);
            return;
        };
        let activity = event.activity();
        if kind.event == EventKind::Other {
            if step == Step::Nothing && self.threads.get(index).is_at(activity, self.live.generation()) {
                return;
            }
        } else {
            let before = self.threads.get(index).worker.request;
            self.span_event(event, (kind.event, kind.source), before, now, each);
        }

        let generation = self.live.generation();
        let thread = self.threads.get_mut(index);
        match activity {
            Some(id) if thread.is_in_span(id, generation, || self.live.innermost(process, id).is_some()) => {
                thread.worker.request = Some(id);
            }
            // The runtime has activities of its own, such as loading assemblies, within the program's
            // activities.
            Some(_) if kind.is_of_runtime => {}
            // The events that begin and end tasks are written outside of the tasks: a task can have an
            // activity even if these events do not show it.
            None if step.is_of_scheduler() => {}
            // The activity began before the recording, or has ended.
            _ => thread.worker.request = None,
        }
        self.known.on_thread |= matches!(step, Step::Enter | Step::EnterOperation(_) | Step::Leave);
        self.tasks.add(process, step, &mut thread.worker, |_| CauseId::NONE);
        let request = match thread.worker.request.map(|id| (id, generation)) {
            Some(known) if thread.resolved == Some(known) => thread.request,
            asked => {
                thread.resolved = asked;
                asked.and_then(|(id, _)| self.live.request(process, id))
            }
        };
        if request != thread.request {
            let left = std::mem::replace(&mut thread.request, request);
            if let Some(left) = left {
                self.live.thread(left, event.thread_id(), false, now);
            }
            if let Some(entered) = request {
                self.live.thread(entered, event.thread_id(), true, now);
            }
        }
        match step {
            // Timers and other transfers are excluded: they wait for something else.
            Step::Create(key @ (WorkId::Item(_) | WorkId::Task(_))) => {
                self.queue.push((process, key), request.map(|id| (id, self.live.enqueue(id, now))));
            }
            Step::Start(key @ WorkId::Task(_)) | Step::Dequeue(key @ WorkId::Item(_)) => {
                if let Some(queued) = self.queue.pop((process, key)) {
                    self.known.queued = true;
                    if let Some((id, mark)) = queued {
                        self.live.dequeue(id, mark, now);
                    }
                }
            }
            _ => {}
        }
    }

    /// Records the beginning or end of a pause.
    fn pause(&mut self, event: &Event<'_>, now: RelativeTime) {
        let Some(view) = ClrEvent::of(event).ok().flatten() else { return };
        self.known.gc_pause = true;
        let Some(clock) = self.live.clock(event.process_id()) else { return };
        let has_ended = self.suspensions.add((event, &view), now, || ()).is_some();
        clock.set(has_ended, self.suspensions.since(event.process_id()), now);
    }

    /// Starts, stops and describes spans; `before` is the thread's activity before the event.
    fn span_event(
        &mut self,
        event: &Event<'_>,
        (kind, source): (EventKind, u32),
        before: Option<Uuid>,
        now: RelativeTime,
        each: &mut dyn FnMut(Span<'_>),
    ) {
        let process = event.process_id();
        let activity = event.activity();
        let innermost = |live: &LiveSpans| activity.and_then(|id| live.innermost(process, id));
        match kind {
            EventKind::Start(format) => {
                let new = NewSpan {
                    source,
                    role: format.role(),
                    process,
                    activity,
                    // The runtime states it for each event: the last activity seen on the thread may have
                    // ended since.
                    related: event.related_activity(),
                    key: fields::pairing_key(event, format),
                    name: fields::name(event, format),
                    now,
                };
                self.start(new, each);
            }
            EventKind::Stop(format) => {
                let stop = Stop {
                    source,
                    process,
                    activity,
                    before,
                    key: fields::pairing_key(event, format),
                    is_by_key: format == Format::Sql,
                    now,
                };
                self.stop(&stop, fields::outcome(event, format), each);
            }
            EventKind::Failure => {
                let provider = event.provider();
                let sources = &self.sources;
                let is_of_provider = |source: u32| {
                    sources.get_index(source as usize).is_some_and(|(_, source)| source.provider == provider)
                };
                if let Some(id) = activity.and_then(|id| self.live.innermost_of(process, id, is_of_provider))
                {
                    self.live.add_outcome(id, fields::failure(event));
                }
            }
            EventKind::UnhandledException => {
                if let Some(id) = activity.and_then(|id| self.live.request(process, id)) {
                    self.live.add_outcome(id, SpanOutcome { is_error: true, ..SpanOutcome::default() });
                }
            }
            EventKind::LogMessage => {
                let Some(id) = innermost(&self.live).and_then(|id| self.live.server_around(id)) else {
                    return;
                };
                match request_message(event) {
                    Some(RequestMessage::Endpoint(name)) => self.live.set_route(id, route(&name)),
                    Some(RequestMessage::Status(status)) => {
                        let is_error = fields::is_error_status(&status, 500);
                        let outcome =
                            SpanOutcome { status: Some(status), is_error, ..SpanOutcome::default() };
                        self.live.add_outcome(id, outcome);
                    }
                    None => {}
                }
            }
            EventKind::Diagnostic(opcode) => {
                if let Some(diagnostic) = DiagnosticEvent::of(event, opcode) {
                    self.diagnostic(event, &diagnostic, before, now, each);
                }
            }
            EventKind::Other | EventKind::Unrelated => {}
        }
    }

    fn diagnostic(
        &mut self,
        event: &Event<'_>,
        diagnostic: &DiagnosticEvent,
        before: Option<Uuid>,
        now: RelativeTime,
        each: &mut dyn FnMut(Span<'_>),
    ) {
        if diagnostic.phase == DiagnosticPhase::Neither {
            return;
        }
        let source = self.source(&diagnostic.source, diagnostic.short_task());
        if source == NO_SOURCE {
            return;
        }
        let process = event.process_id();
        let starts_activity =
            clr_events::event_opcode(event).is_some_and(|opcode| opcode == 1 || opcode == 2);
        // Events that start no activity carry the enclosing one.
        let activity = event.activity().filter(|_| starts_activity);
        let around = event.related_activity().or(event.activity().filter(|_| !starts_activity));
        let new = |start: RelativeTime| NewSpan {
            source,
            role: diagnostic.role(),
            process,
            activity,
            related: around,
            key: diagnostic.key(),
            name: diagnostic.name(),
            now: start,
        };
        if diagnostic.phase == DiagnosticPhase::Start {
            self.start(new(now), each);
            return;
        }
        let stop = Stop {
            source,
            process,
            activity,
            before,
            key: diagnostic.key(),
            is_by_key: !starts_activity,
            now,
        };
        let outcome = diagnostic.outcome();
        let found = self.find(&stop);
        if found.is_none()
            && let Some(took) = diagnostic.duration()
        {
            // The end event alone has all facts.
            let start = RelativeTime::after_start(now.since_start().saturating_sub(took));
            self.start(NewSpan { activity: None, ..new(start) }, each);
            self.stop(&stop, outcome, each);
            return;
        }
        if let (Some(id), Some(route)) = (found, diagnostic.route()) {
            self.live.set_route(id, route);
        }
        self.stop(&stop, outcome, each);
    }

    fn start(&mut self, new: NewSpan, each: &mut dyn FnMut(Span<'_>)) {
        let counts = self.sources.get_index_mut(new.source as usize);
        if let Some((_, counts)) = counts {
            counts.starts = counts.starts.saturating_add(1);
            if new.activity.is_none() && new.key.is_none() {
                counts.unpaired = counts.unpaired.saturating_add(1);
                return;
            }
        }
        self.known.outgoing |= new.role == SpanRole::Outgoing;
        let now = new.now;
        let mut ended = Vec::new();
        self.live.end_implied(&new, &mut ended);
        for id in ended {
            self.end(id, now, SpanEnd::Implied, each);
        }
        if self.live.is_full() {
            for (id, at) in self.live.take_orphans() {
                self.end(id, at, SpanEnd::Implied, each);
            }
        }
        self.started = self.live.start(new);
        if self.started.is_none() {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// The span that a Stop ends.
    fn find(&self, stop: &Stop) -> Option<SpanId> {
        let by_activity =
            || stop.activity.and_then(|id| self.live.by_activity(stop.process, id, stop.source));
        let by_key = || stop.key.as_ref().and_then(|key| self.live.by_key(stop.process, stop.source, key));
        if stop.is_by_key { by_key().or_else(by_activity) } else { by_activity().or_else(by_key) }
    }

    fn stop(&mut self, stop: &Stop, outcome: SpanOutcome, each: &mut dyn FnMut(Span<'_>)) {
        let found = self.find(stop);
        if let Some((_, counts)) = self.sources.get_index_mut(stop.source as usize) {
            counts.stops = counts.stops.saturating_add(1);
            if found.is_none() {
                let is_known = stop.activity.is_some() || stop.key.is_some();
                let count = if is_known { &mut counts.cut_by_start } else { &mut counts.unpaired };
                *count = count.saturating_add(1);
            }
        }
        let Some(id) = found else { return };
        self.live.add_outcome(id, outcome);
        if let Some(before) = stop.before {
            self.live.orphan_within(id, stop.process, before, stop.now);
        }
        self.end(id, stop.now, SpanEnd::Stopped, each);
    }

    fn end(&mut self, id: SpanId, now: RelativeTime, end: SpanEnd, each: &mut dyn FnMut(Span<'_>)) {
        let Some((ended, parts, intervals)) = self.live.end(id, now) else { return };
        let Some((_, source)) = self.sources.get_index_mut(ended.source as usize) else { return };
        let count = match end {
            SpanEnd::Stopped => &mut source.paired,
            SpanEnd::Implied => &mut source.implied,
            SpanEnd::RecordingEnd => &mut source.cut_by_end,
        };
        *count = count.saturating_add(1);
        if ended.is_absorbed {
            return;
        }
        each(Span {
            id,
            role: ended.role,
            provider: &source.provider,
            task: &source.task,
            name: ended.route.as_deref().unwrap_or(&ended.name),
            start_name: &ended.name,
            process: ended.process,
            activity: ended.activity,
            parent: ended.parent,
            request: ended.request,
            start: ended.start,
            duration: now.saturating_duration_since(ended.start),
            end,
            status: ended.outcome.status.as_deref(),
            is_error: ended.outcome.is_error,
            error: ended.outcome.error.as_deref(),
            parts,
            known: self.known,
            intervals: &intervals,
        });
    }

    /// Passes the spans that had not ended at the end of the recording to `each`. Afterwards none are left.
    pub fn finish(&mut self, mut each: impl FnMut(Span<'_>)) {
        for (id, orphaned) in self.live.all() {
            match orphaned {
                Some(at) => self.end(id, at, SpanEnd::Implied, &mut each),
                None => self.end(id, self.last, SpanEnd::RecordingEnd, &mut each),
            }
        }
    }

    /// The request that a thread works for, according to its last event.
    pub fn request_of(&self, process: Option<u64>, thread: ThreadId) -> Option<SpanId> {
        let request = self.threads.of((process, thread))?.request?;
        self.live.contains(request).then_some(request)
    }

    /// The activity that a thread works for, according to its last event: it is a span that has started, or
    /// lies within one.
    pub(crate) fn activity_of(&self, process: Option<u64>, thread: ThreadId) -> Option<Uuid> {
        self.threads.of((process, thread))?.worker.request
    }

    /// Returns the span that the last event started. A server's span within another one, which is the same
    /// request, is left out.
    pub fn started(&self) -> Option<StartedSpan<'_>> {
        let id = self.started?;
        let span = self.live.get(id).filter(|span| !span.is_absorbed)?;
        Some(StartedSpan { id, role: span.role, name: &span.name, process: span.process, start: span.start })
    }

    /// Returns true if a span has not ended.
    pub(crate) fn is_live(&self, id: SpanId) -> bool {
        self.live.contains(id)
    }

    /// The kinds of spans seen so far.
    ///
    /// ```no_run
    /// use clr_activity::Spans;
    ///
    /// let recording = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
    /// let mut spans = Spans::default();
    /// recording.in_time_order().for_each(|event| spans.add(&event, |_| {}))?;
    /// for source in spans.sources() {
    ///     println!("{}/{}: {} of {} paired", source.provider, source.task, source.paired, source.starts);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sources(&self) -> impl Iterator<Item = &SpanSource> {
        self.sources.values().filter(|source| source.starts > 0 || source.stops > 0)
    }

    /// The time of the last event, since the recording's start.
    pub const fn last(&self) -> RelativeTime {
        self.last
    }

    /// Returns the number of spans, threads and kinds that were left out.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The parts of requests' time that are known.
    pub const fn known(&self) -> KnownParts {
        self.known
    }
}

/// An event that ends a span.
struct Stop {
    source: u32,
    process: Option<u64>,
    activity: Option<Uuid>,
    /// The previous activity of the thread.
    before: Option<Uuid>,
    key: Option<String>,
    /// True if the key is more specific than the activity, which may be the enclosing one.
    is_by_key: bool,
    now: RelativeTime,
}
