//! Blocked time: the methods that waited, and a thread pool with all workers blocked.

use std::cmp::Reverse;
use std::time::Duration;

use clr_events::code::CodeOrigin;
use clr_events::{StackId, ThreadState};
use hashbrown::{HashMap, HashSet};
use nettrace::RelativeTime;
use serde::Serialize;

use crate::profile::frame::FrameId;
use crate::profile::frame_kind::FrameKind;
use crate::profile::index::{ProcessIndex, ThreadIndex};
use crate::profile::kernel_wait::KernelWait;
use crate::profile::metric::Metric;
use crate::profile::{Profile, StackTotal, pseudo_frames};
use crate::report::nanoseconds;

/// A method in which threads waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingMethod {
    /// The user's own method next to the wait, because the methods of the class library only implement the
    /// wait; without one, the method at the leaf, with the program's and libraries' methods preferred to the
    /// C library's and the kernel's. Pauses of the garbage collector are [their
    /// own](crate::pseudo_frames::GC_PAUSE).
    pub method: FrameId,
    /// The framework's method that it called to wait; `None` if the wait is without a frame of its own.
    pub called: Option<FrameId>,
    /// The time.
    pub weight: u64,
    /// The number of threads.
    pub threads: u64,
}

/// The methods in which threads were blocked in the midst of work, the longest first.
pub fn blocked_methods(profile: &Profile) -> Vec<WaitingMethod> {
    methods_of(profile, |total| total.state == ThreadState::Blocked)
}

/// The methods in which threads worked, the longest first: [the user's](crate::Frames::is_user_code) with the
/// time of the framework's methods that they called.
pub fn working_methods(profile: &Profile) -> Vec<WaitingMethod> {
    methods_of(profile, |total| total.state == ThreadState::Working)
}

/// The methods in which threads were ready but not running, from the kernel's samples.
pub fn ready_methods(profile: &Profile) -> Vec<WaitingMethod> {
    methods_of(profile, |total| total.state == ThreadState::Ready)
}

/// The methods that allocated, in descending order of bytes, in the same way. The profile has
/// [allocated bytes](crate::Metric::Alloc).
pub fn allocating_methods(profile: &Profile) -> Vec<WaitingMethod> {
    methods_of(profile, |_| true)
}

/// The time and the threads of a [`WaitingMethod`].
#[derive(Debug, Default)]
struct WaitSum {
    weight: u64,
    threads: HashSet<ThreadIndex>,
    called: HashMap<Option<FrameId>, u64>,
}

fn methods_of(profile: &Profile, is_counted: impl Fn(&StackTotal) -> bool) -> Vec<WaitingMethod> {
    let mut methods: HashMap<FrameId, WaitSum> = HashMap::new();
    for total in profile.stack_totals.iter().filter(|total| is_counted(total)) {
        let Some((stack, method)) =
            total.stack.and_then(|stack| Some((stack, waiting_method(profile, stack)?)))
        else {
            continue;
        };
        let sum = methods.entry(method).or_default();
        sum.weight = sum.weight.saturating_add(total.weight);
        sum.threads.insert(total.thread);
        let called = sum.called.entry(called_to_wait(profile, stack, method)).or_default();
        *called = called.saturating_add(total.weight);
    }
    let methods = methods.into_iter().map(|(method, sum)| WaitingMethod {
        method,
        called: sum.called.into_iter().max_by_key(|(frame, weight)| (*weight, *frame)).and_then(|(it, _)| it),
        weight: sum.weight,
        threads: sum.threads.len() as u64,
    });
    let mut methods: Vec<_> = methods.collect();
    methods.sort_by_key(|wait| (Reverse(wait.weight), profile.frames.name(wait.method)));
    methods
}

/// Returns the framework's method that the user's method on a stack called.
fn called_to_wait(profile: &Profile, stack: StackId, method: FrameId) -> Option<FrameId> {
    let callees = profile.path(stack).map(|(_, frame)| frame).take_while(|frame| *frame != method);
    callees.last().filter(|frame| profile.frames.kind(*frame).is_managed())
}

/// Time in which threads did not get on, of one [kind](BlockedTime).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BlockedPart {
    /// The time.
    pub weight: u64,
    /// The number of threads.
    pub threads: u64,
    /// The methods that waited, the longest first.
    pub methods: Vec<WaitingMethod>,
    /// The kinds of waits in the kernel, the longest first; empty without the kernel's samples.
    pub waits: Vec<(KernelWait, u64)>,
}

