//! Requests and other spans of a page.

mod seen_stacks;

use std::io::{self, Write};
use std::time::Duration;

use clr_events::StackId;
use hashbrown::{DefaultHashBuilder, HashMap};
use indexmap::IndexMap;
use nettrace::{Event, Interest, Metadata, RelativeTime};

use self::seen_stacks::{SeenStack, seen_stacks};
use super::cells::Cells;
use super::{OTHERS, cut};
use crate::page::bins::BinWidth;
use crate::page::data::list;
use crate::page::text::text;
use crate::profile::Profile;
use crate::report::blocked::SleepAndIo;
use crate::report::requests::thread_parts::{KnownThreadParts, MeasuredThreadParts, ThreadTimes};
use crate::report::span_name::row_name;
use clr_activity::{
    KnownParts, MeasuredParts, Span, SpanEnd, SpanId, SpanRole, Spans, TimeParts, WorkInterval, WorkKind,
};

/// The number of distinct rows.
const MAX_ROWS: usize = 500;
/// Requests that are listed, the slowest.
const MAX_SLOWEST: usize = 500;
/// Bits of a duration in microseconds that are kept: percentiles are at most a 64th too high.
const PRECISION: u32 = 6;
/// The number of distinct durations: a cell's key is its row times this, plus the duration's number.
const DURATIONS: u32 = 4096;
/// Parts of a request's time.
const PARTS: u32 = 5;

/// Maximum number of requests with calls that are kept until the requests end.
const MAX_WITH_CALLS: usize = 1 << 14;
/// Calls that are kept of a request.
const MAX_CALLS: usize = 16;

/// The spans of a recording, by start.
#[derive(Debug)]
pub(super) struct Requests {
    spans: Spans,
    thread_times: ThreadTimes<SpanId>,
    /// True if there are samples of threads, which sleep and I/O are derived from.
    has_samples: bool,
    found: Found,
}

#[derive(Debug, Default)]
struct Found {
    rows: IndexMap<(SpanRole, String, String), Row, DefaultHashBuilder>,
    /// Counts and errors, by role: for the time line, in bins as narrow as everything else's.
    roles: Cells,
    /// Counts and errors, by row and duration. Routes have many durations: these bins, and the bins of the
    /// parts, may get wider than the page's.
    durations: Cells,
    /// Nanoseconds, by row and part.
    parts: Cells,
    slowest: Vec<Slow>,
    /// Calls outside of any request.
    slowest_calls: Vec<Slow>,
    /// The calls of requests that have not ended.
    calls: HashMap<SpanId, Vec<Call>>,
}

/// A call of a request.
#[derive(Debug)]
struct Call {
    row: usize,
    start: RelativeTime,
    duration: Duration,
}

/// The spans of one name, except their counts.
#[derive(Debug, Default)]
struct Row {
    /// Spans with an end that another event reports.
    implied: u64,
    /// Spans that had not ended when the recording did.
    cut_by_end: u64,
}

/// A request that took long.
#[derive(Debug)]
struct Slow {
    row: usize,
    start: RelativeTime,
    duration: Duration,
    status: String,
    is_error: bool,
    has_ended: bool,
    parts: Option<MeasuredParts>,
    thread_parts: MeasuredThreadParts,
    sampled: SleepAndIo,
    process: Option<u64>,
    intervals: Vec<WorkInterval>,
    calls: Vec<Call>,
    /// The stacks of its threads meanwhile, the heaviest.
    stacks: Vec<SeenStack>,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            spans: Spans::default().with_intervals(),
            thread_times: ThreadTimes::default(),
            has_samples: false,
            found: Found::default(),
        }
    }
}

impl Requests {
    /// The events of a kind that make a difference.
    pub(super) fn interest(kind: &Metadata) -> Interest {
        Interest::all_if(ThreadTimes::<SpanId>::needs(kind)).max(Spans::interest(kind))
    }

