//! The tables on the screen: methods and their callers, threads, allocated types, collections and exceptions.

use std::time::Duration;

use dipc_collect::live::{Counter, Interval, ThreadRow};
use nettrace_export::report::{Collection, TopRow, callers, top};
use nettrace_export::{FrameId, Profile};

use crate::command::top::MethodOrder;
use crate::command::top::counter;
use crate::command::top::history::History;
use crate::inspect::memory_use::MemoryUse;
use crate::render::escape::escape_controls;
use crate::render::frame_name::FrameName;
use crate::render::{units, width};

/// Maximum number of rows of a table: more than anybody scrolls through. Filters search all rows.
const MAX_ROWS: usize = 1000;
/// Minimum number of samples from which methods have shares.
const MIN_SAMPLES: u64 = 5;
/// Maximum number of columns to keep of a string: more than any screen has.
const WIDEST: usize = 500;

/// The subject of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Methods,
    Threads,
    Types,
    Collections,
    Exceptions,
    InUse,
}

impl View {
    pub(super) const ALL: [Self; 6] =
        [Self::Methods, Self::Threads, Self::Types, Self::Collections, Self::Exceptions, Self::InUse];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Methods => "methods",
            Self::Threads => "threads",
            Self::Types => "allocations",
            Self::Collections => "collections",
            Self::Exceptions => "exceptions",
            Self::InUse => "in use",
        }
    }

    /// Returns the next view; after the last, the first.
    pub(super) fn next(self) -> Self {
        let place = Self::ALL.iter().position(|view| *view == self).unwrap_or_default();
        Self::ALL.get(place + 1).copied().unwrap_or(Self::Methods)
    }
}

/// A table: columns of numbers, and a name at the end.
#[derive(Debug, Default)]
pub(super) struct ViewTable {
    /// The headings of the columns of numbers.
    pub(super) head: Vec<&'static str>,
    /// The heading of the names.
    pub(super) name: &'static str,
    pub(super) rows: Vec<ViewRow>,
}

/// A row of a table.
#[derive(Debug)]
pub(super) struct ViewRow {
    pub(super) cells: Vec<String>,
    name: RowName,
    /// The method, in rows of methods and callers: its name as the runtime writes it.
    pub(super) method: Option<String>,
}

/// The name of a row.
#[derive(Debug)]
enum RowName {
    Frame(FrameName),
    Text(String),
}

impl ViewRow {
    fn of_text(cells: Vec<String>, name: &str) -> Self {
        Self { cells, name: RowName::Text(escaped(name)), method: None }
    }

    fn of_frame(cells: Vec<String>, profile: &Profile, frame: Option<FrameId>, otherwise: &str) -> Self {
        let name = frame.map_or(otherwise, |frame| profile.frames.name(frame));
        let method = frame.map(|frame| profile.frames.full_name(frame).to_owned());
        Self { cells, name: RowName::Frame(FrameName::new(&profile.frames, frame, name)), method }
    }

    /// The whole name, without parameters.
    pub(super) fn title(&self) -> String {
        match &self.name {
            RowName::Frame(name) => name.without_parameters().to_owned(),
            RowName::Text(text) => text.clone(),
        }
    }

    /// The name shortened to `room` columns.
    pub(super) fn name(&self, room: usize) -> String {
        match &self.name {
            RowName::Frame(name) => width::cut(&name.fit(room), room),
            RowName::Text(text) => width::cut(text, room),
        }
    }
}

/// The choice of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'c> {
    pub(super) order: MethodOrder,
    /// The filter in lower case.
    pub(super) filter: &'c str,
    /// True to show sums since the session began instead of the last interval.
    pub(super) since_start: bool,
}

impl Choice<'_> {
    fn matches(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(self.filter)
    }
}

