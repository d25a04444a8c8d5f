//! The first samples of each thread, with the states of the threads.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use clr_events::ThreadState;
use dipc_client::{KernelThread, ProcessView, SAMPLE_PROFILER};
use indexmap::IndexMap;
use nettrace::{Event, Ticks, TraceInfo};
use nettrace_export::report::{Contention, ContentionReport};
use nettrace_export::{
    CausalGrouping, FrameId, Frames, KernelTimes, Metric, NameForm, Omissions, Options, Profile,
    ProfileBuilder, Thread, ThreadIndex, TotalIndex, Track, pseudo_frames,
};

use super::{StackReader, UNRELIABLE};
use crate::thread_times::LiveThreadTimes;

/// The time between two rounds of the kernel's thread accounting.
const ACCOUNT_PERIOD: Duration = Duration::from_millis(10);
/// The kernel's state letter of a thread that runs, or waits for a processor.
const RUNNABLE: char = 'R';

/// The first samples of each thread.
#[derive(Debug)]
pub struct ThreadStacks {
    profile: Profile,
    threads: Vec<ThreadSamples>,
    /// Unfinished lock waits, and the threads that wait for one another.
    locks: ContentionReport,
    /// True if threads at work according to their stacks may actually have been waiting.
    is_unverified: bool,
}

/// The form in which stacks are collected.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct StackOptions {
    /// The names of frames.
    pub names: NameForm,
    /// The grouping of stacks by their causes.
    pub grouping: CausalGrouping,
    /// True if each sample has the type that the runtime gave it, as in dotnet-stack, from a thread's first
    /// sample on; otherwise it has the state of its thread.
    pub keeps_types: bool,
}

impl StackOptions {
    /// With this form of [`names`](Self::names).
    #[must_use]
    pub const fn with_names(self, names: NameForm) -> Self {
        Self { names, ..self }
    }

    /// With this [`grouping`](Self::grouping).
    #[must_use]
    pub const fn with_grouping(self, grouping: CausalGrouping) -> Self {
        Self { grouping, ..self }
    }

    /// With the [types](Self::keeps_types) of samples, or the states of threads.
    #[must_use]
    pub const fn with_types(self, keeps_types: bool) -> Self {
        Self { keeps_types, ..self }
    }

    /// The number of first samples of a thread to leave out.
    const fn left_out(self) -> u64 {
        if self.keeps_types { 0 } else { UNRELIABLE }
    }
}

/// The first samples of a thread.
#[derive(Debug)]
#[non_exhaustive]
pub struct ThreadSamples {
    thread: ThreadIndex,
    /// The number of samples.
    pub samples: u64,
    /// The distinct stacks, in the order of their first samples.
    pub stacks: Vec<SampledStack>,
}

/// A stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SampledStack {
    /// The state of the thread.
    pub state: ThreadState,
    /// True if the thread was in managed code, according to the runtime.
    pub is_managed: bool,
    /// The managed frames, leaf first.
    pub frames: Vec<FrameId>,
    /// The number of samples.
    pub samples: u64,
}

impl ThreadStacks {
    /// Takes `most` samples of each thread of a profile that has tracks, kinds and idle stacks: the first
    /// ones after the unreliable one, or the last ones if a thread has too few. `unverified` is the part of
    /// the profile in which working threads may have been waiting.
    pub fn of_profile(
        profile: Profile,
        unverified: u64,
        mut locks: ContentionReport,
        options: StackOptions,
        most: u64,
    ) -> Self {
        let leave_out = options.left_out();
        let has_many = profile.processes.len() > 1;
        let key = |pid: Option<u64>, tid: u64| (pid.filter(|_| has_many), tid);
        let names = profile.threads.iter().filter_map(|thread| {
            let pid = profile.process_of(thread).map(|process| process.id);
            Some((key(pid, thread.id), thread.name.as_deref()?))
        });
        let names: HashMap<_, _> = names.collect();
        locks.name_threads(|pid, tid| names.get(&key(pid, tid)).map(|name| (*name).to_owned()));
        let threads = (0..).map(ThreadIndex).zip(&profile.threads);
        let threads = threads.map(|(index, thread)| samples(&profile, index, thread, leave_out, most));
        let threads = threads.filter(|thread| thread.samples > 0).collect();
        Self { profile, threads, locks, is_unverified: unverified > 0 }
    }

