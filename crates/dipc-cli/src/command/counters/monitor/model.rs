//! The content of the screen: the series, their last values, and the user's choices.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use clr_counters::{Aspect, Sample, Series, SeriesId};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use unicode_width::UnicodeWidthStr as _;

use crate::command::counters::live::Process;
use crate::inspect::counters::{Clock, label};
use crate::render::escape::escape_controls;
use crate::render::{units, width};

/// The number of values of a series that are kept for its trend.
const HISTORY: usize = 120;

/// The columns of a label that are kept: wider than screens are.
const WIDEST_LABEL: usize = 500;

/// The order of the rows of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Name,
    Value,
    Change,
}

impl Order {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Value => "value",
            Self::Change => "change",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Name => Self::Value,
            Self::Value => Self::Change,
            Self::Change => Self::Name,
        }
    }
}

/// One number of a series over time.
#[derive(Debug)]
pub(super) struct Number {
    /// The name, with the tags of its series behind it.
    label: String,
    /// The same with the values of the tags only.
    short_label: String,
    unit: String,
    pub(super) history: VecDeque<f64>,
}

impl Number {
    /// The label in so many columns: without the keys of its tags where it is too long, and then without its beginning, which many
    /// names share.
    pub(super) fn label(&self, width: usize) -> Cow<'_, str> {
        if self.label.width() <= width {
            return Cow::Borrowed(&self.label);
        }
        if self.short_label.width() <= width {
            return Cow::Borrowed(&self.short_label);
        }
        let start = self.short_label.char_indices().map(|(start, _)| &self.short_label[start..]);
        let end = start.into_iter().find(|end| end.width() < width).unwrap_or_default();
        Cow::Owned(format!("…{end}"))
    }

    /// The last value, as people write it.
    pub(super) fn value(&self) -> String {
        self.history.back().map_or_else(String::new, |last| units::quantity(*last, &self.unit))
    }

    /// The difference to the value before; `None` without one.
    fn change(&self) -> Option<f64> {
        let before = self.history.len().checked_sub(2).and_then(|index| self.history.get(index))?;
        Some(self.history.back()? - before)
    }

    /// The same, as people write it; empty where nothing changed.
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
    Group { title: Cow<'m, str>, key: &'m GroupKey, is_folded: bool, count: usize },
    Number(&'m Number),
}

/// A process on the screen.
#[derive(Debug)]
struct Shown {
    title: String,
    clock: Clock,
    has_ended: bool,
}

/// The key of a group: the number of the process, and the provider.
type GroupKey = (usize, String);

/// The key of a number: its series, and its index among that series' numbers.
type Key = (SeriesId, usize);

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Model {
    /// The processes by their numbers.
    processes: BTreeMap<usize, Shown>,
    /// The time of the last sample.
    time: String,
    interval: Duration,
    groups: BTreeMap<GroupKey, BTreeMap<Key, Number>>,
    folded: BTreeSet<GroupKey>,
    pub(super) order: Order,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    /// The last message, until a key is pressed, and how many there were.
    pub(super) message: String,
    messages: usize,
    /// The row that is chosen, among those that are shown.
    pub(super) selected: usize,
    /// The number of rows that the screen has for the table.
    pub(super) page: usize,
    has_changed: bool,
    is_done: bool,
}

