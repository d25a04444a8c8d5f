//! The stacks of threads: the first samples of each.

use std::path::Path;

use clr_events::ThreadState;
use indexmap::IndexMap;
use nettrace::{Event, Ticks, TraceInfo};
use nettrace_export::report::{Contention, ContentionReport};
use nettrace_export::{
    CausalGrouping, FrameId, KernelTimes, Metric, NameForm, Options, Profile, ProfileBuilder, Thread, Track,
    pseudo_frames,
};

use crate::exit::{Exit, Failure};
use crate::inspect::profile::{self, ProfileOptions, ProfileRequest};
use crate::inspect::recording::Recording;
use crate::record::thread_times::LiveThreadTimes;

/// The first samples of each thread.
pub(crate) struct ThreadStacks {
    profile: Profile,
    threads: Vec<ThreadSamples>,
    /// Waits for locks that had not ended, and the threads that wait for one another.
    locks: ContentionReport,
    /// Whether threads that work by their stacks may as well have waited.
    is_unverified: bool,
}

/// The first samples of a thread.
#[derive(Debug)]
pub(crate) struct ThreadSamples {
    /// An index of [`Profile::threads`].
    thread: usize,
    pub(crate) samples: u64,
    /// The different stacks, in the order in which they were met.
    pub(crate) stacks: Vec<SampledStack>,
}

/// A stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SampledStack {
    pub(crate) state: ThreadState,
    /// Whether the thread was in managed code, by the runtime.
    pub(crate) is_managed: bool,
    /// The managed frames, leaf first.
    pub(crate) frames: Vec<FrameId>,
    pub(crate) samples: u64,
}

impl ThreadStacks {
    /// Takes `most` samples of each thread of a profile that has tracks, kinds and idle stacks: the first ones behind those to leave out, or
    /// the last ones of a thread that has too few.
    fn new(profile: Profile, unverified: u64, locks: ContentionReport, most: u64) -> Self {
        let threads = profile.threads.iter().enumerate();
        let threads = threads.map(|(index, thread)| samples(&profile, index, thread, UNRELIABLE, most));
        let threads = threads.filter(|thread| thread.samples > 0).collect();
        Self { profile, threads, locks, is_unverified: unverified > 0 }
    }

    /// Reads them from a recording.
    pub(crate) fn read(file: &Path, options: &ProfileOptions, most: u64) -> Result<(Self, Exit), Failure> {
        let request =
            ProfileRequest { metric: Some(Metric::Wall), tracks: true, kinds: true, idle_stacks: true };
        let read = profile::read(file, options, request)?;
        Ok((Self::new(read.profile, read.unverified, locks(file)?, most), read.exit))
    }

    /// The threads, in the order of their first samples.
    pub(crate) fn threads(&self) -> &[ThreadSamples] {
        &self.threads
    }

    /// The operating system's number for a thread.
    pub(crate) fn id(&self, thread: &ThreadSamples) -> u64 {
        self.profile.threads.get(thread.thread).map_or(0, |thread| thread.id)
    }

    /// The name or role that the recording has for a thread.
    pub(crate) fn name(&self, thread: &ThreadSamples) -> Option<&str> {
        let frame = &self.profile.threads.get(thread.thread)?.frame;
        frame.split_once(") (")?.1.strip_suffix(')')
    }

    /// The process of a thread, where the recording has several.
    pub(crate) fn process(&self, thread: &ThreadSamples) -> Option<u64> {
        let thread = self.profile.threads.get(thread.thread)?;
        let has_many = self.profile.processes.len() > 1;
        self.profile.process_of(thread).filter(|_| has_many).map(|process| process.id)
    }

    /// Waits for locks that had not ended, as far as events tell them, and the dead locks among them.
    pub(crate) const fn locks(&self) -> &ContentionReport {
        &self.locks
    }

    /// Whether threads that work by their stacks may as well have waited.
    pub(crate) const fn is_unverified(&self) -> bool {
        self.is_unverified
    }

    /// The names of frames.
    pub(crate) const fn frames(&self) -> &nettrace_export::Frames {
        &self.profile.frames
    }
}

/// Reads the waits for locks of a recording, which may have been read before: only files can be.
fn locks(file: &Path) -> Result<ContentionReport, Failure> {
    let mut contention = Contention::default();
    if file.is_file() {
        let (events, origin) = Recording::open(file)?.into_parts();
        nettrace_export::report::read_kinds(events, Contention::needs, |event| contention.add(event))
            .map_err(|error| origin.failed(&error))?;
    }
    Ok(contention.finish())
}

fn samples(profile: &Profile, index: usize, thread: &Thread, leave_out: u64, most: u64) -> ThreadSamples {
    let mut counts: IndexMap<u32, u64> = IndexMap::new();
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
    // Totals that differ by what the work was done for can have one stack.
    let mut merged: IndexMap<_, u64> = IndexMap::new();
    for (key, samples) in counts.into_iter().filter_map(stack) {
        *merged.entry(key).or_default() += samples;
    }
    let stack = |((state, is_managed, frames), samples)| SampledStack { state, is_managed, frames, samples };
    let stacks: Vec<_> = merged.into_iter().map(stack).collect();
    ThreadSamples { thread: index, samples: stacks.iter().map(|stack| stack.samples).sum(), stacks }
}

/// The first sample of a thread says of its state what was true when the runtime stopped the thread before, if it ever did: on 3.1 and 9,
/// threads that sleep are in managed code by it. Seen with the first session of a process.
pub(crate) const UNRELIABLE: u64 = 1;

/// The samples of threads, out of the events of a stream while it arrives.
pub(crate) struct LiveThreadStacks {
    builder: ProfileBuilder,
    contention: Contention,
    account: Option<LiveThreadTimes>,
    runnable: Vec<u64>,
    /// The time of the last sample.
    last: Option<Ticks>,
}

impl LiveThreadStacks {
    /// Those of a process; `account` is the kernel's of its threads, of which some were `runnable` when they were sampled.
    pub(crate) fn new(
        names: NameForm,
        grouping: CausalGrouping,
        account: Option<LiveThreadTimes>,
        runnable: Vec<u64>,
    ) -> Self {
        let options = Options::new(Metric::Wall)
            .with_kinds(true)
            .with_idle(false)
            .with_idle_stacks(true)
            .with_gc_pauses(false)
            .with_grouping(grouping)
            .with_names(names);
        let mut builder = ProfileBuilder::new(options);
        if account.is_some() {
            builder = builder.with_kernel_times(KernelTimes::default());
        }
        Self { builder, contention: Contention::default(), account, runnable, last: None }
    }

    /// Takes an event.
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

    /// Returns the first samples of each thread, once the stream has ended whose header is `info`.
    pub(crate) fn finish(mut self, info: Option<&TraceInfo>, most: u64) -> Result<ThreadStacks, Failure> {
        if let (Some(account), Some(times)) = (&self.account, self.builder.kernel_times_mut()) {
            account.add_until(self.last, &self.runnable, times);
        }
        let (profile, unverified) = profile::finish(self.builder, info)?;
        Ok(ThreadStacks::new(profile, unverified, self.contention.finish(), most))
    }
}
