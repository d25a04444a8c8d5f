//! The evaluation of a condition over events.

mod usage;

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::time::Duration;

use clr_activity::{Pause, Pauses, Span, Spans};
use clr_counters::{Counters, Sample, Selection, SeriesId, value_text};
use clr_events::{ClrEvent, EventName, event_name, sets};
use nettrace::{Event, Metadata, MetadataMap, RelativeTime};

use crate::condition::{Atom, Condition, Node};
use crate::field;

/// Maximum number of characters that a match repeats of a string from the process.
const MAX_LENGTH: usize = 120;
/// Maximum number of fields of an event that a match repeats.
const MAX_FIELDS: usize = 16;
/// Maximum number of event kinds with cached atoms; further kinds are looked up each time.
const MAX_KINDS: usize = 100_000;
const COUNTERS: &str = "EventCounters";
const METERS: &str = "System.Diagnostics.Metrics";

/// The state of a condition between events.
///
/// Memory is bounded: by 64 parts, by the spans that have not ended (see [`Spans`]), by the series of the
/// counters.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # let recording = recording.at(5).exception("System.TimeoutException", "no answer").bytes();
/// use clr_conditions::{Condition, Evaluator};
///
/// let mut evaluator = Evaluator::new(Condition::parse("exception *.TimeoutException")?);
/// let mut events = nettrace::SliceReader::new(&recording)?.in_time_order();
/// let mut matches = Vec::new();
/// events.for_each(|event| evaluator.event(&event, |found| matches.push(found.what)))?;
/// evaluator.finish(|found| matches.push(found.what));
/// assert_eq!(matches, ["exception System.TimeoutException: no answer"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Evaluator {
    atoms: Atoms,
    /// The atoms that a kind of event may meet, a bit each, by the index of its metadata.
    kinds: MetadataMap<u64>,
    pauses: Pauses,
    /// `None` for a condition without requests.
    spans: Option<Spans>,
    /// The counter of each atom that has one.
    counters: Vec<(usize, Counters)>,
    /// Samples completed by the current event.
    counter_changes: Vec<CounterChange>,
}

/// The condition, and the state of its atoms.
#[derive(Debug)]
struct Atoms {
    condition: Condition,
    states: Vec<AtomState>,
}

/// A sample of an atom's counter.
#[derive(Debug)]
struct CounterChange {
    number: usize,
    time: RelativeTime,
    series: SeriesId,
    /// The text of the match; `None` if the sample does not meet the atom.
    what: Option<String>,
}

/// A condition that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// The time of the event that met it, or of the last event before the end. A value of a counter can be
    /// judged up to a second later, and has its own time.
    pub time: RelativeTime,
    /// The event that met it: `exception System.TimeoutException: …`. It contains untrusted strings from the
    /// process.
    pub what: String,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEnd {
    /// Ended by the runtime, with a complete end.
    Exit,
    /// Truncated, and the process has exited.
    Crash,
    /// Truncated, and the process is still running: the connection is lost.
    Disconnect,
    /// Truncated, and the state of the process is unknown: a crash or a disconnect.
    Unknown,
}

/// The state of an atom.
#[derive(Debug, Clone, Default)]
struct AtomState {
    /// The last time at which the atom was met, since the whole condition was met.
    met: Option<RelativeTime>,
    what: String,
    /// True if it stays met until a later sample ends it: counters.
    lasts: bool,
    /// The series of counters that meet it.
    series: Vec<SeriesId>,
    /// The time for which a value of the system has been beyond its bound; `None` if it is not.
    beyond: Option<Duration>,
    /// The time of the last value of the system.
    last_value: Option<RelativeTime>,
}

impl Evaluator {
    /// Creates the state before the first event.
    pub fn new(condition: Condition) -> Self {
        Self::with_counters(condition, &Selection::everything())
    }

    /// Creates the state before the first event of a session of `selected` counters, among which a counter
    /// without a known provider is looked for.
    pub fn with_counters(condition: Condition, selected: &Selection) -> Self {
        let has_requests = condition.atoms.iter().any(|atom| matches!(atom, Atom::Request { .. }));
        let counters = condition.atoms.iter().enumerate().filter_map(|(number, atom)| match atom {
            // A Meter takes precedence over EventCounters of its name, so each part has its own state, for
            // its counter alone.
            Atom::Counter { selection, .. } => {
                Some((number, Counters::new(selection.as_ref().unwrap_or(selected).clone())))
            }
            _ => None,
        });
        Self {
            counters: counters.collect(),
            atoms: Atoms { states: vec![AtomState::default(); condition.atoms.len()], condition },
            kinds: MetadataMap::new(),
            pauses: Pauses::default(),
            spans: has_requests.then(Spans::default),
            counter_changes: Vec::new(),
        }
    }

