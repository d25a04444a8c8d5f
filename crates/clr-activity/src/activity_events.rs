//! The events of chosen requests and activities.

use clr_events::{ActivityPath, sets};
use hashbrown::HashMap;
use nettrace::{Event, RelativeTime, ThreadId};
use uuid::Uuid;

use crate::span::{Span, SpanId};
use crate::spans::Spans;
use crate::step::is_of_work;

/// An activity: its id, or its path, `/#4711/1/2/`, as in the reports.
///
/// ```
/// use clr_activity::ActivityPattern;
/// use nettrace::Uuid;
///
/// let pattern = ActivityPattern::parse("//1/").ok_or("not a path")?;
/// // An activity within it: its path is //1/1/.
/// let inner = Uuid::parse_str("00000011-0000-0000-0000-0000be999d59")?;
/// assert!(pattern.matches(inner, Some(4711)));
/// assert!(!ActivityPattern::parse("//2/").ok_or("not a path")?.matches(inner, Some(4711)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityPattern(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Id(Uuid),
    Path { process: Option<u32>, numbers: Vec<u64> },
}

impl ActivityPattern {
    /// Parses an id or a path; `None` if the text is neither.
    ///
    /// ```
    /// use clr_activity::ActivityPattern;
    ///
    /// // As reports print a path, and an id.
    /// assert!(ActivityPattern::parse("/#4711/1/2/").is_some());
    /// assert!(ActivityPattern::parse("00000011-0000-0000-0000-00009dc99d59").is_some());
    /// assert!(ActivityPattern::parse("1/2").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(id) = Uuid::parse_str(text) {
            return Some(Self(Kind::Id(id)));
        }
        let text = text.strip_prefix('/')?;
        let (process, text) = match text.strip_prefix('#') {
            Some(rest) => {
                let (process, numbers) = rest.split_once(['/', '$'])?;
                (Some(process.parse().ok()?), numbers)
            }
            None => (None, text.strip_prefix('/')?),
        };
        let numbers: Vec<u64> = text
            .trim_end_matches('/')
            .split(['/', '$'])
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        Some(Self(Kind::Path { process, numbers }))
    }

    /// Returns true if an activity of a process, or one of its enclosing activities, matches.
    pub fn matches(&self, activity: Uuid, process: Option<u64>) -> bool {
        let path = || ActivityPath::new(activity, process);
        match &self.0 {
            Kind::Id(id) => {
                *id == activity || path().is_some_and(|path| path.ancestors().any(|it| it == *id))
            }
            Kind::Path { process, numbers } => path().is_some_and(|path| {
                let mut segments = path.segments().map(|segment| segment.number);
                path.process_id() == *process && numbers.iter().all(|number| segments.next() == Some(*number))
            }),
        }
    }
}

type Range = (RelativeTime, RelativeTime);
type ThreadKey = (Option<u64>, ThreadId);
type RequestFilter = Box<dyn Fn(&Span<'_>) -> bool + Send>;

/// Finds the events of chosen requests and activities from all events in time order. A second reading then
/// tests single events against the result, in any order.
///
/// A request has the events of its activity and of nested activities, and everything that happened on a
/// thread while the thread worked for it, as [`Spans`] follow it through the events of tasks. It also has the
/// collector's pauses during it, which stop all requests, and the events by which its threads begin and end
/// other work.
///
/// # Memory
/// Bounded: that of [`Spans`], and 4,194,304 intervals of threads and activities. Further ones are left out
/// and counted.
///
/// ```no_run
/// use clr_activity::ActivityFinder;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?.in_time_order();
/// // The events of the slow requests.
/// let mut finder = ActivityFinder::default().with_requests(|span| span.duration.as_secs() >= 1);
/// events.for_each(|event| finder.add(&event))?;
/// let found = finder.finish();
/// let mut again = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// while let Some(event) = again.next()? {
///     if found.contains(&event) {
///         println!("{} {}", event.provider(), event.id());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct ActivityFinder {
    activities: Vec<ActivityPattern>,
    requests: Option<RequestFilter>,
    spans: Spans,
    ended: Vec<Ended>,
    threads: HashMap<ThreadKey, Work>,
    /// The intervals of requests that have not ended.
    pending: HashMap<SpanId, Parts>,
    /// The ends of chosen requests.
    chosen: HashMap<SpanId, RelativeTime>,
    found: Parts,
    /// Activities that were already tested.
    known: HashMap<(Option<u64>, Uuid), bool>,
    stretches: usize,
    left_out: u64,
}

impl std::fmt::Debug for ActivityFinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActivityFinder").field("activities", &self.activities).finish_non_exhaustive()
    }
}

/// The work of a thread, since a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    request: Option<SpanId>,
    is_chosen: bool,
    since: RelativeTime,
}

/// A span that has ended.
#[derive(Debug)]
struct Ended {
    id: SpanId,
    request: SpanId,
    process: Option<u64>,
    activity: Option<Uuid>,
    range: Range,
    is_named: bool,
}

