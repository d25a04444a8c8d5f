//! Causes in exceptions and failed requests.

use clr_events::escape_controls;
use nettrace_export::report::SpanRole;
use nettrace_export::units::{count, share, short_percent, time};

use super::calls::is_slow;
use super::{OfRecording, caller, per_second};
use crate::finding::{Details, Finding, FindingKind, Number, in_method};
use crate::thresholds;

/// The exceptions by which calls fail.
const CALL_FAILURES: [&str; 4] = [
    "System.Net.Http.HttpRequestException",
    "System.Threading.Tasks.TaskCanceledException",
    "System.OperationCanceledException",
    "System.TimeoutException",
];

impl OfRecording<'_> {
    pub(super) fn exceptions(&self) -> Option<Finding> {
        let exceptions = &self.overview.exceptions;
        let first = exceptions.types.first()?;
        let rate = exceptions.count as f64 / self.seconds;
        if rate < thresholds::EXCEPTIONS {
            return None;
        }
        let method = caller(first.from.as_ref());
        let cause = format!(
            "{} exceptions per second, {} of them {}{}",
            count(per_second(exceptions.count, self.seconds)),
            short_percent(share(first.count, exceptions.count)),
            escape_controls(&first.csharp),
            in_method(method.as_deref()),
        );
        let message = (!first.first_message.is_empty())
            .then(|| format!("the first: {}", escape_controls(&first.first_message)));
        Some(
            // The time of a throw is that of a processor.
            Finding::new(FindingKind::Exceptions, rate * 20e-6, cause, Details::Exceptions)
                .with_method(method)
                .with_object(Some(first.csharp.clone()))
                .with_evidence(message)
                .with_numbers([Number::new("exceptions_per_second", rate)]),
        )
    }

    pub(super) fn failed_requests(&self) -> Option<Finding> {
        let rows = &self.overview.requests.as_ref()?.rows;
        let failing = |role: SpanRole| {
            let rows = rows
                .iter()
                .filter(move |row| row.role == role && row.errors >= thresholds::MIN_FAILED_REQUESTS);
            rows.filter(|row| share(row.errors, row.count) >= thresholds::FAILED_REQUESTS)
                .max_by_key(|row| row.errors)
        };
        let row = failing(SpanRole::Server).or_else(|| failing(SpanRole::Outgoing))?;
        let what = if row.role == SpanRole::Server { "requests" } else { "calls" };
        let name = escape_controls(&row.name);
        let calls = self.calls_of(row);
        let method = match row.role {
            SpanRole::Outgoing => {
                calls.and_then(|calls| caller(calls.from.as_ref())).or_else(|| self.method_of_failed_calls())
            }
            _ => None,
        };
        let phase = calls.and_then(|calls| self.longest_phase(calls)).filter(|_| is_slow(row));
        let phase = phase.map(|(phase, percent)| {
            format!("they take {}, {} of it {phase}", time(row.latencies.p50), short_percent(percent))
        });
        let percent = share(row.errors, row.count);
        let cause = format!(
            "{} of the {what} {name} fail{}: {} of {}",
            short_percent(percent),
            in_method(method.as_deref()),
            count(row.errors),
            count(row.count)
        );
        Some(
            Finding::new(FindingKind::FailedRequests, percent / 100.0, cause, Details::Requests)
                .with_method(method)
                .with_object(Some(row.name.clone()))
                .with_evidence(phase)
                .with_numbers([Number::new("failed", row.errors as f64), Number::new("percent", percent)]),
        )
    }

    /// The user's method that receives the exceptions of failed calls: spans do not have their callers.
    fn method_of_failed_calls(&self) -> Option<String> {
        let types = self.overview.exceptions.types.iter();
        types
            .filter(|row| CALL_FAILURES.contains(&row.name.as_str()))
            .find_map(|row| caller(row.from.as_ref()))
    }
}
