//! `dipc dump analyze CORE timers`: the timers that have not fired, or fire again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use clr_dump::{ActiveTimers, Dump, Timer};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::core_advice;
use crate::inspect::core_source::Source;
use crate::inspect::core_text::{method_text, type_text};
use crate::inspect::tick_clock::{TickClock, time_text};
use crate::render::table::{Align, Columns};
use crate::render::{output, units, width};

/// The default number of rows that are shown.
const ROWS: usize = 30;
/// Maximum number of timers to read of a list of a queue.
const MAX_TIMERS: usize = 1 << 18;
/// The time after which a timer that has not fired is late: one that has just become due is not.
const LATE_MS: i64 = 500;

#[derive(Debug, Args)]
pub(super) struct TimersArgs {
    /// Number of rows to show [default: 30 in a table, else all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
}

pub(super) fn print(
    source: &Source,
    dump: &Dump<'_>,
    args: &TimersArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let clock = TickClock::new(source, dump);
    let timers = match dump.statics().timers(MAX_TIMERS) {
        Some(timers) => timers,
        // A process has all its memory.
        None if source.pid().is_some() && dump.statics().has_places() => ActiveTimers::default(),
        None => {
            let why = "the timers are not in memory: the program has used none, or the dump lacks them";
            return Err(Failure::new(Exit::Incomplete, format_args!("{}: {why}", source.subject()))
                .with_help(core_advice::better(source)));
        }
    };
    let list = List::new(dump, clock, timers.count, &timers.timers);
    match format {
        Format::Table => output::print(text(&list, args.head.unwrap_or(ROWS)))?,
        Format::Json => output::print_json(&Report::new(&list, args.head.unwrap_or(usize::MAX)))?,
    }
    Ok(if list.is_complete() { Exit::Done } else { Exit::Incomplete })
}

/// The timers of a process by what they call.
struct List {
    clock: TickClock,
    /// The number that the runtime counts.
    count: u64,
    /// The number of those that were read.
    read: u64,
    /// The number of those that should have fired; `None` of a core dump.
    late: Option<u64>,
    /// The longest time by which one is late.
    late_by: Duration,
    rows: Vec<Row>,
}

/// Timers with the same callback and the same period.
struct Row {
    callback: String,
    /// The type of the argument; `None` for null.
    state: Option<String>,
    period: Option<Duration>,
    count: u64,
    late: u64,
    /// The ticks at which the first and the last of them are due.
    due: Option<(u64, u64)>,
}