    /// Adds an event, and passes each match that it completes to `each`.
    ///
    /// Events have to be in time order, as in the reports. In another order pauses and requests can differ
    /// from the reports.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>, mut each: impl FnMut(Match)) {
        let index = event.metadata_index();
        let atoms = match self.kinds.get(index) {
            Some(atoms) => *atoms,
            None => self.atoms_of(event.metadata(), index),
        };
        if let Some(spans) = &mut self.spans {
            let atoms = &mut self.atoms;
            spans.add(event, |span| atoms.end_span(&span, event.relative_time(), &mut each));
        }
        if atoms != 0 {
            self.evaluate(event, atoms, &mut each);
        }
    }

    /// Passes the matches of counters that were not judged yet to `each`, after the last event.
    pub fn finish(&mut self, mut each: impl FnMut(Match)) {
        let (condition, samples) = (&self.atoms.condition, &mut self.counter_changes);
        for (number, counters) in &mut self.counters {
            counters.finish(|sample| samples.extend(CounterChange::of(*number, condition, &sample)));
        }
        self.change_counters(&mut each);
    }

    /// Evaluates the end of the stream, after [`finish`](Self::finish).
    ///
    /// ```
    /// use clr_conditions::{Condition, Evaluator, StreamEnd};
    /// use nettrace::RelativeTime;
    ///
    /// let mut evaluator = Evaluator::new(Condition::parse("crash")?);
    /// // The stream is cut, and the process is gone.
    /// let found = evaluator.end(StreamEnd::Crash, RelativeTime::START);
    /// assert!(found.is_some_and(|found| found.what.contains("crashed")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn end(&mut self, end: StreamEnd, time: RelativeTime) -> Option<Match> {
        let mut changed = 0;
        for number in 0..self.atoms.states.len() {
            let what = match (self.atoms.condition.atoms.get(number), end) {
                (Some(Atom::Exit), StreamEnd::Exit) => "the process ended",
                (Some(Atom::Exit | Atom::Crash), StreamEnd::Crash) => "the process crashed or was killed",
                (Some(Atom::Exit | Atom::Crash | Atom::Disconnect), StreamEnd::Unknown) => {
                    "the stream ended in the middle"
                }
                (Some(Atom::Disconnect), StreamEnd::Disconnect) => "the connection was lost",
                _ => continue,
            };
            self.atoms.meet(number, time, what.to_owned());
            changed |= bit(number);
        }
        self.atoms.fire(time, changed)
    }

    #[inline(never)]
    fn atoms_of(&mut self, metadata: &Metadata, index: usize) -> u64 {
        let mut atoms = 0;
        for (number, atom) in self.atoms.condition.atoms.iter().enumerate() {
            let may_meet = match atom {
                Atom::Exception(_) => sets::EXCEPTIONS.contains(metadata),
                Atom::Pause(..) => sets::PAUSES.contains(metadata),
                // From EventSources, which may give their events any number.
                Atom::Counter { .. } => metadata.name() == COUNTERS || metadata.provider() == METERS,
                Atom::Event { provider, name, .. } => {
                    let is_named = |name| {
                        EventName::of_kind(metadata).is_matched_by(name)
                            || clr_events::Schema::of_kind(metadata).is_some()
                    };
                    provider.matches(metadata.provider()) && name.as_ref().is_none_or(is_named)
                }
                // Requests are spans, which consist of other events, too.
                Atom::Request { .. } | Atom::System { .. } | Atom::Exit | Atom::Crash | Atom::Disconnect => {
                    false
                }
            };
            if may_meet {
                atoms |= bit(number);
            }
        }
        if index < MAX_KINDS {
            self.kinds.insert(index, atoms);
        }
        atoms
    }

    #[inline(never)]
    fn evaluate(&mut self, event: &Event<'_>, atoms: u64, each: &mut dyn FnMut(Match)) {
        let time = event.relative_time();
        let (mut pause, mut is_pause_read, mut has_counters) = (None, false, false);
        let mut changed = 0;
        for number in 0..self.atoms.condition.atoms.len() {
            if atoms & bit(number) == 0 {
                continue;
            }
            let Some(atom) = self.atoms.condition.atoms.get(number) else { continue };
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
                    let is_named = name.as_ref().is_none_or(|name| event_name(event).is_matched_by(name));
                    (is_named && field::are_met(fields, event)).then(|| {
                        let name = event_name(event).to_string();
                        let mut what = format!("event {}/{}", short(event.provider()), short(&name));
                        for (field, value) in clr_events::event_fields(event)
                            .into_iter()
                            .flat_map(Iterator::flatten)
                            .filter(|(name, _)| fields.iter().any(|it| it.name.eq_ignore_ascii_case(name)))
                            .take(MAX_FIELDS)
                        {
                            // Writing into a `String` does not fail.
                            let _ = write!(what, " {}={}", short(field), short(&value.to_string()));
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
                        .filter(|pause: &Pause| comparison.is_met(Some(pause.duration.cmp(bound))))
                        .map(|pause| format!("gc pause of {}", duration_text(pause.duration)))
                }
                Atom::Counter { .. } => {
                    has_counters = true;
                    None
                }
                Atom::Request { .. } | Atom::System { .. } | Atom::Exit | Atom::Crash | Atom::Disconnect => {
                    None
                }
            };
            if let Some(what) = what {
                self.atoms.meet(number, time, what);
                changed |= bit(number);
            }
        }
        if let Some(met) = self.atoms.fire(time, changed) {
            each(met);
        }
        if has_counters {
            let (condition, samples) = (&self.atoms.condition, &mut self.counter_changes);
            for (number, counters) in &mut self.counters {
                counters.add(event, |sample| samples.extend(CounterChange::of(*number, condition, &sample)));
            }
            self.change_counters(each);
        }
    }

    /// Evaluates the samples that an event completed, together if they have the same time.
    fn change_counters(&mut self, each: &mut dyn FnMut(Match)) {
        let mut samples = std::mem::take(&mut self.counter_changes);
        samples.sort_by_key(|change| change.time);
        let mut left = samples.drain(..).peekable();
        let mut changed = 0;
        while let Some(change) = left.next() {
            let time = change.time;
            changed |= self.atoms.change_counter(change);
            if left.peek().is_none_or(|next| next.time != time)
                && let Some(met) = self.atoms.fire(time, std::mem::take(&mut changed))
            {
                each(met);
            }
        }
        drop(left);
        self.counter_changes = samples;
    }
}

