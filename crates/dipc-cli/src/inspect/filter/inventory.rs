//! An inventory of a recording's events by all the properties that filters use, to explain filters that match
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use clr_events::{EventName, event_name, is_named_by_kind};
use nettrace::{Event, Metadata, RelativeTime};

use super::{Criteria, EventMatch, is_name};
use crate::duration;
use crate::render::{messages, units};

/// The most distinct threads, processes and names that are counted.
const MOST_COUNTED: usize = 100_000;
/// The most names that are suggested.
const PROPOSED: usize = 5;
/// The least similarity, out of 1, at which one name is suggested for another.
const ALIKE: f64 = 0.8;

/// The providers and events read in a recording.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// The number of events, by metadata index.
    kinds: Vec<u64>,
    threads: BTreeMap<u64, u64>,
    processes: BTreeMap<u64, u64>,
    /// The times of the first and of the last event.
    span: Option<(RelativeTime, RelativeTime)>,
    /// The number of events with names of their own, by metadata index and name.
    own_names: BTreeMap<(usize, String), u64>,
}

/// A filter value that nothing matches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Miss {
    pub(crate) warning: String,
    pub(crate) help: Option<String>,
}

impl Miss {
    pub(crate) fn warn(&self) {
        messages::warning(&self.warning);
        if let Some(help) = self.help.as_ref().filter(|_| !messages::is_quiet()) {
            messages::help(help);
        }
    }
}

impl Inventory {
    pub(crate) fn add(&mut self, event: &Event<'_>) {
        let index = event.metadata_index();
        if self.kinds.len() <= index {
            self.kinds.resize(index + 1, 0);
        }
        self.kinds[index] += 1;
        if !is_named_by_kind(event) {
            count(&mut self.own_names, (index, event_name(event).to_string()));
        }
        count(&mut self.threads, event.thread_id().0);
        if let Some(process) = event.process_id() {
            count(&mut self.processes, process);
        }
        let time = event.relative_time();
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    /// Adds the events of another part of the recording.
    pub(crate) fn append(&mut self, other: Self) {
        if self.kinds.len() < other.kinds.len() {
            self.kinds.resize(other.kinds.len(), 0);
        }
        for (kind, events) in self.kinds.iter_mut().zip(other.kinds) {
            *kind += events;
        }
        add_all(&mut self.own_names, other.own_names);
        add_all(&mut self.threads, other.threads);
        add_all(&mut self.processes, other.processes);
        if let Some((first, last)) = other.span {
            self.add_times(first, last);
        }
    }

    /// Adds the times of events that were skipped unread.
    pub(crate) fn add_times(&mut self, from: RelativeTime, to: RelativeTime) {
        let (first, last) = self.span.unwrap_or((from, to));
        self.span = Some((first.min(from), last.max(to)));
    }

    /// The values that match no event. `metadata` is the recording's.
    pub(crate) fn misses(&self, criteria: &Criteria, metadata: &[Metadata]) -> Vec<Miss> {
        let Some(span) = self.span else {
            return vec![Miss { warning: "the recording has no events".to_owned(), help: None }];
        };
        let mut misses = Vec::new();
        let kinds: Vec<_> = metadata.iter().zip(self.kinds.iter().copied()).filter(|it| it.1 > 0).collect();
        let mut providers = BTreeMap::new();
        for (kind, events) in &kinds {
            *providers.entry(kind.provider().to_owned()).or_default() += events;
        }
        for glob in criteria.providers.iter().filter(|glob| !providers.keys().any(|it| glob.matches(it))) {
            misses.push(Miss {
                warning: format!("--provider {}: the recording has no event of that provider", glob.text()),
                help: proposal(glob.text(), &providers),
            });
        }
        misses.extend(self.missing_events(criteria, metadata));
        for (flag, what, wanted, counted) in [
            ("--tid", "thread", &criteria.threads, &self.threads),
            ("--pid", "process", &criteria.processes, &self.processes),
        ] {
            for id in wanted.iter().filter(|id| !counted.contains_key(*id) && counted.len() < MOST_COUNTED) {
                misses.push(Miss {
                    warning: format!("{flag} {id}: the recording has no event of that {what}"),
                    help: listed(most_frequent(counted)).map(|ids| format!("events by {what}: {ids}")),
                });
            }
        }
        misses.extend(missing_span(criteria, span));
        misses
    }

    /// The event filters that match nothing, among the events of the requested providers.
    fn missing_events(&self, criteria: &Criteria, metadata: &[Metadata]) -> Vec<Miss> {
        let of_provider = |index: usize| {
            let kind =
                metadata.get(index).filter(|_| self.kinds.get(index).is_some_and(|events| *events > 0))?;
            criteria.admits_provider(kind.provider()).then_some(kind)
        };
        let (mut ids, mut names) = (BTreeSet::new(), BTreeMap::new());
        for (index, events) in self.kinds.iter().enumerate() {
            if let Some(kind) = of_provider(index) {
                ids.insert(kind.event_id());
                *names.entry(EventName::of_kind(kind).to_string()).or_default() += events;
            }
        }
        for ((index, name), events) in &self.own_names {
            if of_provider(*index).is_some() {
                *names.entry(name.clone()).or_default() += events;
            }
        }
        if names.is_empty() {
            return Vec::new();
        }
        let of = if criteria.providers.is_empty() { "the recording has" } else { "these providers have" };
        let missing = criteria.events.iter().filter_map(|wanted| match wanted {
            EventMatch::Id(id) => (!ids.contains(id)).then(|| ("number", id.to_string())),
            EventMatch::Name(glob) => {
                let is_there = names.keys().any(|name| is_name(glob, name));
                (!is_there).then(|| ("name", glob.text().to_owned()))
            }
        });
        missing
            .map(|(what, text)| Miss {
                warning: format!("--event {text}: {of} no event of that {what}"),
                help: proposal(&text, &names),
            })
            .collect()
    }
}

fn missing_span(criteria: &Criteria, (first, last): (RelativeTime, RelativeTime)) -> Option<Miss> {
    let shown = |time: RelativeTime| units::time(time.since_start());
    let given = |time: RelativeTime| match time.since_start() {
        time if time.as_secs() > 0 => duration::display(time),
        _ => shown(time),
    };
    let flag = match (criteria.from, criteria.to) {
        (Some(from), Some(to)) if from >= to => {
            format!("--from {} --to {}: nothing lies between", given(from), given(to))
        }
        (Some(from), _) if from > last => {
            format!("--from {}: the recording has no event that late", given(from))
        }
        (_, Some(to)) if to <= first => format!("--to {}: the recording has no event that early", given(to)),
        _ => return None,
    };
    let help = format!("its events are from {} to {} after its start", shown(first), shown(last));
    Some(Miss { warning: flag, help: Some(help) })
}

fn count<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    add(counts, key, 1);
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, events: u64) {
    if let Some(count) = counts.get_mut(&key) {
        *count += events;
    } else if counts.len() < MOST_COUNTED {
        counts.insert(key, events);
    }
}

