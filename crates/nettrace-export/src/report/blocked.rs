//! Blocked time: the methods that waited, and the thread pool whose workers all did.

use std::cmp::Reverse;
use std::time::Duration;

use clr_events::code::CodeOrigin;
use clr_events::{StackId, ThreadState};
use hashbrown::{HashMap, HashSet};
use nettrace::RelativeTime;
use serde::Serialize;

use crate::profile::frame::FrameId;
use crate::profile::frame_kind::{FrameKind, is_framework};
use crate::profile::index::ProcessIndex;
use crate::profile::kernel_wait::KernelWait;
use crate::profile::metric::Metric;
use crate::profile::{Profile, StackTotal, pseudo_frames};
use crate::report::nanoseconds;

/// The methods in which threads were blocked in the midst of work, the longest first, with the time of each.
///
/// That is the program's own method next to the wait, because the methods of the class library only implement
/// the wait; without one, the method at the leaf, but that of the program or a library before those of the C
/// library and the kernel. Pauses of the garbage collector are [their
/// own](pseudo_frames::GC_PAUSE).
pub fn blocked_methods(profile: &Profile) -> Vec<(FrameId, u64)> {
    methods_of(profile, |total| total.state == ThreadState::Blocked)
}

/// The methods in which threads could run and had no processor, in the same way: of the kernel's samples.
pub fn ready_methods(profile: &Profile) -> Vec<(FrameId, u64)> {
    methods_of(profile, |total| total.state == ThreadState::Ready)
}

/// The methods that allocated, those with the most bytes first, in the same way. The profile has
/// [allocated bytes](crate::Metric::Alloc).
pub fn allocating_methods(profile: &Profile) -> Vec<(FrameId, u64)> {
    methods_of(profile, |_| true)
}

fn methods_of(profile: &Profile, is_counted: impl Fn(&StackTotal) -> bool) -> Vec<(FrameId, u64)> {
    let mut methods: HashMap<FrameId, u64> = HashMap::new();
    for total in profile.stack_totals.iter().filter(|total| is_counted(total)) {
        if let Some(method) = total.stack.and_then(|stack| waiting_method(profile, stack)) {
            let sum = methods.entry(method).or_default();
            *sum = sum.saturating_add(total.weight);
        }
    }
    let mut methods: Vec<_> = methods.into_iter().collect();
    methods.sort_by_key(|(frame, weight)| (Reverse(*weight), profile.frames.name(*frame)));
    methods
}

fn waiting_method(profile: &Profile, stack: StackId) -> Option<FrameId> {
    let frames = &profile.frames;
    let is_own = |frame: FrameId| match frames.kind(frame) {
        FrameKind::Pseudo => frames.full_name(frame) == pseudo_frames::GC_PAUSE,
        FrameKind::Code(CodeOrigin::Managed) => !is_framework(frames.full_parts(frame).0),
        // A method of an unknown name, in a recording without native code.
        FrameKind::Code(CodeOrigin::Unknown) => true,
        FrameKind::Code(_) => false,
    };
    // The kernel's stacks have the implementation of the wait in front.
    let is_library = |frame: FrameId| match frames.kind(frame) {
        FrameKind::Code(CodeOrigin::Kernel | CodeOrigin::Runtime) => true,
        FrameKind::Code(CodeOrigin::Native) => is_of_system(frames.full_parts(frame).0),
        _ => false,
    };
    let is_kernel = |frame: FrameId| frames.kind(frame) == FrameKind::Code(CodeOrigin::Kernel);
    // The type of an allocation is at the leaf.
    let is_type = |frame: FrameId| profile.metric == Metric::Alloc && frames.kind(frame) == FrameKind::Pseudo;
    let all = || profile.path(stack).map(|(_, frame)| frame).filter(|frame| !is_type(*frame));
    let found = all().find(|frame| is_own(*frame)).or_else(|| all().find(|frame| !is_library(*frame)));
    found.or_else(|| all().find(|frame| !is_kernel(*frame))).or_else(|| all().next())
}

/// Whether a native module is one of the C and C++ libraries, or the loader.
fn is_of_system(module: &str) -> bool {
    const SYSTEM: [&str; 8] =
        ["libc.", "libc-", "libpthread", "ld-", "libstdc++", "libgcc_s", "librt.", "[vdso]"];
    SYSTEM.iter().any(|start| module.starts_with(start))
}