impl CounterChange {
    /// The change of an atom by a sample; `None` if the sample is of another counter.
    fn of(number: usize, condition: &Condition, sample: &Sample<'_>) -> Option<Self> {
        let Some(Atom::Counter { condition, .. }) = condition.atoms.get(number) else { return None };
        if !condition.is_of(sample.series) {
            return None;
        }
        let what = condition.number_that_meets(sample).map(|(_, value)| {
            let (provider, name) = (short(&sample.series.provider), short(&sample.series.name));
            format!("counter {provider}/{name} = {}", value_text(value))
        });
        Some(Self { number, time: sample.time, series: sample.id, what })
    }
}

impl Atoms {
    /// Evaluates a span that has ended.
    fn end_span(&mut self, span: &Span<'_>, time: RelativeTime, each: &mut dyn FnMut(Match)) {
        if !span.is_served_request() {
            return;
        }
        let (method, target) = span.start_name.split_once(' ').unwrap_or(("", span.start_name));
        let number = span.status.and_then(|status| status.parse::<u32>().ok());
        let mut changed = 0;
        for (atom, state) in (0..).zip(&mut self.states) {
            let Some(Atom::Request { duration, status, path }) = self.condition.atoms.get(atom) else {
                continue;
            };
            let is_met = duration.is_none_or(|(it, bound)| it.is_met(Some(span.duration.cmp(&bound))))
                && status.is_none_or(|(it, bound)| {
                    let order: Option<Ordering> = number.map(|number| number.cmp(&bound));
                    order.is_some() && it.is_met(order)
                })
                && path.as_ref().is_none_or(|path| path.matches(target));
            if is_met {
                let status = span.status.map(|status| format!(", status {}", short(status)));
                state.met = Some(time);
                state.what = format!(
                    "request {} {} took {}{}",
                    short(method),
                    short(target),
                    duration_text(span.duration),
                    status.unwrap_or_default()
                );
                changed |= bit(atom);
            }
        }
        if let Some(met) = self.fire(time, changed) {
            each(met);
        }
    }

    /// Evaluates a sample of a counter. Returns the bit of its atom if that becomes met.
    fn change_counter(&mut self, change: CounterChange) -> u64 {
        let Some(state) = self.states.get_mut(change.number) else { return 0 };
        if let Some(what) = change.what {
            if !state.series.contains(&change.series) {
                state.series.push(change.series);
            }
            let was_met = std::mem::replace(&mut state.lasts, true);
            state.met = Some(change.time);
            state.what = what;
            return if was_met { 0 } else { bit(change.number) };
        }
        state.series.retain(|id| *id != change.series);
        state.lasts = !state.series.is_empty();
        if !state.lasts {
            state.met = None;
        }
        0
    }

    fn meet(&mut self, number: usize, time: RelativeTime, what: String) {
        if let Some(state) = self.states.get_mut(number) {
            state.met = Some(time);
            state.what = what;
        }
    }

    /// Returns the match if the `changed` atoms complete the whole condition, and resets the state.
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
    /// The atoms met by the event, a bit each.
    changed: u64,
}

/// The times of the first and the last atom of a node that is met.
type Times = (RelativeTime, RelativeTime);

impl View<'_> {
    fn has_changed(&self, atoms: &[usize]) -> bool {
        atoms.iter().any(|number| self.changed & bit(*number) != 0)
    }

    /// Returns the times of a node if it is met, and adds the atoms that meet it to `atoms`.
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
    let mut short: String = text.chars().take(MAX_LENGTH).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Formats a duration as the reports do, with three digits.
fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let Some((size, unit)) = units.into_iter().find(|(size, _)| seconds >= *size) else {
        return format!("{} ns", duration.as_nanos());
    };
    let value = seconds / size;
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}
