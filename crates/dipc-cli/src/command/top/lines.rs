//! Intervals as lines: tables for people, or an object for each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dipc_collect::live::{InUse, Interval, TypeInUse};
use nettrace_export::Profile;
use serde::Serialize;

use crate::command::top::counter;
use crate::command::top::history::History;
use crate::command::top::session::SessionEvent;
use crate::command::top::view::{self, Choice, View, ViewTable};
use crate::command::top::{TopArgs, TopFormat, flame_graph};
use crate::exit::{Failure, Outcome};
use crate::record::watch::{WatchView, WatchedProcess};
use crate::render::{output, units};

/// The default numbers of rows for people and for programs.
const ROWS: usize = 10;
const JSON_ROWS: usize = 100;
/// The width of a column of numbers.
const NUMBER: usize = 9;
/// The columns for a name if the output is not a terminal.
const NAME: usize = 120;

/// Intervals as lines.
pub(super) struct Lines<'a> {
    args: &'a TopArgs,
    processes: BTreeMap<usize, History>,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(args: &'a TopArgs) -> Self {
        Self { args, processes: BTreeMap::new() }
    }
}

impl Lines<'_> {
    fn print(&mut self, number: usize, interval: Interval) -> Result<(), Failure> {
        let Some(history) = self.processes.get_mut(&number) else { return Ok(()) };
        history.sums.add(&interval);
        history.latest = Some(interval);
        output::print(match self.args.format {
            TopFormat::Table => text(self.args, history),
            TopFormat::Jsonl => json(self.args, history),
        })
    }

    /// Writes the flame graphs that the user asked for.
    fn write_flame_graphs(&self) -> Result<(), Failure> {
        let Some(path) = &self.args.output else { return Ok(()) };
        let is_one_of_many = self.processes.len() > 1;
        self.processes
            .values()
            .try_for_each(|history| flame_graph::write(history, Some(path), is_one_of_many))
    }
}

impl WatchView<SessionEvent> for Lines<'_> {
    fn receive(&mut self, event: SessionEvent) -> Result<(), Failure> {
        match event {
            SessionEvent::Begun(process, features) => {
                self.processes.insert(process.number, History::new(&process, features));
                Ok(())
            }
            SessionEvent::Interval(number, interval) => self.print(number, *interval),
        }
    }

    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure> {
        if let Some(history) = self.processes.get_mut(&process.number) {
            history.has_ended = true;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if output::is_closed() { Err(Failure::closed_output()) } else { Ok(()) }
    }

    fn is_done(&self) -> bool {
        false
    }

    fn finish(&mut self, outcome: Outcome) -> Outcome {
        let exit = outcome?;
        self.write_flame_graphs()?;
        Ok(exit)
    }
}

/// Returns the tables of an interval.
fn text(args: &TopArgs, history: &History) -> String {
    let mut text = String::new();
    let time = history.latest.as_ref().map_or_else(String::new, |interval| units::time_of_day(interval.time));
    let [counters, sums] = view::summary(history);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{time}  {}\n{counters}\n{sums}", history.process.title());
    let rows = args.rows.unwrap_or(ROWS);
    for view in View::ALL {
        let choice = Choice { order: args.sort, filter: "", since_start: false };
        // Individual collections would be many lines; their sum is printed above.
        if view != View::Collections {
            add_table(&mut text, &view::table(history, view, &[], choice), rows);
        }
    }
    text.push('\n');
    text
}

fn add_table(text: &mut String, table: &ViewTable, rows: usize) {
    if table.rows.is_empty() {
        return;
    }
    let mut line = |cells: &mut dyn Iterator<Item = &str>, name: &str| {
        for cell in cells {
            let _ = write!(text, "{cell:>NUMBER$} ");
        }
        let _ = writeln!(text, " {name}");
    };
    line(&mut table.head.iter().copied(), table.name);
    for row in table.rows.iter().take(rows) {
        line(&mut row.cells.iter().map(String::as_str), &row.name(NAME));
    }
}

/// An interval for programs.
#[derive(Debug, Serialize)]
struct IntervalLine<'i> {
    pid: Option<u32>,
    name: Option<&'i str>,
    /// The time from the session's start to the interval's end.
    time_ns: i64,
    duration_ns: u64,
    samples: u64,
    /// The time of threads that worked or were blocked, to which the percentages of methods refer, and that
    /// of threads that waited for work.
    total_ns: u64,
    blocked_ns: u64,
    idle_ns: u64,
    /// The part of the time of working threads in which they may actually have been waiting: the kernel's
    /// accounting is not available for it.
    unverified_ns: u64,
    methods: Vec<MethodRow<'i>>,
    threads: Vec<ThreadRow<'i>>,
    /// `null` if they were not requested.
    allocations: Option<Vec<TypeRow<'i>>>,
    /// Those that the last collection found in use, of all since the session's start; `null` if they were not
    /// requested.
    in_use: Option<Vec<TypeInUseRow<'i>>>,
    collections: Collections,
    exceptions: Vec<ExceptionRow<'i>>,
    counters: BTreeMap<&'static str, f64>,
    /// The events lost since the session's start.
    lost: u64,
    samples_left_out: u64,
    frames_left_out: u64,
    frames_without_name: u64,
}

#[derive(Debug, Serialize)]
struct MethodRow<'i> {
    frame: &'i str,
    csharp: &'i str,
    /// The kind of its code, as in the report topN.
    kind: &'static str,
    exclusive_ns: u64,
    inclusive_ns: u64,
    blocked_ns: u64,
    exclusive_percent: f64,
    inclusive_percent: f64,
}

