//! Findings: the facts of a recording to know first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use clr_events::ThreadState;
use nettrace_export::report::{SpanRole, TopRow, top};
use nettrace_export::{FrameId, Frames, pseudo_frames};
use serde::Serialize;

use super::gathered::Gathered;
use crate::inspect::profile::RUNNING_OR_WAITING;
use crate::render::frame_name::FrameName;
use crate::render::units;

/// Something that a recording tells.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// The report that tells more: `dipc report FILE` and this.
    pub(super) report: &'static str,
    /// Whether something is wrong with the program or the recording.
    pub(super) is_problem: bool,
    pub(super) text: String,
}

impl Finding {
    fn problem_if(is_problem: bool, report: &'static str, text: String) -> Self {
        Self { report, is_problem, text }
    }

    fn fact(report: &'static str, text: String) -> Self {
        Self::problem_if(false, report, text)
    }
}

/// From this share on, in percent, pauses are a problem.
const PAUSES: f64 = 10.0;
/// From this share on, in percent, missing names are a problem.
const NAMELESS: f64 = 10.0;
/// Below this share, in percent, a method is not worth a word.
const LEAST_METHOD: f64 = 1.0;

/// Returns the findings, problems first.
pub(super) fn of(gathered: &Gathered) -> Vec<Finding> {
    let rows = top(&gathered.profile);
    let total = gathered.profile.total();
    let mut findings: Vec<_> = [
        lost(gathered),
        dead_locks(gathered),
        nameless(&rows, total),
        starvation(gathered),
        requests(gathered),
        methods(gathered, &rows, total),
        blocked(gathered, total),
        pauses(gathered),
        allocations(gathered),
        exceptions(gathered),
        locks(gathered),
        compilation(gathered),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by_key(|finding| !finding.is_problem);
    findings
}

fn lost(gathered: &Gathered) -> Option<Finding> {
    let summary = &gathered.summary;
    let at_least = if summary.lost_is_lower_bound { "At least " } else { "" };
    (summary.lost > 0).then(|| {
        let text = format!(
            "{at_least}{} events were lost, and all numbers are too low by theirs: record with a larger --buffersize",
            units::count(summary.lost)
        );
        Finding::problem_if(true, "events", text)
    })
}

fn nameless(rows: &[TopRow], total: u64) -> Option<Finding> {
    let nameless = rows.iter().filter(|row| !row.is_root && row.frame.ends_with("!?"));
    let share = units::share(nameless.map(|row| row.exclusive).fold(0, u64::saturating_add), total);
    (share >= NAMELESS).then(|| {
        let text = format!(
            "{} of the time is in methods without a name: native code, or a recording that ended without its rundown, \
             which dipc repair --names-from gives the names of another. Without names idle threads count as work",
            units::short_percent(share)
        );
        Finding::problem_if(true, "topN", text)
    })
}

fn starvation(gathered: &Gathered) -> Option<Finding> {
    let pool = gathered.thread_pool.as_ref()?;
    if let Some(starved) = pool.adjustments.iter().find(|row| row.reason == "Starvation") {
        let text = format!(
            "The pool had too few threads {} times, and added up to {}: work waited while all others were blocked",
            units::count(starved.count),
            starved.most_threads
        );
        return Some(Finding::problem_if(true, "threadpool", text));
    }
    (pool.queue.count > 0).then(|| {
        let text = format!(
            "{} work items waited {} in the middle, {} at the 99th percent",
            units::count(pool.queue.count),
            units::time(pool.queue.median),
            units::time(pool.queue.p99)
        );
        Finding::fact("threadpool", text)
    })
}

/// A time in words, with the methods that have most of it.
fn weighed(frames: &Frames, total: u64, what: &str, mut methods: Vec<(FrameId, u64)>) -> String {
    methods.sort_by_key(|(frame, weight)| (Reverse(*weight), frames.name(*frame)));
    let share = |weight: u64| units::share(weight, total);
    let methods = methods.into_iter().take(3).filter(|(_, weight)| share(*weight) >= LEAST_METHOD);
    let methods = methods.map(|(frame, weight)| {
        let name = FrameName::new(frames, Some(frame), frames.name(frame));
        format!("{} {}", units::short_percent(share(weight)), name.without_parameters())
    });
    let methods: Vec<_> = methods.collect();
    let colon = if methods.is_empty() { "" } else { ": " };
    format!("{} {what}{colon}{}", units::time(Duration::from_nanos(total)), methods.join(", "))
}

/// The requests, or where there are none the calls.
fn requests(gathered: &Gathered) -> Option<Finding> {
    let report = gathered.requests.as_ref()?;
    let of = |role: SpanRole| report.rows.iter().filter(move |row| row.role == role && row.count > 0);
    let (role, what) = if of(SpanRole::Server).next().is_some() {
        (SpanRole::Server, "requests")
    } else {
        (SpanRole::Outgoing, "calls")
    };
    let slowest = of(role).max_by_key(|row| row.latencies.p99)?;
    let count = of(role).map(|row| row.count).fold(0, u64::saturating_add);
    let errors = of(role).map(|row| row.errors).fold(0, u64::saturating_add);
    let name = if slowest.name.is_empty() { &slowest.task } else { &slowest.name };
    let text = format!(
        "{} {what}, {} of them failed; the slowest are {name}: {} in the middle, {} at the 99th percent",
        units::count(count),
        units::count(errors),
        units::time(slowest.latencies.p50),
        units::time(slowest.latencies.p99)
    );
    Some(Finding::problem_if(errors > 0, "requests", text))
}

fn is_named(row: &TopRow) -> bool {
    !row.is_root && !row.frame.ends_with("!?")
}

fn methods(gathered: &Gathered, rows: &[TopRow], total: u64) -> Option<Finding> {
    let profile = &gathered.profile;
    let working = total.saturating_sub(profile.blocked());
    if total == 0 {
        return (profile.idle() > 0)
            .then(|| Finding::fact("topN", "No thread was at work: all waited for some".to_owned()));
    }
    let rows = rows.iter().filter(|row| is_named(row));
    let work = |row: &TopRow| row.exclusive.saturating_sub(row.exclusive_blocked);
    let methods = rows.filter_map(|row| Some((row.frame_id?, work(row)))).collect();
    let what = if gathered.unverified == 0 {
        "of work".to_owned()
    } else if gathered.unverified >= working {
        "of work or waits, which these samples do not tell apart".to_owned()
    } else {
        let unverified = units::time(Duration::from_nanos(gathered.unverified));
        format!("of work, {unverified} {RUNNING_OR_WAITING}")
    };
    Some(Finding::fact("topN", weighed(&profile.frames, working, &what, methods)))
}

fn blocked(gathered: &Gathered, total: u64) -> Option<Finding> {
    let profile = &gathered.profile;
    let blocked = profile.blocked();
    if blocked == 0 || units::share(blocked, total) < LEAST_METHOD {
        return None;
    }
    // By the program's own method next to the wait: those of the class library are how it waits.
    let is_own =
        |name: &str| name.contains('!') && !name.starts_with("System.") && !name.starts_with("Microsoft.");
    let mut owners: BTreeMap<FrameId, u64> = BTreeMap::new();
    for total in profile.stack_totals.iter().filter(|total| total.state == ThreadState::Blocked) {
        let mut path = total.stack.into_iter().flat_map(|stack| profile.path(stack));
        let is_owner = |name: &str| name == pseudo_frames::GC_PAUSE || is_own(name);
        let owner = path.find(|(_, frame)| is_owner(profile.frames.full_name(*frame)));
        if let Some((_, owner)) = owner {
            let sum = owners.entry(owner).or_default();
            *sum = sum.saturating_add(total.weight);
        }
    }
    let owners = owners.into_iter().collect();
    let what = match gathered.without_processor {
        0 => "blocked in the midst of work".to_owned(),
        time => {
            let time = units::time(Duration::from_nanos(time));
            format!("blocked in the midst of work, {time} of it ready to run, without a processor")
        }
    };
    let text = weighed(&profile.frames, blocked, &what, owners);
    Some(Finding::fact("stacks", text))
}

fn pauses(gathered: &Gathered) -> Option<Finding> {
    let gc = &gathered.gc;
    if gc.is_empty() {
        return None;
    }
    let induced: u64 =
        gc.generations.iter().filter(|row| row.generation.is_none()).map(|row| row.induced).sum();
    let induced = if induced > 0 {
        format!(", {} that the program asked for", units::count(induced))
    } else {
        String::new()
    };
    let text = format!(
        "Paused {} of the time by {} collections{induced}, {} at the longest",
        units::short_percent(gc.pause_percent),
        units::count(gc.collections.len() as u64),
        units::time(gc.pauses.max)
    );
    Some(Finding::problem_if(gc.pause_percent >= PAUSES, "gc", text))
}

fn allocations(gathered: &Gathered) -> Option<Finding> {
    let allocations = &gathered.allocations;
    let first = allocations.types.first()?;
    let text = format!(
        "{} allocated, {} of it {}",
        units::bytes(allocations.bytes),
        units::short_percent(units::share(first.bytes, allocations.bytes)),
        first.csharp
    );
    Some(Finding::fact("alloc", text))
}

fn exceptions(gathered: &Gathered) -> Option<Finding> {
    let exceptions = &gathered.exceptions;
    let first = exceptions.types.first()?;
    let text = if exceptions.count == first.count {
        format!("{} thrown, all {}", units::count(exceptions.count), first.csharp)
    } else {
        format!(
            "{} thrown, {} of them {}",
            units::count(exceptions.count),
            units::count(first.count),
            first.csharp
        )
    };
    Some(Finding::fact("exceptions", text))
}

fn locks(gathered: &Gathered) -> Option<Finding> {
    let waits = &gathered.contention.waits;
    (waits.count > 0).then(|| {
        let text = format!(
            "{} waits for locks, {} together, {} at the longest",
            units::count(waits.count),
            units::time(waits.total),
            units::time(waits.max)
        );
        Finding::fact("contention", text)
    })
}

fn dead_locks(gathered: &Gathered) -> Option<Finding> {
    let dead_locks = &gathered.contention.dead_locks;
    let first = dead_locks.first()?;
    let others = match dead_locks.len() {
        1 => String::new(),
        count => format!(" ({} others like it)", count - 1),
    };
    Some(Finding::problem_if(true, "contention", format!("Dead lock: {first}{others}")))
}

fn compilation(gathered: &Gathered) -> Option<Finding> {
    let jit = &gathered.jit;
    (!jit.is_empty()).then(|| {
        let time = jit.duration.map_or_else(String::new, |time| format!(" in {}", units::time(time)));
        let text = format!("{} methods compiled{time}", units::count(jit.methods));
        Finding::fact("jit", text)
    })
}
