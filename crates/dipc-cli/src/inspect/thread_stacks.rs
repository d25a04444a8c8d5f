//! The stacks of threads: the first samples of each.

use std::path::Path;

use clr_events::ThreadState;
use indexmap::IndexMap;
use nettrace_export::report::{Contention, ContentionReport};
use nettrace_export::{
    CausalGrouping, FrameId, Metric, NameForm, Options, Profile, ProfileBuilder, Thread, Track, pseudo_frames,
};

use crate::exit::{Exit, Failure};
use crate::inspect::live_reader::LiveReader;
use crate::inspect::profile::diagnostics::warn_of_omissions;
use crate::inspect::profile::{self, ProfileOptions, ProfileRequest};
use crate::inspect::recording::Recording;

/// The first samples of each thread.
pub(crate) struct ThreadStacks {
    profile: Profile,
    threads: Vec<ThreadSamples>,
    /// Waits for locks that had not ended, and the threads that wait for one another.
    locks: ContentionReport,
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
    /// Takes the first samples of each thread of a profile that has tracks, kinds and idle stacks.
    fn new(profile: Profile, locks: ContentionReport, most: u64) -> Self {
        let threads = profile.threads.iter().enumerate();
        let threads = threads.map(|(index, thread)| samples(&profile, index, thread, most));
        let threads = threads.filter(|thread| thread.samples > 0).collect();
        Self { profile, threads, locks }
    }

    /// Reads them from a recording.
    pub(crate) fn read(file: &Path, options: &ProfileOptions, most: u64) -> Result<(Self, Exit), Failure> {
        let request =
            ProfileRequest { metric: Some(Metric::Wall), tracks: true, kinds: true, idle_stacks: true };
        let read = profile::read(file, options, request)?;
        Ok((Self::new(read.profile, locks(file)?, most), read.exit))
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
        nettrace_export::report::read(events, |event| contention.add(event))
            .map_err(|error| origin.failed(&error))?;
    }
    Ok(contention.finish())
}

fn samples(profile: &Profile, index: usize, thread: &Thread, most: u64) -> ThreadSamples {
    let mut counts: IndexMap<u32, u64> = IndexMap::new();
    let mut left = most;
    for span in thread.track.iter().flat_map(Track::iter) {
        if left == 0 {
            break;
        }
        let count = span.samples.min(left);
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

/// The samples of a stream while it arrives.
pub(crate) struct LiveThreadStacks {
    pub(crate) reader: LiveReader,
    builder: ProfileBuilder,
    contention: Contention,
}

impl LiveThreadStacks {
    pub(crate) fn new(reader: LiveReader, names: NameForm, grouping: CausalGrouping) -> Self {
        let options = Options::new(Metric::Wall)
            .with_kinds(true)
            .with_idle(false)
            .with_idle_stacks(true)
            .with_grouping(grouping)
            .with_names(names);
        Self { reader, builder: ProfileBuilder::new(options), contention: Contention::default() }
    }

    /// Takes the events that have arrived.
    pub(crate) fn drain(&mut self) {
        while let Some(event) = self.reader.next() {
            self.builder.add(&event);
            self.contention.add(&event);
        }
    }

    /// Returns the first samples of each thread, once the stream has ended.
    pub(crate) fn finish(self, most: u64) -> Result<ThreadStacks, Failure> {
        let info = self.reader.events().info();
        let finished = self.builder.finish(info);
        let (profile, omissions) = finished.map_err(|error| Failure::new(Exit::Failed, error))?;
        warn_of_omissions(&omissions);
        Ok(ThreadStacks::new(profile, self.contention.finish(), most))
    }
}