    #[inline]
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let Self { spans, thread_times, found, .. } = self;
        spans.add(event, |span| found.add(&span, thread_times));
        thread_times.add(event, || spans.request_of(event.process_id(), event.thread_id()));
    }

    /// Extends the recording to the time of an event that need not be added.
    pub(super) fn extend_to(&mut self, time: RelativeTime) {
        self.spans.extend_to(time);
    }

    pub(super) fn finish(&mut self) {
        let Self { spans, thread_times, found, .. } = self;
        spans.finish(|span| found.add(&span, thread_times));
    }

    /// Adds the stacks of a profile to the slowest.
    pub(super) fn add_stacks(&mut self, profile: &Profile, is_cpu_known: bool) {
        self.has_samples = profile.measure.unit.is_time() && profile.samples() > 0;
        seen_stacks(profile, is_cpu_known, &mut self.found.slowest);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spans.sources().next().is_none()
    }

    /// The width of the bins of the time line.
    pub(super) const fn width(&self) -> BinWidth {
        self.found.roles.width()
    }

    /// Writes rows, cells and the slowest. Parts of the time that the recording does not have are null.
    /// Durations and parts are in bins of their own, wider ones than the page's.
    pub(super) fn write(
        &self,
        width: BinWidth,
        stack_number: &dyn Fn(StackId) -> u32,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Found { rows, roles, durations, parts, slowest, slowest_calls, .. } = &self.found;
        list(out, "spanRows", rows.iter(), |out, ((role, kind, name), row)| {
            let role = match role {
                SpanRole::Server => "server",
                SpanRole::Outgoing => "outgoing",
                _ => "other",
            };
            write!(out, "[\"{role}\",")?;
            text(out, kind)?;
            out.write_all(b",")?;
            text(out, name)?;
            write!(out, ",{},{}]", row.implied, row.cut_by_end)
        })?;
        roles.write("spanRoles", width, out)?;
        let width = width.max(durations.width()).max(parts.width());
        write!(out, ",\"spanBinNs\":{}", width.nanoseconds())?;
        durations.write("spans", width, out)?;
        parts.write("spanParts", width, out)?;
        let slowest = if slowest.is_empty() { slowest_calls } else { slowest };
        list(out, "slowest", slowest.iter(), |out, slow| {
            let (start, duration) = (slow.start.as_nanos() / 1000, slow.duration.as_micros());
            write!(out, "[{},{start},{duration},", slow.row)?;
            text(out, &slow.status)?;
            write!(out, ",{},{}", u8::from(slow.is_error), u8::from(slow.has_ended))?;
            let parts = slow.parts.map(|parts| parts.known(self.spans.known()));
            for part in parts.map(in_order).unwrap_or_default() {
                out.write_all(b",")?;
                super::nullable(out, part.map(|part| part.as_micros()))?;
            }
            out.write_all(b"]")
        })?;
        let known = self.thread_times.known(self.has_samples);
        list(out, "slowestThreads", slowest.iter(), |out, slow| {
            slow.write_threads(self.spans.known(), known, out)
        })?;
        list(out, "slowestWork", slowest.iter(), |out, slow| slow.write_work(stack_number, out))
    }
}

impl Slow {
    /// Writes what the threads of a request did in their time, in microseconds: on a processor, waits for
    /// locks and their number, sleep, I/O, other waits. Nothing if the recording does not say it.
    fn write_threads(
        &self,
        known: KnownParts,
        of_threads: KnownThreadParts,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let on_thread = self.parts.and_then(|parts| parts.known(known).on_thread);
        let parts = self.thread_parts.known(of_threads, (on_thread, self.duration), self.sampled);
        let Some(parts) = parts else { return out.write_all(b"[]") };
        let micros = |part: Option<Duration>| part.map(|part| part.as_micros());
        out.write_all(b"[")?;
        super::nullable(out, micros(parts.cpu))?;
        out.write_all(b",")?;
        super::nullable(out, micros(parts.lock_wait))?;
        write!(out, ",{}", parts.lock_waits)?;
        for part in [parts.sleep, parts.io, parts.other_wait] {
            out.write_all(b",")?;
            super::nullable(out, micros(part))?;
        }
        out.write_all(b"]")
    }

