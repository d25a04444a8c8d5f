//! `dipc memory --watch`: the owners that grow, in rounds.

use std::time::{Duration, Instant};

use clr_dump::Runtime;
use dipc_collect::memory::{MemoryGrowth, MemoryReading, MemorySnapshot, first_line};
use dipc_transport::{ProcessState, process_state, start_key};
use serde::Serialize;

use super::{MemoryArgs, MemoryFormat, read};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::core_source::Source;
use crate::inspect::memory_growth::{self, amount};
use crate::interrupt::Interrupts;
use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns};
use crate::render::{messages, output, units, width};

/// A process that is read in rounds. Its runtime is searched for once.
struct Watched {
    pid: u32,
    /// The start of the process, which distinguishes it from a later one of the same id.
    start: u64,
    runtime: Option<Runtime>,
}

pub(super) fn run(args: &MemoryArgs, source: &Source, interval: Duration) -> Outcome {
    if args.format == MemoryFormat::Html {
        return Err(Failure::usage("memory: --watch has --format table and json; a page is of one reading"));
    }
    let pid = source.pid().ok_or_else(|| Failure::usage("memory: --watch is for a process"))?;
    let start = start_key(pid).map_err(|error| {
        Failure::new(Exit::NotReachable, format_args!("read the state of process {pid}: {error}"))
    })?;
    let interrupts = Interrupts::watch()?;
    let begun = Instant::now();
    let end = args.duration.filter(|duration| !duration.is_zero()).and_then(|time| begun.checked_add(time));
    let mut watched = Watched { pid, start, runtime: None };
    let mut rounds = Rounds { args, first: None, last: None };
    let mut due = begun;
    loop {
        let Some(reading) = watched.read()? else {
            // Its parent has its exit code.
            messages::note(format_args!("Process ended  : {pid}"));
            return Ok(Exit::Done);
        };
        rounds.show(&reading)?;
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(Exit::Done);
        }
        due = due.checked_add(interval).unwrap_or(due).max(Instant::now());
        let until = end.map_or(due, |end| due.min(end));
        if interrupts.wait(until.saturating_duration_since(Instant::now())) || output::is_closed() {
            return Ok(Exit::Done);
        }
    }
}

impl Watched {
    /// Reads the process; `None` if it has ended.
    fn read(&mut self) -> Result<Option<MemoryReading>, Failure> {
        let result = self.read_once();
        if self.has_ended() {
            return Ok(None);
        }
        result.map(Some)
    }

    fn read_once(&mut self) -> Result<MemoryReading, Failure> {
        // Pages of files are kept for a reading alone: files can be unmapped until the next one.
        let source = Source::attach(self.pid)?;
        let runtime = match self.runtime.take() {
            Some(runtime) => Ok(runtime),
            None => source.runtime(),
        };
        let reading = read(&source, runtime.as_ref())?;
        // A heap that cannot be read may be that of another program, which the process runs now.
        self.runtime = runtime.ok().filter(|_| reading.account.has_heap);
        Ok(reading)
    }

    fn has_ended(&self) -> bool {
        start_key(self.pid).ok() != Some(self.start)
            || matches!(process_state(self.pid), Ok(ProcessState::Zombie | ProcessState::Gone))
    }
}

/// The output of the rounds, and what it compares.
struct Rounds<'a> {
    args: &'a MemoryArgs,
    first: Option<MemorySnapshot>,
    last: Option<MemorySnapshot>,
}

/// A round as JSON: the fields of a snapshot, with changes.
#[derive(Serialize)]
struct Round<'a> {
    time_unix_ms: Option<u64>,
    process_id: Option<u32>,
    rss_bytes: Option<u64>,
    unattributed_bytes: u64,
    answer: String,
    /// Since the round before; null in the first one.
    change_bytes: Option<i64>,
    /// Since the first round.
    bytes_per_minute: Option<i64>,
    owners: Vec<OwnerRound<'a>>,
}

#[derive(Serialize)]
struct OwnerRound<'a> {
    owner: &'a str,
    name: &'a str,
    bytes: u64,
    change_bytes: Option<i64>,
    bytes_per_minute: Option<i64>,
}

impl Rounds<'_> {
    fn show(&mut self, reading: &MemoryReading) -> Result<(), Failure> {
        let now = MemorySnapshot::of(reading);
        let since = |before: &Option<MemorySnapshot>| {
            before.as_ref().map(|before| MemoryGrowth::between(before, &now))
        };
        let (all, step) = (since(&self.first), since(&self.last));
        let answer = all.as_ref().map_or_else(|| first_line(reading), memory_growth::first_line);
        match self.args.format {
            MemoryFormat::Table | MemoryFormat::Html => {
                let time = units::time_of_day(reading.time);
                let mut text =
                    width::wrapped(&format!("{time}  {}\n", escape_controls(&answer)), width::of_output());
                if let (Some(all), Some(step)) = (&all, &step) {
                    text.push_str(&table(all, step, self.args.parts.rows));
                }
                output::print(text)?;
            }
            MemoryFormat::Json => {
                let round = round(&now, answer, all.as_ref(), step.as_ref());
                let line = serde_json::to_string(&round).map_err(|error| {
                    Failure::new(Exit::Failed, format_args!("write: standard output: {error}"))
                })?;
                output::print(line + "\n")?;
            }
        }
        self.first.get_or_insert_with(|| now.clone());
        self.last = Some(now);
        Ok(())
    }
}

/// The owners that changed: since the last round, and for each minute since the first one.
fn table(all: &MemoryGrowth, step: &MemoryGrowth, rows: usize) -> String {
    let mut columns = Columns::new([
        ("CHANGE", Align::Right),
        ("A MINUTE", Align::Right),
        ("NOW", Align::Right),
        ("OWNER", Align::Left),
    ]);
    let change = |owner: &str| {
        let of = step.owners.iter().find(|of| of.owner == owner);
        of.map(dipc_collect::memory::OwnerGrowth::change).unwrap_or_default()
    };
    let changed = all.owners.iter().filter(|of| of.change() != 0 || change(&of.owner) != 0);
    let mut shown = 0_u64;
    for of in changed.take(rows) {
        let rate = all.per_minute(of.change());
        columns.row([
            amount(change(&of.owner)),
            rate.map_or_else(|| "-".to_owned(), amount),
            units::bytes(of.after),
            of.name.clone(),
        ]);
        shown += 1;
    }
    if shown == 0 { String::new() } else { columns.fitted_to(width::of_output(), &[]) }
}

fn round<'a>(
    now: &'a MemorySnapshot,
    answer: String,
    all: Option<&MemoryGrowth>,
    step: Option<&MemoryGrowth>,
) -> Round<'a> {
    let change = |growth: Option<&MemoryGrowth>, owner: &str| {
        let of = growth?.owners.iter().find(|of| of.owner == owner)?;
        Some(of.change())
    };
    let rate = |change: Option<i64>| all?.per_minute(change?);
    let owners = now.owners.iter().map(|owned| OwnerRound {
        owner: &owned.owner,
        name: owned.name(),
        bytes: owned.bytes,
        change_bytes: change(step, &owned.owner),
        bytes_per_minute: rate(change(all, &owned.owner)),
    });
    Round {
        time_unix_ms: now.time_unix_ms,
        process_id: now.process_id,
        rss_bytes: now.rss_bytes,
        unattributed_bytes: now.unattributed_bytes,
        answer,
        change_bytes: step.map(|growth| growth.total.change()),
        bytes_per_minute: rate(all.map(|growth| growth.total.change())),
        owners: owners.collect(),
    }
}