#[derive(Debug, Serialize)]
struct ThreadRow<'i> {
    tid: u64,
    name: Option<&'i str>,
    role: Option<&'i str>,
    working_ns: u64,
    runnable_ns: u64,
    blocked_ns: u64,
    idle_ns: u64,
    /// The time that it waited, blocked or idle, where only the kernel's account shows it.
    waited_ns: u64,
    /// The method where the thread spent most of its time.
    frame: Option<&'i str>,
}

#[derive(Debug, Serialize)]
struct TypeRow<'i> {
    r#type: &'i str,
    csharp: &'i str,
    bytes: u64,
    samples: u64,
}

#[derive(Debug, Serialize)]
struct TypeInUseRow<'i> {
    csharp: &'i str,
    bytes: u64,
    samples: u64,
}

#[derive(Debug, Serialize)]
struct Collections {
    count: u64,
    /// The counts by generation.
    generations: [u64; 3],
    pause_ns: u64,
    longest_pause_ns: u64,
    pause_percent: f64,
}

#[derive(Debug, Serialize)]
struct ExceptionRow<'i> {
    r#type: &'i str,
    csharp: &'i str,
    count: u64,
    first_message: &'i str,
}

/// Returns the line of an interval.
fn json(args: &TopArgs, history: &History) -> String {
    let Some(interval) = &history.latest else { return String::new() };
    let (profile, omissions) = (&interval.profile, interval.omissions);
    let rows = args.rows.unwrap_or(JSON_ROWS);
    let line = IntervalLine {
        pid: history.process.pid,
        name: history.process.name.as_deref(),
        time_ns: interval.end.as_nanos(),
        duration_ns: units::nanoseconds(interval.length),
        samples: profile.samples(),
        total_ns: profile.total(),
        blocked_ns: profile.blocked(),
        idle_ns: profile.idle(),
        unverified_ns: interval.unverified,
        methods: methods(args, profile, rows),
        threads: threads(interval, rows),
        allocations: history.features.allocations.then(|| types(interval, rows)),
        in_use: interval.in_use.as_ref().map(|in_use| types_in_use(in_use, rows)),
        collections: collections(interval),
        exceptions: exceptions(interval, rows),
        counters: interval
            .counters
            .iter()
            .map(|(counter, value)| (counter::key(*counter), counter.scaled(*value)))
            .collect(),
        lost: omissions.lost,
        samples_left_out: omissions.samples,
        frames_left_out: omissions.frames,
        frames_without_name: omissions.unnamed,
    };
    // Names and numbers always serialize.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

fn types_in_use(in_use: &InUse, rows: usize) -> Vec<TypeInUseRow<'_>> {
    let types = in_use.types.iter().take(rows);
    types
        .map(|TypeInUse { csharp, bytes, samples, .. }| TypeInUseRow {
            csharp,
            bytes: *bytes,
            samples: *samples,
        })
        .collect()
}

fn methods<'i>(args: &TopArgs, profile: &'i Profile, rows: usize) -> Vec<MethodRow<'i>> {
    let total = profile.total();
    let rows = view::methods(profile, args.sort).into_iter().take(rows).filter_map(|row| {
        let frame = row.frame_id?;
        Some(MethodRow {
            frame: profile.frames.full_name(frame),
            csharp: profile.frames.name(frame),
            kind: row.kind.name(),
            exclusive_ns: row.exclusive,
            inclusive_ns: row.inclusive,
            blocked_ns: row.blocked,
            exclusive_percent: units::share(row.exclusive, total),
            inclusive_percent: units::share(row.inclusive, total),
        })
    });
    rows.collect()
}

fn threads(interval: &Interval, rows: usize) -> Vec<ThreadRow<'_>> {
    let threads = interval.threads.iter().take(rows).map(|row| ThreadRow {
        tid: row.id,
        name: Some(&*row.name).filter(|name| !name.is_empty()),
        role: Some(&*row.role).filter(|role| !role.is_empty()),
        working_ns: row.working,
        runnable_ns: row.runnable,
        blocked_ns: row.blocked,
        idle_ns: row.idle,
        waited_ns: row.waited,
        frame: row.leaf.map(|leaf| interval.profile.frames.full_name(leaf)),
    });
    threads.collect()
}

fn types(interval: &Interval, rows: usize) -> Vec<TypeRow<'_>> {
    let types = interval.allocations.types.iter().take(rows).map(|row| TypeRow {
        r#type: &row.name,
        csharp: &row.csharp,
        bytes: row.bytes,
        samples: row.samples,
    });
    types.collect()
}

fn collections(interval: &Interval) -> Collections {
    let report = &interval.collections;
    let of = |generation| {
        let all = report.collections.iter();
        all.filter(|collection| collection.generation == generation).count() as u64
    };
    Collections {
        count: report.collections.len() as u64,
        generations: [of(0), of(1), of(2)],
        pause_ns: units::nanoseconds(report.pauses.total),
        longest_pause_ns: units::nanoseconds(report.pauses.max),
        pause_percent: report.pause_percent,
    }
}

fn exceptions(interval: &Interval, rows: usize) -> Vec<ExceptionRow<'_>> {
    let types = interval.exceptions.types.iter().take(rows).map(|row| ExceptionRow {
        r#type: &row.name,
        csharp: &row.csharp,
        count: row.count,
        first_message: &row.first_message,
    });
    types.collect()
}