/// The blocked time of threads by the kind of wait in the kernel, the longest first; empty without the
/// kernel's samples. Time of an unknown kind is left out.
pub fn blocked_waits(profile: &Profile) -> Vec<(KernelWait, u64)> {
    let mut waits: HashMap<KernelWait, u64> = HashMap::new();
    for total in profile.stack_totals.iter().filter(|total| total.state == ThreadState::Blocked) {
        let Some(stack) = total.stack else { continue };
        let is_kernel = |frame: FrameId| profile.frames.kind(frame) == FrameKind::Code(CodeOrigin::Kernel);
        let of_kernel = profile.path(stack).map(|(_, frame)| frame).take_while(|frame| is_kernel(*frame));
        let mut kinds = of_kernel.filter_map(|frame| KernelWait::of(profile.frames.full_parts(frame)));
        if let Some(kind) = kinds.next() {
            let sum = waits.entry(kind).or_default();
            *sum = sum.saturating_add(total.weight);
        }
    }
    let mut waits: Vec<_> = waits.into_iter().collect();
    waits.sort_by_key(|(kind, weight)| (Reverse(*weight), *kind));
    waits
}

/// Stretches of time in which all workers of a thread pool were blocked: no work could begin.
///
/// A stretch counts from 100 ms on, and only if the process had at least as many workers as processors, and
/// two: up to that number the pool starts workers at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Starvation {
    /// The process; `None` if the recording does not say.
    pub process: Option<u64>,
    /// The most workers that were blocked at the same time.
    pub workers: u32,
    /// The sum of the stretches.
    #[serde(rename = "total_ns", serialize_with = "nanoseconds::serialize")]
    pub total: Duration,
    /// The longest stretch.
    #[serde(rename = "longest_ns", serialize_with = "nanoseconds::serialize")]
    pub longest: Duration,
    /// The time of its workers in which they were blocked.
    #[serde(rename = "blocked_ns", serialize_with = "nanoseconds::serialize")]
    pub blocked: Duration,
    /// The part of that in which they waited for tasks: synchronous code over `async` methods.
    #[serde(rename = "task_waits_ns", serialize_with = "nanoseconds::serialize")]
    pub task_waits: Duration,
    /// The method that waited the longest.
    pub method: Option<String>,
    /// Its part of `blocked`.
    #[serde(rename = "method_ns", serialize_with = "nanoseconds::serialize")]
    pub method_time: Duration,
}

/// A shorter stretch is one in which the pool has just begun to start workers.
const SHORTEST: Duration = Duration::from_millis(100);

/// Methods below which workers run, of .NET 6 and later, and of all versions.
const WORKERS: [&str; 2] = [
    "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart",
    "System.Threading.ThreadPoolWorkQueue.Dispatch",
];
const TASK_WAITS: [&str; 3] = [
    "System.Threading.Tasks.Task.InternalWait",
    "System.Threading.Tasks.Task.SpinThenBlockingWait",
    "System.Threading.Tasks.Task.Wait",
];

