//! The content of the screen: the series, their last values, and the user's choices.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clr_counters::{Aspect, Sample, Series, SeriesId};
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use unicode_width::UnicodeWidthStr as _;

use super::detail::Detail;
use crate::inspect::counters::{Clock, label};
use crate::record::watch::WatchedProcess;
use crate::render::escape::escape_controls;
use crate::render::list_screen::{ListScreen, ListState};
use crate::render::screen::end_of;
use crate::render::{units, width};

/// The number of values kept of a series for its trend.
const HISTORY: usize = 120;

/// Maximum number of columns to keep of a label: more than any screen has.
const WIDEST_LABEL: usize = 500;

/// The order of the rows of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The runtime's processor time, memory and thread pool first, then by name.
    Importance,
    Name,
    Value,
    Change,
}

impl Order {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Importance => "importance",
            Self::Name => "name",
            Self::Value => "value",
            Self::Change => "change",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Name => Self::Value,
            Self::Value => Self::Change,
            Self::Change => Self::Importance,
            Self::Importance => Self::Name,
        }
    }
}

/// A number of a series over time.
#[derive(Debug)]
pub(super) struct Number {
    /// The name, followed by the tags of its series.
    label: String,
    /// The name, followed by only the values of the tags.
    short_label: String,
    unit: String,
    /// The rank in the order by importance.
    rank: usize,
    /// The process and the series that it belongs to.
    of: (usize, SeriesId),
    pub(super) history: VecDeque<f64>,
}

impl Number {
    /// The label in at most `width` columns: if too long, without the keys of its tags, and then without its
    /// beginning, which many names share.
    pub(super) fn label(&self, width: usize) -> Cow<'_, str> {
        if self.label.width() <= width {
            return Cow::Borrowed(&self.label);
        }
        if self.short_label.width() <= width {
            return Cow::Borrowed(&self.short_label);
        }
        end_of(&self.short_label, width)
    }

    /// The last value, formatted for people.
    pub(super) fn value(&self) -> String {
        self.history.back().map_or_else(String::new, |last| units::quantity(*last, &self.unit))
    }

    /// The difference from the previous value; `None` for the first value.
    fn change(&self) -> Option<f64> {
        let before = self.history.len().checked_sub(2).and_then(|index| self.history.get(index))?;
        Some(self.history.back()? - before)
    }

    /// The difference, formatted for people; empty if nothing changed.
    pub(super) fn change_text(&self) -> String {
        match self.change() {
            Some(change) if change > 0.0 => format!("+{}", units::quantity(change, &self.unit)),
            Some(change) if change < 0.0 => units::quantity(change, &self.unit),
            _ => String::new(),
        }
    }
}

/// A row of the screen.
#[derive(Debug, Clone)]
pub(super) enum Row<'m> {
    Group {
        title: Cow<'m, str>,
        key: GroupKey,
        is_folded: bool,
        count: usize,
    },
    /// A number; with several processes side by side, one for each process that has it.
    Number(Vec<Option<&'m Number>>),
}

impl<'m> Row<'m> {
    /// The first number of the row; `None` for groups.
    pub(super) fn number(&self) -> Option<&'m Number> {
        self.numbers()?.iter().copied().flatten().next()
    }

    /// The numbers of the row, one for each process; `None` for groups.
    pub(super) fn numbers(&self) -> Option<&[Option<&'m Number>]> {
        match self {
            Self::Group { .. } => None,
            Self::Number(numbers) => Some(numbers),
        }
    }
}

/// A process on the screen.
#[derive(Debug)]
struct ShownProcess {
    title: String,
    clock: Clock,
    has_ended: bool,
}

impl ShownProcess {
    fn heading(&self) -> String {
        let ended = if self.has_ended { " (ended)" } else { "" };
        format!("{}{ended}", self.title)
    }
}

/// The key of a group: the process number (`None` for groups of all processes side by side) and the provider.
pub(super) type GroupKey = (Option<usize>, String);

