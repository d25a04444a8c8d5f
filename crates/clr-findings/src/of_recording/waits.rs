//! Causes in waits that last as long as the recording.

use std::collections::BTreeMap;

use clr_events::code::CodeOrigin;
use clr_events::{ThreadState, escape_controls};
use nettrace_export::report::{WaitingMethod, blocked_methods, working_methods};
use nettrace_export::units::{count, counted, nanoseconds, short_percent, time};
use nettrace_export::{FrameId, FrameKind};

use super::{OfRecording, name};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number, waiting_constructor};
use crate::names::short_names;
use crate::thresholds;

/// The ends of the names of methods that the runtime calls.
const FINALIZER: &str = ".Finalize";
const STATIC_CONSTRUCTOR: &str = "..cctor";

/// Maximum number of places in a sentence.
const MAX_PLACES: usize = 3;
/// The framework's methods that take a lock. Nothing waits in them for work to come.
const LOCKS: [&str; 5] = [
    "ReaderWriterLockSlim.Enter",
    "ReaderWriterLockSlim.TryEnter",
    "Lock.",
    "Monitor.Enter",
    "Monitor.TryEnter",
];
/// The methods that wait for other threads of the program, with their words.
const SIGNALS: [(&str, &str); 2] = [
    ("Barrier.SignalAndWait", "a Barrier that the other participants do not reach"),
    ("CountdownEvent.Wait", "a CountdownEvent that is not signaled often enough"),
];

impl OfRecording<'_> {
    /// Threads that wait for locks from the beginning to the end: their waits have no events.
    pub(super) fn endless_lock_waits(&self) -> Option<Finding> {
        let known: Vec<_> = self.lock_convoys().flat_map(|convoy| convoy.waiting_methods).collect();
        let frames = &self.overview.profile.frames;
        let mut waits: Vec<(u64, String, String)> = Vec::new();
        let methods = self.overview.blocked.throughout.methods.iter();
        for wait in methods.filter(|wait| frames.is_user_code(wait.method)) {
            let lock = match wait.called.map(|called| name(self.overview, called)) {
                Some(called) => LOCKS.iter().any(|lock| called.starts_with(lock)).then_some(called),
                None => self.waits_in_runtime(wait.method).then(|| "a monitor".to_owned()),
            };
            let method = name(self.overview, wait.method);
            if let Some(lock) = lock.filter(|_| !known.contains(&method)) {
                waits.push((wait.threads, method, lock));
            }
        }
        let method = waits.first().map(|(_, method, _)| method.clone())?;
        let threads = waits.iter().map(|(threads, ..)| *threads).fold(0, u64::saturating_add);
        let in_words = |(threads, method, lock): &(u64, String, String)| {
            format!("{} in {method} ({lock})", count(*threads))
        };
        let places: Vec<_> = waits.iter().take(MAX_PLACES).map(in_words).collect();
        let cause = format!(
            "{} for locks all the time, for {}: {}",
            counted(threads, "thread waits", "threads wait"),
            time(self.overview.duration),
            places.join(", "),
        );
        Some(
            Finding::new(FindingKind::LockConvoy, threads as f64, cause, Details::Methods)
                .with_waiting_methods(waits.into_iter().map(|(_, method, _)| method).collect())
                .with_method(Some(method))
                .with_numbers([Number::new("threads", threads as f64)]),
        )
    }

    /// Returns true if threads wait in code of the runtime that a method of the user's code itself has
    /// called: for a monitor, which has no method of the framework in most versions.
    fn waits_in_runtime(&self, method: FrameId) -> bool {
        let profile = &self.overview.profile;
        profile.stack_totals.iter().filter(|total| total.state == ThreadState::Blocked).any(|total| {
            let Some(stack) = total.stack else { return false };
            let mut frames = profile.path(stack).map(|(_, frame)| profile.frames.kind(frame));
            let mut is_of_method = profile.path(stack).map(|(_, frame)| frame == method);
            let depth = is_of_method.position(|is_of_method| is_of_method);
            let callee = depth.and_then(|depth| depth.checked_sub(1)).and_then(|callee| frames.nth(callee));
            callee == Some(FrameKind::Code(CodeOrigin::Runtime))
        })
    }

    /// Threads that wait for a signal of other threads of the program, while none of them is at work.
    pub(super) fn missed_signals(&self) -> Option<Finding> {
        let profile = &self.overview.profile;
        let methods = working_methods(profile);
        let of_program = methods.iter().filter(|work| profile.frames.is_user_code(work.method));
        let work = of_program.map(|work| work.weight).fold(0, u64::saturating_add);
        if self.average(work) * 100.0 > thresholds::AT_REST {
            return None;
        }
        let waits = blocked_methods(profile);
        let waits = waits.iter().filter(|wait| profile.frames.is_user_code(wait.method));
        let mut waits = waits.filter(|wait| self.is_most_of_the_time(wait));
        waits.find_map(|wait| {
            let called = name(self.overview, wait.called?);
            let (_, words) = SIGNALS.iter().find(|(method, _)| called.starts_with(method))?;
            let method = name(self.overview, wait.method);
            let cause = format!(
                "{} in {method} for {words}, for {}",
                counted(wait.threads, "thread waits", "threads wait"),
                time(self.overview.duration),
            );
            Some(
                Finding::new(FindingKind::StuckWait, wait.threads as f64, cause, Details::Methods)
                    .with_method(Some(method))
                    .with_confidence(Confidence::Likely)
                    .with_evidence(["no other thread of the program works meanwhile".to_owned()])
                    .with_numbers([Number::new("threads", wait.threads as f64)]),
            )
        })
    }

    /// Returns true if the threads of a wait are there almost all the time for which threads were recorded:
    /// those that poll wake up in between.
    fn is_most_of_the_time(&self, wait: &WaitingMethod) -> bool {
        let most = self.longest_thread() as f64 * wait.threads as f64;
        100.0 * wait.weight as f64 >= thresholds::ENDLESS * most
    }

    /// The longest time for which a thread was recorded, in nanoseconds, but at least half of the
    /// recording's: threads are recorded for less than events, which begin before and end after.
    fn longest_thread(&self) -> u64 {
        let profile = &self.overview.profile;
        let mut times = vec![0_u64; profile.threads.len()];
        for total in &profile.stack_totals {
            if let Some(time) = times.get_mut(total.thread.index()) {
                *time = time.saturating_add(total.weight);
            }
        }
        times.into_iter().max().unwrap_or_default().max(nanoseconds(self.overview.duration) / 2)
    }
}