/// Builds the table of a view. `path` holds the methods shown with callers, by the runtime's names.
pub(super) fn table(history: &History, view: View, path: &[String], choice: Choice<'_>) -> ViewTable {
    let (profile, length) = match &history.latest {
        Some(interval) if !choice.since_start => (&interval.profile, interval.length),
        _ => (history.sums.sum(), history.sums.length),
    };
    match view {
        View::Methods if !path.is_empty() => caller_table(profile, path, choice),
        View::Methods => {
            // Sums of many intervals have enough samples in time.
            let latest = history.latest.as_ref().filter(|_| !choice.since_start);
            method_table(profile, choice, latest.is_some_and(has_few_samples))
        }
        View::Threads => thread_table(history, profile, length, choice),
        View::Types => type_table(history, length, choice),
        View::Collections => collection_table(history, choice),
        View::Exceptions => exception_table(history, length, choice),
        View::InUse => in_use_table(history, choice),
    }
}

/// The methods of a profile in order, without pseudo-frames that stand for no code.
pub(super) fn methods(profile: &Profile, order: MethodOrder) -> Vec<TopRow> {
    let mut rows = top(profile);
    rows.retain(|row| !row.is_root && row.inclusive > 0);
    let key = |row: &TopRow| match order {
        MethodOrder::Exclusive => (row.exclusive, row.inclusive),
        MethodOrder::Inclusive => (row.inclusive, row.exclusive),
    };
    rows.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.frame.cmp(&b.frame)));
    rows
}

/// Returns true if an interval has too few samples of methods for shares: each of two would be half.
fn has_few_samples(interval: &Interval) -> bool {
    interval.method_samples() < MIN_SAMPLES
}

/// The methods with their shares, which are left out if `is_few`.
fn method_table(profile: &Profile, choice: Choice<'_>, is_few: bool) -> ViewTable {
    let total = profile.total();
    let name = if is_few { "METHOD (too few samples for shares)" } else { "METHOD" };
    let percent = |part: u64| if is_few { "-".to_owned() } else { percent(part, total) };
    let rows = methods(profile, choice.order).into_iter().filter(|row| choice.matches(&row.frame));
    let rows = rows.take(MAX_ROWS).map(|row| {
        let cells = vec![
            percent(row.exclusive),
            time(row.exclusive),
            percent(row.inclusive),
            time(row.inclusive),
            percent(row.blocked),
        ];
        ViewRow::of_frame(cells, profile, row.frame_id, &row.frame)
    });
    ViewTable { head: vec!["SELF", "", "TOTAL", "", "BLOCKED"], name, rows: rows.collect() }
}

fn caller_table(profile: &Profile, path: &[String], choice: Choice<'_>) -> ViewTable {
    let frames: Option<Vec<_>> = path.iter().map(|name| profile.frames.find(name)).collect();
    let found = frames.map(|frames| callers(profile, &frames, choice.order == MethodOrder::Exclusive));
    let found = found.unwrap_or_default();
    let total = found.iter().map(|row| row.weight).fold(0, u64::saturating_add);
    let name = |frame: Option<FrameId>| frame.map_or("", |frame| profile.frames.name(frame));
    let rows = found.into_iter().filter(|row| choice.matches(name(row.frame))).take(MAX_ROWS).map(|row| {
        let cells = vec![percent(row.weight, total), time(row.weight)];
        ViewRow::of_frame(cells, profile, row.frame, "(the thread begins here)")
    });
    ViewTable { head: vec!["SHARE", ""], name: "CALLER", rows: rows.collect() }
}

fn thread_table(history: &History, profile: &Profile, length: Duration, choice: Choice<'_>) -> ViewTable {
    let length = units::nanoseconds(length);
    let all: Vec<&ThreadRow> = match &history.latest {
        Some(interval) if !choice.since_start => interval.threads.iter().collect(),
        _ => {
            let mut rows: Vec<_> = history.sums.threads.values().collect();
            rows.sort_by_key(|row| std::cmp::Reverse((row.working, row.blocked, row.runnable)));
            rows
        }
    };
    let rows = all.into_iter().filter_map(|row| {
        let leaf =
            row.leaf.map(|leaf| FrameName::new(&profile.frames, Some(leaf), profile.frames.name(leaf)));
        let leaf = leaf.map(|leaf| leaf.without_parameters().to_owned()).unwrap_or_default();
        let label = if row.name.is_empty() { &row.role } else { &row.name };
        let name = if label.is_empty() { leaf } else { format!("{label} {leaf}") };
        let times = if history.features.thread_uses {
            [row.working, row.runnable, row.waited]
        } else {
            [row.working, row.blocked.saturating_add(row.runnable), row.idle]
        };
        let cells = std::iter::once(row.id.to_string()).chain(times.map(|time| percent(time, length)));
        let cells = cells.collect();
        choice.matches(&name).then(|| ViewRow::of_text(cells, &name))
    });
    let head = if history.features.thread_uses {
        vec!["THREAD", "ON CPU", "RUNNABLE", "WAITS"]
    } else {
        vec!["THREAD", "WORKS", "BLOCKED", "IDLE"]
    };
    ViewTable { head, name: "NAME, MOSTLY IN (100% is one core)", rows: rows.take(MAX_ROWS).collect() }
}

