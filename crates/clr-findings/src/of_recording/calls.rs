//! Causes in calls to something outside the program.

use std::cmp::Reverse;
use std::time::Duration;

use clr_events::escape_controls;
use nettrace_export::report::{CallRow, SpanRole, SpanRow};
use nettrace_export::units::{counted, nanoseconds, share, short_percent, time};

use super::{OfRecording, caller};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number, in_method};
use crate::thresholds;

/// Sources of spans that are parts of calls.
pub(super) const PARTS: [&str; 3] =
    ["System.Net.NameResolution", "System.Net.Sockets", "System.Net.Security"];
/// Minimum share of answers in the time of calls of which some have a connection, in percent.
const MIN_ANSWER: f64 = 1.0;
/// Maximum number of addresses.
const MAX_ADDRESSES: usize = 3;

/// Returns true if calls or requests take long, as most of them end.
pub(super) fn is_slow(row: &SpanRow) -> bool {
    row.count >= thresholds::MIN_SLOW && milliseconds(row.latencies.p50) >= thresholds::SLOW_MILLISECONDS
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    1000.0 * duration.as_secs_f64()
}

impl OfRecording<'_> {
    /// Calls that callers wait for all the time. Calls that mostly fail have a cause of their own.
    pub(super) fn slow_calls(&self) -> Vec<Finding> {
        let rows = self.overview.requests.iter().flat_map(|requests| &requests.rows);
        let mut calls: Vec<_> = rows
            .filter(|row| row.role == SpanRole::Outgoing && !PARTS.contains(&row.provider.as_str()))
            .filter(|row| share(row.errors, row.count) < thresholds::SLOW_PART)
            .filter(|row| self.waiting(row) >= thresholds::SLOW_WAITING)
            .filter_map(|row| Some((row, self.duration_of(row)?)))
            .collect();
        calls.sort_by_key(|(row, _)| Reverse(self.time_of(row)));
        calls.into_iter().take(MAX_ADDRESSES).map(|(row, duration)| self.slow_call(row, &duration)).collect()
    }

    /// The duration of slow calls in words; `None` if they are not slow. Without a connection, calls count
    /// that have not ended: no answer is expected yet, as a client that waits for news does.
    fn duration_of(&self, row: &SpanRow) -> Option<String> {
        if is_slow(row) {
            return Some(time(row.latencies.p50));
        }
        let calls = self.calls_of(row).filter(|calls| {
            let count = calls.count.saturating_sub(row.count);
            let is_without = share(nanoseconds(calls.without_connection), nanoseconds(calls.total));
            count >= thresholds::MIN_SLOW && count > row.count && is_without >= thresholds::SLOW_PART
        })?;
        let mean = calls.total.checked_div(u32::try_from(calls.count).unwrap_or(u32::MAX))?;
        (milliseconds(mean) >= thresholds::SLOW_MILLISECONDS).then(|| format!("more than {}", time(mean)))
    }

    fn slow_call(&self, row: &SpanRow, duration: &str) -> Finding {
        let calls = self.calls_of(row);
        let method = calls.and_then(|calls| caller(calls.from.as_ref()));
        let phase = calls.and_then(|calls| self.longest_phase(calls));
        let part = phase.map_or_else(String::new, |(phase, percent)| {
            format!(", {} of it {phase}", short_percent(percent))
        });
        let waiting = self.waiting(row);
        let cause = format!(
            "Calls to {} take {duration}{}{part}: {waiting:.1} callers wait on average",
            escape_controls(&row.name),
            in_method(method.as_deref()),
        );
        let ended = format!(
            "{}, p99 {}, {} at the longest",
            counted(row.count, "call", "calls"),
            time(row.latencies.p99),
            time(row.latencies.max),
        );
        let not_ended = format!("{} not ended", counted(row.cut_by_end, "call has", "calls have"));
        let evidence = [(row.count, ended), (row.cut_by_end, not_ended)];
        let evidence = evidence.into_iter().filter(|(number, _)| *number > 0).map(|(_, sentence)| sentence);
        Finding::new(FindingKind::SlowCalls, waiting, cause, Details::Requests)
            .with_method(method)
            .with_object(Some(row.name.clone()))
            .with_evidence(evidence)
            .with_confidence(Confidence::Likely)
            .with_numbers([
                Number::new("waiting_calls", waiting),
                Number::new("p50_ms", milliseconds(row.latencies.p50)),
                Number::new("p99_ms", milliseconds(row.latencies.p99)),
            ])
    }

    /// The phases of the calls of a row.
    pub(super) fn calls_of(&self, row: &SpanRow) -> Option<&CallRow> {
        let mut calls = self.overview.calls.rows.iter();
        calls.find(|calls| row.role == SpanRole::Outgoing && calls.name == row.name)
    }

    /// The phase in which most of the time of calls goes, and its share in percent.
    pub(super) fn longest_phase(&self, calls: &CallRow) -> Option<(&'static str, f64)> {
        let of_total = |part: Duration| share(nanoseconds(part), nanoseconds(calls.total));
        let answer = of_total(calls.answer);
        if answer >= thresholds::SLOW_PART {
            return Some(("waiting for the answer", answer));
        }
        let without_connection = of_total(calls.without_connection);
        if without_connection < thresholds::SLOW_PART {
            return None;
        }
        let report = &self.overview.calls;
        let phases = [
            ("connecting", report.connecting),
            ("looking up the name", report.resolving),
            ("in the TLS handshake", report.handshaking),
        ];
        // Attempts to connect serve the pool: one at a time is enough to keep all callers waiting.
        let attempts =
            phases.into_iter().filter(|(_, sum)| self.average(nanoseconds(*sum)) >= thresholds::SLOW_WAITING);
        let phase = attempts.max_by_key(|(_, sum)| *sum).map(|(phase, _)| phase);
        // An attempt that began before the recording is not seen.
        let of_pool = if answer < MIN_ANSWER {
            "waiting for a connection"
        } else {
            "waiting for a free connection of the pool"
        };
        Some((phase.unwrap_or(of_pool), without_connection))
    }

    /// The number of calls or requests of a row that wait, on average.
    pub(super) fn waiting(&self, row: &SpanRow) -> f64 {
        self.average(nanoseconds(self.time_of(row)))
    }

    /// The time of the calls of a row, with those that had not ended if it is known.
    fn time_of(&self, row: &SpanRow) -> Duration {
        row.latencies.total.max(self.calls_of(row).map_or(Duration::ZERO, |calls| calls.total))
    }
}