/// Returns the starvation of the process in which it lasted the longest; `None` without starvation.
///
/// The profile is one of thread time without [idle](crate::Options::idle) time, with
/// [tracks](crate::Options::tracks).
pub fn starvation(profile: &Profile, processors: Option<u32>) -> Option<Starvation> {
    let has = |stack: StackId, methods: &[&str]| {
        profile.path(stack).any(|(_, frame)| {
            let (module, name) = profile.frames.full_parts(frame);
            !module.is_empty() && methods.iter().any(|method| name.starts_with(method))
        })
    };
    let mut is_worker = vec![false; profile.threads.len()];
    for total in &profile.stack_totals {
        if let (Some(stack), Some(place)) = (total.stack, is_worker.get_mut(total.thread.index())) {
            *place = *place || has(stack, &WORKERS);
        }
    }
    let least = processors.unwrap_or(0).max(2);
    let processes: HashSet<ProcessIndex> = profile.threads.iter().map(|thread| thread.process).collect();
    let of_process = |process: ProcessIndex| {
        let is_counted = |thread: usize| {
            is_worker.get(thread).copied().unwrap_or(false)
                && profile.threads.get(thread).is_some_and(|thread| thread.process == process)
        };
        let (workers, total, longest) = stretches(profile, is_counted, least)?;
        let is_counted = |total: &StackTotal| is_counted(total.thread.index());
        let methods = methods_of(profile, |total| total.state == ThreadState::Blocked && is_counted(total));
        let blocked = profile.stack_totals.iter().filter(|total| total.state == ThreadState::Blocked);
        let blocked: Vec<_> = blocked.filter(|total| is_counted(total)).collect();
        let sum = |totals: &mut dyn Iterator<Item = &&StackTotal>| {
            Duration::from_nanos(totals.map(|total| total.weight).fold(0, u64::saturating_add))
        };
        let waits_for_task = |total: &&&StackTotal| total.stack.is_some_and(|stack| has(stack, &TASK_WAITS));
        let (method, method_time) = methods.first().copied().unzip();
        Some(Starvation {
            process: profile.processes.get(process.index()).map(|process| process.id).filter(|id| *id != 0),
            workers,
            total,
            longest,
            blocked: sum(&mut blocked.iter()),
            task_waits: sum(&mut blocked.iter().filter(waits_for_task)),
            method: method.map(|frame| profile.frames.method(frame).to_owned()),
            method_time: Duration::from_nanos(method_time.unwrap_or(0)),
        })
    };
    processes
        .into_iter()
        .filter_map(of_process)
        .max_by_key(|starvation| (starvation.total, starvation.process))
}

/// Returns the most threads, the sum and the longest of the stretches in which all of these threads were
/// blocked, at least `least`.
fn stretches(
    profile: &Profile,
    is_counted: impl Fn(usize) -> bool,
    least: u32,
) -> Option<(u32, Duration, Duration)> {
    // By time, how many more threads there are, and how many more are blocked.
    let mut changes: Vec<(RelativeTime, i32, i32)> = Vec::new();
    let counted = profile.threads.iter().enumerate().filter(|(index, _)| is_counted(*index));
    for track in counted.filter_map(|(_, thread)| thread.track.as_ref()) {
        let mut blocked: Option<(RelativeTime, RelativeTime)> = None;
        let mut alive: Option<(RelativeTime, RelativeTime)> = None;
        for span in track.iter() {
            let end = span.end(true);
            alive = Some((alive.map_or(span.start, |(start, _)| start), end));
            let state = profile.stack_totals.get(span.total.index()).map(|total| total.state);
            if state != Some(ThreadState::Blocked) {
                continue;
            }
            match &mut blocked {
                Some((_, until)) if *until >= span.start => *until = end,
                _ => {
                    if let Some((from, until)) = blocked.replace((span.start, end)) {
                        changes.extend([(from, 0, 1), (until, 0, -1)]);
                    }
                }
            }
        }
        changes.extend(blocked.into_iter().flat_map(|(from, until)| [(from, 0, 1), (until, 0, -1)]));
        changes.extend(alive.into_iter().flat_map(|(from, until)| [(from, 1, 0), (until, -1, 0)]));
    }
    changes.sort_unstable_by_key(|(time, ..)| *time);
    let (mut alive, mut blocked) = (0i32, 0i32);
    let (mut most, mut total, mut longest) = (0u32, Duration::ZERO, Duration::ZERO);
    // The beginning of the stretch at hand, and its most threads.
    let mut stretch: Option<(RelativeTime, u32)> = None;
    let mut changes = changes.into_iter().peekable();
    while let Some((time, of_alive, of_blocked)) = changes.next() {
        alive = alive.saturating_add(of_alive);
        blocked = blocked.saturating_add(of_blocked);
        if changes.peek().is_some_and(|(next, ..)| *next == time) {
            continue;
        }
        let threads = u32::try_from(blocked).unwrap_or(0);
        if blocked == alive && threads >= least {
            let (_, of_stretch) = stretch.get_or_insert((time, 0));
            *of_stretch = (*of_stretch).max(threads);
        } else if let Some((start, threads)) = stretch.take() {
            let duration = time.saturating_duration_since(start);
            if duration >= SHORTEST {
                most = most.max(threads);
                total = total.saturating_add(duration);
                longest = longest.max(duration);
            }
        }
    }
    (most > 0).then_some((most, total, longest))
}