impl List {
    fn new(dump: &Dump<'_>, clock: TickClock, count: u64, timers: &[Timer]) -> Self {
        let late_by = |timer: &Timer| {
            let until = clock.until(timer.due?)?;
            u64::try_from(until.checked_neg()?).ok().filter(|_| until <= -LATE_MS)
        };
        let mut rows: BTreeMap<(String, Option<String>, Option<Duration>), Row> = BTreeMap::new();
        for timer in timers {
            let (callback, state) = names(dump, timer);
            let key = (callback.clone(), state.clone(), timer.period);
            let row = rows.entry(key).or_insert_with(|| Row {
                callback,
                state,
                period: timer.period,
                count: 0,
                late: 0,
                due: None,
            });
            row.count += 1;
            row.late += u64::from(late_by(timer).is_some());
            if let Some(due) = timer.due {
                let (first, last) = row.due.unwrap_or((due, due));
                row.due = Some((first.min(due), last.max(due)));
            }
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        let late: Vec<_> = timers.iter().filter_map(late_by).collect();
        Self {
            clock,
            count,
            read: timers.len() as u64,
            late: clock.until(0).map(|_| late.len() as u64),
            late_by: Duration::from_millis(late.into_iter().max().unwrap_or_default()),
            rows,
        }
    }

    /// Returns true if all timers were read. Those of a running process change meanwhile.
    fn is_complete(&self) -> bool {
        self.read >= self.count || (self.late.is_some() && self.read > 0)
    }
}

/// The method that a timer calls, and the type of its argument.
fn names(dump: &Dump<'_>, timer: &Timer) -> (String, Option<String>) {
    let method = dump.heap().delegate_method(timer.callback);
    let callback = method.as_ref().and_then(method_text);
    let callback = callback.unwrap_or_else(|| format!("the delegate at {:#x}", timer.callback));
    let state = Some(timer.state).filter(|state| !state.is_null());
    let state = state.map(|state| type_text(dump.heap().type_name(state).as_deref(), state.get()));
    // The callbacks of the framework are unnamed; their argument says what they are for.
    let callback = match state.as_deref() {
        Some(
            "System.Threading.Tasks.Task.DelayPromise"
            | "System.Threading.Tasks.Task.DelayPromiseWithCancellation",
        ) => "Task.Delay".to_owned(),
        Some("System.Threading.CancellationTokenSource") => "CancellationTokenSource.CancelAfter".to_owned(),
        Some("System.Threading.PeriodicTimer.State") => "PeriodicTimer".to_owned(),
        _ => callback,
    };
    (callback, state)
}

/// The state of the timers in one sentence.
fn answer(list: &List) -> String {
    let timers = units::counted(list.count, "timer", "timers");
    let late = match list.late {
        Some(0) => "none of them is late".to_owned(),
        Some(late) => format!(
            "{} late, by {} at most: no thread of the pool runs them",
            units::counted(late, "is", "are"),
            units::time(list.late_by)
        ),
        None => "a core dump does not have the time at which it was written".to_owned(),
    };
    let next = list.rows.iter().filter_map(|row| Some((row.due?.0, row))).min_by_key(|(due, _)| *due);
    let next = next.map_or_else(String::new, |(due, row)| {
        format!("; the next is {}, {}", row.callback, when(list.clock, due))
    });
    if list.count == 0 && list.rows.is_empty() {
        return "No timer is active".to_owned();
    }
    format!("{timers}, {late}{next}")
}

/// A tick in words.
fn when(clock: TickClock, tick: u64) -> String {
    match (clock.until(tick), clock.time(tick)) {
        (Some(until @ 0..), _) => format!("in {}", units::time(Duration::from_millis(until.unsigned_abs()))),
        (Some(until), _) => format!("{} ago", units::time(Duration::from_millis(until.unsigned_abs()))),
        (None, Some(time)) => time_text(time),
        (None, None) => format!("{} after the system's start", units::time(Duration::from_millis(tick))),
    }
}

fn text(list: &List, most: usize) -> String {
    use Align::{Left, Right};
    let mut text = width::wrapped(&(answer(list) + "\n"), width::of_output());
    if list.rows.is_empty() {
        return text;
    }
    text.push('\n');
    let mut columns = Columns::new([
        ("TIMERS", Right),
        ("LATE", Right),
        ("NEXT DUE", Right),
        ("PERIOD", Right),
        ("CALLBACK", Left),
        ("ARGUMENT", Left),
    ]);
    for row in list.rows.iter().take(most) {
        columns.row([
            units::count(row.count),
            list.late.map_or_else(String::new, |_| units::count(row.late)),
            row.due.map_or_else(|| "off".to_owned(), |(first, _)| when(list.clock, first)),
            row.period.map_or_else(|| "once".to_owned(), units::time),
            row.callback.clone(),
            row.state.clone().unwrap_or_default(),
        ]);
    }
    text.push_str(&columns.fitted(&["ARGUMENT"]));
    let left = list.rows.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "({} more)", units::count(left as u64));
    }
    if list.read != list.count {
        let _ =
            writeln!(text, "{} of {} timers were read", units::count(list.read), units::count(list.count));
    }
    text
}

#[derive(Debug, Serialize)]
struct Report {
    /// The state of the timers in one sentence.
    answer: String,
    /// The number of timers that have not fired, or fire again.
    timers: u64,
    /// The number of timers that the rows have.
    read: u64,
    /// Timers that were due half a second ago or earlier; null if the time is unknown, as in a core dump.
    late: Option<u64>,
    late_by_ms: u64,
    rows: Vec<RowReport>,
}

#[derive(Debug, Serialize)]
struct RowReport {
    callback: String,
    /// The type of the callback's argument.
    argument: Option<String>,
    timers: u64,
    late: u64,
    /// Null if they fire once.
    period_ms: Option<u64>,
    /// Milliseconds until the first of them is due, negative if it is late; null if the time is unknown.
    due_in_ms: Option<i64>,
    /// The times at which the first and the last of them are due; null if unknown.
    first_due: Option<String>,
    last_due: Option<String>,
}

impl Report {
    fn new(list: &List, most: usize) -> Self {
        let row = |row: &Row| RowReport {
            callback: row.callback.clone(),
            argument: row.state.clone(),
            timers: row.count,
            late: row.late,
            period_ms: row.period.and_then(|period| u64::try_from(period.as_millis()).ok()),
            due_in_ms: row.due.and_then(|(first, _)| list.clock.until(first)),
            first_due: row.due.and_then(|(first, _)| list.clock.time(first)).map(|time| time.to_string()),
            last_due: row.due.and_then(|(_, last)| list.clock.time(last)).map(|time| time.to_string()),
        };
        Self {
            answer: answer(list),
            timers: list.count,
            read: list.read,
            late: list.late,
            late_by_ms: u64::try_from(list.late_by.as_millis()).unwrap_or_default(),
            rows: list.rows.iter().take(most).map(row).collect(),
        }
    }
}
