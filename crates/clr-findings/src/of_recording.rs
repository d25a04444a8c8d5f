//! Causes that a recording shows.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use clr_events::code::CodeOrigin;
use clr_events::{ThreadState, escape_controls};
use nettrace_export::report::{LockRow, Overview, SpanRole, UserCallerName, ready_methods, working_methods};
use nettrace_export::units::{bytes, count, counted, nanoseconds, share, short_percent, time};
use nettrace_export::{FrameId, FrameKind, method_name};

use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::thresholds;

/// Namespaces of regular expressions.
const REGEX: &str = "System.Text.RegularExpressions.";
/// The method that asks for a collection.
const COLLECT: &str = "System.GC.Collect";
/// The exceptions by which calls fail.
const CALL_FAILURES: [&str; 4] = [
    "System.Net.Http.HttpRequestException",
    "System.Threading.Tasks.TaskCanceledException",
    "System.OperationCanceledException",
    "System.TimeoutException",
];

/// Returns the causes that a recording shows, in any order.
pub(crate) fn findings(overview: &Overview) -> Vec<Finding> {
    let recording = OfRecording { overview, seconds: overview.duration.as_secs_f64() };
    if recording.seconds <= 0.0 {
        return Vec::new();
    }
    let single = [
        recording.deadlock(),
        recording.starvation(),
        recording.regex(),
        recording.hot_method(),
        recording.jit(),
        recording.induced_collections(),
        recording.gc_pressure(),
        recording.exceptions(),
        recording.failed_requests(),
    ];
    single.into_iter().flatten().chain(recording.lock_convoys()).collect()
}

struct OfRecording<'o> {
    overview: &'o Overview,
    seconds: f64,
}