fn add_all<K: Ord>(counts: &mut BTreeMap<K, u64>, others: BTreeMap<K, u64>) {
    for (key, events) in others {
        add(counts, key, events);
    }
}

/// The names most similar to the requested one, or else the most frequent.
fn proposal(wanted: &str, names: &BTreeMap<String, u64>) -> Option<String> {
    let wanted = wanted.replace('*', "").to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let holds = !wanted.is_empty() && (name.contains(&wanted) || wanted.contains(&name));
        if holds { 1.0 } else { strsim::jaro_winkler(&wanted, &name) }
    };
    let mut alike: Vec<_> = names
        .iter()
        .map(|(name, events)| (likeness(name), name, *events))
        .filter(|(likeness, ..)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.2.cmp(&a.2)));
    if alike.is_empty() {
        return listed(most_frequent(names)).map(|names| format!("the most frequent are {names}"));
    }
    listed(alike.into_iter().map(|(_, name, events)| (name, events)))
        .map(|names| format!("there are {names}"))
}

fn most_frequent<K: Ord>(counts: &BTreeMap<K, u64>) -> impl Iterator<Item = (&K, u64)> {
    let mut counts: Vec<_> = counts.iter().map(|(key, count)| (key, *count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter()
}

/// `GC/Start (12 events), GC/Stop (1 event)`
fn listed<K: Display>(counts: impl Iterator<Item = (K, u64)>) -> Option<String> {
    let listed: Vec<_> = counts
        .take(PROPOSED)
        .map(|(key, events)| {
            format!("{key} ({} {})", units::count(events), if events == 1 { "event" } else { "events" })
        })
        .collect();
    (!listed.is_empty()).then(|| listed.join(", "))
}