    /// Writes what happened in a request, in nanoseconds since its start: intervals of threads (0 and the
    /// thread), calls (1) and queues (2); calls with their rows; and stacks with states and weights.
    fn write_work(&self, stack_number: &dyn Fn(StackId) -> u32, out: &mut dyn Write) -> io::Result<()> {
        let since = |time: RelativeTime| time.saturating_duration_since(self.start).as_nanos();
        write!(out, "{{\"x\":0")?;
        list(out, "intervals", self.intervals.iter(), |out, interval| {
            let (kind, thread) = match interval.kind {
                WorkKind::OnThread(thread) => (0, thread.0),
                WorkKind::Call => (1, 0),
                _ => (2, 0),
            };
            write!(out, "{kind},{thread},{},{}", since(interval.start), since(interval.end))
        })?;
        list(out, "calls", self.calls.iter(), |out, call| {
            write!(out, "{},{},{}", call.row, since(call.start), call.duration.as_nanos())
        })?;
        list(out, "stacks", self.stacks.iter(), |out, seen| {
            write!(out, "{},{},{}", stack_number(seen.stack), seen.state, seen.weight)
        })?;
        out.write_all(b"}")
    }
}

fn in_order(parts: TimeParts) -> [Option<Duration>; PARTS as usize] {
    [parts.gc_pause, parts.on_thread, parts.outgoing, parts.queued, parts.waiting]
}

impl Found {
    fn add(&mut self, span: &Span<'_>, thread_times: &mut ThreadTimes<SpanId>) {
        let kind = format!("{}/{}", span.provider, span.task);
        let key = (span.role, cut(&kind), cut(&row_name(span)));
        let has_room = self.rows.len() < MAX_ROWS || self.rows.contains_key(&key);
        let key = if has_room { key } else { (span.role, String::new(), OTHERS.to_owned()) };
        let entry = self.rows.entry(key);
        let row = entry.index();
        let sums = entry.or_default();
        match span.end {
            SpanEnd::Stopped => {
                let row = u32::try_from(row).unwrap_or(u32::MAX);
                let number = duration_number(span.duration);
                let errors = u64::from(span.is_error);
                let role = match span.role {
                    SpanRole::Server => 0,
                    SpanRole::Outgoing => 1,
                    _ => 2,
                };
                self.roles.add(role, span.start, 1, errors);
                self.durations.add(row * DURATIONS + number, span.start, 1, errors);
                for (part, time) in (0..)
                    .zip(span.parts.map(|parts| in_order(parts.known(KnownParts::ALL))).unwrap_or_default())
                {
                    if let Some(time) = time.filter(|time| !time.is_zero()) {
                        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                        self.parts.add(row * PARTS + part, span.start, 1, nanoseconds);
                    }
                }
            }
            SpanEnd::Implied => sums.implied = sums.implied.saturating_add(1),
            _ => sums.cut_by_end = sums.cut_by_end.saturating_add(1),
        }
        if !span.is_request() {
            if span.role == SpanRole::Outgoing {
                self.add_call(row, span);
            }
            return;
        }
        let calls = self.calls.remove(&span.id).unwrap_or_default();
        let thread_parts = thread_times.end(span.id);
        if span.end != SpanEnd::Implied {
            self.add_slow(row, span, calls, thread_parts);
        }
    }

    /// Keeps a call until its request ends.
    fn add_call(&mut self, row: usize, span: &Span<'_>) {
        // Calls of requests that ended before them are never taken.
        if self.calls.len() >= MAX_WITH_CALLS && !self.calls.contains_key(&span.request) {
            self.calls.clear();
        }
        let calls = self.calls.entry(span.request).or_default();
        if calls.len() < MAX_CALLS {
            calls.push(Call { row, start: span.start, duration: span.duration });
        }
    }

    /// Keeps a span if it is among the slowest.
    fn add_slow(&mut self, row: usize, span: &Span<'_>, calls: Vec<Call>, thread_parts: MeasuredThreadParts) {
        let list = if span.role == SpanRole::Outgoing { &mut self.slowest_calls } else { &mut self.slowest };
        let place = list.partition_point(|slow| slow.duration >= span.duration);
        if place < MAX_SLOWEST {
            list.truncate(MAX_SLOWEST - 1);
            list.insert(
                place,
                Slow {
                    row,
                    start: span.start,
                    duration: span.duration,
                    status: cut(span.status.unwrap_or_default()),
                    is_error: span.is_error,
                    has_ended: span.end == SpanEnd::Stopped,
                    parts: span.parts,
                    thread_parts,
                    sampled: SleepAndIo::default(),
                    process: span.process,
                    intervals: span.intervals.to_vec(),
                    calls,
                    stacks: Vec::new(),
                },
            );
        }
    }
}

