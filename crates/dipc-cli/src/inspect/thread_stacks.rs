//! The stacks of threads: the first samples of each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use clr_events::ThreadState;
use indexmap::IndexMap;
use nettrace::{Event, Ticks, TraceInfo};
use nettrace_export::report::{Contention, ContentionReport};
use nettrace_export::{
    CausalGrouping, FrameId, KernelTimes, Metric, NameForm, Options, Profile, ProfileBuilder, Thread,
    ThreadIndex, TotalIndex, Track, pseudo_frames,
};

use crate::exit::{Exit, Failure};
use crate::inspect::profile::{self, ProfileOptions, ProfileRequest};
use crate::inspect::recording::Recording;
use crate::record::thread_times::LiveThreadTimes;

/// The first samples of each thread.
pub(crate) struct ThreadStacks {
    profile: Profile,
    threads: Vec<ThreadSamples>,
    /// Unfinished lock waits, and the threads that wait for one another.
    locks: ContentionReport,
    /// True if threads at work according to their stacks may actually have been waiting.
    is_unverified: bool,
}

/// The form in which stacks are collected.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StackOptions {
    pub(crate) names: NameForm,
    pub(crate) grouping: CausalGrouping,
    /// True if each sample has the type that the runtime gave it, as in dotnet-stack, from a thread's first
    /// sample on; otherwise it has the state of its thread.
    pub(crate) keeps_types: bool,
}

impl StackOptions {
    /// The number of first samples of a thread to leave out.
    const fn left_out(self) -> u64 {
        if self.keeps_types { 0 } else { UNRELIABLE }
    }
}

/// The first samples of a thread.
#[derive(Debug)]
pub(crate) struct ThreadSamples {
    thread: ThreadIndex,
    pub(crate) samples: u64,
    /// The distinct stacks, in the order of their first samples.
    pub(crate) stacks: Vec<SampledStack>,
}

/// A stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SampledStack {
    pub(crate) state: ThreadState,
    /// True if the thread was in managed code, according to the runtime.
    pub(crate) is_managed: bool,
    /// The managed frames, leaf first.
    pub(crate) frames: Vec<FrameId>,
    pub(crate) samples: u64,
}

impl ThreadStacks {
    /// Takes `most` samples of each thread of a profile that has tracks, kinds and idle stacks: the first
    /// ones after those to leave out, or the last ones if a thread has too few.
    fn new(
        profile: Profile,
        unverified: u64,
        mut locks: ContentionReport,
        leave_out: u64,
        most: u64,
    ) -> Self {
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

    /// Reads them from a recording.
    pub(crate) fn read(file: &Path, options: StackOptions, most: u64) -> Result<(Self, Exit), Failure> {
        let request =
            ProfileRequest { metric: Some(Metric::Wall), tracks: true, kinds: true, idle_stacks: true };
        let profile_options = ProfileOptions {
            names: options.names,
            grouping: options.grouping,
            idle: options.keeps_types,
            charges_gc_pauses: true,
            ..ProfileOptions::default()
        };
        let read = profile::read(file, &profile_options, request)?;
        let stacks = Self::new(read.profile, read.unverified, locks(file)?, options.left_out(), most);
        Ok((stacks, read.exit))
    }

    /// The threads, in the order of their first samples.
    pub(crate) fn threads(&self) -> &[ThreadSamples] {
        &self.threads
    }

    /// The operating system's id of a thread.
    pub(crate) fn id(&self, thread: &ThreadSamples) -> u64 {
        self.profile.threads.get(thread.thread.index()).map_or(0, |thread| thread.id)
    }

    /// The name of a thread, if the recording or the kernel's account of threads has one, or else its role.
    pub(crate) fn name(&self, thread: &ThreadSamples) -> Option<Cow<'_, str>> {
        let thread = self.profile.threads.get(thread.thread.index())?;
        let role = || thread.role.map(|role| role.to_string().into());
        thread.name.as_deref().map(Cow::Borrowed).or_else(role)
    }

    /// The process of a thread, if the recording has several.
    pub(crate) fn process(&self, thread: &ThreadSamples) -> Option<u64> {
        let thread = self.profile.threads.get(thread.thread.index())?;
        let has_many = self.profile.processes.len() > 1;
        self.profile.process_of(thread).filter(|_| has_many).map(|process| process.id)
    }

    /// Unfinished lock waits that events show, and the deadlocks among them.
    pub(crate) const fn locks(&self) -> &ContentionReport {
        &self.locks
    }

    /// Returns true if threads at work according to their stacks may actually have been waiting.
    pub(crate) const fn is_unverified(&self) -> bool {
        self.is_unverified
    }

    /// The names of frames.
    pub(crate) const fn frames(&self) -> &nettrace_export::Frames {
        &self.profile.frames
    }
}

/// Reads the lock waits of a recording in a second pass, which only files allow.
fn locks(file: &Path) -> Result<ContentionReport, Failure> {
    let mut contention = Contention::default();
    if file.is_file() {
        let (events, origin) = Recording::open(file)?.into_parts();
        nettrace_export::report::read_kinds(events, Contention::needs, |event| contention.add(event))
            .map_err(|error| origin.failed(&error))?;
    }
    Ok(contention.finish())
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

/// The number of unreliable first samples of a thread. The first sample has the state in which the runtime
/// last stopped the thread, if it ever did: on 3.1 and 9, sleeping threads appear to be in managed code. Seen
/// in the first session of a process.
pub(crate) const UNRELIABLE: u64 = 1;

/// The samples of threads, collected from a stream while it arrives.
pub(crate) struct LiveThreadStacks {
    builder: ProfileBuilder,
    contention: Contention,
    account: Option<LiveThreadTimes>,
    runnable: Vec<u64>,
    /// The time of the last sample.
    last: Option<Ticks>,
    /// The number of first samples of each thread to leave out.
    leave_out: u64,
}

impl LiveThreadStacks {
    /// Creates the collection for a process; `account` is the kernel's accounting of its threads, and
    /// `runnable` are the threads that were runnable when they were sampled.
    pub(crate) fn new(options: StackOptions, account: Option<LiveThreadTimes>, runnable: Vec<u64>) -> Self {
        let profile_options = Options::new(Metric::Wall)
            .with_kinds(true)
            .with_idle(options.keeps_types)
            .with_idle_stacks(true)
            .with_gc_pauses(false)
            .with_grouping(options.grouping)
            .with_names(options.names);
        let mut builder = ProfileBuilder::new(profile_options);
        if account.is_some() {
            builder = builder.with_kernel_times(KernelTimes::default());
        }
        Self {
            builder,
            contention: Contention::default(),
            account,
            runnable,
            last: None,
            leave_out: options.left_out(),
        }
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        self.builder.add(event);
        self.contention.add(event);
        if event.provider() == dipc_client::SAMPLE_PROFILER {
            self.last = self.last.max(Some(event.time()));
            if let (Some(account), Some(times)) = (&self.account, self.builder.kernel_times_mut()) {
                account.add_to(&self.runnable, times);
            }
        }
    }

    /// Returns the first samples of each thread, after the stream with the header `info` has ended.
    pub(crate) fn finish(mut self, info: Option<&TraceInfo>, most: u64) -> Result<ThreadStacks, Failure> {
        if let (Some(account), Some(times)) = (&self.account, self.builder.kernel_times_mut()) {
            account.add_until(self.last, &self.runnable, times);
        }
        let (profile, unverified) = profile::finish(self.builder, info)?;
        Ok(ThreadStacks::new(profile, unverified, self.contention.finish(), self.leave_out, most))
    }
}