fn type_table(history: &History, length: Duration, choice: Choice<'_>) -> ViewTable {
    let mut types: Vec<(&str, u64, u64)> = match &history.latest {
        Some(interval) if !choice.since_start => {
            let rows = interval.allocations.types.iter();
            rows.map(|row| (&*row.csharp, row.bytes, row.samples)).collect()
        }
        _ => history.sums.types.iter().map(|(name, sum)| (&**name, sum.bytes, sum.samples)).collect(),
    };
    types.sort_by_key(|(name, bytes, _)| (std::cmp::Reverse(*bytes), *name));
    let total = types.iter().map(|(_, bytes, _)| *bytes).fold(0, u64::saturating_add);
    let rows = types.into_iter().filter(|(name, ..)| choice.matches(name)).map(|(name, bytes, samples)| {
        let cells =
            vec![percent(bytes, total), units::bytes(bytes), rate(bytes, length, "B"), units::count(samples)];
        ViewRow::of_text(cells, name)
    });
    ViewTable {
        head: vec!["SHARE", "ALLOCATED", "", "SAMPLES"],
        name: "TYPE",
        rows: rows.take(MAX_ROWS).collect(),
    }
}

/// The types of which objects are in use. All are of the time since the session began.
fn in_use_table(history: &History, choice: Choice<'_>) -> ViewTable {
    let in_use = history.latest.as_ref().and_then(|interval| interval.in_use.as_ref());
    let types = in_use.map_or(&[][..], |in_use| &in_use.types);
    let total = types.iter().map(|row| row.bytes).fold(0, u64::saturating_add);
    let rows = types.iter().filter(|row| choice.matches(&row.csharp)).map(|row| {
        let cells = vec![percent(row.bytes, total), units::bytes(row.bytes), units::count(row.samples)];
        ViewRow::of_text(cells, &row.csharp)
    });
    ViewTable { head: vec!["SHARE", "IN USE", "SAMPLES"], name: "TYPE", rows: rows.take(MAX_ROWS).collect() }
}

fn collection_table(history: &History, choice: Choice<'_>) -> ViewTable {
    let bytes = |bytes: Option<u64>| bytes.map(units::bytes).unwrap_or_default();
    let row = |collection: &Collection| {
        let name = format!("{} {}", collection.reason, collection.kind);
        let cells = vec![
            collection.number.to_string(),
            collection.generation.to_string(),
            units::time(collection.pause.unwrap_or_default()),
            bytes(collection.before_bytes),
            bytes(collection.after_bytes),
            bytes(collection.promoted_bytes),
        ];
        choice.matches(&name).then(|| ViewRow::of_text(cells, &name))
    };
    // A list of individual collections lacks sums, so the most recent ones are always shown.
    let rows = history.sums.collections.iter().filter_map(row).collect();
    ViewTable {
        head: vec!["NUMBER", "GEN", "PAUSED", "BEFORE", "AFTER", "PROMOTED"],
        name: "REASON, KIND",
        rows,
    }
}

fn exception_table(history: &History, length: Duration, choice: Choice<'_>) -> ViewTable {
    let mut types: Vec<(&str, u64, &str)> = match &history.latest {
        Some(interval) if !choice.since_start => {
            let rows = interval.exceptions.types.iter();
            rows.map(|row| (&*row.csharp, row.count, &*row.first_message)).collect()
        }
        _ => history.sums.exceptions.iter().map(|(name, sum)| (&**name, sum.count, &*sum.message)).collect(),
    };
    types.sort_by_key(|(name, count, _)| (std::cmp::Reverse(*count), *name));
    let rows = types.into_iter().filter(|(name, ..)| choice.matches(name)).map(|(name, count, message)| {
        let cells = vec![units::count(count), rate(count, length, "")];
        ViewRow::of_text(cells, &format!("{name}: {message}"))
    });
    ViewTable { head: vec!["THROWN", ""], name: "TYPE: FIRST MESSAGE", rows: rows.take(MAX_ROWS).collect() }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", units::share(part, whole))
}

