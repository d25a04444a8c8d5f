//! Spans that have started and not ended.

use clr_events::ActivityPath;
use hashbrown::HashMap;
use nettrace::{RelativeTime, ThreadId};
use uuid::Uuid;

use crate::fields::SpanOutcome;
use crate::span::{SpanId, SpanRole};
use crate::time_parts::{MeasuredParts, PauseClock, QueueMark, WorkState};
use crate::work_interval::WorkInterval;

/// A span that is starting.
#[derive(Debug)]
pub(crate) struct NewSpan {
    pub(crate) source: u32,
    pub(crate) role: SpanRole,
    pub(crate) process: Option<u64>,
    pub(crate) activity: Option<Uuid>,
    /// The previous activity of its thread.
    pub(crate) related: Option<Uuid>,
    pub(crate) key: Option<String>,
    pub(crate) name: String,
    pub(crate) now: RelativeTime,
}

/// A span that has started.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) source: u32,
    pub(crate) role: SpanRole,
    pub(crate) process: Option<u64>,
    pub(crate) activity: Option<Uuid>,
    key: Option<String>,
    pub(crate) name: String,
    pub(crate) route: Option<String>,
    pub(crate) start: RelativeTime,
    pub(crate) parent: Option<SpanId>,
    pub(crate) request: SpanId,
    /// True if it is a server's request within a known one.
    pub(crate) is_absorbed: bool,
    /// True if it counts as a call of its request, until it ends.
    is_call: bool,
    /// The end of its enclosing span: the runtime may have ended both.
    orphaned: Option<RelativeTime>,
    pub(crate) outcome: SpanOutcome,
    work: Option<WorkState>,
}

/// All spans that have started and not ended.
#[derive(Debug, Default)]
pub(crate) struct LiveSpans {
    spans: HashMap<SpanId, Live>,
    by_activity: HashMap<(Option<u64>, Uuid), SpanId>,
    by_key: HashMap<(Option<u64>, u32, String), SpanId>,
    clocks: HashMap<Option<u64>, PauseClock>,
    orphans: usize,
    /// True if the intervals of requests are collected.
    pub(crate) keeps_intervals: bool,
    next: u64,
    /// Changes with the spans: facts about an activity hold while it stays the same.
    generation: u64,
}

/// Maximum number of spans to keep.
const MAX_SPANS: usize = 1 << 16;
/// Maximum number of processes with followed pauses.
const MAX_PROCESSES: usize = 1 << 12;
/// Maximum number of enclosing spans to follow.
const MAX_DEPTH: usize = 32;

