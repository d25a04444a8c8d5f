//! The evaluation of a condition over events.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::time::Duration;

use clr_counters::{Counters, Selection};
use clr_events::{ClrEvent, EventName, event_name, sets};
use nettrace::{Event, Metadata, RelativeTime, Value};

use crate::condition::{Atom, Condition, Node};
use crate::field;
use crate::parser::is_event_named;
use crate::pause::Pauses;
use crate::request::{Request, Requests, is_of_request};

/// Characters of a text of the process that a match repeats.
const LONGEST: usize = 120;
/// Fields of an event that a match repeats.
const MOST_FIELDS: usize = 16;
/// Kinds of events whose atoms are kept; further ones are looked up each time.
const MOST_KINDS: usize = 100_000;
const COUNTERS: &str = "EventCounters";
const METERS: &str = "System.Diagnostics.Metrics";

/// The state of a condition between events.
///
/// Memory is bounded: by 64 parts, by 100,000 requests that have not ended, by the series of the counters.
#[derive(Debug)]
pub struct Evaluator {
    condition: Condition,
    states: Vec<AtomState>,
    /// The atoms that a kind of event may meet, a bit each, by the index of its metadata.
    kinds: Vec<Option<u64>>,
    pauses: Pauses,
    requests: Requests,
    counters: Option<Counters>,
}

/// A condition that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// The time of the event that met it, or of the last one before the end.
    pub time: RelativeTime,
    /// What met it: `exception System.TimeoutException: …`. It has texts of the process, which may be anything.
    pub what: String,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The runtime ended it, with what belongs there.
    Exit,
    /// It ended in the middle, and the process is gone.
    Crash,
    /// It ended in the middle, and the process is still there: the connection is lost.
    Disconnect,
    /// It ended in the middle, and what became of the process is not known: either may be.
    Unknown,
}

/// The state of an atom.
#[derive(Debug, Clone, Default)]
struct AtomState {
    /// The last time that it was met, since the whole condition was.
    met: Option<RelativeTime>,
    what: String,
    /// Whether it stays met until said otherwise: counters.
    lasts: bool,
    /// The series of counters that meet it.
    series: Vec<clr_counters::SeriesId>,
}

impl Evaluator {
    /// Creates the state before the first event.
    pub fn new(condition: Condition) -> Self {
        let mut selection: Option<Selection> = None;
        for atom in &condition.atoms {
            if let Atom::Counter { provider, .. } = atom
                && let Ok(one) = Selection::parse(provider)
            {
                selection = Some(match selection {
                    Some(others) => others.and(one),
                    None => one,
                });
            }
        }
        Self {
            states: vec![AtomState::default(); condition.atoms.len()],
            condition,
            kinds: Vec::new(),
            pauses: Pauses::default(),
            requests: Requests::default(),
            counters: selection.map(Counters::new),
        }
    }

