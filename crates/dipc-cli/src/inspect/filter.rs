//! Messages about filters that match nothing.

use std::collections::BTreeMap;
use std::fmt::Display;

use nettrace::RelativeTime;
use nettrace_edit::{EventMatch, UnmatchedCriterion};

use crate::duration;
use crate::render::{messages, units};

/// Maximum number of suggested names.
const PROPOSED: usize = 5;
/// Minimum similarity, out of 1, at which one name is suggested for another.
const ALIKE: f64 = 0.8;

/// Warns of filter values that matched nothing.
pub(crate) fn warn_of_misses(misses: &[UnmatchedCriterion]) {
    for miss in misses {
        messages::warning(warning(miss));
        if let Some(help) = help(miss).filter(|_| !messages::is_quiet()) {
            messages::help(help);
        }
    }
}

fn warning(miss: &UnmatchedCriterion) -> String {
    match miss {
        UnmatchedCriterion::NoEvents => "the recording has no events".to_owned(),
        UnmatchedCriterion::Provider { wanted, .. } => {
            format!("--provider {wanted}: the recording has no event of that provider")
        }
        UnmatchedCriterion::Event { wanted, of_providers, .. } => {
            let of = if *of_providers { "these providers have" } else { "the recording has" };
            match wanted {
                EventMatch::Id(id) => format!("--event {id}: {of} no event of that number"),
                EventMatch::Name(glob) => format!("--event {}: {of} no event of that name", glob.text()),
            }
        }
        UnmatchedCriterion::Thread { wanted, .. } => {
            format!("--tid {wanted}: the recording has no event of that thread")
        }
        UnmatchedCriterion::Process { wanted, .. } => {
            format!("--pid {wanted}: the recording has no event of that process")
        }
        UnmatchedCriterion::Times { from, to, last, .. } => match (from, to) {
            (Some(from), Some(to)) if from >= to => {
                format!("--from {} --to {}: there is nothing in between", given(*from), given(*to))
            }
            (Some(from), _) if from > last => {
                format!("--from {}: the recording has no event that late", given(*from))
            }
            (_, to) => {
                let to = to.unwrap_or_default();
                format!("--to {}: the recording has no event that early", given(to))
            }
        },
        _ => "no event matches all of the filters, although each of them matches some".to_owned(),
    }
}

fn help(miss: &UnmatchedCriterion) -> Option<String> {
    match miss {
        UnmatchedCriterion::Provider { wanted, known } => proposal(wanted, known),
        UnmatchedCriterion::Event { wanted: EventMatch::Id(id), known, .. } => {
            proposal(&id.to_string(), known)
        }
        UnmatchedCriterion::Event { wanted: EventMatch::Name(glob), known, .. } => {
            proposal(glob.text(), known)
        }
        UnmatchedCriterion::Thread { known, .. } => {
            listed(most_frequent(known)).map(|ids| format!("events by thread: {ids}"))
        }
        UnmatchedCriterion::Process { known, .. } => {
            listed(most_frequent(known)).map(|ids| format!("events by process: {ids}"))
        }
        UnmatchedCriterion::Times { first, last, .. } => {
            Some(format!("its events are from {} to {} after its start", shown(*first), shown(*last)))
        }
        _ => None,
    }
}

fn shown(time: RelativeTime) -> String {
    units::time(time.since_start())
}

/// A time as the user may have given it.
fn given(time: RelativeTime) -> String {
    match time.since_start() {
        time if time.as_secs() > 0 => duration::display(time),
        _ => shown(time),
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