/// The time in which threads were blocked, by cause.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BlockedTime {
    /// Waits of threads that also worked: waits that cost time.
    pub in_work: BlockedPart,
    /// Sleeps, such as `Thread.Sleep`.
    pub asleep: BlockedPart,
    /// Threads that waited in one method as long as the recording lasted, or for half of it at least, and did
    /// nothing else: they wait for work of their own kind, or for each other.
    pub throughout: BlockedPart,
}

/// Returns the [blocked time](ThreadState::Blocked) of a profile of thread time.
pub fn blocked_time(profile: &Profile) -> BlockedTime {
    // By thread, whether it worked, and the only method that it waited in.
    let mut threads = vec![(false, None::<FrameId>); profile.threads.len()];
    // A thread that ended, or that began, meanwhile did not wait for as long as the recording lasted.
    let mut lives = vec![0_u64; profile.threads.len()];
    for total in &profile.stack_totals {
        if let Some(life) = lives.get_mut(total.thread.index()) {
            *life = life.saturating_add(total.weight);
        }
    }
    let longest = lives.iter().copied().max().unwrap_or(0);
    let is_short = |thread: ThreadIndex| lives.get(thread.index()).is_none_or(|life| *life < longest / 2);
    for total in &profile.stack_totals {
        let Some((has_worked, place)) = threads.get_mut(total.thread.index()) else { continue };
        let method = total.stack.and_then(|stack| waiting_method(profile, stack));
        let is_elsewhere = method.is_some() && place.is_some_and(|place| Some(place) != method);
        let is_asleep = total.stack.is_some_and(|stack| sleeps(profile, stack));
        *has_worked |= is_elsewhere
            || is_asleep
            || is_short(total.thread)
            || total.state == ThreadState::Working && total.weight > 0;
        *place = place.or(method);
    }
    let has_worked =
        |total: &StackTotal| threads.get(total.thread.index()).is_some_and(|(worked, _)| *worked);
    let is_asleep = |total: &StackTotal| total.stack.is_some_and(|stack| sleeps(profile, stack));
    BlockedTime {
        in_work: part(profile, |total| has_worked(total) && !is_asleep(total)),
        asleep: part(profile, is_asleep),
        throughout: part(profile, |total| !has_worked(total) && !is_asleep(total)),
    }
}

fn part(profile: &Profile, is_counted: impl Fn(&StackTotal) -> bool) -> BlockedPart {
    let is_counted = |total: &StackTotal| {
        total.state == ThreadState::Blocked && total.stack.is_some() && is_counted(total)
    };
    let counted = || profile.stack_totals.iter().filter(|total| is_counted(total));
    BlockedPart {
        weight: counted().map(|total| total.weight).fold(0, u64::saturating_add),
        threads: counted().map(|total| total.thread).collect::<HashSet<_>>().len() as u64,
        methods: methods_of(profile, is_counted),
        waits: waits_of(profile, is_counted),
    }
}

/// Returns true if a thread with this stack sleeps: `Thread.Sleep` waits for an event in the kernel.
fn sleeps(profile: &Profile, stack: StackId) -> bool {
    let frames = profile.path(stack).map(|(_, frame)| frame);
    let mut managed = frames.filter(|frame| profile.frames.kind(*frame).is_managed()).peekable();
    let has = |frame: FrameId, method: &str| {
        profile.frames.full_parts(frame).1.starts_with(method) && !profile.frames.is_user_code(frame)
    };
    if managed.peek().is_none() {
        return kernel_wait(profile, stack) == Some(KernelWait::Sleep);
    }
    let mut sleeps = false;
    while managed.next_if(|frame| has(*frame, "System.Threading.Thread.Sleep")).is_some() {
        sleeps = true;
    }
    // Waits for something else spin, and sleep in between.
    sleeps && !managed.peek().is_some_and(|frame| has(*frame, "System.Threading.SpinWait."))
}

/// Time of threads that slept, and of threads that waited for input or output, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SleepAndIo {
    pub(crate) sleep: u64,
    pub(crate) io: u64,
}

impl SleepAndIo {
    /// Adds time with a stack, which may be of samples that do not distinguish waits from work.
    pub(crate) fn add(&mut self, profile: &Profile, stack: StackId, weight: u64) {
        if sleeps(profile, stack) {
            self.sleep = self.sleep.saturating_add(weight);
        } else if is_io(profile, stack) {
            self.io = self.io.saturating_add(weight);
        }
    }
}