/// The key of a number: its series, and its index among that series' numbers.
type Key = (SeriesId, usize);

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Model {
    /// The processes, keyed by number.
    processes: BTreeMap<usize, ShownProcess>,
    /// The time of the last sample.
    time: String,
    interval: Duration,
    groups: BTreeMap<(usize, String), BTreeMap<Key, Number>>,
    /// The last sample of each series.
    details: BTreeMap<(usize, SeriesId), Detail>,
    folded: BTreeSet<GroupKey>,
    pub(super) order: Order,
    /// True if the last sample of the chosen row is shown in full.
    pub(super) shows_detail: bool,
    /// True if processes have groups of their own instead of columns.
    has_groups: bool,
    /// The first process shown if not all fit.
    pub(super) first_process: usize,
    /// The time of the last sample, and the seconds since then.
    last_sample: Option<Instant>,
    silent_seconds: u64,
    pub(super) list: ListState,
}

impl Model {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            processes: BTreeMap::new(),
            time: String::new(),
            interval,
            groups: BTreeMap::new(),
            details: BTreeMap::new(),
            folded: BTreeSet::new(),
            order: Order::Importance,
            shows_detail: false,
            has_groups: false,
            first_process: 0,
            last_sample: None,
            silent_seconds: 0,
            list: ListState::new(),
        }
    }

    /// Called when the session of a process runs: drops the values of an earlier session.
    pub(super) fn begin(&mut self, process: &WatchedProcess, clock: Clock) {
        let shown = ShownProcess { title: process.title(), clock, has_ended: false };
        self.processes.insert(process.number, shown);
        self.groups.retain(|(number, _), _| *number != process.number);
        self.details.retain(|(number, _), _| *number != process.number);
        self.list.has_changed = true;
    }

    /// Called when the process has ended: its last values stay.
    pub(super) fn end(&mut self, process: &WatchedProcess) {
        if let Some(shown) = self.processes.get_mut(&process.number) {
            shown.has_ended = true;
        }
        self.list.has_changed = true;
    }

    /// Adds a sample; while the screen is paused, it is kept but not shown.
    pub(super) fn add(&mut self, process: &WatchedProcess, sample: &Sample<'_>) {
        let series = sample.series;
        let key =
            (process.number, escape_controls(width::prefix(&series.provider, WIDEST_LABEL)).into_owned());
        let group = self.groups.entry(key).or_default();
        for (index, aspect) in series.aspects().iter().enumerate() {
            let Some(value) = sample.number(*aspect) else { continue };
            let number = group.entry((sample.id, index)).or_insert_with(|| Number {
                label: escape_controls(width::prefix(&label(series, *aspect), WIDEST_LABEL)).into_owned(),
                short_label: short_label(series, *aspect),
                unit: escape_controls(&series.unit_of(*aspect)).into_owned(),
                rank: rank(&series.provider, &series.name),
                of: (process.number, sample.id),
                history: VecDeque::new(),
            });
            if number.history.len() >= HISTORY {
                number.history.pop_front();
            }
            number.history.push_back(value);
        }
        self.details
            .entry((process.number, sample.id))
            .and_modify(|detail| detail.update(sample))
            .or_insert_with(|| Detail::of(sample));
        self.last_sample = Some(Instant::now());
        if !self.list.is_paused {
            if let Some(shown) = self.processes.get(&process.number) {
                self.time = shown.clock.time_of_day(sample.time);
            }
            self.list.has_changed = true;
        }
    }

    /// The number of processes shown side by side; 1 if they have groups of their own.
    pub(super) fn columns(&self) -> usize {
        if self.has_groups { 1 } else { self.processes.len().max(1) }
    }

    /// The titles of the processes that are shown side by side.
    pub(super) fn column_titles(&self) -> impl Iterator<Item = String> {
        self.processes.values().map(ShownProcess::heading)
    }

    /// The rows in screen order.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        if self.columns() == 1 {
            let mut groups: Vec<_> = self.groups.iter().collect();
            groups.sort_by_key(|((process, provider), _)| (*process, self.group_rank(provider)));
            for ((process, provider), numbers) in groups {
                let numbers = numbers.values().map(|number| vec![Some(number)]).collect();
                self.add_group((Some(*process), provider.clone()), numbers, &mut rows);
            }
            return rows;
        }
        // The numbers of each provider by label. Several numbers of a process may share a label.
        let mut providers = BTreeMap::<&String, BTreeMap<(&str, usize), Vec<Option<&Number>>>>::new();
        let places: BTreeMap<usize, usize> = self.processes.keys().copied().zip(0..).collect();
        for ((process, provider), numbers) in &self.groups {
            let Some(place) = places.get(process) else { continue };
            let of_provider = providers.entry(provider).or_default();
            for number in numbers.values() {
                let mut copy = 0;
                while of_provider.get(&(&*number.label, copy)).is_some_and(|row| row[*place].is_some()) {
                    copy += 1;
                }
                let row =
                    of_provider.entry((&*number.label, copy)).or_insert_with(|| vec![None; places.len()]);
                row[*place] = Some(number);
            }
        }
        let mut providers: Vec<_> = providers.into_iter().collect();
        providers.sort_by_key(|(provider, _)| self.group_rank(provider));
        for (provider, numbers) in providers {
            self.add_group((None, provider.clone()), numbers.into_values().collect(), &mut rows);
        }
        rows
    }

    /// Returns the rank of a provider, the sort key that precedes the name.
    fn group_rank(&self, provider: &str) -> usize {
        usize::from(self.order == Order::Importance && provider != RUNTIME)
    }

    /// Adds the rows of a group that pass the filter, in order.
    fn add_group<'m>(
        &'m self,
        key: GroupKey,
        mut shown: Vec<Vec<Option<&'m Number>>>,
        rows: &mut Vec<Row<'m>>,
    ) {
        let title = self.group_title(&key);
        let filter = self.list.filter.to_lowercase();
        let first = |row: &[Option<&'m Number>]| row.iter().copied().flatten().next();
        if !filter.is_empty() && !title.to_lowercase().contains(&filter) {
            shown
                .retain(|row| first(row).is_some_and(|number| number.label.to_lowercase().contains(&filter)));
        }
        if shown.is_empty() {
            return;
        }
        let last = |row: &[Option<&Number>]| {
            let last = |number: &&Number| number.history.back().copied();
            row.iter().flatten().filter_map(last).fold(f64::NEG_INFINITY, f64::max)
        };
        let change = |row: &[Option<&Number>]| {
            row.iter()
                .flatten()
                .filter_map(|number| number.change())
                .fold(0.0, |most: f64, it| most.max(it.abs()))
        };
        match self.order {
            Order::Importance => shown.sort_by(|one, other| {
                let key = |number: &'m Number| (number.rank, &number.label);
                first(one).map(key).cmp(&first(other).map(key))
            }),
            Order::Name => shown.sort_by(|one, other| {
                first(one).map(|number| &number.label).cmp(&first(other).map(|number| &number.label))
            }),
            Order::Value => shown.sort_by(|one, other| last(other).total_cmp(&last(one))),
            Order::Change => shown.sort_by(|one, other| change(other).total_cmp(&change(one))),
        }
        let is_folded = self.folded.contains(&key);
        rows.push(Row::Group { title: title.into_owned().into(), key, is_folded, count: shown.len() });
        if !is_folded {
            rows.extend(shown.into_iter().map(Row::Number));
        }
    }

    /// The last sample of the chosen row's series.
    pub(super) fn detail(&self) -> Option<&Detail> {
        let rows = self.rows();
        let Row::Number(numbers) = rows.get(self.list.selected)? else { return None };
        // With several processes, take the first process shown.
        let number = numbers.iter().skip(self.first_process).chain(numbers).copied().flatten().next()?;
        self.details.get(&number.of)
    }

    /// The title of a group: the provider, preceded by the process if there are several.
    fn group_title<'m>(&'m self, (number, provider): &'m GroupKey) -> Cow<'m, str> {
        match number.and_then(|number| self.processes.get(&number)) {
            Some(process) if self.processes.len() > 1 || process.has_ended => {
                Cow::Owned(format!("{} · {provider}", process.heading()))
            }
            _ => Cow::Borrowed(provider),
        }
    }

    /// The line above the table.
    pub(super) fn title(&self) -> String {
        let series = self.groups.values().map(BTreeMap::len).sum::<usize>();
        let mut processes = self.processes.values();
        let name = match (processes.next(), processes.len()) {
            (Some(process), 0) => process.title.clone(),
            (_, others) => format!("{} processes", others + 1),
        };
        let mut title = format!(" {name} · every {} s", self.interval.as_secs_f64());
        if series > 0 {
            let _ = write!(title, " · {series} values · {}", self.time);
        } else {
            title.push_str(" · waiting for the first values");
        }
        if self.silent_seconds > 0 {
            let _ = write!(title, " · no values for {} s", self.silent_seconds);
        }
        title
    }

    fn has_number_chosen(&self) -> bool {
        self.rows().get(self.list.selected).is_some_and(|row| row.number().is_some())
    }

    /// Folds the group of the chosen row, or unfolds it, and chooses it.
    fn fold(&mut self) {
        let rows = self.rows();
        let above = rows.iter().enumerate().take(self.list.selected.saturating_add(1)).rev();
        let group = above.into_iter().find_map(|(index, row)| match row {
            Row::Group { key, .. } => Some((index, key.clone())),
            Row::Number(_) => None,
        });
        if let Some((index, key)) = group {
            self.list.selected = index;
            if !self.folded.remove(&key) {
                self.folded.insert(key);
            }
        }
    }

    /// Folds all groups; unfolds them if all are folded.
    fn fold_all(&mut self) {
        let groups = self.groups.keys();
        let is_apart = self.columns() == 1;
        let all: BTreeSet<GroupKey> =
            groups.map(|(process, provider)| (is_apart.then_some(*process), provider.clone())).collect();
        self.folded = if self.folded == all { BTreeSet::new() } else { all };
    }

    /// Checks how long no value has arrived: up to three intervals do not count as a delay.
    pub(super) fn look_at_clock(&mut self) {
        let since = self.last_sample.map(|last| last.elapsed()).unwrap_or_default();
        let silent = if since > self.interval * 3 { since.as_secs() } else { 0 };
        self.list.has_changed |= silent != self.silent_seconds;
        self.silent_seconds = silent;
    }
}