    /// The threads, in the order of their first samples.
    pub fn threads(&self) -> &[ThreadSamples] {
        &self.threads
    }

    /// The operating system's id of a thread.
    pub fn id(&self, thread: &ThreadSamples) -> u64 {
        self.profile.threads.get(thread.thread.index()).map_or(0, |thread| thread.id)
    }

    /// The name of a thread, if the recording or the kernel's account of threads has one, or else its role.
    pub fn name(&self, thread: &ThreadSamples) -> Option<Cow<'_, str>> {
        let thread = self.profile.threads.get(thread.thread.index())?;
        let role = || thread.role.map(|role| role.to_string().into());
        thread.name.as_deref().map(Cow::Borrowed).or_else(role)
    }

    /// The process of a thread, if the recording has several.
    pub fn process(&self, thread: &ThreadSamples) -> Option<u64> {
        let thread = self.profile.threads.get(thread.thread.index())?;
        let has_many = self.profile.processes.len() > 1;
        self.profile.process_of(thread).filter(|_| has_many).map(|process| process.id)
    }

    /// Unfinished lock waits that events show, and the deadlocks among them.
    pub const fn locks(&self) -> &ContentionReport {
        &self.locks
    }

    /// Returns true if threads at work according to their stacks may actually have been waiting.
    pub const fn is_unverified(&self) -> bool {
        self.is_unverified
    }

    /// The names of frames.
    pub const fn frames(&self) -> &Frames {
        &self.profile.frames
    }
}

fn samples(
    profile: &Profile,
    index: ThreadIndex,
    thread: &Thread,
    leave_out: u64,
    most: u64,
) -> ThreadSamples {
    let mut counts: IndexMap<TotalIndex, u64> = IndexMap::new();
    let mut left = most;
    let all: u64 = thread.track.iter().flat_map(Track::iter).map(|span| span.samples).sum();
    let mut left_out = leave_out.min(all.saturating_sub(most));
    for span in thread.track.iter().flat_map(Track::iter) {
        if left == 0 {
            break;
        }
        let skipped = span.samples.min(left_out);
        left_out -= skipped;
        let count = (span.samples - skipped).min(left);
        if count > 0 {
            *counts.entry(span.total).or_default() += count;
            left -= count;
        }
    }
    let stack = |(total, samples)| {
        let (total, stack) = profile.shown(total)?;
        let mut frames: Vec<_> = profile.stacks.frames(stack).collect();
        let kind = frames.first().map(|leaf| profile.frames.full_name(*leaf)).unwrap_or_default();
        let is_managed = match kind {
            pseudo_frames::MANAGED => Some(true),
            pseudo_frames::UNMANAGED | pseudo_frames::BLOCKED => Some(false),
            _ => None,
        };
        if is_managed.is_some() {
            frames.remove(0);
        }
        Some(((total.state, is_managed.unwrap_or(false), frames), samples))
    };
    // Totals for different causes of the work can share a stack.
    let mut merged: IndexMap<_, u64> = IndexMap::new();
    for (key, samples) in counts.into_iter().filter_map(stack) {
        *merged.entry(key).or_default() += samples;
    }
    let stack = |((state, is_managed, frames), samples)| SampledStack { state, is_managed, frames, samples };
    let stacks: Vec<_> = merged.into_iter().map(stack).collect();
    ThreadSamples { thread: index, samples: stacks.iter().map(|stack| stack.samples).sum(), stacks }
}

