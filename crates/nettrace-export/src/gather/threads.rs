//! The threads of a recording that have samples.

use std::collections::HashMap;

use clr_events::ThreadRole;
use nettrace::{Event, ThreadId};

use crate::track::{Span, Track};
use crate::weigh::Seen;

type Key = (Option<u64>, ThreadId);

#[derive(Debug)]
struct Entry {
    key: Key,
    /// V6: its name.
    name: Option<String>,
    is_wanted: Option<bool>,
    track: Option<Track>,
}

/// Threads, numbered in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Threads {
    numbers: HashMap<Key, u32>,
    entries: Vec<Entry>,
    /// The one of the event before.
    last: Option<(Key, u32)>,
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

    fn find(&mut self, key: Key, event: &Event<'_>) -> u32 {
        let entries = &mut self.entries;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            let name = event.thread().and_then(|thread| thread.name());
            let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
            entries.push(Entry { key, name, is_wanted: None, track: None });
            u32::try_from(entries.len() - 1).unwrap_or(u32::MAX)
        });
        self.last = Some((key, number));
        number
    }

    /// Whether the thread is to be looked at; `decide` is asked once.
    #[inline]
    pub(super) fn is_wanted(&mut self, thread: u32, decide: impl FnOnce() -> bool) -> bool {
        self.entries.get_mut(thread as usize).is_some_and(|entry| *entry.is_wanted.get_or_insert_with(decide))
    }

    /// Appends what was seen to the thread's track.
    #[inline]
    pub(super) fn push(&mut self, seen: &Seen, site: u32, is_time: bool) {
        if let Some(entry) = self.entries.get_mut(seen.thread as usize) {
            let span = Span { start: seen.start, weight: seen.weight, samples: 1, site };
            entry.track.get_or_insert_with(|| Track::new(is_time)).push(span);
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.entries.iter().map(|entry| entry.key)
    }

    pub(super) fn finish(self) -> impl Iterator<Item = (Key, Option<String>, Option<Track>)> {
        self.entries.into_iter().map(|entry| (entry.key, entry.name, entry.track))
    }
}

/// The frame that stands for a thread, as dotnet-trace writes it.
pub(super) fn frame(id: ThreadId, name: Option<&str>, role: Option<ThreadRole>) -> String {
    match (name, role) {
        (Some(name), _) => format!("Thread ({id}) ({name})"),
        (None, Some(role)) => format!("Thread ({id}) ({role})"),
        (None, None) => format!("Thread ({id})"),
    }
}