    /// Takes an event. Returns what met the condition, if this event made it be met.
    ///
    /// Events are of one reader, in its order or in that of time.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>) -> Option<Match> {
        let index = event.metadata_index();
        let atoms = match self.kinds.get(index) {
            Some(Some(atoms)) => *atoms,
            _ => self.atoms_of(event.metadata(), index),
        };
        if atoms == 0 { None } else { self.evaluate(event, atoms) }
    }

    /// Takes the end of the stream.
    pub fn end(&mut self, end: StreamEnd, time: RelativeTime) -> Option<Match> {
        let mut changed = 0;
        for number in 0..self.states.len() {
            let what = match (self.condition.atoms.get(number), end) {
                (Some(Atom::Exit), StreamEnd::Exit) => "the process ended",
                (Some(Atom::Exit | Atom::Crash), StreamEnd::Crash)
                | (Some(Atom::Exit | Atom::Crash | Atom::Disconnect), StreamEnd::Unknown) => {
                    "the stream ended in the middle"
                }
                (Some(Atom::Disconnect), StreamEnd::Disconnect) => "the connection was lost",
                _ => continue,
            };
            self.meet(number, time, what.to_owned());
            changed |= bit(number);
        }
        self.fire(time, changed)
    }

    #[inline(never)]
    fn atoms_of(&mut self, metadata: &Metadata, index: usize) -> u64 {
        let mut atoms = 0;
        for (number, atom) in self.condition.atoms.iter().enumerate() {
            let may_meet = match atom {
                Atom::Exception(_) => sets::EXCEPTIONS.contains(metadata),
                Atom::Pause(..) => sets::PAUSES.contains(metadata),
                Atom::Request { .. } => is_of_request(metadata),
                // Of EventSources, whose events have any number.
                Atom::Counter { .. } => metadata.name() == COUNTERS || metadata.provider() == METERS,
                Atom::Event { provider, name, .. } => {
                    let is_named = |name| {
                        is_event_named(&EventName::of_kind(metadata), name)
                            || clr_events::Schema::of_kind(metadata).is_some()
                    };
                    provider.matches(metadata.provider()) && name.as_ref().is_none_or(is_named)
                }
                Atom::Exit | Atom::Crash | Atom::Disconnect => false,
            };
            if may_meet {
                atoms |= bit(number);
            }
        }
        if index < MOST_KINDS {
            if self.kinds.len() <= index {
                self.kinds.resize(index.saturating_add(1), None);
            }
            if let Some(kind) = self.kinds.get_mut(index) {
                *kind = Some(atoms);
            }
        }
        atoms
    }

    #[inline(never)]
    fn evaluate(&mut self, event: &Event<'_>, atoms: u64) -> Option<Match> {
        let time = event.relative_time();
        let (mut pause, mut request, mut has_counters) = (None, None, false);
        let (mut is_pause_read, mut is_request_read) = (false, false);
        let mut changed = 0;
        for number in 0..self.condition.atoms.len() {
            if atoms & bit(number) == 0 {
                continue;
            }
            let Some(atom) = self.condition.atoms.get(number) else { continue };
            let what = match atom {
                Atom::Exception(types) => match ClrEvent::of(event) {
                    Ok(Some(ClrEvent::ExceptionStart(thrown))) => {
                        let name = thrown.exception_type.to_string();
                        types.contains(&name).then(|| {
                            let message = short(&thrown.exception_message.to_string());
                            format!("exception {}: {message}", short(&name))
                        })
                    }
                    _ => None,
                },
                Atom::Event { name, fields, .. } => {
                    let is_named = name.as_ref().is_none_or(|name| is_event_named(&event_name(event), name));
                    (is_named && field::are_met(fields, event)).then(|| {
                        let name = event_name(event).to_string();
                        let mut what = format!("event {}/{}", short(event.provider()), short(&name));
                        for (field, value) in clr_events::event_fields(event)
                            .into_iter()
                            .flat_map(Iterator::flatten)
                            .filter(|(name, _)| fields.iter().any(|it| it.name.eq_ignore_ascii_case(name)))
                            .take(MOST_FIELDS)
                        {
                            // Writing into a `String` does not fail.
                            let _ = write!(what, " {}={}", short(field), shown(&value));
                        }
                        what
                    })
                }
                Atom::Pause(comparison, bound) => {
                    if !is_pause_read {
                        pause = self.pauses.add(event);
                        is_pause_read = true;
                    }
                    pause
                        .filter(|pause: &Duration| comparison.is_met(Some(pause.cmp(bound))))
                        .map(|pause| format!("gc pause of {}", milliseconds(pause)))
                }
                Atom::Request { duration, status, path } => {
                    if !is_request_read {
                        request = self.requests.add(event);
                        is_request_read = true;
                    }
                    let is_met = |request: &Request| {
                        duration.is_none_or(|(it, bound)| it.is_met(Some(request.duration.cmp(&bound))))
                            && status.is_none_or(|(it, bound)| {
                                let order: Option<Ordering> = request.status.map(|status| status.cmp(&bound));
                                order.is_some() && it.is_met(order)
                            })
                            && path.as_ref().is_none_or(|path| path.matches(&request.path))
                    };
                    request.as_ref().filter(|request| is_met(request)).map(|request| {
                        let status = request.status.map(|status| format!(", status {status}"));
                        format!(
                            "request {} {} took {}{}",
                            short(&request.method),
                            short(&request.path),
                            milliseconds(request.duration),
                            status.unwrap_or_default()
                        )
                    })
                }
                Atom::Counter { .. } => {
                    has_counters = true;
                    None
                }
                Atom::Exit | Atom::Crash | Atom::Disconnect => None,
            };
            if let Some(what) = what {
                self.meet(number, time, what);
                changed |= bit(number);
            }
        }
        if has_counters {
            changed |= self.changed_counters(event);
        }
        self.fire(time, changed)
    }

    /// Takes an event of counters. The atoms that are met now and were not, a bit each.
    fn changed_counters(&mut self, event: &Event<'_>) -> u64 {
        let Some(counters) = &mut self.counters else { return 0 };
        let mut changed = 0;
        let (atoms, states) = (&self.condition.atoms, &mut self.states);
        counters.add(event, |sample| {
            for (number, (atom, state)) in atoms.iter().zip(states.iter_mut()).enumerate() {
                let Atom::Counter { condition, .. } = atom else { continue };
                if !condition.is_of(sample.series) {
                    continue;
                }
                if let Some((_, value)) = condition.number_that_meets(&sample) {
                    if !state.series.contains(&sample.id) {
                        state.series.push(sample.id);
                    }
                    if !state.lasts {
                        changed |= bit(number);
                    }
                    state.lasts = true;
                    state.met = Some(sample.time);
                    state.what = format!(
                        "counter {}/{} = {value}",
                        short(&sample.series.provider),
                        short(&sample.series.name)
                    );
                } else {
                    state.series.retain(|id| *id != sample.id);
                    state.lasts = !state.series.is_empty();
                    if !state.lasts {
                        state.met = None;
                    }
                }
            }
        });
        changed
    }

    fn meet(&mut self, number: usize, time: RelativeTime, what: String) {
        if let Some(state) = self.states.get_mut(number) {
            state.met = Some(time);
            state.what = what;
        }
    }

    /// Returns the match if the atoms that have `changed` make the whole condition be met, and begins anew.
    fn fire(&mut self, time: RelativeTime, changed: u64) -> Option<Match> {
        if changed == 0 {
            return None;
        }
        let mut parts = Vec::new();
        let view = View { states: &self.states, now: time, changed };
        view.met(&self.condition.root, &mut parts)?;
        if !view.has_changed(&parts) {
            return None;
        }
        let texts: Vec<_> =
            parts.iter().filter_map(|number| self.states.get(*number)).map(|state| &*state.what).collect();
        let what = texts.join(" and ");
        for state in self.states.iter_mut().filter(|state| !state.lasts) {
            state.met = None;
        }
        Some(Match { time, what })
    }
}

