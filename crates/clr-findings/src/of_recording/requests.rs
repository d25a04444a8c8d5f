//! Causes in the requests that the program serves.

use std::collections::HashMap;
use std::time::Duration;

use clr_events::{ThreadState, escape_controls};
use nettrace_export::FrameId;
use nettrace_export::report::{SpanRole, SpanRow};
use nettrace_export::units::{counted, nanoseconds, share, short_percent, time};

use super::OfRecording;
use super::calls::{is_slow, milliseconds};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::thresholds;

/// The status of connections that become streams, which last as long as the client wants.
const SWITCHED: &str = "101";
/// The framework's methods below which workers of the pool run, of .NET 6 and later, and of all versions.
const WORKERS: [&str; 2] = [
    "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart",
    "System.Threading.ThreadPoolWorkQueue.Dispatch",
];

impl OfRecording<'_> {
    /// Adds the route with the longest time of slow requests: as evidence of the finding that explains most
    /// of it, or as a finding.
    pub(super) fn add_slow_requests(&self, findings: &mut Vec<Finding>) {
        let Some(row) = self.slow_requests() else { return };
        let explanation = self.explanation(row, findings);
        let waits_in = if explanation.is_none() { self.waiting_worker(row) } else { None };
        let part = match (explanation, &waits_in) {
            (Some((part, _)), _) => part.to_owned(),
            (None, Some(method)) => format!(", as threads wait in {method}"),
            (None, None) => String::new(),
        };
        let waiting = self.waiting(row);
        let sentence = format!(
            "Requests {} take {}{part}: {waiting:.1} of them are served on average",
            escape_controls(&row.name),
            time(row.latencies.p50),
        );
        match explanation.and_then(|(_, at)| findings.get_mut(at)) {
            Some(cause) => {
                cause.evidence.push(sentence);
                cause.cost = cause.cost.max(waiting);
            }
            None => findings.push(self.of_requests(row, sentence).with_method(waits_in)),
        }
    }

    fn slow_requests(&self) -> Option<&SpanRow> {
        let rows = &self.overview.requests.as_ref()?.rows;
        let is_stream = |row: &SpanRow| {
            row.statuses.first().is_some_and(|status| status.status.as_deref() == Some(SWITCHED))
        };
        rows.iter()
            .filter(|row| row.role == SpanRole::Server && is_slow(row) && !is_stream(row))
            .filter(|row| self.waiting(row) >= thresholds::SLOW_WAITING)
            .max_by_key(|row| row.latencies.total)
    }

    fn of_requests(&self, row: &SpanRow, cause: String) -> Finding {
        let rows = self.overview.requests.iter().flat_map(|requests| &requests.rows);
        let others = rows.filter(|other| {
            other.role == SpanRole::Server && (&other.task, &other.name) != (&row.task, &row.name)
        });
        let others = others.max_by_key(|other| other.count).map(|other| {
            format!("the median of {} is {}", escape_controls(&other.name), time(other.latencies.p50))
        });
        let durations = format!(
            "{}, p99 {}, {} at the longest",
            counted(row.count, "request", "requests"),
            time(row.latencies.p99),
            time(row.latencies.max),
        );
        let waiting = self.waiting(row);
        Finding::new(FindingKind::SlowRequests, waiting, cause, Details::Requests)
            .with_object(Some(row.name.clone()))
            .with_evidence([durations].into_iter().chain(known_parts(row)).chain(others))
            .with_confidence(Confidence::Likely)
            .with_numbers([
                Number::new("waiting_requests", waiting),
                Number::new("p50_ms", milliseconds(row.latencies.p50)),
                Number::new("p99_ms", milliseconds(row.latencies.p99)),
            ])
    }

    /// The part of the time of requests that a finding explains, in words, and the finding's index.
    fn explanation(&self, row: &SpanRow, findings: &[Finding]) -> Option<(&'static str, usize)> {
        let total = nanoseconds(row.latencies.total);
        let is_most = |part: Option<Duration>| {
            part.is_some_and(|part| share(nanoseconds(part), total) >= thresholds::SLOW_PART)
        };
        let find = |kinds: &[FindingKind]| findings.iter().position(|finding| kinds.contains(&finding.kind));
        let parts = row.parts.unwrap_or_default();
        if is_most(parts.outgoing) {
            return find(&[FindingKind::SlowCalls]).map(|at| (", most of it in calls", at));
        }
        if is_most(parts.gc_pause) {
            let at = find(&[FindingKind::InducedCollections, FindingKind::GcPressure]);
            return at.map(|at| (", most of it in pauses of the collector", at));
        }
        // Waits are of threads, not of requests, unless the events of tasks are recorded.
        let at = find(&[FindingKind::SlowOutput, FindingKind::LockConvoy])?;
        let waited = findings.get(at).map_or(0.0, |finding| finding.cost) / self.waiting(row);
        (100.0 * waited >= thresholds::SLOW_PART).then_some((", as threads wait", at))
    }

    /// The user's method in which workers of the pool wait for most of the time of requests.
    fn waiting_worker(&self, row: &SpanRow) -> Option<String> {
        let profile = &self.overview.profile;
        let is_worker = |frame: FrameId| {
            let (_, name) = profile.frames.full_parts(frame);
            WORKERS.iter().any(|worker| name.starts_with(worker))
        };
        let mut methods: HashMap<FrameId, u64> = HashMap::new();
        for total in profile.stack_totals.iter().filter(|total| total.state == ThreadState::Blocked) {
            let Some(stack) = total.stack else { continue };
            let mut frames = profile.path(stack).map(|(_, frame)| frame);
            let Some(method) = frames.find(|frame| profile.frames.is_user_code(*frame)) else { continue };
            if frames.any(is_worker) {
                let sum = methods.entry(method).or_default();
                *sum = sum.saturating_add(total.weight);
            }
        }
        let (method, weight) = methods.into_iter().max_by_key(|(frame, weight)| (*weight, *frame))?;
        let percent = share(weight, nanoseconds(row.latencies.total));
        (percent >= thresholds::SLOW_PART).then(|| self.name(method))
    }
}

/// The known parts of the time of requests, the longest first.
fn known_parts(row: &SpanRow) -> Option<String> {
    let (parts, threads) = (row.parts?, row.thread_parts.unwrap_or_default());
    let total = nanoseconds(row.latencies.total);
    let mut shares: Vec<_> = [
        ("in calls", parts.outgoing),
        ("in pauses of the collector", parts.gc_pause),
        ("in the queue of the thread pool", parts.queued),
        ("on a processor", threads.cpu),
        ("in waits for locks", threads.lock_wait),
    ]
    .into_iter()
    .filter_map(|(name, part)| Some((name, share(nanoseconds(part?), total))))
    .filter(|(_, percent)| *percent >= 1.0)
    .collect();
    shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let shares: Vec<_> =
        shares.iter().map(|(name, percent)| format!("{} {name}", short_percent(*percent))).collect();
    (!shares.is_empty()).then(|| format!("their time: {}", shares.join(", ")))
}
