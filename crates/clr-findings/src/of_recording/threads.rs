//! Causes in the number of threads.

use std::collections::BTreeMap;
use std::time::Duration;

use nettrace_export::{FrameId, Thread};

use super::{OfRecording, name};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::growth::steady;
use crate::thresholds;

/// Methods below which workers of the thread pool run, of .NET 6 and later, and of all versions.
const WORKERS: [&str; 2] = [
    "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart",
    "System.Threading.ThreadPoolWorkQueue.Dispatch",
];
/// The parts of a recording that are compared.
const PARTS: u32 = 4;
/// The part of the recording at its beginning in which threads are seen first that were there before.
const MARGIN: u32 = 10;

impl OfRecording<'_> {
    /// Threads that begin all the time in the same method, and do not end.
    pub(super) fn thread_growth(&self) -> Option<Finding> {
        let (method, begins) = self.new_threads()?;
        let part = self.overview.duration.checked_div(PARTS)?;
        let before = self.overview.profile.threads.len().saturating_sub(begins.len());
        let value = |number: u32| {
            let end = part.saturating_mul(number);
            let new = begins.iter().filter(|begin| **begin <= end).count();
            (end.as_secs_f64(), before.saturating_add(new) as f64)
        };
        let growth = steady(&(0..=PARTS).map(value).collect::<Vec<_>>(), thresholds::GROWTH_PER_SECOND)?;
        if growth.number / growth.last * 100.0 < thresholds::GROWTH {
            return None;
        }
        let cause =
            format!("The number of threads grows: {}, most of the new ones in {method}", growth.in_words());
        Some(
            Finding::new(FindingKind::ThreadGrowth, growth.per_second(), cause, Details::Methods)
                .with_method(Some(method))
                .with_confidence(Confidence::Likely)
                .with_numbers([Number::new("growth", growth.number), Number::new("threads", growth.last)]),
        )
    }

    /// The times at which threads began that still are there at the end, with the method of most of them.
    /// Workers of the thread pool are left out.
    fn new_threads(&self) -> Option<(String, Vec<Duration>)> {
        let overview = self.overview;
        let begin = overview.duration.checked_div(MARGIN).unwrap_or_default();
        let end = overview.duration.saturating_sub(begin);
        let is_new = |(first, last): &(Duration, Duration)| *first > begin && *last >= end;
        let threads = overview.profile.threads.iter();
        let lives: Vec<_> = threads.map(|thread| life(thread).filter(is_new)).collect();
        let mut new: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
        for (thread, methods) in self.methods_of_threads(|thread| matches!(lives.get(thread), Some(Some(_))))
        {
            let (Some((first, _)), Some(method)) = (lives.get(thread).copied().flatten(), methods.first())
            else {
                continue;
            };
            if !methods.is_of_pool {
                new.entry(name(overview, method)).or_default().push(first);
            }
        }
        let all: usize = new.values().map(Vec::len).sum();
        let (method, begins) = new.into_iter().max_by_key(|(_, begins)| begins.len())?;
        (begins.len().saturating_mul(2) > all).then_some((method, begins))
    }

    /// The user's method in which a thread spends most of its time, except for a method.
    pub(super) fn method_of_thread(&self, tid: u64, except: Option<&str>) -> Option<String> {
        let index = self.overview.profile.threads.iter().position(|thread| thread.id == tid)?;
        let mut methods = self.methods_of_threads(|thread| thread == index).remove(&index)?;
        methods.weights.retain(|frame, _| except != Some(&*name(self.overview, *frame)));
        Some(name(self.overview, methods.first()?))
    }

    /// The methods of the user's code in which some threads spend their time.
    fn methods_of_threads(&self, is_wanted: impl Fn(usize) -> bool) -> BTreeMap<usize, Methods> {
        let profile = &self.overview.profile;
        let mut threads: BTreeMap<usize, Methods> = BTreeMap::new();
        for total in profile.stack_totals.iter().filter(|total| is_wanted(total.thread.index())) {
            let Some(stack) = total.stack else { continue };
            let methods = threads.entry(total.thread.index()).or_default();
            let mut method = None;
            for (_, frame) in profile.path(stack) {
                if profile.frames.is_user_code(frame) {
                    method = method.or(Some(frame));
                } else {
                    let called = profile.frames.full_parts(frame).1;
                    methods.is_of_pool |= WORKERS.iter().any(|worker| called.starts_with(worker));
                }
            }
            if let Some(method) = method {
                let weight = methods.weights.entry(method).or_default();
                *weight = weight.saturating_add(total.weight);
            }
        }
        threads
    }
}

/// The methods of the user's code in which a thread spends its time.
#[derive(Debug, Default)]
struct Methods {
    is_of_pool: bool,
    weights: BTreeMap<FrameId, u64>,
}

impl Methods {
    fn first(&self) -> Option<FrameId> {
        self.weights.iter().max_by_key(|(_, weight)| **weight).map(|(frame, _)| *frame)
    }
}

/// The first and the last time of a thread.
fn life(thread: &Thread) -> Option<(Duration, Duration)> {
    let track = thread.track.as_ref()?;
    let (first, last) = (track.iter().next()?, track.iter().last()?);
    let end = last.start.since_start().saturating_add(Duration::from_nanos(last.weight));
    Some((first.start.since_start(), end))
}
