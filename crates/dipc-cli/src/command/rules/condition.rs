//! The times at which a condition would have been met in a recording.

use std::path::Path;
use std::time::Duration;

use clr_conditions::{Condition, Evaluator, Match, StreamEnd};
use nettrace::RelativeTime;
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::Outcome;
use crate::inspect::recording::Recording;
use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns};
use crate::render::{messages, output, units};

/// A test of a condition.
pub(super) struct ConditionTest<'a> {
    pub(super) file: &'a Path,
    pub(super) condition: &'a Condition,
    /// Minimum time between two snapshots.
    pub(super) interval: Duration,
    /// The reason for the end of the recording, if known.
    pub(super) end: Option<StreamEnd>,
    pub(super) format: Format,
    /// Maximum number of rows.
    pub(super) number: usize,
}

pub(super) fn run(test: &ConditionTest<'_>) -> Outcome {
    let (events, origin) = Recording::open(test.file)?.into_parts();
    let mut events = events.in_time_order();
    let mut evaluator = Evaluator::new(test.condition.clone());
    let mut firings = Firings { interval: test.interval, ..Firings::default() };
    let mut newest = RelativeTime::START;
    while let Some(event) = events.next().map_err(|error| origin.failed(&error))? {
        newest = newest.max(event.relative_time());
        evaluator.event(&event, |found| firings.add(found, test.number));
    }
    evaluator.finish(|found| firings.add(found, test.number));
    let events = events.into_events();
    let end = events.truncated_at().map(|_| StreamEnd::Unknown);
    if let Some(end) = test.end.or(end)
        && let Some(found) = evaluator.end(end, newest)
    {
        firings.add(found, test.number);
    }
    let is_recorded =
        |name: &str| events.metadata().iter().any(|kind| kind.provider().eq_ignore_ascii_case(name));
    for name in test.condition.missing_providers(is_recorded) {
        messages::warning(format_args!(
            "the recording has no event of {name}, which a session for this condition requests"
        ));
    }
    let exit = origin.report_damage(&events);
    match test.format {
        Format::Json => output::print_json(&firings.json())?,
        Format::Table => output::print(firings.table())?,
    }
    Ok(if firings.count == 0 { exit.or_failed() } else { exit })
}

/// The result of a test.
#[derive(Debug, Serialize)]
struct RulesTest {
    /// The number of times that the condition was met.
    met: u64,
    snapshots: u64,
    /// The first of these times.
    firings: Vec<Firing>,
}

/// A time at which a condition was met, since the recording's start.
#[derive(Debug, Serialize)]
struct Firing {
    time_ns: i64,
    /// True if the recorder would have written a snapshot.
    snapshot: bool,
    met_by: String,
}

/// The times at which a condition was met.
#[derive(Debug, Default)]
struct Firings {
    interval: Duration,
    /// The first matches, each with whether the recorder would have written a snapshot.
    shown: Vec<(Match, bool)>,
    /// The rows of the table. Matches that are too early for a snapshot share one row until the next
    /// snapshot.
    rows: Vec<Row>,
    count: u64,
    snapshots: u64,
    last: Option<RelativeTime>,
}

/// A row of the table: a snapshot, or the times between two snapshots.
#[derive(Debug)]
struct Row {
    first: Match,
    is_snapshot: bool,
    count: u64,
    last: RelativeTime,
}

impl Firings {
    fn add(&mut self, found: Match, most: usize) {
        let is_early =
            self.last.is_some_and(|last| found.time.saturating_duration_since(last) < self.interval);
        self.count += 1;
        if !is_early {
            self.snapshots += 1;
            self.last = Some(found.time);
        }
        let has_room = self.rows.len() < most;
        match self.rows.last_mut().filter(|row| is_early && !row.is_snapshot) {
            Some(row) => {
                row.count += 1;
                row.last = found.time;
            }
            None if has_room => self.rows.push(Row {
                first: found.clone(),
                is_snapshot: !is_early,
                count: 1,
                last: found.time,
            }),
            None => {}
        }
        if self.shown.len() < most {
            self.shown.push((found, !is_early));
        }
    }

    fn json(&self) -> RulesTest {
        let firing = |(found, snapshot): &(Match, bool)| Firing {
            time_ns: found.time.as_nanos(),
            snapshot: *snapshot,
            met_by: found.what.clone(),
        };
        RulesTest {
            met: self.count,
            snapshots: self.snapshots,
            firings: self.shown.iter().map(firing).collect(),
        }
    }

    fn table(&self) -> String {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let summary = format!(
            "Met {} time{}; {} snapshot{}\n",
            self.count,
            plural(self.count),
            self.snapshots,
            plural(self.snapshots)
        );
        if self.shown.is_empty() {
            return summary;
        }
        let mut columns =
            Columns::new([("AT", Align::Right), ("SNAPSHOT", Align::Left), ("MET BY", Align::Left)]);
        for row in &self.rows {
            columns.row([
                units::moment(row.first.time.since_start()),
                match (row.is_snapshot, row.count) {
                    (true, _) => "yes".to_owned(),
                    (false, 1) => "too early".to_owned(),
                    (false, count) => {
                        format!("too early, {count} times until {}", units::moment(row.last.since_start()))
                    }
                },
                escape_controls(&row.first.what).into_owned(),
            ]);
        }
        format!("{}\n{summary}", columns.fitted(&[]))
    }
}