impl Model {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            processes: BTreeMap::new(),
            time: String::new(),
            interval,
            groups: BTreeMap::new(),
            folded: BTreeSet::new(),
            order: Order::Name,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            shows_help: false,
            message: String::new(),
            messages: 0,
            selected: 0,
            page: 1,
            has_changed: true,
            is_done: false,
        }
    }

    /// The session of a process runs: what an earlier one showed is forgotten.
    pub(super) fn begin(&mut self, process: &Process, clock: Clock) {
        let shown = Shown { title: process.title(), clock, has_ended: false };
        self.processes.insert(process.number, shown);
        self.groups.retain(|(number, _), _| *number != process.number);
        self.has_changed = true;
    }

    /// The process has ended: its last values stay.
    pub(super) fn end(&mut self, process: &Process) {
        if let Some(shown) = self.processes.get_mut(&process.number) {
            shown.has_ended = true;
        }
        self.has_changed = true;
    }

    /// Takes in a sample; while the screen is paused it is kept and not shown.
    pub(super) fn add(&mut self, process: &Process, sample: &Sample<'_>) {
        let series = sample.series;
        let key = (process.number, escape_controls(&series.provider).into_owned());
        let group = self.groups.entry(key).or_default();
        for (index, aspect) in series.aspects().iter().enumerate() {
            let Some(value) = sample.number(*aspect) else { continue };
            let number = group.entry((sample.id, index)).or_insert_with(|| Number {
                label: escape_controls(width::prefix(&label(series, *aspect), WIDEST_LABEL)).into_owned(),
                short_label: short_label(series, *aspect),
                unit: escape_controls(&series.unit_of(*aspect)).into_owned(),
                history: VecDeque::new(),
            });
            if number.history.len() >= HISTORY {
                number.history.pop_front();
            }
            number.history.push_back(value);
        }
        if !self.is_paused {
            if let Some(shown) = self.processes.get(&process.number) {
                self.time = shown.clock.time_of_day(sample.time);
            }
            self.has_changed = true;
        }
    }

    /// The rows in the order of the screen.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let filter = self.filter.to_lowercase();
        let mut rows = Vec::new();
        for (key, numbers) in &self.groups {
            let title = self.group_title(key);
            let is_whole = filter.is_empty() || title.to_lowercase().contains(&filter);
            let mut shown: Vec<&Number> = numbers
                .values()
                .filter(|number| is_whole || number.label.to_lowercase().contains(&filter))
                .collect();
            if shown.is_empty() {
                continue;
            }
            let last = |number: &Number| number.history.back().copied().unwrap_or(f64::NEG_INFINITY);
            let change = |number: &Number| number.change().unwrap_or_default().abs();
            match self.order {
                Order::Name => shown.sort_by(|one, other| one.label.cmp(&other.label)),
                Order::Value => shown.sort_by(|one, other| last(other).total_cmp(&last(one))),
                Order::Change => shown.sort_by(|one, other| change(other).total_cmp(&change(one))),
            }
            let is_folded = self.folded.contains(key);
            rows.push(Row::Group { title, key, is_folded, count: shown.len() });
            if !is_folded {
                rows.extend(shown.into_iter().map(Row::Number));
            }
        }
        rows
    }

    /// The title of a group: the provider, of several processes with the process before it.
    fn group_title<'m>(&'m self, (number, provider): &'m GroupKey) -> Cow<'m, str> {
        match self.processes.get(number) {
            Some(process) if self.processes.len() > 1 || process.has_ended => {
                let ended = if process.has_ended { " (ended)" } else { "" };
                Cow::Owned(format!("{}{ended} · {provider}", process.title))
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
        title
    }

    /// Does what a key asks for.
    pub(super) fn press(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.has_changed = true;
        self.message.clear();
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            self.is_done = true;
        } else if self.is_typing {
            self.type_filter(key.code);
        } else {
            self.command(key.code);
        }
        self.selected = self.selected.min(self.rows().len().saturating_sub(1));
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(character) if !character.is_control() => self.filter.push(character),
            _ => {}
        }
    }

    fn command(&mut self, key: KeyCode) {
        let last = self.rows().len().saturating_sub(1);
        match key {
            KeyCode::Char('q') => self.is_done = true,
            KeyCode::Char('p' | 'P') => self.is_paused = !self.is_paused,
            KeyCode::Char('r' | 'R') => self.is_paused = false,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('?' | 'h') => self.shows_help = !self.shows_help,
            KeyCode::Esc if self.shows_help => self.shows_help = false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = self.selected.saturating_add(1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(self.page),
            KeyCode::PageDown => self.selected = self.selected.saturating_add(self.page).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Enter | KeyCode::Char(' ') => self.fold(),
            KeyCode::Char('f') => self.fold_all(),
            _ => {}
        }
    }

    /// Folds the group of the chosen row, or unfolds it, and chooses it.
    fn fold(&mut self) {
        let rows = self.rows();
        let above = rows.iter().enumerate().take(self.selected.saturating_add(1)).rev();
        let group = above.into_iter().find_map(|(index, row)| match row {
            Row::Group { key, .. } => Some((index, (*key).clone())),
            Row::Number(_) => None,
        });
        if let Some((index, key)) = group {
            self.selected = index;
            if !self.folded.remove(&key) {
                self.folded.insert(key);
            }
        }
    }

    /// Folds all groups; unfolds them if all are folded.
    fn fold_all(&mut self) {
        let all: BTreeSet<GroupKey> = self.groups.keys().cloned().collect();
        self.folded = if self.folded == all { BTreeSet::new() } else { all };
    }

    /// Shows the last of so many messages if it is a new one.
    pub(super) fn set_message(&mut self, (count, message): (usize, String)) {
        if count > self.messages {
            self.messages = count;
            self.message = escape_controls(&message).into_owned();
            self.has_changed = true;
        }
    }

    /// The screen's size has changed.
    pub(super) const fn redraw(&mut self) {
        self.has_changed = true;
    }

    /// Whether something changed since this was last asked.
    pub(super) const fn take_changed(&mut self) -> bool {
        std::mem::replace(&mut self.has_changed, false)
    }

    pub(super) const fn is_done(&self) -> bool {
        self.is_done
    }
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