impl LiveSpans {
    /// The pauses of a process; `None` if there are too many processes.
    pub(crate) fn clock(&mut self, process: Option<u64>) -> Option<&mut PauseClock> {
        if self.clocks.len() >= MAX_PROCESSES && !self.clocks.contains_key(&process) {
            return None;
        }
        Some(self.clocks.entry(process).or_default())
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn get(&self, id: SpanId) -> Option<&Live> {
        self.spans.get(&id)
    }

    pub(crate) fn contains(&self, id: SpanId) -> bool {
        self.spans.contains_key(&id)
    }

    /// An activity and its enclosing ones, innermost first, as long as they are spans.
    fn chain(&self, process: Option<u64>, activity: Uuid) -> impl Iterator<Item = SpanId> {
        let path = ActivityPath::new(activity, process);
        let around = path.into_iter().flat_map(|path| path.ancestors());
        std::iter::once(activity)
            .chain(around)
            .filter_map(move |id| self.by_activity.get(&(process, id)).copied())
    }

    /// The innermost span that is, or encloses, an activity.
    pub(crate) fn innermost(&self, process: Option<u64>, activity: Uuid) -> Option<SpanId> {
        self.chain(process, activity).next()
    }

    /// The innermost such span of the given sources.
    pub(crate) fn innermost_of(
        &self,
        process: Option<u64>,
        activity: Uuid,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Option<SpanId> {
        let is_wanted = |id: &SpanId| self.spans.get(id).is_some_and(|span| is_wanted(span.source));
        self.chain(process, activity).find(is_wanted)
    }

    /// The request that an activity is part of.
    pub(crate) fn request(&self, process: Option<u64>, activity: Uuid) -> Option<SpanId> {
        let request = self.spans.get(&self.innermost(process, activity)?)?.request;
        self.contains(request).then_some(request)
    }

    /// The server's request that encloses a span, or the span itself.
    pub(crate) fn server_around(&self, id: SpanId) -> Option<SpanId> {
        let request = self.spans.get(&id)?.request;
        self.spans.get(&request).is_some_and(|span| span.role == SpanRole::Server).then_some(request)
    }

    pub(crate) fn by_activity(&self, process: Option<u64>, activity: Uuid, source: u32) -> Option<SpanId> {
        let id = *self.by_activity.get(&(process, activity))?;
        self.spans.get(&id).is_some_and(|span| span.source == source).then_some(id)
    }

    pub(crate) fn by_key(&self, process: Option<u64>, source: u32, key: &str) -> Option<SpanId> {
        self.by_key.get(&(process, source, key.to_owned())).copied()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.spans.len() >= MAX_SPANS
    }

    /// Lists the spans that a new one ends: the span with the same activity or key, and an enclosing span of
    /// the same name, unless the new span lies within it. The runtime writes no event for this.
    pub(crate) fn end_implied(&mut self, new: &NewSpan, ended: &mut Vec<SpanId>) {
        let taken = new.activity.and_then(|id| self.by_activity.get(&(new.process, id)));
        ended.extend(taken.copied());
        if let Some(key) = &new.key {
            let same = self.by_key(new.process, new.source, key).filter(|id| !ended.contains(id));
            ended.extend(same);
        }
        let (Some(activity), Some(related)) = (new.activity, new.related) else { return };
        let is_same = |id: &SpanId| self.spans.get(id).is_some_and(|span| span.source == new.source);
        let before = || self.chain(new.process, related).take(MAX_DEPTH);
        if !before().any(|id| is_same(&id)) {
            return;
        }
        let around: Vec<_> = self.chain(new.process, activity).take(MAX_DEPTH).collect();
        let before: Vec<_> = before().collect();
        let Some(place) = before.iter().position(|id| is_same(id) && !around.contains(id)) else { return };
        for (index, id) in before.iter().enumerate().take(place.saturating_add(1)) {
            if index == place && !ended.contains(id) {
                ended.push(*id);
            } else if !around.contains(id) {
                self.orphan(*id, new.now);
            }
        }
    }

    /// Adds a span; returns whether there was room for it.
    pub(crate) fn start(&mut self, new: NewSpan) -> Option<SpanId> {
        if self.is_full() {
            return None;
        }
        let id = SpanId(self.next);
        self.next = self.next.saturating_add(1);
        self.generation = self.generation.wrapping_add(1);
        let NewSpan { source, role, process, activity, related, key, name, now } = new;
        let around = activity.and_then(|activity| self.innermost(process, activity));
        let parent = around.or_else(|| related.and_then(|related| self.innermost(process, related)));
        let (request, is_absorbed) = self.request_for(id, role, parent);
        let clock = self.clocks.get(&process).copied().unwrap_or_default();
        let is_request = request == id;
        let work = (is_request && activity.is_some() && role != SpanRole::Outgoing)
            .then(|| WorkState::new(now, &clock))
            .map(|work| if self.keeps_intervals { work.with_intervals() } else { work });
        let is_call = role == SpanRole::Outgoing && !is_request;
        if is_call && let Some(work) = self.work(request) {
            work.call(true, now, &clock);
        }
        if let Some(activity) = activity {
            self.by_activity.insert((process, activity), id);
        }
        if let Some(key) = &key {
            self.by_key.insert((process, source, key.clone()), id);
        }
        let live = Live {
            source,
            role,
            process,
            activity,
            key,
            name,
            route: None,
            start: now,
            parent,
            request,
            is_absorbed,
            is_call,
            orphaned: None,
            outcome: SpanOutcome::default(),
            work,
        };
        self.spans.insert(id, live);
        Some(id)
    }

    /// The request of a new span, and whether the span is only another name for that request.
    fn request_for(&self, id: SpanId, role: SpanRole, parent: Option<SpanId>) -> (SpanId, bool) {
        let Some(around) = parent.and_then(|parent| self.spans.get(&parent)) else { return (id, false) };
        let Some(request) = self.spans.get(&around.request) else { return (id, false) };
        if role != SpanRole::Server {
            return (around.request, false);
        }
        // If a server calls itself, there is a call in between.
        let mut at = parent;
        for _ in 0..MAX_DEPTH {
            let Some(span) = at.and_then(|id| self.spans.get(&id)) else { break };
            if span.role == SpanRole::Outgoing {
                return (id, false);
            }
            at = span.parent;
        }
        if request.role == SpanRole::Server { (around.request, true) } else { (id, false) }
    }

    fn work(&mut self, request: SpanId) -> Option<&mut WorkState> {
        self.spans.get_mut(&request)?.work.as_mut()
    }

    /// Changes the state of a request, with the clock of its process.
    fn change<T>(
        &mut self,
        request: SpanId,
        change: impl FnOnce(&mut WorkState, &PauseClock) -> T,
    ) -> Option<T> {
        let span = self.spans.get_mut(&request)?;
        let clock = self.clocks.get(&span.process).copied().unwrap_or_default();
        span.work.as_mut().map(|work| change(work, &clock))
    }

    /// Records that a thread begins or ends work for a request.
    pub(crate) fn thread(&mut self, request: SpanId, thread: ThreadId, is_start: bool, now: RelativeTime) {
        self.change(request, |work, clock| work.thread(thread, is_start, now, clock));
    }

    pub(crate) fn enqueue(&mut self, request: SpanId, now: RelativeTime) -> QueueMark {
        self.change(request, |work, clock| work.enqueue(now, clock)).unwrap_or_default()
    }

    pub(crate) fn dequeue(&mut self, request: SpanId, mark: QueueMark, now: RelativeTime) {
        self.change(request, |work, clock| work.dequeue(mark, now, clock));
    }

    /// Adds an event's outcome to a span, and to the request that the span is another name for.
    pub(crate) fn add_outcome(&mut self, id: SpanId, outcome: SpanOutcome) {
        let Some(span) = self.spans.get(&id) else { return };
        let id = if span.is_absorbed { span.request } else { id };
        let Some(span) = self.spans.get_mut(&id) else { return };
        span.outcome.is_error |= outcome.is_error;
        span.outcome.status = outcome.status.or(span.outcome.status.take());
        span.outcome.error = span.outcome.error.take().or(outcome.error);
    }

    /// Sets the route of a span, or of the request that it is another name for.
    pub(crate) fn set_route(&mut self, id: SpanId, route: &str) {
        let Some(span) = self.spans.get(&id) else { return };
        let id = if span.is_absorbed { span.request } else { id };
        if let Some(span) = self.spans.get_mut(&id)
            && !route.is_empty()
        {
            // A route without a method is appended to the method.
            let method = span.name.split(' ').next().filter(|_| route.starts_with('/'));
            span.route = Some(method.map_or_else(|| route.to_owned(), |method| format!("{method} {route}")));
        }
    }

    /// Marks the spans between an activity and its enclosing span that is stopped: the runtime ends them with
    /// it, unless they continue to run in parallel. Then their own Stop follows.
    pub(crate) fn orphan_within(
        &mut self,
        stopped: SpanId,
        process: Option<u64>,
        activity: Uuid,
        now: RelativeTime,
    ) {
        let chain: Vec<_> = self.chain(process, activity).take(MAX_DEPTH).collect();
        let Some(place) = chain.iter().position(|id| *id == stopped) else { return };
        for id in chain.iter().take(place) {
            self.orphan(*id, now);
        }
    }

    fn orphan(&mut self, id: SpanId, now: RelativeTime) {
        let Some(span) = self.spans.get_mut(&id) else { return };
        if span.orphaned.is_some() {
            return;
        }
        span.orphaned = Some(now);
        self.orphans = self.orphans.saturating_add(1);
        let (request, is_call) = (span.request, std::mem::take(&mut span.is_call));
        if is_call {
            self.change(request, |work, clock| work.call(false, now, clock));
        }
    }

    /// The orphans with the time of their end, if there are enough of them to make room.
    pub(crate) fn take_orphans(&mut self) -> Vec<(SpanId, RelativeTime)> {
        if self.orphans < MAX_SPANS / 4 {
            return Vec::new();
        }
        let orphans = self.spans.iter().filter_map(|(id, span)| Some((*id, span.orphaned?)));
        let mut orphans: Vec<_> = orphans.collect();
        orphans.sort_unstable();
        orphans
    }

    /// All spans in the order of their start, with the time at which they were orphaned.
    pub(crate) fn all(&self) -> Vec<(SpanId, Option<RelativeTime>)> {
        let mut all: Vec<_> = self.spans.iter().map(|(id, span)| (*id, span.orphaned)).collect();
        all.sort_unstable();
        all
    }

    /// Ends a span, and returns it with its time by activity, as sums and as intervals.
    pub(crate) fn end(
        &mut self,
        id: SpanId,
        now: RelativeTime,
    ) -> Option<(Live, Option<MeasuredParts>, Vec<WorkInterval>)> {
        let mut span = self.spans.remove(&id)?;
        self.generation = self.generation.wrapping_add(1);
        if let Some(activity) = span.activity {
            let key = (span.process, activity);
            if self.by_activity.get(&key) == Some(&id) {
                self.by_activity.remove(&key);
            }
        }
        if let Some(key) = span.key.take() {
            let key = (span.process, span.source, key);
            if self.by_key.get(&key) == Some(&id) {
                self.by_key.remove(&key);
            }
        }
        if span.orphaned.is_some() {
            self.orphans = self.orphans.saturating_sub(1);
        }
        if span.is_call {
            self.change(span.request, |work, clock| work.call(false, now, clock));
        }
        let clock = self.clocks.get(&span.process).copied().unwrap_or_default();
        let mut work = span.work.take();
        let intervals = work.as_mut().map(|work| work.take_intervals(now)).unwrap_or_default();
        let parts = work.map(|work| work.finish(now, &clock));
        Some((span, parts, intervals))
    }
}