/// Returns the sleep and I/O of each thread of a profile, by the thread's number.
pub(crate) fn sleep_and_io(profile: &Profile) -> Vec<SleepAndIo> {
    let mut times = vec![SleepAndIo::default(); profile.threads.len()];
    for total in &profile.stack_totals {
        if let (Some(stack), Some(times)) = (total.stack, times.get_mut(total.thread.index())) {
            times.add(profile, stack, total.weight);
        }
    }
    times
}

/// The beginnings of the framework's methods that call the system for input and output, or wait for it.
const IO: [&str; 12] = [
    "Interop+Sys.Read(",
    "Interop+Sys.Write(",
    "Interop+Sys.PRead",
    "Interop+Sys.PWrite",
    "Interop+Sys.Poll(",
    "Interop+Sys.Receive",
    "Interop+Sys.Send",
    "System.Net.Sockets.SocketPal.SysReceive",
    "System.Net.Sockets.SocketPal.SysSend",
    "System.Net.Sockets.SocketAsyncContext.PerformSyncOperation",
    "System.IO.RandomAccess.ReadAtOffset",
    "System.IO.RandomAccess.WriteAtOffset",
];

/// Returns true if a thread with this stack waits for input or output: by the kernel's functions at the leaf,
/// or by the framework's methods that the user's code called.
fn is_io(profile: &Profile, stack: StackId) -> bool {
    let is_of_io = |wait| {
        use KernelWait::{File, Pipe, Poll, Socket, Terminal};
        matches!(wait, Poll | Socket | Pipe | File | Terminal)
    };
    let frames = profile.path(stack).map(|(_, frame)| frame);
    let mut of_framework = frames
        .filter(|frame| profile.frames.kind(*frame).is_managed())
        .take_while(|frame| !profile.frames.is_user_code(*frame));
    kernel_wait(profile, stack).is_some_and(is_of_io)
        || of_framework.any(|frame| {
            let method = profile.frames.full_parts(frame).1;
            IO.iter().any(|start| method.starts_with(start))
        })
}

fn waiting_method(profile: &Profile, stack: StackId) -> Option<FrameId> {
    let frames = &profile.frames;
    let is_own = |frame: FrameId| match frames.kind(frame) {
        FrameKind::Pseudo => frames.full_name(frame) == pseudo_frames::GC_PAUSE,
        // A method of an unknown name, in a recording without native code.
        FrameKind::Code(CodeOrigin::Unknown) => true,
        FrameKind::Code(_) => frames.is_user_code(frame),
    };
    // The kernel's stacks have the implementation of the wait in front.
    let is_library = |frame: FrameId| match frames.kind(frame) {
        FrameKind::Code(CodeOrigin::Kernel | CodeOrigin::Runtime) => true,
        FrameKind::Code(CodeOrigin::Native) => is_of_system(frames.full_parts(frame).0),
        _ => false,
    };
    let is_kernel = |frame: FrameId| frames.kind(frame) == FrameKind::Code(CodeOrigin::Kernel);
    // The type of an allocation is at the leaf.
    let has_types = matches!(profile.metric, Metric::Alloc | Metric::LiveAlloc);
    let is_type = |frame: FrameId| has_types && frames.kind(frame) == FrameKind::Pseudo;
    let all = || profile.path(stack).map(|(_, frame)| frame).filter(|frame| !is_type(*frame));
    let found = all().find(|frame| is_own(*frame)).or_else(|| all().find(|frame| !is_library(*frame)));
    found.or_else(|| all().find(|frame| !is_kernel(*frame))).or_else(|| all().next())
}

/// Returns true if a native module is a C or C++ library, or the loader.
fn is_of_system(module: &str) -> bool {
    const SYSTEM: [&str; 8] =
        ["libc.", "libc-", "libpthread", "ld-", "libstdc++", "libgcc_s", "librt.", "[vdso]"];
    SYSTEM.iter().any(|start| module.starts_with(start))
}

/// The blocked time of threads by the kind of wait in the kernel, the longest first; empty without the
/// kernel's samples. Time of an unknown kind is left out.
pub fn blocked_waits(profile: &Profile) -> Vec<(KernelWait, u64)> {
    waits_of(profile, |total| total.state == ThreadState::Blocked)
}

