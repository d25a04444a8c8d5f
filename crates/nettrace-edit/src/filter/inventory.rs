//! An inventory of a recording's events by all the properties that filters use, to explain filters that match
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use clr_events::{EventName, event_name, is_named_by_kind};
use nettrace::{Event, Metadata, MetadataMap, RelativeTime};

use super::{Criteria, EventMatch};

/// Maximum number of distinct threads, processes and names to count.
const MAX_COUNTED: usize = 100_000;

/// The providers and events read in a recording.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    /// The number of events of each kind.
    kinds: MetadataMap<u64>,
    threads: BTreeMap<u64, u64>,
    processes: BTreeMap<u64, u64>,
    /// The times of the first and of the last event.
    span: Option<(RelativeTime, RelativeTime)>,
    /// The number of events with names of their own, by metadata index and name.
    own_names: BTreeMap<(usize, String), u64>,
}

/// A filter value that nothing matches, with the values that events have instead and the numbers of their
/// events.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnmatchedCriterion {
    /// The recording is without events.
    NoEvents,
    /// A provider without events.
    Provider {
        /// The name or pattern.
        wanted: String,
        /// The providers with events.
        known: BTreeMap<String, u64>,
    },
    /// A number or name of events that no event has.
    Event {
        /// The number, name or pattern.
        wanted: EventMatch,
        /// True if only the events of some providers were compared.
        of_providers: bool,
        /// The names of these events.
        known: BTreeMap<String, u64>,
    },
    /// A thread without events.
    Thread {
        /// The requested id.
        wanted: u64,
        /// The threads with events.
        known: BTreeMap<u64, u64>,
    },
    /// A process without events.
    Process {
        /// The requested id.
        wanted: u64,
        /// The processes with events.
        known: BTreeMap<u64, u64>,
    },
    /// A time range that is empty or without events.
    Times {
        /// The requested beginning.
        from: Option<RelativeTime>,
        /// The requested end.
        to: Option<RelativeTime>,
        /// The time of the first event.
        first: RelativeTime,
        /// The time of the last event.
        last: RelativeTime,
    },
    /// Each value matches an event, but no event matches all of them.
    Combination,
}

impl Inventory {
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let index = event.metadata_index();
        self.kinds.update(index, |events| *events = events.saturating_add(1));
        if !is_named_by_kind(event) {
            count(&mut self.own_names, (index, event_name(event).to_string()));
        }
        count(&mut self.threads, event.thread_id().0);
        if let Some(process) = event.process_id() {
            count(&mut self.processes, process);
        }
        let time = event.relative_time();
        self.add_times(time, time);
    }

    /// Adds the events of another part of the recording.
    pub(super) fn append(&mut self, other: Self) {
        for (index, count) in other.kinds.iter() {
            self.kinds.update(index, |events| *events = events.saturating_add(*count));
        }
        add_all(&mut self.own_names, other.own_names);
        add_all(&mut self.threads, other.threads);
        add_all(&mut self.processes, other.processes);
        if let Some((first, last)) = other.span {
            self.add_times(first, last);
        }
    }

    /// Adds the times of events that were skipped unread.
    pub(super) fn add_times(&mut self, from: RelativeTime, to: RelativeTime) {
        let (first, last) = self.span.unwrap_or((from, to));
        self.span = Some((first.min(from), last.max(to)));
    }

    /// The values that match no event. `metadata` is the recording's.
    pub(super) fn misses(&self, criteria: &Criteria, metadata: &[Metadata]) -> Vec<UnmatchedCriterion> {
        let Some((first, last)) = self.span else { return vec![UnmatchedCriterion::NoEvents] };
        let mut misses = Vec::new();
        let mut providers = BTreeMap::new();
        for (index, events) in self.kinds.iter() {
            if let Some(kind) = metadata.get(index) {
                add(&mut providers, kind.provider().to_owned(), *events);
            }
        }
        for glob in criteria.providers.iter().filter(|glob| !providers.keys().any(|it| glob.matches(it))) {
            misses.push(UnmatchedCriterion::Provider {
                wanted: glob.text().to_owned(),
                known: providers.clone(),
            });
        }
        misses.extend(self.missing_events(criteria, metadata));
        let is_missing =
            |id: &u64, known: &BTreeMap<u64, u64>| !known.contains_key(id) && known.len() < MAX_COUNTED;
        for wanted in criteria.threads.iter().copied().filter(|id| is_missing(id, &self.threads)) {
            misses.push(UnmatchedCriterion::Thread { wanted, known: self.threads.clone() });
        }
        for wanted in criteria.processes.iter().copied().filter(|id| is_missing(id, &self.processes)) {
            misses.push(UnmatchedCriterion::Process { wanted, known: self.processes.clone() });
        }
        let Criteria { from, to, .. } = *criteria;
        let is_empty = from.zip(to).is_some_and(|(from, to)| from >= to)
            || from.is_some_and(|from| from > last)
            || to.is_some_and(|to| to <= first);
        misses.extend(is_empty.then_some(UnmatchedCriterion::Times { from, to, first, last }));
        misses
    }

    /// The event filters that match nothing, among the events of the requested providers.
    fn missing_events(&self, criteria: &Criteria, metadata: &[Metadata]) -> Vec<UnmatchedCriterion> {
        let of_provider = |index: usize| {
            let kind = metadata.get(index).filter(|_| self.kinds.get(index).is_some())?;
            criteria.admits_provider(kind.provider()).then_some(kind)
        };
        let (mut ids, mut names) = (BTreeSet::new(), BTreeMap::new());
        for (index, events) in self.kinds.iter() {
            if let Some(kind) = of_provider(index) {
                ids.insert(kind.event_id());
                add(&mut names, EventName::of_kind(kind).to_string(), *events);
            }
        }
        for ((index, name), events) in &self.own_names {
            if of_provider(*index).is_some() {
                add(&mut names, name.clone(), *events);
            }
        }
        if names.is_empty() {
            return Vec::new();
        }
        let is_missing = |wanted: &&EventMatch| match wanted {
            EventMatch::Id(id) => !ids.contains(id),
            EventMatch::Name(glob) => !names.keys().any(|name| glob.matches_event(name)),
        };
        let missing = criteria.events.iter().filter(is_missing);
        let of_providers = !criteria.providers.is_empty();
        missing
            .map(|wanted| UnmatchedCriterion::Event {
                wanted: wanted.clone(),
                of_providers,
                known: names.clone(),
            })
            .collect()
    }
}

fn count<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    add(counts, key, 1);
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, events: u64) {
    if let Some(count) = counts.get_mut(&key) {
        *count = count.saturating_add(events);
    } else if counts.len() < MAX_COUNTED {
        counts.insert(key, events);
    }
}

fn add_all<K: Ord>(counts: &mut BTreeMap<K, u64>, others: BTreeMap<K, u64>) {
    for (key, events) in others {
        add(counts, key, events);
    }
}