impl OfRecording<'_> {
    fn deadlock(&self) -> Option<Finding> {
        let contention = &self.overview.contention;
        let first = contention.deadlocks.first()?;
        let of_first = |tid: &u64| contention.unfinished_waits.iter().find(|wait| wait.tid == *tid);
        let method = first.tids.iter().filter_map(of_first).find_map(|wait| caller(wait.from.as_ref()));
        let cause = format!("Deadlock: {first}{}", in_method(method.as_deref()));
        let threads = first.tids.len() as f64;
        Some(
            Finding::new(FindingKind::Deadlock, threads, cause, Details::Contention)
                .with_method(method)
                .with_numbers([Number::new("threads", threads)]),
        )
    }

    fn starvation(&self) -> Option<Finding> {
        let starvation = self.overview.starvation.as_ref()?;
        let percent = self.percent_of_time(starvation.total);
        if percent < thresholds::STARVATION {
            return None;
        }
        let frames = &self.overview.profile.frames;
        let is_method = |frame: &FrameId| Some(frames.method(*frame)) == starvation.method.as_deref();
        let method = frames.iter().map(|(frame, _)| frame).find(is_method).map(|frame| self.name(frame));
        let waited_for_tasks = share(nanoseconds(starvation.task_waits), nanoseconds(starvation.blocked));
        let reason = if waited_for_tasks >= 50.0 {
            ", waiting for tasks: synchronous code over asynchronous"
        } else {
            ""
        };
        let cause = format!(
            "The thread pool is starved: all {} workers were blocked {} of the time{}{reason}",
            starvation.workers,
            short_percent(percent),
            in_method(method.as_deref()),
        );
        let workers = f64::from(starvation.workers);
        Some(
            Finding::new(FindingKind::Starvation, workers * percent / 100.0, cause, Details::ThreadPool)
                .with_method(method)
                .with_numbers([
                    Number::new("workers", workers),
                    Number::new("blocked_percent", percent),
                    Number::new("task_wait_percent", waited_for_tasks),
                ]),
        )
    }

    fn lock_convoys(&self) -> impl Iterator<Item = Finding> {
        self.overview.contention.locks.iter().filter_map(|lock| self.lock_convoy(lock))
    }

    fn lock_convoy(&self, lock: &LockRow) -> Option<Finding> {
        let end = self.overview.stream.last;
        let unfinished = self.overview.contention.unfinished_waits.iter();
        let unfinished: Vec<_> = unfinished.filter(|wait| wait.lock == lock.lock).collect();
        let open = unfinished
            .iter()
            .map(|wait| end.saturating_duration_since(wait.since).min(self.overview.duration));
        let waited = open.fold(lock.total, Duration::saturating_add);
        let threads = lock.threads.max(unfinished.len() as u64);
        let waiters = waited.as_secs_f64() / self.seconds;
        let percent = 100.0 * waiters / threads.max(1) as f64;
        if waiters < thresholds::LOCK_WAITERS || percent < thresholds::LOCK_SHARE {
            return None;
        }
        let method = caller(lock.from.as_ref());
        let one = if lock.lock == 0 { "locks" } else { "one lock" };
        let cause = format!(
            "{} wait for {one}{} {} of their time",
            counted(threads, "thread", "threads"),
            in_method(method.as_deref()),
            short_percent(percent.min(100.0)),
        );
        let evidence = format!(
            "{}, {} together, {} at the longest",
            counted(lock.waits.saturating_add(unfinished.len() as u64), "wait", "waits"),
            time(waited),
            time(lock.max),
        );
        Some(
            Finding::new(FindingKind::LockConvoy, waiters, cause, Details::Contention)
                .with_method(method)
                .with_evidence([evidence])
                .with_numbers([
                    Number::new("threads", threads as f64),
                    Number::new("waiting_percent", percent),
                    Number::new("waits", lock.waits as f64),
                ]),
        )
    }

    /// The regular expressions that keep processors busy, with the method of the user's code that runs most of them.
    fn regex(&self) -> Option<Finding> {
        let profile = &self.overview.profile;
        let is_regex = |frame: FrameId| {
            profile.frames.full_parts(frame).1.starts_with(REGEX) && !profile.frames.is_user_code(frame)
        };
        let (weight, method) = self.work_in(is_regex);
        let (ready, _) = self.time_in(is_regex, |state| state == ThreadState::Ready);
        let (percent, processors) = self.of_work(weight, ready)?;
        let cause = format!(
            "Regular expressions take {} of the processor time, {}{}",
            short_percent(percent),
            processors_in_words(processors),
            in_method(method.as_deref()),
        );
        Some(
            Finding::new(FindingKind::Regex, processors, cause, Details::Methods)
                .with_method(method)
                .with_numbers([Number::new("cpu_percent", percent), Number::new("processors", processors)]),
        )
    }

    /// The method of the user's code that keeps processors busy, alone or with the framework's that it calls, if a
    /// thread never rests or the program uses all processors. Busy threads of a server do rest.
    fn hot_method(&self) -> Option<Finding> {
        let profile = &self.overview.profile;
        let methods = working_methods(profile);
        let first = methods.iter().find(|method| profile.frames.is_user_code(method.method))?;
        let ready = ready_methods(profile).into_iter().find(|method| method.method == first.method);
        let (percent, processors) = self.of_work(first.weight, ready.map_or(0, |method| method.weight))?;
        if !self.has_tireless_thread() && !self.uses_all_processors() {
            return None;
        }
        let method = self.name(first.method);
        let cause = format!(
            "One method takes {} of the processor time, {}: {method}",
            short_percent(percent),
            processors_in_words(processors),
        );
        let called =
            first.called.map(|called| format!("most of it in {}, which it calls", self.name(called)));
        let threads = counted(first.threads, "thread", "threads");
        Some(
            Finding::new(FindingKind::HotMethod, processors, cause, Details::Methods)
                .with_method(Some(method))
                .with_evidence(called.into_iter().chain([format!("on {threads}")]))
                .with_numbers([Number::new("cpu_percent", percent), Number::new("processors", processors)]),
        )
    }

    /// The time of running threads in some frames and what they call, with the user's method that most of it is called
    /// from.
    fn work_in(&self, is_part: impl Fn(FrameId) -> bool) -> (u64, Option<String>) {
        self.time_in(is_part, |state| state == ThreadState::Working)
    }

    /// The same for threads in some states.
    fn time_in(
        &self,
        is_part: impl Fn(FrameId) -> bool,
        is_counted: impl Fn(ThreadState) -> bool,
    ) -> (u64, Option<String>) {
        let profile = &self.overview.profile;
        let mut weight = 0_u64;
        let mut methods: HashMap<FrameId, u64> = HashMap::new();
        for total in profile.stack_totals.iter().filter(|total| is_counted(total.state)) {
            let Some(stack) = total.stack else { continue };
            let mut frames = profile.path(stack).map(|(_, frame)| frame);
            if !frames.any(&is_part) {
                continue;
            }
            weight = weight.saturating_add(total.weight);
            if let Some(method) = frames.find(|frame| profile.frames.is_user_code(*frame)) {
                let sum = methods.entry(method).or_default();
                *sum = sum.saturating_add(total.weight);
            }
        }
        let method = methods.into_iter().max_by_key(|(frame, weight)| (*weight, *frame));
        (weight, method.map(|(frame, _)| self.name(frame)))
    }

    /// The share of a part of the processor time, in percent, and the processors that it keeps busy, if that is
    /// much, or would be with the processors that its `ready` threads lack.
    fn of_work(&self, weight: u64, ready: u64) -> Option<(f64, f64)> {
        let profile = &self.overview.profile;
        // Samples that do not distinguish running from waiting are no processor time.
        let total =
            profile.total().saturating_sub(profile.blocked()).saturating_sub(self.overview.unverified);
        let (percent, processors) = (share(weight, total), self.average(weight));
        let wanted = self.average(weight.saturating_add(ready));
        (percent >= thresholds::HOT_METHOD && wanted >= thresholds::HOT_PROCESSORS)
            .then_some((percent, processors))
    }

    /// Returns true if a thread runs all the time, or would if it had a processor.
    fn has_tireless_thread(&self) -> bool {
        let profile = &self.overview.profile;
        let mut threads: HashMap<_, u64> = HashMap::new();
        let wants_to_run = |state| matches!(state, ThreadState::Working | ThreadState::Ready);
        for total in profile.stack_totals.iter().filter(|total| wants_to_run(total.state)) {
            let sum = threads.entry(total.thread).or_default();
            *sum = sum.saturating_add(total.weight);
        }
        threads.into_values().any(|weight| 100.0 * self.average(weight) >= thresholds::TIRELESS)
    }

    fn uses_all_processors(&self) -> bool {
        let profile = &self.overview.profile;
        let busy = self.average(profile.total().saturating_sub(profile.blocked()));
        let processors = self.overview.stream.processors.unwrap_or(u32::MAX);
        100.0 * busy >= thresholds::ALL_PROCESSORS * f64::from(processors)
    }

    fn jit(&self) -> Option<Finding> {
        let (percent, processors) = self.runtime_work(CodeOrigin::Jit)?;
        let is_jit = |frame| self.overview.profile.frames.kind(frame) == FrameKind::Code(CodeOrigin::Jit);
        let (ready, _) = self.time_in(is_jit, |state| state == ThreadState::Ready);
        if percent < thresholds::JIT_SHARE || processors + self.average(ready) < thresholds::JIT_PROCESSORS {
            return None;
        }
        if !self.compiles_until_the_end() {
            return None;
        }
        let compiled = counted(self.overview.jit.methods, "method", "methods");
        let (_, method) = self.work_in(is_jit);
        let cause = format!(
            "The JIT compiler takes {} of the processor time, {}{}: {compiled} compiled, {} per second",
            short_percent(percent),
            processors_in_words(processors),
            in_method(method.as_deref()),
            count(per_second(self.overview.jit.methods, self.seconds)),
        );
        let slowest = self.overview.jit.slowest.iter().map(|row| escape_controls(&row.csharp).into_owned());
        let methods: Vec<_> = slowest.take(3).collect();
        let evidence = (!methods.is_empty()).then(|| format!("the longest: {}", methods.join(", ")));
        Some(
            Finding::new(FindingKind::JitStorm, processors, cause, Details::Jit)
                .with_method(method)
                .with_evidence(evidence)
                .with_numbers([Number::new("cpu_percent", percent), Number::new("processors", processors)]),
        )
    }

    /// Returns false if few methods were compiled in the last quarter of the time: a program that starts compiles
    /// what it runs first, once.
    fn compiles_until_the_end(&self) -> bool {
        let jit = &self.overview.jit;
        let last_quarter = nanoseconds(self.overview.duration).saturating_mul(3) / 4;
        let slots = last_quarter.checked_div(nanoseconds(jit.timeline.slot)).unwrap_or_default();
        let late = jit.timeline.sums.iter().skip(usize::try_from(slots).unwrap_or(usize::MAX));
        let late = late.copied().fold(0, u64::saturating_add);
        jit.is_empty() || share(late, jit.methods) >= thresholds::JIT_LATE
    }

    fn induced_collections(&self) -> Option<Finding> {
        let induced = self.induced();
        let rate = induced as f64 / self.seconds;
        if rate < thresholds::INDUCED_COLLECTIONS {
            return None;
        }
        let profile = &self.overview.profile;
        let collects = |frame| profile.frames.full_parts(frame).1.starts_with(COLLECT);
        // Threads wait for collections, or do them.
        let (_, method) = self.time_in(collects, |_| true);
        // .NET Core 3.1 has no frame of it: the collector runs in the user's method.
        let in_collector = |frame| profile.frames.kind(frame) == FrameKind::Code(CodeOrigin::Gc);
        let are_most = induced.saturating_mul(2) >= self.overview.gc.collections.len() as u64;
        let method = method.or_else(|| self.work_in(in_collector).1.filter(|_| are_most));
        let cause = format!(
            "The program asks for collections{}: {} of {}, {rate:.1} per second, paused {} of the time",
            in_method(method.as_deref()),
            count(induced),
            counted(self.overview.gc.collections.len() as u64, "collection", "collections"),
            short_percent(self.overview.gc.pause_percent),
        );
        Some(
            Finding::new(FindingKind::InducedCollections, self.collector_cost(), cause, Details::Collections)
                .with_method(method)
                .with_numbers([
                    Number::new("induced", induced as f64),
                    Number::new("pause_percent", self.overview.gc.pause_percent),
                ]),
        )
    }

    fn gc_pressure(&self) -> Option<Finding> {
        let gc = &self.overview.gc;
        let (of_cpu, processors) = self.runtime_work(CodeOrigin::Gc).unwrap_or_default();
        let is_busy = of_cpu >= thresholds::GC_SHARE && processors >= thresholds::GC_PROCESSORS;
        let full = gc.collections.iter().filter(|collection| collection.generation >= 2).count() as u64;
        // Those that the program asks for have a cause of their own.
        let unasked = full.saturating_sub(self.induced());
        let full_rate = unasked as f64 / self.seconds;
        let are_full = share(unasked, gc.collections.len() as u64) >= thresholds::FULL_COLLECTIONS
            && full_rate >= thresholds::FULL_COLLECTIONS_PER_SECOND;
        if gc.is_empty() || (gc.pause_percent < thresholds::PAUSES && !is_busy && !are_full) {
            return None;
        }
        let allocations = &self.overview.allocations;
        let first = allocations.types.first();
        let method = first.and_then(|row| caller(row.from.as_ref()));
        let allocated = match first {
            Some(row) => format!(
                ": {} per second allocated, {} of it {}{}",
                bytes(per_second(allocations.bytes, self.seconds)),
                short_percent(share(row.bytes, allocations.bytes)),
                escape_controls(&row.csharp),
                in_method(method.as_deref()),
            ),
            None => String::new(),
        };
        let cause = if gc.pause_percent < thresholds::PAUSES && are_full {
            format!("{full_rate:.1} collections of the whole heap per second{allocated}")
        } else {
            format!("Collections pause {} of the time{allocated}", short_percent(gc.pause_percent))
        };
        let evidence = format!(
            "{}, {} of generation 2, {} of pause at the longest; the collector takes {} of the processor time",
            counted(gc.collections.len() as u64, "collection", "collections"),
            count(full),
            time(gc.pauses.max),
            short_percent(of_cpu),
        );
        Some(
            Finding::new(FindingKind::GcPressure, self.collector_cost(), cause, Details::Allocations)
                .with_method(method)
                .with_object(first.map(|row| row.csharp.clone()))
                .with_evidence([evidence])
                .with_numbers([
                    Number::new("pause_percent", gc.pause_percent),
                    Number::new("gc_cpu_percent", of_cpu),
                ]),
        )
    }

    fn exceptions(&self) -> Option<Finding> {
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

    fn failed_requests(&self) -> Option<Finding> {
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
        let method = if row.role == SpanRole::Outgoing { self.method_of_failed_calls() } else { None };
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
                .with_confidence(Confidence::Certain)
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

    /// The collections that the program asked for.
    fn induced(&self) -> u64 {
        let all = self.overview.gc.generations.iter().filter(|row| row.generation.is_none());
        all.map(|row| row.induced).sum()
    }

    /// The processors that collections take, at least those that the pauses leave idle.
    fn collector_cost(&self) -> f64 {
        let busy = self.runtime_work(CodeOrigin::Gc).map_or(0.0, |(_, processors)| processors);
        busy.max(self.overview.gc.pause_percent / 100.0)
    }

    /// The share of code of an origin in the processor time, in percent, and the processors that it keeps busy.
    fn runtime_work(&self, origin: CodeOrigin) -> Option<(f64, f64)> {
        let parts = &self.overview.processor_time;
        let total = parts.iter().map(|(_, weight)| *weight).fold(0, u64::saturating_add);
        let (_, weight) = parts.iter().find(|(of, _)| *of == origin)?;
        Some((share(*weight, total), self.average(*weight)))
    }

    fn name(&self, frame: FrameId) -> String {
        escape_controls(&method_name::without_parameters(&self.overview.profile.frames, frame)).into_owned()
    }

    /// The number of threads, on average, that a time in nanoseconds is.
    fn average(&self, weight: u64) -> f64 {
        weight as f64 / 1e9 / self.seconds
    }

    fn percent_of_time(&self, part: Duration) -> f64 {
        share(nanoseconds(part), nanoseconds(self.overview.duration))
    }
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
    let name = method_name::csharp_without_parameters(&caller?.short);
    Some(escape_controls(name).into_owned())
}

fn in_method(method: Option<&str>) -> String {
    method.map_or_else(String::new, |method| format!(" in {method}"))
}

fn processors_in_words(processors: f64) -> String {
    if processors < 0.95 {
        format!("{} of a processor", short_percent(100.0 * processors))
    } else {
        format!("{processors:.1} processors")
    }
}