/// Intervals.
#[derive(Debug, Default)]
struct Parts {
    threads: Vec<(ThreadKey, Range)>,
    activities: Vec<((Option<u64>, Uuid), Range)>,
    /// Intervals of requests, by process.
    times: Vec<(Option<u64>, Range)>,
}

/// Maximum number of intervals to keep.
const MAX_INTERVALS: usize = 1 << 22;
/// Maximum number of activities with a known result.
const MAX_RESULTS: usize = 1 << 16;

impl ActivityFinder {
    /// Creates a finder for these activities.
    pub fn new(activities: Vec<ActivityPattern>) -> Self {
        Self { activities, ..Self::default() }
    }

    /// Adds the requests that `is_chosen` accepts.
    #[must_use]
    pub fn with_requests(self, is_chosen: impl Fn(&Span<'_>) -> bool + Send + 'static) -> Self {
        Self { requests: Some(Box::new(is_chosen)), ..self }
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        let Self { spans, ended, requests, .. } = self;
        spans.add(event, |span| ended.push(Ended::new(&span, requests.as_ref())));
        self.take_ended();
        let key = (event.process_id(), event.thread_id());
        let now = event.relative_time();
        let request = if self.requests.is_none() { None } else { self.spans.request_of(key.0, key.1) };
        let activity = if self.activities.is_empty() { None } else { self.spans.activity_of(key.0, key.1) };
        let is_chosen = activity.is_some_and(|activity| self.is_chosen(activity, key.0));
        let work = Work { request, is_chosen, since: now };
        match self.threads.get_mut(&key) {
            Some(before) if (before.request, before.is_chosen) == (request, is_chosen) => {}
            Some(before) => {
                let before = std::mem::replace(before, work);
                self.end_work(key, before, now);
            }
            None if request.is_some() || is_chosen => _ = self.threads.insert(key, work),
            None => {}
        }
    }

    fn is_chosen(&mut self, activity: Uuid, process: Option<u64>) -> bool {
        if let Some(known) = self.known.get(&(process, activity)) {
            return *known;
        }
        let is_chosen = self.activities.iter().any(|pattern| pattern.matches(activity, process));
        if self.known.len() >= MAX_RESULTS {
            self.known.clear();
        }
        self.known.insert((process, activity), is_chosen);
        is_chosen
    }

    /// Returns true if there is room for one more interval.
    fn has_room(&mut self) -> bool {
        let has_room = self.stretches < MAX_INTERVALS;
        if has_room {
            self.stretches = self.stretches.saturating_add(1);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
        has_room
    }

    fn end_work(&mut self, key: ThreadKey, work: Work, now: RelativeTime) {
        if work.is_chosen && self.has_room() {
            self.found.threads.push((key, (work.since, now)));
        }
        let Some(request) = work.request else { return };
        let end = self.chosen.get(&request).copied();
        // A request that has ended without being chosen is not needed.
        if (end.is_none() && !self.spans.is_live(request)) || !self.has_room() {
            return;
        }
        match end {
            // The thread did not write events since the request ended.
            Some(end) => self.found.threads.push((key, (work.since, now.min(end)))),
            None => self.pending.entry(request).or_default().threads.push((key, (work.since, now))),
        }
    }

    fn take_ended(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let ended = std::mem::take(&mut self.ended);
        // Spans may end together with the request that they are part of, before or after it.
        for request in ended.iter().filter(|span| span.is_named) {
            self.chosen.insert(request.id, request.range.1);
        }
        for span in ended {
            let is_chosen = span.activity.is_some_and(|id| self.is_chosen(id, span.process));
            if is_chosen && self.has_room() {
                self.found.times.push((span.process, span.range));
            }
            if self.requests.is_none() {
                continue;
            }
            let is_request = span.id == span.request;
            if span.is_named && self.has_room() {
                self.found.times.push((span.process, span.range));
            }
            if let Some(activity) = span.activity {
                let is_chosen = self.chosen.contains_key(&span.request);
                let is_wanted = is_chosen || self.spans.is_live(span.request);
                if is_wanted && self.has_room() {
                    let parts = if is_chosen {
                        &mut self.found
                    } else {
                        self.pending.entry(span.request).or_default()
                    };
                    parts.activities.push(((span.process, activity), span.range));
                }
            }
            if is_request && let Some(parts) = self.pending.remove(&span.id) {
                if span.is_named {
                    self.found.threads.extend(parts.threads);
                    self.found.activities.extend(parts.activities);
                } else {
                    let count = parts.threads.len().saturating_add(parts.activities.len());
                    self.stretches = self.stretches.saturating_sub(count);
                }
            }
        }
    }

    /// Ends the search. Requests that had not ended by the end of the recording end with it.
    pub fn finish(mut self) -> ActivityEvents {
        let last = self.spans.last();
        // Before the spans are finished: they still know their requests.
        let threads: Vec<_> = std::mem::take(&mut self.threads).into_iter().collect();
        for (key, work) in threads {
            self.end_work(key, work, last);
        }
        let Self { spans, ended, requests, .. } = &mut self;
        spans.finish(|span| ended.push(Ended::new(&span, requests.as_ref())));
        self.take_ended();
        let left_out = self.left_out.saturating_add(self.spans.left_out());
        let requests = self.chosen.len();
        let Self { activities, found, .. } = self;
        let Parts { threads, activities: ids, times } = found;
        ActivityEvents {
            patterns: activities,
            threads: by_key(threads),
            activities: by_key(ids),
            times: by_key(times),
            requests,
            left_out,
        }
    }
}

impl Ended {
    fn new(span: &Span<'_>, requests: Option<&RequestFilter>) -> Self {
        let is_named = span.is_request() && requests.is_some_and(|is_chosen| is_chosen(span));
        let end = RelativeTime::after_start(span.start.since_start().saturating_add(span.duration));
        Self {
            id: span.id,
            request: span.request,
            process: span.process,
            activity: span.activity,
            range: (span.start, end),
            is_named,
        }
    }
}

/// The intervals of each key, in order, with adjacent ones merged.
fn by_key<K: Eq + std::hash::Hash>(parts: Vec<(K, Range)>) -> HashMap<K, Vec<Range>> {
    let mut all: HashMap<K, Vec<Range>> = HashMap::new();
    for (key, range) in parts {
        all.entry(key).or_default().push(range);
    }
    for ranges in all.values_mut() {
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let touches = next.0 <= before.1;
            if touches {
                before.1 = before.1.max(next.1);
            }
            touches
        });
        ranges.shrink_to_fit();
    }
    all
}