impl ListScreen for Model {
    fn list(&mut self) -> &mut ListState {
        &mut self.list
    }

    fn press(&mut self, key: KeyEvent) {
        let rows = self.rows().len();
        match self.list.press(key, rows) {
            Some(KeyCode::Char('r' | 'R')) => self.list.is_paused = false,
            Some(KeyCode::Char('s')) => self.order = self.order.next(),
            Some(KeyCode::Esc) if self.shows_detail => self.shows_detail = false,
            Some(KeyCode::Esc) => self.list.filter.clear(),
            Some(KeyCode::Enter) if self.has_number_chosen() => self.shows_detail = !self.shows_detail,
            Some(KeyCode::Enter | KeyCode::Char(' ')) => self.fold(),
            Some(KeyCode::Char('d')) => self.shows_detail = !self.shows_detail,
            Some(KeyCode::Char('c')) => self.has_groups = !self.has_groups,
            Some(KeyCode::Left) => self.first_process = self.first_process.saturating_sub(1),
            Some(KeyCode::Right) => {
                let last = self.processes.len().saturating_sub(1);
                self.first_process = self.first_process.saturating_add(1).min(last);
            }
            Some(KeyCode::Char('f')) => self.fold_all(),
            _ => {}
        }
        self.list.selected = self.list.selected.min(self.rows().len().saturating_sub(1));
    }
}

/// The provider and the meter of the runtime's own counters.
const RUNTIME: &str = "System.Runtime";

/// The runtime's most important counters, by the names of meters and of event counters: processor, memory,
/// thread pool.
const IMPORTANT: &[&str] = &[
    "cpu-usage",
    "dotnet.process.cpu.",
    "working-set",
    "dotnet.process.memory.",
    "gc-heap-size",
    "gc-committed",
    "dotnet.gc.last_collection.heap.size",
    "dotnet.gc.last_collection.memory.",
    "threadpool-",
    "dotnet.thread_pool.",
];

/// Returns the rank of a counter in the order by importance.
fn rank(provider: &str, name: &str) -> usize {
    let place = (provider == RUNTIME).then(|| IMPORTANT.iter().position(|prefix| name.starts_with(prefix)));
    place.flatten().unwrap_or(IMPORTANT.len())
}

/// The name of a number, with the values of its tags.
fn short_label(series: &Series, aspect: Aspect) -> String {
    let mut label = series.label(aspect);
    for (_, value) in series.tag_pairs() {
        label.push(' ');
        label.push_str(value);
    }
    escape_controls(width::prefix(&label, WIDEST_LABEL)).into_owned()
}