/// The bit of an atom.
fn bit(number: usize) -> u64 {
    u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or(0)
}

/// The states at the time of an event.
struct View<'s> {
    states: &'s [AtomState],
    now: RelativeTime,
    /// The atoms that the event met, a bit each.
    changed: u64,
}

/// The times of the first and the last atom of a node that is met.
type Times = (RelativeTime, RelativeTime);

impl View<'_> {
    fn has_changed(&self, atoms: &[usize]) -> bool {
        atoms.iter().any(|number| self.changed & bit(*number) != 0)
    }

    /// Whether a node is met, when, and by which atoms.
    fn met(&self, node: &Node, atoms: &mut Vec<usize>) -> Option<Times> {
        let start = atoms.len();
        match node {
            Node::Atom(number) => {
                let state = self.states.get(*number)?;
                let time = if state.lasts { self.now } else { state.met? };
                atoms.push(*number);
                Some((time, time))
            }
            Node::Any(nodes) => {
                let mut best: Option<((bool, RelativeTime), Times, Vec<usize>)> = None;
                for node in nodes {
                    let found = self.met(node, atoms);
                    let own = atoms.split_off(start);
                    let Some(times) = found else { continue };
                    let rank = (self.has_changed(&own), times.1);
                    if best.as_ref().is_none_or(|(best, ..)| *best < rank) {
                        best = Some((rank, times, own));
                    }
                }
                let (_, times, own) = best?;
                atoms.extend(own);
                Some(times)
            }
            Node::All(nodes, within) => {
                let mut all: Option<Times> = None;
                for node in nodes {
                    let Some((first, last)) = self.met(node, atoms) else {
                        atoms.truncate(start);
                        return None;
                    };
                    all = Some(all.map_or((first, last), |it| (it.0.min(first), it.1.max(last))));
                }
                let all = all.filter(|(first, last)| last.saturating_duration_since(*first) <= *within);
                if all.is_none() {
                    atoms.truncate(start);
                }
                all
            }
        }
    }
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => short(&text.to_string()),
        Value::Named(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        value => field::number(value).map(|number| number.to_string()).unwrap_or_default(),
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