/// The reader of the first samples of each thread in a session.
#[derive(Debug)]
pub struct ThreadStackReader {
    options: StackOptions,
    most: u64,
    pid: Option<u32>,
    builder: ProfileBuilder,
    contention: Contention,
    account: Option<LiveThreadTimes>,
    /// The threads of the process as the kernel reports them.
    kernel_threads: Vec<KernelThread>,
    /// The threads that were runnable when they were sampled.
    runnable: Vec<u64>,
    /// The time of the last sample.
    last: Option<Ticks>,
}

/// The stacks of threads in a session.
#[derive(Debug)]
#[non_exhaustive]
pub struct LiveThreadStacks {
    /// The stacks.
    pub stacks: ThreadStacks,
    /// The data missing from them.
    pub omissions: Omissions,
    /// The threads of the process as the kernel reported them when they were sampled.
    pub kernel_threads: Vec<KernelThread>,
}

impl ThreadStackReader {
    /// Creates the reader of `most` samples of each thread of a process, before its session begins. The
    /// kernel's account of its threads is read if the pid is known.
    pub fn new(pid: Option<u32>, options: StackOptions, most: u64) -> Self {
        let profile_options = Options::new(Metric::Wall)
            .with_kinds(true)
            .with_idle(options.keeps_types)
            .with_idle_stacks(true)
            .with_gc_pauses(false)
            .with_grouping(options.grouping)
            .with_names(options.names);
        let mut builder = ProfileBuilder::new(profile_options);
        let account = LiveThreadTimes::start(pid, ACCOUNT_PERIOD);
        if account.is_some() {
            builder = builder.with_kernel_times(KernelTimes::default());
        }
        Self {
            options,
            most,
            pid,
            builder,
            contention: Contention::default(),
            account,
            kernel_threads: Vec::new(),
            runnable: runnable(&kernel_threads(pid)),
            last: None,
        }
    }
}

impl StackReader for ThreadStackReader {
    type Stacks = LiveThreadStacks;

    fn begin(&mut self) {
        self.kernel_threads = kernel_threads(self.pid);
        // A thread that the sampler has stopped at this moment seems to sleep.
        for thread in self.kernel_threads.iter_mut().filter(|thread| self.runnable.contains(&thread.id)) {
            thread.state = RUNNABLE;
        }
        self.runnable = runnable(&self.kernel_threads);
    }

    fn add(&mut self, event: &Event<'_>) {
        self.builder.add(event);
        self.contention.add(event);
        if event.provider() == SAMPLE_PROFILER {
            self.last = self.last.max(Some(event.time()));
            if let (Some(account), Some(times)) = (&self.account, self.builder.kernel_times_mut()) {
                account.add_to(&self.runnable, times);
            }
        }
    }

    fn finish(mut self, info: Option<&TraceInfo>) -> Option<LiveThreadStacks> {
        if let (Some(account), Some(times)) = (&self.account, self.builder.kernel_times_mut()) {
            account.add_until(self.last, &self.runnable, times);
        }
        // This cannot fail: events are in time order, so nothing stays open.
        let (profile, omissions) = self.builder.finish(info).ok()?;
        let locks = self.contention.finish();
        let stacks = ThreadStacks::of_profile(profile, omissions.unverified, locks, self.options, self.most);
        let has_stacks = !stacks.threads.is_empty();
        has_stacks.then_some(LiveThreadStacks { stacks, omissions, kernel_threads: self.kernel_threads })
    }
}

/// The threads of a process, as the kernel reports them.
fn kernel_threads(pid: Option<u32>) -> Vec<KernelThread> {
    pid.and_then(|pid| ProcessView::of(pid).threads().ok()).unwrap_or_default()
}

/// The ids of the threads that run, or wait for a processor.
fn runnable(threads: &[KernelThread]) -> Vec<u64> {
    threads.iter().filter(|thread| thread.state == RUNNABLE).map(|thread| thread.id).collect()
}
