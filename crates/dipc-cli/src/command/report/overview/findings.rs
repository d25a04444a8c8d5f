//! Findings: the facts of a recording to know first.

use std::collections::BTreeMap;
use std::time::Duration;

use clr_events::code::CodeOrigin;
use nettrace_export::page::RUNNING_OR_WAITING;
use nettrace_export::report::{
    LockRow, SpanRole, SpanRow, TopRow, UserCallerName, WaitingMethod, ready_methods, top,
};
use nettrace_export::{FrameId, Frames, KernelWait, Measure};
use serde::Serialize;
use serde_json::Value;

use super::data::OverviewData;
use crate::command::report::callers::caller_name;
use crate::command::report::{threadpool, topn};
use crate::inspect::profile::is_worth_saying;
use crate::render::frame_name::FrameName;
use crate::render::{shell, units};

/// A fact found in a recording.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// The kind of fact, for programs.
    pub(super) id: &'static str,
    /// The report with the details.
    pub(super) report: &'static str,
    /// True if something is wrong with the program or the recording.
    pub(super) is_problem: bool,
    pub(super) text: String,
    /// The numbers in the text, with units in their names.
    pub(super) numbers: BTreeMap<&'static str, Value>,
    /// The command that prints the figures in the text.
    pub(super) command: String,
}

impl Finding {
    fn problem_if(is_problem: bool, report: &'static str, text: String) -> Self {
        Self { id: report, report, is_problem, text, numbers: BTreeMap::new(), command: report.to_owned() }
    }

    fn fact(report: &'static str, text: String) -> Self {
        Self::problem_if(false, report, text)
    }

    /// Sets the kind of fact, and its numbers.
    fn with_numbers<const N: usize>(self, id: &'static str, numbers: [(&'static str, Value); N]) -> Self {
        Self { id, numbers: numbers.into(), ..self }
    }

    /// Completes the command of the report by the overview's.
    fn with_command(self, overview: &str) -> Self {
        let command = match &*self.command {
            other if self.report == CRASH => other.to_owned(),
            "" => overview.to_owned(),
            report => format!("{overview} {report}"),
        };
        Self { command, ..self }
    }

    /// Adds options of the report to the command.
    fn with_options(self, options: &str) -> Self {
        Self { command: format!("{} {options}", self.report), ..self }
    }
}

// The book documents the thresholds: `dipc help attach`.

/// Minimum share of lost events to report as a problem, in percent.
const MIN_LOSS: f64 = 1.0;
/// Minimum share of lock waits in a request's time to mention, in percent.
const MIN_LOCK_SHARE: f64 = 10.0;

/// The name of the finding on the end of the process, which has no report.
const CRASH: &str = "crash";
/// The share, in percent, from which pauses are a problem.
const PAUSES: f64 = 10.0;
/// Minimum share of a method to mention, in percent.
const MIN_METHOD_SHARE: f64 = 1.0;
/// The total time from which having all workers of the pool blocked is a problem.
const STARVATION: Duration = Duration::from_millis(500);
/// The number of waits of two or more threads for one lock from which they are a convoy, if they last [long
/// enough](CONVOY_TIME).
const CONVOY_WAITS: u64 = 100;
/// The least share of a convoy's waits, in percent of the time of one thread.
const CONVOY_TIME: f64 = 10.0;