/// Returns the number of a duration: the first 128 microseconds have one each, then each power of two has 64.
fn duration_number(duration: Duration) -> u32 {
    let micros = u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
    let shift = (u64::BITS - micros.leading_zeros()).saturating_sub(PRECISION + 1);
    // Rounded up, so that the shown duration is not less than the real one.
    let digits = micros.div_ceil(1 << shift);
    (shift << PRECISION).saturating_add(u32::try_from(digits).unwrap_or(0)).min(DURATIONS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::Value;

    use clr_activity::SpanId;

    use crate::page::reports::PageReports;

    /// A request that has ended, with its number.
    fn request(number: u64, role: SpanRole, name: &str) -> Span<'_> {
        let mut request =
            Span::new(SpanId::new(number), role, "Microsoft.AspNetCore.Hosting", "Request", name);
        request.duration = Duration::from_millis(1);
        request
    }

    fn numbers(data: &Value, name: &str) -> Vec<u64> {
        data[name].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
    }

    #[test]
    fn many_kinds_of_requests_do_not_widen_the_bins_of_the_page() {
        const SPANS: u64 = 300_000;
        let mut requests = Requests::default();
        let names: Vec<_> = (0..50).map(|number| format!("GET /route/{number}")).collect();
        let part = Some(Duration::from_micros(10));
        for number in 0..SPANS {
            // Each of 10,000 pairs of a route and a duration, in another order each time.
            let pair = number * 7919 % 10_000;
            let start = i64::try_from(number * 600_000_000_000 / SPANS).unwrap();
            let name = &names[usize::try_from(pair % 50).unwrap()];
            let mut parts = TimeParts::default();
            parts.waiting = part;
            let mut span = request(number, SpanRole::Server, name);
            span.start = RelativeTime::from_nanos(start);
            span.duration = Duration::from_micros(longest(128 + u32::try_from(pair / 50).unwrap()));
            span.is_error = number % 100 == 0;
            span.parts = Some(parts.into());
            requests.found.add(&span, &mut requests.thread_times);
        }
        let end = RelativeTime::from_nanos(600_000_000_000);
        let reports = PageReports { last: end, requests, ..PageReports::default() };
        assert!(reports.width().bin(end) >= 500, "{:?}", reports.width());

        let mut out = b"{\"x\":0".to_vec();
        reports.write(&[], reports.width(), &|_| 0, &mut out).unwrap();
        out.push(b'}');
        let data: Value = serde_json::from_slice(&out).unwrap();
        let own = data["spanBinNs"].as_u64().unwrap();
        let width = reports.width().nanoseconds();
        assert!(own > width && own.is_multiple_of(width), "{own}");
        for (cells, sum) in
            [("spans", SPANS / 100), ("spanRoles", SPANS / 100), ("spanParts", SPANS * 10_000)]
        {
            let cells = numbers(&data, cells);
            let sums = cells.chunks(4).fold((0, 0), |sums, cell| (sums.0 + cell[2], sums.1 + cell[3]));
            assert_eq!(sums, (SPANS, sum));
        }
    }

    #[test]
    fn the_slowest_requests_match_the_report() {
        let mut requests = Requests::default();
        for (number, role) in [(1, SpanRole::Outgoing), (2, SpanRole::Other), (3, SpanRole::Server)] {
            requests.found.add(&request(number, role, ""), &mut requests.thread_times);
        }
        let roles = |slow: &[Slow]| slow.iter().map(|slow| slow.row).collect::<Vec<_>>();
        assert_eq!(roles(&requests.found.slowest), [1, 2], "of servers, and of a program's own kinds");
        assert_eq!(roles(&requests.found.slowest_calls), [0]);
    }

    /// As the page reads it.
    fn longest(number: u32) -> u64 {
        if number < 128 {
            return u64::from(number);
        }
        let shift = (number >> PRECISION) - 1;
        u64::from(number - (shift << PRECISION)) << shift
    }

    #[test]
    fn durations_are_at_most_a_64th_too_high() {
        for micros in (0..3000).chain([4095, 4096, 4097, 1_000_000, 3_600_000_000, 86_400_000_000 * 300]) {
            let told = longest(duration_number(Duration::from_micros(micros)));
            assert!(told >= micros && told <= micros + micros / 64, "{told} for {micros}");
        }
        assert!(duration_number(Duration::MAX) < DURATIONS);
    }
}