fn time(nanoseconds: u64) -> String {
    units::time(Duration::from_nanos(nanoseconds))
}

/// Formats a number per second.
#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn rate(number: u64, length: Duration, unit: &str) -> String {
    let seconds = length.as_secs_f64();
    if seconds > 0.0 {
        units::quantity((number as f64 / seconds).round(), &format!("{unit}/s"))
    } else {
        String::new()
    }
}

fn escaped(text: &str) -> String {
    escape_controls(width::prefix(text, WIDEST)).into_owned()
}

/// The processor time of an interval, of one core and of all that the machine has.
fn cpu_of_cores(interval: &Interval) -> String {
    let working = interval.threads.iter().map(|row| row.working).fold(0, u64::saturating_add);
    let of_one = units::share(working, units::nanoseconds(interval.length));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    #[allow(clippy::cast_precision_loss, reason = "a number of processors")]
    let of_all = of_one / cores as f64;
    match cores {
        1 => format!("cpu {of_one:.1}%"),
        _ => format!("cpu {of_one:.1}% of one core ({of_all:.1}% of all {cores})"),
    }
}

/// The lines above the table: counters, and sums of the interval.
pub(super) fn summary(history: &History) -> [String; 2] {
    let Some(interval) = &history.latest else {
        return ["waiting for the names of methods and the first samples".to_owned(), String::new()];
    };
    // The kernel's account has the processor time of the interval itself.
    let has_account = history.features.thread_uses;
    let memory = interval.memory.and_then(|memory| MemoryUse::from(memory).mostly_other());
    let memory = memory.map(|memory| format!("memory: {memory}"));
    let is_shown = |(counter, _): &&(Counter, f64)| match counter {
        Counter::Cpu => !has_account,
        // The sentence has these.
        Counter::Heap | Counter::WorkingSet => memory.is_none(),
        _ => true,
    };
    let counters = interval.counters.iter().filter(is_shown);
    let counters = counters.map(|(counter, value)| counter::text(*counter, *value));
    let cpu = has_account.then(|| cpu_of_cores(interval));
    let counters: Vec<_> = memory.iter().cloned().chain(cpu).chain(counters).collect();
    let counters = if counters.is_empty() { "no counters yet".to_owned() } else { counters.join("  ") };
    let collections = &interval.collections;
    let mut parts = Vec::new();
    if history.features.samples || history.features.thread_uses {
        let length = units::nanoseconds(interval.length);
        let threads = |time: u64| units::number((units::share(time, length) / 100.0 * 100.0).round() / 100.0);
        let sum =
            |time: fn(&ThreadRow) -> u64| interval.threads.iter().map(time).fold(0, u64::saturating_add);
        let (count, working) = (interval.threads.len(), threads(sum(|row| row.working)));
        parts.push(if history.features.thread_uses {
            let (runnable, waiting) = (threads(sum(|row| row.runnable)), threads(sum(|row| row.waited)));
            format!("{count} threads: {working} on CPU, {runnable} runnable, {waiting} wait")
        } else {
            let work = if interval.unverified > 0 { "work or wait" } else { "work" };
            let blocked = threads(sum(|row| row.blocked.saturating_add(row.runnable)));
            format!("{count} threads: {working} {work}, {blocked} blocked")
        });
    }
    parts.push(format!(
        "{} collections, paused {:.2}%",
        units::count(collections.collections.len() as u64),
        collections.pause_percent
    ));
    parts.push(format!("{} exceptions", units::count(interval.exceptions.count)));
    let omissions = history.sums.omissions();
    if !omissions.is_none() {
        parts.push(format!(
            "missing: {} events lost, {} samples and {} frames too many",
            units::count(omissions.lost),
            units::count(omissions.samples),
            units::count(omissions.frames)
        ));
    }
    [counters, parts.join(" · ")]
}