/// The waits of threads below a method of the user's code that the runtime calls.
struct WaitsBelow {
    /// The type of the method that the runtime calls.
    type_name: String,
    /// The innermost method of the user's code in which most of the time is spent.
    method: String,
    /// The time, in nanoseconds.
    weight: u64,
}

impl OfRecording<'_> {
    /// The thread of finalizers, if it waits in the user's code most of the time: objects that have one stay
    /// meanwhile.
    pub(super) fn blocked_finalizer(&self) -> Option<Finding> {
        let waits = self.waits_below(FINALIZER)?;
        let cause = format!(
            "The finalizer thread waits in {} {} of the time, for a finalizer of {}: objects with finalizers are not freed \
             meanwhile",
            waits.method,
            short_percent(self.percent_of(waits.weight)),
            waits.type_name,
        );
        Some(self.waiting_callback(FindingKind::Finalizer, cause, waits))
    }

    /// A static constructor that waits most of the time.
    pub(super) fn waiting_static_constructor(&self) -> Option<Finding> {
        let waits = self.waits_below(STATIC_CONSTRUCTOR)?;
        let percent = short_percent(self.percent_of(waits.weight));
        let cause = waiting_constructor(&waits.type_name, &format!("{} {percent} of the time", waits.method));
        Some(self.waiting_callback(FindingKind::StaticConstructor, cause, waits))
    }

    fn waiting_callback(&self, kind: FindingKind, cause: String, waits: WaitsBelow) -> Finding {
        let threads = self.average(waits.weight).min(1.0);
        Finding::new(kind, threads, cause, Details::Methods)
            .with_method(Some(waits.method))
            .with_object(Some(waits.type_name))
            .with_numbers([Number::new("waiting_percent", self.percent_of(waits.weight))])
    }

    /// The waits below methods of this name, if they last most of the time.
    fn waits_below(&self, name_of_method: &str) -> Option<WaitsBelow> {
        let profile = &self.overview.profile;
        let type_of = |frame: FrameId| {
            let (_, called) = profile.frames.full_parts(frame);
            let (method, _) = called.split_once('(')?;
            method.strip_suffix(name_of_method).filter(|_| profile.frames.is_user_code(frame))
        };
        let mut sums: BTreeMap<(&str, FrameId), u64> = BTreeMap::new();
        for total in profile.stack_totals.iter().filter(|total| total.state == ThreadState::Blocked) {
            let Some(stack) = total.stack else { continue };
            let frames = || profile.path(stack).map(|(_, frame)| frame);
            let Some(type_name) = frames().find_map(type_of) else { continue };
            if let Some(method) = frames().find(|frame| profile.frames.is_user_code(*frame)) {
                let sum = sums.entry((type_name, method)).or_default();
                *sum = sum.saturating_add(total.weight);
            }
        }
        let weight = sums.values().copied().fold(0, u64::saturating_add);
        let ((type_name, method), _) = sums.into_iter().max_by_key(|(_, weight)| *weight)?;
        let waits = WaitsBelow {
            type_name: escape_controls(&short_names(type_name)).into_owned(),
            method: name(self.overview, method),
            weight,
        };
        (self.percent_of(weight) >= thresholds::MOST_OF_THE_TIME).then_some(waits)
    }

    fn percent_of(&self, weight: u64) -> f64 {
        (100.0 * self.average(weight)).min(100.0)
    }
}
