//! The threads of a recording that have samples.

use clr_events::ThreadRole;
use hashbrown::HashMap;
use nettrace::{Event, RelativeTime, ThreadId};

use crate::profile::index::{ThreadIndex, TotalIndex};
use crate::profile::metrics::Sample;
use crate::profile::symbolize::ThreadFacts;
use crate::profile::track::{Span, Track};

type Key = (Option<u64>, ThreadId);

/// A thread.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    /// V6: its name.
    pub(super) name: Option<String>,
    is_wanted: Option<bool>,
    /// The times of the first and the last event with a weight.
    first: RelativeTime,
    last: RelativeTime,
    pub(super) track: Option<Track>,
}

/// Threads, numbered in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Threads {
    numbers: HashMap<Key, u32>,
    entries: Vec<Entry>,
    /// The key and index of the previous event.
    last: Option<(Key, u32)>,
    /// The time of the newest event.
    newest: RelativeTime,
}

impl Threads {
    /// The thread that an event is about.
    #[inline]
    pub(super) fn of(&mut self, event: &Event<'_>) -> u32 {
        let key = (event.process_id(), event.thread_id());
        match self.last {
            Some((last, number)) if last == key => number,
            _ => self.find(key, event),
        }
    }

    /// The thread that an event is about, if an event of it was met before.
    pub(super) fn known(&self, event: &Event<'_>) -> Option<u32> {
        self.numbers.get(&(event.process_id(), event.thread_id())).copied()
    }

    fn find(&mut self, key: Key, event: &Event<'_>) -> u32 {
        let entries = &mut self.entries;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            let name = event.thread().and_then(|thread| thread.name());
            let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
            entries.push(Entry {
                key,
                name,
                is_wanted: None,
                first: RelativeTime::MAX,
                last: RelativeTime::MIN,
                track: None,
            });
            let number = u32::try_from(entries.len() - 1);
            debug_assert!(number.is_ok(), "memory ends before the numbers of threads do");
            number.unwrap_or(u32::MAX)
        });
        self.last = Some((key, number));
        number
    }

    /// Returns true if the thread is wanted; `decide` is called once.
    #[inline]
    pub(super) fn is_wanted(&mut self, thread: u32, decide: impl FnOnce() -> bool) -> bool {
        self.entries.get_mut(thread as usize).is_some_and(|entry| *entry.is_wanted.get_or_insert_with(decide))
    }

    /// Appends a sample to the thread's track.
    #[inline]
    pub(super) fn push(&mut self, sample: &Sample, total: TotalIndex, is_time: bool) {
        if let Some(entry) = self.entries.get_mut(sample.thread as usize) {
            let span = Span { start: sample.start, weight: sample.weight, samples: sample.samples, total };
            entry.track.get_or_insert_with(|| Track::new(is_time)).push(span);
        }
    }

    /// Adds a thread of the interval before, which is wanted there.
    pub(super) fn resume(&mut self, key: Key, name: Option<String>) -> u32 {
        let number = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let (first, last) = (RelativeTime::MAX, RelativeTime::MIN);
        self.entries.push(Entry { key, name, is_wanted: Some(true), first, last, track: None });
        self.numbers.insert(key, number);
        number
    }

    /// Returns the key of a thread, and its name.
    pub(super) fn identity(&self, thread: u32) -> Option<(Key, Option<String>)> {
        self.entries.get(thread as usize).map(|entry| (entry.key, entry.name.clone()))
    }

    /// The facts about threads that decide the meaning of their stacks, by number.
    pub(super) fn facts(&self) -> impl Iterator<Item = ThreadFacts> {
        // The runtime gives its own threads such names: `.NET EventPipe`, `.NET SigHandler`.
        let is_of_runtime = |name: &String| name.starts_with(".NET ");
        self.entries.iter().map(move |entry| ThreadFacts {
            process: entry.key.0,
            is_of_runtime: entry.name.as_ref().is_some_and(is_of_runtime),
        })
    }

    /// Notes when an event was; says whether one was noted before that is newer, of its thread or of `any`.
    #[inline]
    pub(super) fn goes_back(&mut self, thread: u32, time: RelativeTime, any: bool) -> bool {
        let Some(entry) = self.entries.get_mut(thread as usize) else { return false };
        let before = if any { self.newest } else { entry.last };
        entry.first = entry.first.min(time);
        entry.last = entry.last.max(time);
        self.newest = self.newest.max(time);
        time < before
    }

    /// The threads in the order of their first events, and for each number that was given the place in that
    /// order.
    pub(super) fn finish(self) -> (Vec<Entry>, Vec<ThreadIndex>) {
        let mut entries: Vec<_> = self.entries.into_iter().enumerate().collect();
        entries.sort_by_key(|(_, entry)| entry.first);
        let mut numbers = vec![ThreadIndex(0); entries.len()];
        for (place, (number, _)) in entries.iter().enumerate() {
            if let Some(entry) = numbers.get_mut(*number) {
                *entry = ThreadIndex::of(place);
            }
        }
        (entries.into_iter().map(|(_, entry)| entry).collect(), numbers)
    }
}

/// The frame of a thread, as dotnet-trace writes it.
pub(super) fn frame(id: ThreadId, name: Option<&str>, role: Option<ThreadRole>) -> String {
    match (name, role) {
        (Some(name), _) => format!("Thread ({id}) ({name})"),
        (None, Some(role)) => format!("Thread ({id}) ({role})"),
        (None, None) => format!("Thread ({id})"),
    }
}