/// The events of chosen requests and activities.
#[derive(Debug, Default)]
pub struct ActivityEvents {
    patterns: Vec<ActivityPattern>,
    threads: HashMap<ThreadKey, Vec<Range>>,
    activities: HashMap<(Option<u64>, Uuid), Vec<Range>>,
    times: HashMap<Option<u64>, Vec<Range>>,
    requests: usize,
    left_out: u64,
}

impl ActivityEvents {
    /// Returns true if an event belongs to one of the activities. This includes the events of the tick at
    /// which a thread began or ended work for an activity.
    pub fn contains(&self, event: &Event<'_>) -> bool {
        let time = event.relative_time();
        let process = event.process_id();
        let is_in = |ranges: Option<&Vec<Range>>| {
            let Some(ranges) = ranges else { return false };
            let next = ranges.partition_point(|range| range.1 < time);
            ranges.get(next).is_some_and(|range| range.0 <= time)
        };
        let thread = self.threads.get(&(process, event.thread_id()));
        if is_in(thread) {
            return true;
        }
        let metadata = event.metadata();
        if is_in(self.times.get(&process))
            && (sets::PAUSES.contains(metadata) || thread.is_some() && is_of_work(metadata))
        {
            return true;
        }
        let Some(activity) = event.activity() else { return false };
        if self.patterns.iter().any(|pattern| pattern.matches(activity, process)) {
            return true;
        }
        if self.activities.is_empty() {
            return false;
        }
        let path = ActivityPath::new(activity, process);
        let around = path.into_iter().flat_map(|path| path.ancestors());
        std::iter::once(activity).chain(around).any(|id| is_in(self.activities.get(&(process, id))))
    }

    /// The number of chosen requests.
    pub const fn requests(&self) -> usize {
        self.requests
    }

    /// The number of spans, threads and intervals that were left out because of the limits.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, id: &str) -> bool {
        let pattern = ActivityPattern::parse(pattern).unwrap();
        pattern.matches(Uuid::parse_str(id).unwrap(), Some(6006))
    }

    #[test]
    fn activities_match_by_id_by_path_and_by_enclosing_path() {
        // `/#6006/1/6/` and `/#6006/1/6/1/`, as .NET 9.0.1 wrote them.
        let (request, query) =
            ("00000016-0000-0000-0000-0000b58e9d59", "00001016-0000-0000-0000-0000a58e9d59");
        assert_eq!(
            ActivityPath::new(Uuid::parse_str(request).unwrap(), Some(6006)).unwrap().to_string(),
            "/#6006/1/6/"
        );
        for pattern in ["/#6006/1/6/", "/#6006/1/6", "/#6006/1/", request] {
            assert!(matches(pattern, request), "{pattern}");
        }
        for pattern in ["/#6007/1/6/", "//1/6/", "/#6006/1/3/", "/#6006/1/6/2/", query] {
            assert!(!matches(pattern, request), "{pattern}");
        }
        let other = "4711abcd-0000-0000-0000-000000000000";
        assert!(matches(other, other) && !matches("/#6006/1/6/", other));
        for text in ["", "4711", "/", "/#6006", "/#x/1/", "//a/", "1/2/"] {
            assert_eq!(ActivityPattern::parse(text), None, "{text}");
        }
    }
}