/// Returns the findings, problems first. `command` is the overview's.
pub(super) fn of(gathered: &OverviewData, command: &str) -> Vec<Finding> {
    let rows = top(&gathered.profile);
    let total = gathered.profile.total();
    let mut findings: Vec<_> = [
        crash(gathered),
        lost(gathered).filter(|finding| finding.is_problem),
        deadlocks(gathered),
        nameless(gathered, &rows, total),
        starvation(gathered),
        pool_growth(gathered),
        failures(gathered),
        requests(gathered),
        methods(gathered, &rows, total),
        processor_time(gathered),
        blocked(gathered, total),
        throughout(gathered),
        ready(gathered, total),
        asleep(gathered),
        session_cost(gathered),
        pauses(gathered),
        allocations(gathered),
        exceptions(gathered),
        locks(gathered),
        compilation(gathered),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings = findings.into_iter().map(|finding| finding.with_command(command)).collect();
    findings.sort_by_key(|finding| !finding.is_problem);
    // Small losses change little, and stand below all else.
    findings.extend(
        lost(gathered).filter(|finding| !finding.is_problem).map(|finding| finding.with_command(command)),
    );
    findings
}

/// The end of the process, by what lies beside the recording.
fn crash(gathered: &OverviewData) -> Option<Finding> {
    let note = gathered.crash.as_ref()?;
    let command = match &note.core {
        Some(core) => format!("dipc dump analyze {}", shell::path(core)),
        None => format!("cat {}", shell::path(&note.path)),
    };
    Some(Finding { command, ..Finding::problem_if(true, CRASH, note.summary()) })
}

fn lost(gathered: &OverviewData) -> Option<Finding> {
    let summary = &gathered.summary;
    let at_least = if summary.lost_is_lower_bound { "At least " } else { "" };
    (summary.lost > 0).then(|| {
        let samples = summary.lost_samples;
        let of_samples = match samples {
            0 => String::new(),
            _ => format!(" ({} of them the kernel's samples and switches)", units::count(samples)),
        };
        let mend = if samples < summary.lost { "larger --buffersize" } else { "lower --frequency" };
        let share = units::share(summary.lost, summary.lost.saturating_add(summary.events));
        let text = format!(
            "{at_least}{} lost{of_samples}, {} of all, and all numbers are too low by theirs: record with a {mend}",
            units::counted(summary.lost, "event was", "events were"),
            units::short_percent(share)
        );
        Finding::problem_if(share >= MIN_LOSS, "events", text)
            .with_numbers("lost-events", [("lost", summary.lost.into()), ("lost_samples", samples.into())])
    })
}

fn nameless(gathered: &OverviewData, rows: &[TopRow], total: u64) -> Option<Finding> {
    let share = topn::nameless(&gathered.profile, rows, total);
    (share >= topn::MIN_NAMELESS).then(|| {
        if gathered.profile.measure == Measure::CPU_TIME {
            let text = format!(
                "{} of the CPU time is in native code whose symbols the recording does not have",
                units::short_percent(share)
            );
            return Finding::fact("topN", text).with_numbers("nameless", [("percent", share.into())]);
        }
        let text = format!(
            "{} of the time is in methods without a name: native code, or a recording that ended without its rundown, \
             which dipc repair --names-from gives the names of another. Without names idle threads count as work",
            units::short_percent(share)
        );
        Finding::problem_if(true, "topN", text).with_numbers("nameless", [("percent", share.into())])
    })
}

fn starvation(gathered: &OverviewData) -> Option<Finding> {
    let starvation = gathered.starvation.as_ref()?;
    let is_problem = starvation.total >= STARVATION;
    let finding = Finding::problem_if(is_problem, "threadpool", threadpool::starved(starvation));
    Some(finding.with_numbers("starvation", [("total_ns", units::nanoseconds(starvation.total).into())]))
}

fn pool_growth(gathered: &OverviewData) -> Option<Finding> {
    let pool = gathered.thread_pool.as_ref()?;
    if let Some(starved) = pool.adjustments.iter().find(|row| row.reason == "Starvation") {
        let text = format!(
            "The pool had too few threads {}, and added up to {}: work waited while all others were blocked",
            units::counted(starved.count, "time", "times"),
            starved.most_threads
        );
        let numbers = [("times", starved.count.into()), ("most_threads", starved.most_threads.into())];
        return Some(Finding::problem_if(true, "threadpool", text).with_numbers("pool-growth", numbers));
    }
    (pool.queue.count > 0).then(|| {
        let text = format!(
            "{} waited: median {}, p99 {}",
            units::counted(pool.queue.count, "work item", "work items"),
            units::time(pool.queue.median),
            units::time(pool.queue.p99)
        );
        let numbers = [
            ("work_items", pool.queue.count.into()),
            ("median_ns", units::nanoseconds(pool.queue.median).into()),
            ("p99_ns", units::nanoseconds(pool.queue.p99).into()),
        ];
        Finding::fact("threadpool", text).with_numbers("pool-queue", numbers)
    })
}

/// A method with a weight, and the method that it is named with.
struct Share {
    method: FrameId,
    /// The user's method that led to it, if it is the framework's.
    caller: Option<FrameId>,
    weight: u64,
}

/// Formats methods with their shares of a weight, heaviest first, each with the user's method that called it.
fn shares(frames: &Frames, total: u64, methods: &[Share]) -> String {
    let share = |weight: u64| units::share(weight, total);
    let methods: Vec<_> =
        methods.iter().take(3).filter(|method| share(method.weight) >= MIN_METHOD_SHARE).collect();
    let name =
        |frame| FrameName::new(frames, Some(frame), frames.name(frame)).without_parameters().to_owned();
    let [first, others @ ..] = methods.as_slice() else { return String::new() };
    // Named once if it called all of them.
    let common = first.caller.filter(|_| others.iter().all(|method| method.caller == first.caller));
    let of_each = |method: &&Share| {
        let caller = method.caller.filter(|_| common.is_none());
        let caller = caller.map_or_else(String::new, |caller| format!(" (called from {})", name(caller)));
        format!("{} {}{caller}", units::short_percent(share(method.weight)), name(method.method))
    };
    let list = methods.iter().map(of_each).collect::<Vec<_>>().join(", ");
    let all = if others.is_empty() { "" } else { "all " };
    let common = common.map_or_else(String::new, |caller| format!(", {all}called from {}", name(caller)));
    format!(": {list}{common}")
}

/// Returns methods that waited with their weights: they are the user's, where one is on the stack.
fn waiting_shares(waits: &[WaitingMethod]) -> Vec<Share> {
    waits.iter().map(|wait| Share { method: wait.method, caller: None, weight: wait.weight }).collect()
}

/// The rows of the requests, or of the calls in a recording without requests, and the nouns for one and for
/// many.
fn request_rows(gathered: &OverviewData) -> Option<(Vec<&SpanRow>, [&'static str; 2])> {
    let report = gathered.requests.as_ref()?;
    let of = |role: SpanRole| {
        report.rows.iter().filter(move |row| row.role == role && row.count > 0).collect::<Vec<_>>()
    };
    let words = [
        (SpanRole::Server, ["request", "requests"]),
        (SpanRole::Outgoing, ["call", "calls"]),
        (SpanRole::Other, ["activity", "activities"]),
    ];
    words.into_iter().map(|(role, words)| (of(role), words)).find(|(rows, _)| !rows.is_empty())
}

fn name(row: &SpanRow) -> String {
    match (row.role, &*row.name) {
        (SpanRole::Other, name) => format!("{}/{} {name}", row.provider, row.task).trim_end().to_owned(),
        (_, "") => row.task.clone(),
        (_, name) => name.to_owned(),
    }
}

fn failures(gathered: &OverviewData) -> Option<Finding> {
    let (rows, [one, many]) = request_rows(gathered)?;
    let worst = rows.into_iter().max_by_key(|row| row.errors).filter(|row| row.errors > 0)?;
    let text = format!(
        "{} of {} {} failed",
        units::count(worst.errors),
        units::counted(worst.count, one, many),
        name(worst)
    );
    let numbers = [("failed", worst.errors.into()), ("count", worst.count.into())];
    Some(Finding::problem_if(true, "requests", text).with_numbers("failed-requests", numbers))
}

fn requests(gathered: &OverviewData) -> Option<Finding> {
    let (rows, [one, many]) = request_rows(gathered)?;
    let slowest = rows.into_iter().max_by_key(|row| row.latencies.p99)?;
    let locks = slowest.thread_parts.and_then(|parts| Some((parts.lock_waits, parts.lock_wait?)));
    let locks = locks.map_or_else(String::new, |(count, waited)| {
        let share = units::share(units::nanoseconds(waited), units::nanoseconds(slowest.latencies.total));
        let waits = units::counted(count, "lock wait", "lock waits");
        if share < MIN_LOCK_SHARE {
            String::new()
        } else {
            format!("; {} of their time in {waits}", units::short_percent(share))
        }
    });
    let text = format!(
        "Slowest by p99: {}, p99 {}, median {} of {}{locks}",
        name(slowest),
        units::time(slowest.latencies.p99),
        units::time(slowest.latencies.p50),
        units::counted(slowest.count, one, many)
    );
    let numbers = [
        ("p99_ns", units::nanoseconds(slowest.latencies.p99).into()),
        ("median_ns", units::nanoseconds(slowest.latencies.p50).into()),
        ("count", slowest.count.into()),
    ];
    Some(Finding::fact("requests", text).with_numbers("slowest-request", numbers))
}

fn is_named(row: &TopRow) -> bool {
    !row.is_root && !row.is_unnamed
}

/// Returns the description of working time: samples may not distinguish work from waits.
fn kind_of_work(gathered: &OverviewData, working: u64) -> String {
    match gathered.unverified {
        time if !is_worth_saying(time, working) => "of work".to_owned(),
        time if time >= working => "of work or waits, which these samples do not tell apart".to_owned(),
        time => format!("of work, {} {RUNNING_OR_WAITING}", units::time(Duration::from_nanos(time))),
    }
}

fn methods(gathered: &OverviewData, rows: &[TopRow], total: u64) -> Option<Finding> {
    let profile = &gathered.profile;
    let working = total.saturating_sub(profile.blocked());
    if total == 0 {
        return (profile.idle() > 0)
            .then(|| Finding::fact("topN", "No thread was at work: all waited for some".to_owned()))
            .map(|finding| finding.with_numbers("work", [("work_ns", 0.into())]));
    }
    if working == 0 {
        return None;
    }
    let work = |row: &TopRow| row.exclusive.saturating_sub(row.exclusive_blocked);
    let mut rows: Vec<_> = rows.iter().filter(|row| work(row) > 0).collect();
    rows.sort_by(|a, b| work(b).cmp(&work(a)).then_with(|| a.frame.cmp(&b.frame)));
    let named = |row: &&&TopRow| is_named(row);
    let of_row = |row: &&TopRow| {
        let caller = row.exclusive_from.map(|caller| caller.frame);
        Some(Share { method: row.frame_id?, caller, weight: work(row) })
    };
    let methods: Vec<_> = rows.iter().filter(named).filter_map(of_row).collect();
    let time = units::time(Duration::from_nanos(working));
    let sum = if profile.measure == Measure::CPU_TIME {
        format!("{time} of CPU time in {}", units::counted(profile.samples(), "sample", "samples"))
    } else if gathered.has_kernel_samples {
        format!("{time} of CPU time")
    } else {
        format!("{time} {}", kind_of_work(gathered, working))
    };
    let text = format!("{sum}{}", shares(&profile.frames, working, &methods));
    // Unnamed rows may lie between the rows quoted in the text.
    let last =
        rows.iter().enumerate().filter(|(_, row)| is_named(row)).nth(2).map_or(rows.len(), |(at, _)| at + 1);
    let number = if last > 5 { format!(" -n {last}") } else { String::new() };
    let finding =
        Finding::fact("topN", text).with_options(&format!("--no-blocked{}{number}", no_session(gathered)));
    Some(finding.with_numbers("work", [("work_ns", working.into())]))
}

/// Returns the option that leaves the cost of the session out, as the findings do.
fn no_session(gathered: &OverviewData) -> &'static str {
    if gathered.session_cost.total() > 0 { " --no-session" } else { "" }
}

fn blocked(gathered: &OverviewData, total: u64) -> Option<Finding> {
    let profile = &gathered.profile;
    let part = &gathered.blocked.in_work;
    if part.weight == 0 || units::share(part.weight, total) < MIN_METHOD_SHARE {
        return None;
    }
    let methods = shares(&profile.frames, part.weight, &waiting_shares(&part.methods));
    let ready = match gathered.without_processor.saturating_sub(profile.ready()).min(part.weight) {
        0 => String::new(),
        time => {
            format!(", {} of it ready to run, without a processor", units::time(Duration::from_nanos(time)))
        }
    };
    let time = units::time(Duration::from_nanos(part.weight));
    let waits = waits(part.weight, &part.waits);
    let text = format!("{time} blocked in the midst of work{ready}{methods}{waits}");
    let finding = Finding::fact("topN", text).with_options(&format!("--blocked{}", no_session(gathered)));
    Some(finding.with_numbers("blocked", [("blocked_ns", part.weight.into())]))
}

/// Describes the time of the process that was spent for the recording.
fn session_cost(gathered: &OverviewData) -> Option<Finding> {
    let cost = gathered.session_cost;
    let all =
        gathered.profile.total().saturating_sub(gathered.profile.blocked()).saturating_add(cost.total());
    (units::share(cost.total(), all) >= MIN_METHOD_SHARE).then(|| {
        let text = format!("Not the program's work: {}", topn::session_cost(cost));
        Finding::fact("topN", text).with_options("--no-blocked")
    })
}

/// Describes sleeps, which are the program's will.
fn asleep(gathered: &OverviewData) -> Option<Finding> {
    let part = &gathered.blocked.asleep;
    (part.weight > 0).then(|| {
        let time = units::time(Duration::from_nanos(part.weight));
        let methods = shares(&gathered.profile.frames, part.weight, &waiting_shares(&part.methods));
        let text = format!(
            "{time} asleep (Thread.Sleep) on {}{methods}",
            units::counted(part.threads, "thread", "threads")
        );
        Finding::fact("topN", text).with_options(&format!("--blocked{}", no_session(gathered)))
    })
}

/// Describes the threads that did nothing but wait.
fn throughout(gathered: &OverviewData) -> Option<Finding> {
    let part = &gathered.blocked.throughout;
    let frames = &gathered.profile.frames;
    let name =
        |frame| FrameName::new(frames, Some(frame), frames.name(frame)).without_parameters().to_owned();
    let method = |wait: &WaitingMethod| {
        let called = wait.called.map_or_else(String::new, |called| format!(" (in {})", name(called)));
        format!("{} in {}{called}", units::count(wait.threads), name(wait.method))
    };
    (part.threads > 0).then(|| {
        let methods = part.methods.iter().take(3).map(method).collect::<Vec<_>>().join(", ");
        let text = format!(
            "{} waited in one place all the time, for work or for each other: {methods}",
            units::counted(part.threads, "thread", "threads")
        );
        Finding::fact("topN", text).with_options(&format!("--blocked{}", no_session(gathered)))
    })
}

/// Describes the kinds of waits in the kernel.
fn waits(blocked: u64, waits: &[(KernelWait, u64)]) -> String {
    let share = |weight: u64| units::share(weight, blocked);
    let waits = waits.iter().take(3).filter(|(_, weight)| share(*weight) >= MIN_METHOD_SHARE);
    let waits: Vec<_> =
        waits.map(|(kind, weight)| format!("{} {kind}", units::short_percent(share(*weight)))).collect();
    if waits.is_empty() { String::new() } else { format!("; waits: {}", waits.join(", ")) }
}

/// Describes which code ran, where the kernel's samples show it all.
fn processor_time(gathered: &OverviewData) -> Option<Finding> {
    let total = gathered.processor_time.iter().map(|(_, weight)| *weight).fold(0, u64::saturating_add);
    let words = |origin: CodeOrigin| match origin {
        CodeOrigin::Managed => "managed code",
        CodeOrigin::Gc => "the garbage collector",
        CodeOrigin::Jit => "the JIT compiler",
        CodeOrigin::Runtime => "the runtime's other code",
        CodeOrigin::Native => "other native code",
        CodeOrigin::Kernel => "the kernel",
        _ => "code of no known file",
    };
    let parts =
        gathered.processor_time.iter().filter(|(_, weight)| units::share(*weight, total) >= MIN_METHOD_SHARE);
    let parts = parts.map(|(origin, weight)| {
        format!("{} {}", units::short_percent(units::share(*weight, total)), words(*origin))
    });
    let parts: Vec<_> = parts.collect();
    let text = format!("On the processors: {}", parts.join(", "));
    // No report but this has these figures.
    (!parts.is_empty()).then(|| {
        let finding = Finding { command: String::new(), ..Finding::fact("topN", text) };
        finding.with_numbers("processor-time", [("cpu_ns", total.into())])
    })
}

/// Describes the time of threads that could run and had no processor, by the kernel's samples.
fn ready(gathered: &OverviewData, total: u64) -> Option<Finding> {
    let profile = &gathered.profile;
    let ready = profile.ready();
    if ready == 0 || units::share(ready, total) < MIN_METHOD_SHARE {
        return None;
    }
    let methods = shares(&profile.frames, ready, &waiting_shares(&ready_methods(profile)));
    let time = units::time(Duration::from_nanos(ready));
    let text = format!("{time} ready to run, without a processor{methods}");
    let finding = Finding::fact("topN", text).with_options(&format!("--by off-cpu{}", no_session(gathered)));
    Some(finding.with_numbers("ready", [("ready_ns", ready.into())]))
}

fn pauses(gathered: &OverviewData) -> Option<Finding> {
    let gc = &gathered.gc;
    if gc.is_empty() {
        return None;
    }
    let induced: u64 =
        gc.generations.iter().filter(|row| row.generation.is_none()).map(|row| row.induced).sum();
    let induced = if induced > 0 {
        format!(", {} of them asked for by the program", units::count(induced))
    } else {
        String::new()
    };
    let text = format!(
        "Paused {} of the time by {}{induced}, {} at the longest",
        units::percent(gc.pause_percent),
        units::counted(gc.collections.len() as u64, "collection", "collections"),
        units::time(gc.pauses.max)
    );
    let numbers = [
        ("percent", gc.pause_percent.into()),
        ("collections", gc.collections.len().into()),
        ("longest_ns", units::nanoseconds(gc.pauses.max).into()),
    ];
    Some(Finding::problem_if(gc.pause_percent >= PAUSES, "gc", text).with_numbers("pauses", numbers))
}

/// Formats the user's method that led to something, after a preposition.
fn from(caller: Option<&UserCallerName>, preposition: &str) -> String {
    caller.map_or_else(String::new, |caller| format!(" {preposition} {}", caller_name(caller)))
}

fn allocations(gathered: &OverviewData) -> Option<Finding> {
    let allocations = &gathered.allocations;
    let first = allocations.types.first()?;
    let text = format!(
        "{} allocated, {} of it {}{}",
        units::bytes(allocations.bytes),
        units::percent(units::share(first.bytes, allocations.bytes)),
        first.csharp,
        from(first.from.as_ref(), "in")
    );
    let numbers = [("bytes", allocations.bytes.into()), ("first_type_bytes", first.bytes.into())];
    Some(Finding::fact("alloc", text).with_numbers("allocations", numbers))
}

fn exceptions(gathered: &OverviewData) -> Option<Finding> {
    let exceptions = &gathered.exceptions;
    let first = exceptions.types.first()?;
    let text = if exceptions.count == first.count {
        format!(
            "{} thrown, all {}{}",
            units::count(exceptions.count),
            first.csharp,
            from(first.from.as_ref(), "in")
        )
    } else {
        format!(
            "{} thrown, {} of them {}{}",
            units::count(exceptions.count),
            units::count(first.count),
            first.csharp,
            from(first.from.as_ref(), "in")
        )
    };
    let numbers = [("count", exceptions.count.into()), ("first_type_count", first.count.into())];
    Some(Finding::fact("exceptions", text).with_numbers("exceptions", numbers))
}

fn locks(gathered: &OverviewData) -> Option<Finding> {
    let report = &gathered.contention;
    let waits = &report.waits;
    let duration = gathered.summary.duration_ns;
    let is_convoy = |lock: &&LockRow| {
        lock.waits >= CONVOY_WAITS
            && lock.threads >= 2
            && units::share(units::nanoseconds(lock.total), duration) >= CONVOY_TIME
    };
    if let Some(lock) = report.locks.iter().find(is_convoy) {
        // Versions before .NET 7 do not distinguish locks.
        let which = if lock.lock == 0 { "locks" } else { "one lock" };
        let text = format!(
            "Lock convoy: {} for {which} by {} threads{}, {} together, {} at the longest",
            units::counted(lock.waits, "wait", "waits"),
            units::count(lock.threads),
            from(lock.from.as_ref(), "in"),
            units::time(lock.total),
            units::time(lock.max)
        );
        let numbers = [
            ("waits", lock.waits.into()),
            ("threads", lock.threads.into()),
            ("total_ns", units::nanoseconds(lock.total).into()),
            ("longest_ns", units::nanoseconds(lock.max).into()),
        ];
        return Some(Finding::problem_if(true, "contention", text).with_numbers("lock-convoy", numbers));
    }
    (waits.count > 0).then(|| {
        let text = format!(
            "{} for locks{}, {} together, {} at the longest",
            units::counted(waits.count, "wait", "waits"),
            from(report.locks.first().and_then(|lock| lock.from.as_ref()), "most in"),
            units::time(waits.total),
            units::time(waits.max)
        );
        let numbers = [
            ("waits", waits.count.into()),
            ("total_ns", units::nanoseconds(waits.total).into()),
            ("longest_ns", units::nanoseconds(waits.max).into()),
        ];
        Finding::fact("contention", text).with_numbers("lock-waits", numbers)
    })
}

fn deadlocks(gathered: &OverviewData) -> Option<Finding> {
    let deadlocks = &gathered.contention.deadlocks;
    let first = deadlocks.first()?;
    let others = match deadlocks.len() {
        1 => String::new(),
        count => format!(" ({} others like it)", count - 1),
    };
    let finding = Finding::problem_if(true, "contention", format!("Deadlock: {first}{others}"));
    Some(finding.with_numbers("deadlock", [("deadlocks", deadlocks.len().into())]))
}

fn compilation(gathered: &OverviewData) -> Option<Finding> {
    let jit = &gathered.jit;
    (!jit.is_empty()).then(|| {
        let time = jit.duration.map_or_else(String::new, |time| format!(" in {}", units::time(time)));
        let text = format!("{} compiled{time}", units::counted(jit.methods, "method", "methods"));
        let duration = jit.duration.map(units::nanoseconds).into();
        Finding::fact("jit", text)
            .with_numbers("compilation", [("methods", jit.methods.into()), ("duration_ns", duration)])
    })
}