fn waits_of(profile: &Profile, is_counted: impl Fn(&StackTotal) -> bool) -> Vec<(KernelWait, u64)> {
    let mut waits: HashMap<KernelWait, u64> = HashMap::new();
    for total in profile.stack_totals.iter().filter(|total| is_counted(total)) {
        let Some(stack) = total.stack else { continue };
        let kind = kernel_wait(profile, stack);
        let kind = kind.map(|kind| if sleeps(profile, stack) { KernelWait::Sleep } else { kind });
        if let Some(kind) = kind {
            let sum = waits.entry(kind).or_default();
            *sum = sum.saturating_add(total.weight);
        }
    }
    let mut waits: Vec<_> = waits.into_iter().collect();
    waits.sort_by_key(|(kind, weight)| (Reverse(*weight), *kind));
    waits
}

/// Returns the kind of wait of a stack by the kernel's functions at its leaf.
fn kernel_wait(profile: &Profile, stack: StackId) -> Option<KernelWait> {
    let is_kernel = |frame: FrameId| profile.frames.kind(frame) == FrameKind::Code(CodeOrigin::Kernel);
    let mut of_kernel = profile.path(stack).map(|(_, frame)| frame).take_while(|frame| is_kernel(*frame));
    of_kernel.find_map(|frame| KernelWait::of(profile.frames.full_parts(frame)))
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
    /// Maximum number of workers that were blocked at the same time.
    pub workers: u32,
    /// The sum of the stretches.
    #[serde(rename = "total_ns", serialize_with = "nanoseconds::serialize")]
    pub total: Duration,
    /// Duration of the longest stretch.
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
    /// The method's part of `blocked`.
    #[serde(rename = "method_ns", serialize_with = "nanoseconds::serialize")]
    pub method_time: Duration,
}

/// A shorter stretch is one in which the pool has just begun to start workers.
const MIN_STRETCH: Duration = Duration::from_millis(100);

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

/// Returns the starvation of the process with the longest starvation; `None` without starvation.
///
/// The profile must be of thread time without [idle](crate::Options::idle) time, with
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
        let (method, method_time) = methods.first().map(|wait| (wait.method, wait.weight)).unzip();
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
            if duration >= MIN_STRETCH {
                most = most.max(threads);
                total = total.saturating_add(duration);
                longest = longest.max(duration);
            }
        }
    }
    (most > 0).then_some((most, total, longest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::test_profile::profile;

    #[test]
    fn blocked_time_is_work_that_waits_or_sleep_or_all_that_a_thread_does() {
        use ThreadState::{Blocked, Working};
        const SLEEP: &str = "C!System.Threading.Thread.Sleep(int32)";
        const WAIT: &str = "System.Private.CoreLib!System.Threading.Monitor.Wait(class A)";
        let core = |name: &str| name.replace("C!", "System.Private.CoreLib!");
        let (sleep, spin, task) = (
            core(SLEEP),
            core("C!System.Threading.SpinWait.SpinOnceCore(int32)"),
            core("C!System.Threading.Tasks.Task.SpinWait(int32)"),
        );
        let profile = profile(&[
            (0, Working, 1, &["App!P.Work()"]),
            (0, Blocked, 2, &["App!P.Work()", WAIT]),
            // A wait that spins does not sleep.
            (0, Blocked, 4, &["App!P.Work()", &task, &spin, &sleep]),
            (1, Blocked, 8, &["App!P.Sleeper()", &sleep]),
            (2, Blocked, 128, &["App!P.Idle()", WAIT]),
            // The thread waited elsewhere, as did another in between.
            (3, Blocked, 32, &["App!P.Take()", WAIT]),
            (3, Blocked, 64, &["App!P.Put()", WAIT]),
            // The thread lived for a short time.
            (4, Blocked, 16, &["App!P.Idle()", WAIT]),
        ]);
        let BlockedTime { in_work, asleep, throughout } = blocked_time(&profile);
        assert_eq!([in_work.weight, asleep.weight, throughout.weight], [118, 8, 128]);
        assert_eq!([in_work.threads, asleep.threads, throughout.threads], [3, 1, 1]);
        let names = |wait: &WaitingMethod| {
            let called = wait.called.map(|frame| profile.frames.full_parts(frame).1);
            (profile.frames.full_parts(wait.method).1, called)
        };
        let sleeper = ("P.Sleeper()", Some("System.Threading.Thread.Sleep(int32)"));
        assert_eq!(asleep.methods.iter().map(names).collect::<Vec<_>>(), [sleeper]);
    }
}
