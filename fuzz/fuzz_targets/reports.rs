//! Any bytes as a recording: its counters, and all reports, which are the same whether each decodes the
//! events or they are decoded once for all, and whether each sees all events or the kinds that it needs, and
//! the methods and call trees of a profile.

#![no_main]

use clr_events::ClrEvent;
use libfuzzer_sys::fuzz_target;
use nettrace::{Event, Reader, SliceReader};
use nettrace_export::report::{
    self, Allocations, CallNode, Collections, Contention, EventCounts, Exceptions, Jit, Requests,
    RequestsOptions, Startup, ThreadPool,
};
use nettrace_export::{Metric, Options, ProfileBuilder};

fuzz_target!(|input: &[u8]| {
    let Some((&[by_thread, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    let Some(alone) = dipc_fuzz::bounded(bytes.len(), || reports(bytes, Reports::add)) else { return };
    let decoded_once = dipc_fuzz::bounded(bytes.len(), || reports(bytes, Reports::add_decoded));
    assert_eq!(Some(&alone), decoded_once.as_ref());
    let of_kinds = dipc_fuzz::bounded(bytes.len(), || reports_of_kinds(bytes));
    assert_eq!(Some(alone), of_kinds);
    dipc_fuzz::bounded(bytes.len(), || check_counts(bytes));
    dipc_fuzz::bounded(bytes.len(), || check_requests(bytes));
    dipc_fuzz::bounded(bytes.len(), || check_stacks(bytes, by_thread & 1 != 0));
});

/// A report of each kind that is made from the runtime's events.
#[derive(Default)]
struct Reports {
    allocations: Allocations,
    collections: Collections,
    contention: Contention,
    exceptions: Exceptions,
    jit: Jit,
    startup: Startup,
    thread_pool: ThreadPool,
}

impl Reports {
    fn add(&mut self, event: &Event<'_>) {
        self.allocations.add(event);
        self.collections.add(event);
        self.contention.add(event);
        self.exceptions.add(event);
        self.jit.add(event);
        self.startup.add(event);
        self.thread_pool.add(event);
    }

    fn add_decoded(&mut self, event: &Event<'_>) {
        let Ok(Some(view)) = ClrEvent::of(event) else {
            // Of events without a view, these look at the time and at the command line.
            self.collections.add(event);
            self.startup.add(event);
            return;
        };
        self.allocations.add_decoded(event, &view);
        self.collections.add_decoded(event, &view);
        self.contention.add_decoded(event, &view);
        self.exceptions.add_decoded(event, &view);
        self.jit.add_decoded(event, &view);
        self.startup.add_decoded(event, &view);
        self.thread_pool.add_decoded(event, &view);
    }

    /// Returns all reports as text.
    fn finish(self) -> [String; 7] {
        [
            format!("{:?}", self.allocations.finish()),
            format!("{:?}", self.collections.finish()),
            format!("{:?}", self.contention.finish()),
            format!("{:?}", self.exceptions.finish()),
            format!("{:?}", self.jit.finish()),
            format!("{:?}", self.startup.finish()),
            format!("{:?}", self.thread_pool.finish()),
        ]
    }
}

/// Returns the reports of a recording; `None` if it cannot be read.
fn reports(bytes: &[u8], add: impl Fn(&mut Reports, &Event<'_>)) -> Option<[String; 7]> {
    let mut reports = Reports::default();
    report::read(Reader::new(bytes).ok()?, |event| add(&mut reports, event)).ok()?;
    Some(reports.finish())
}

/// Returns the reports of a recording, each of the kinds of events that it needs; `None` if it cannot be
/// read.
fn reports_of_kinds(bytes: &[u8]) -> Option<[String; 7]> {
    let mut reports = Reports::default();
    macro_rules! read {
        ($report:ident, $field:ident) => {{
            let each = |event: &Event<'_>| reports.$field.add(event);
            report::read_kinds(Reader::new(bytes).ok()?, $report::needs, each).ok()?.last_time()
        }};
    }
    read!(Allocations, allocations);
    if let Some(last) = read!(Collections, collections) {
        reports.collections.extend_to(last);
    }
    read!(Contention, contention);
    read!(Exceptions, exceptions);
    read!(Jit, jit);
    read!(Startup, startup);
    read!(ThreadPool, thread_pool);
    Some(reports.finish())
}

/// Checks that no event is left out of the counts and of the timelines.
fn check_counts(bytes: &[u8]) {
    let (mut counts, mut count) = (EventCounts::default(), 0);
    let Ok(reader) = Reader::new(bytes) else { return };
    let _ = report::read(reader, |event| {
        counts.add(event);
        count += 1;
    });
    let report = counts.finish();
    assert_eq!((report.count, report.timeline.sums.iter().sum::<u64>()), (count, count));
    for row in &report.events {
        assert!(row.first <= row.last && row.count > 0);
        assert!(row.timeline.as_ref().is_none_or(|timeline| timeline.sums.iter().sum::<u64>() == row.count));
    }
}

/// Checks that no name has more errors than requests, nor slower middles than slowest ones.
fn check_requests(bytes: &[u8]) {
    let (Ok(reader), mut requests) =
        (Reader::new(bytes), Requests::new(RequestsOptions::default().with_slowest(3)))
    else {
        return;
    };
    let _ = report::read(reader, |event| requests.add(event));
    for row in requests.finish().iter().flat_map(|report| &report.rows) {
        let (p50, p90, p99, max) =
            (row.latencies.p50, row.latencies.p90, row.latencies.p99, row.latencies.max);
        assert!(row.errors <= row.count && p50 <= p90 && p90 <= p99 && max <= row.latencies.total, "{row:?}");
    }
}

/// Checks that no method or frame of a tree weighs more than the profile, nor more alone than with what it
/// called.
fn check_stacks(bytes: &[u8], by_thread: bool) {
    let Ok(reader) = SliceReader::new(bytes) else { return };
    let mut builder = ProfileBuilder::new(Options::new(Metric::Wall));
    let mut events = reader.in_time_order();
    let _ = events.for_each(|event| builder.add(&event));
    let profile = builder.finish(events.events().info()).expect("time order").0;
    let total = profile.total();
    for row in report::top(&profile) {
        assert!(row.exclusive <= row.inclusive && row.inclusive <= total, "{row:?} of {total}");
    }
    let tree = report::call_tree(&profile, by_thread);
    let (mut shown, mut weight) = (0, 0u64);
    tree.walk(usize::MAX, 0, |depth, node: CallNode<'_>| {
        assert!(node.exclusive <= node.inclusive && node.inclusive <= total, "{node:?} of {total}");
        shown += 1;
        if depth == 0 {
            weight = weight.saturating_add(node.inclusive);
        }
    });
    assert_eq!(shown, tree.len());
    assert!(weight <= total);
}
