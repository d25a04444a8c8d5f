//! Causes that a recording shows.

mod calls;
mod collections;
mod failures;
mod growth;
mod locks;
mod output;
mod part;
mod processors;
mod profilers;
mod requests;
#[cfg(test)]
mod tests;
mod threads;
mod waits;

use std::time::Duration;

use clr_events::code::CodeOrigin;
use nettrace_export::report::{Overview, UserCallerName};
use nettrace_export::units::{nanoseconds, share, short_percent};
use nettrace_export::{FrameId, method_name};

use crate::finding::Finding;
use crate::names::in_words;
pub(crate) use growth::{Allocator, MemoryUsers};

/// Returns the causes that a recording shows, in any order.
pub(crate) fn findings(overview: &Overview, exceptions_are_partial: bool) -> Vec<Finding> {
    let Some(mut recording) = OfRecording::new(overview) else { return Vec::new() };
    if let Some(time) = exceptions_time(overview).filter(|_| exceptions_are_partial) {
        recording.exceptions_seconds = time.as_secs_f64();
    }
    let single = [
        recording.deadlock(),
        recording.starvation(),
        recording.regex(),
        recording.hot_method(),
        recording.jit(),
        recording.not_precompiled(),
        recording.profiler(),
        recording.induced_collections(),
        recording.gc_pressure(),
        recording.exceptions(),
        recording.failed_requests(),
        recording.slow_output(),
        recording.dynamic_method_growth(),
    ];
    let mut findings: Vec<_> = single.into_iter().flatten().chain(recording.lock_convoys()).collect();
    findings.extend(recording.slow_calls());
    recording.add_slow_requests(&mut findings);
    findings
}

/// Returns the causes in waits that neither begin nor end in a recording, in any order. Memory has their
/// objects.
pub(crate) fn endless_waits(overview: &Overview) -> Vec<Finding> {
    let Some(recording) = OfRecording::new(overview) else { return Vec::new() };
    let waits = [
        recording.endless_lock_waits(),
        recording.blocked_finalizer(),
        recording.waiting_static_constructor(),
        recording.missed_signals(),
    ];
    waits.into_iter().flatten().collect()
}

/// Returns the cause in threads that begin all the time and stay. The kernel counts them, too.
pub(crate) fn thread_growth(overview: &Overview) -> Option<Finding> {
    OfRecording::new(overview)?.thread_growth()
}

/// The number of methods that are compiled per second at the end of a recording of a program that starts;
/// `None` of others.
pub(crate) fn compiled_at_start(overview: &Overview) -> Option<u64> {
    OfRecording::new(overview)?.starts()
}

struct OfRecording<'o> {
    overview: &'o Overview,
    seconds: f64,
    /// The time in which exceptions were recorded.
    exceptions_seconds: f64,
}

/// The time from the first exception to the last.
pub(crate) fn exceptions_time(overview: &Overview) -> Option<Duration> {
    let types = || overview.exceptions.types.iter();
    let (first, last) = (types().map(|row| row.first).min()?, types().map(|row| row.last).max()?);
    let time = u64::try_from(last.as_nanos().saturating_sub(first.as_nanos())).ok()?;
    (time > 0).then(|| Duration::from_nanos(time))
}

impl<'o> OfRecording<'o> {
    /// The judge of a recording; `None` for one without a duration.
    fn new(overview: &'o Overview) -> Option<Self> {
        let seconds = overview.duration.as_secs_f64();
        (seconds > 0.0).then_some(Self { overview, seconds, exceptions_seconds: seconds })
    }

    /// The share of code of an origin in the processor time, in percent, and the processors that it keeps
    /// busy.
    fn runtime_work(&self, origin: CodeOrigin) -> Option<(f64, f64)> {
        let parts = &self.overview.processor_time;
        let total = parts.iter().map(|(_, weight)| *weight).fold(0, u64::saturating_add);
        let (_, weight) = parts.iter().find(|(of, _)| *of == origin)?;
        Some((share(*weight, total), self.average(*weight)))
    }

    /// The name of a method, without parameters.
    fn name(&self, frame: FrameId) -> String {
        name(self.overview, frame)
    }

    /// The number of threads, on average, that a time in nanoseconds is.
    fn average(&self, weight: u64) -> f64 {
        weight as f64 / 1e9 / self.seconds
    }

    fn percent_of_time(&self, part: Duration) -> f64 {
        share(nanoseconds(part), nanoseconds(self.overview.duration))
    }
}

/// The name of a method, without parameters.
pub(crate) fn name(overview: &Overview, frame: FrameId) -> String {
    in_words(&method_name::without_parameters(&overview.profile.frames, frame))
}

fn per_second(number: u64, seconds: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a saturating conversion of a positive number"
    )]
    let rate = (number as f64 / seconds).round() as u64;
    rate
}

/// The user's method, without parameters.
fn caller(caller: Option<&UserCallerName>) -> Option<String> {
    Some(in_words(method_name::csharp_without_parameters(&caller?.short)))
}

fn processors_in_words(processors: f64) -> String {
    if processors < 0.95 {
        format!("{} of a processor", short_percent(100.0 * processors))
    } else {
        format!("{processors:.1} processors")
    }
}
