//! The time around a match of a condition.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use clr_conditions::{Condition, Evaluator, Match, StreamEnd};
use nettrace::RelativeTime;

use crate::args::flight::parse_condition;
use crate::duration;
use crate::exit::{Exit, Failure};
use crate::inspect::recording::Recording;
use crate::render::escape::escape_controls;
use crate::render::{messages, units};

/// The event around which a part lies.
#[derive(Debug, Args)]
pub(super) struct AroundArgs {
    /// Only the time around a match of this condition, in the form of dipc trace --snapshot-on; reads the
    /// file twice
    ///
    /// 'event PROVIDER/EVENT FIELD > VALUE', 'exception TYPE', 'gc pause > 200ms', 'request status >= 500',
    /// 'crash' and others, joined with 'and' and 'or'. dipc rules test FILE --snapshot-on CONDITION lists the
    /// matches.
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition, conflicts_with_all = ["from", "to"])]
    around: Option<Condition>,
    /// Use the Nth match of --around
    #[arg(long, value_name = "N", default_value_t = 1, requires = "around", value_parser = clap::value_parser!(u64).range(1..))]
    occurrence: u64,
    /// Time to keep before the match
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s", requires = "around")]
    before: Duration,
    /// Time to keep after the match
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s", requires = "around")]
    after: Duration,
}

impl AroundArgs {
    /// Returns the time range in the recording; `None` if no condition is given. Reports the event that met
    /// it.
    ///
    /// Fails if the condition was met less often.
    pub(super) fn find(&self, file: &Path) -> Result<Option<(RelativeTime, RelativeTime)>, Failure> {
        let Some(condition) = &self.around else { return Ok(None) };
        if file.as_os_str() == "-" {
            return Err(Failure::usage("--around reads a recording twice, which only a file can be"));
        }
        let found = find(file, condition, self.occurrence)?;
        let time = found.time.as_nanos();
        messages::note(format_args!(
            "Around         : {}, {}",
            units::time(found.time.since_start()),
            escape_controls(&found.what)
        ));
        let nanoseconds = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let from = time.saturating_sub(nanoseconds(self.before));
        // The end is inclusive, so that --after 0s keeps the event itself.
        let to = time.saturating_add(nanoseconds(self.after)).saturating_add(1);
        Ok(Some((RelativeTime::from_nanos(from), RelativeTime::from_nanos(to))))
    }
}

/// Returns the `occurrence`-th match of the condition in time order, as recorders and `dipc rules test` count
/// them.
fn find(file: &Path, condition: &Condition, occurrence: u64) -> Result<Match, Failure> {
    let (events, origin) = Recording::open(file)?.into_parts();
    let mut events = events.in_time_order();
    let mut evaluator = Evaluator::new(condition.clone());
    let mut newest = RelativeTime::START;
    let mut matches = Matches { occurrence, count: 0, wanted: None };
    while matches.wanted.is_none()
        && let Some(event) = events.next().map_err(|error| origin.failed(&error))?
    {
        newest = newest.max(event.relative_time());
        evaluator.event(&event, |found| matches.add(found));
    }
    if matches.wanted.is_none() {
        evaluator.finish(|found| matches.add(found));
    }
    if matches.wanted.is_none()
        && events.events().truncated_at().is_some()
        && let Some(found) = evaluator.end(StreamEnd::Unknown, newest)
    {
        matches.add(found);
    }
    if let Some(found) = matches.wanted {
        return Ok(found);
    }
    let times = match matches.count {
        0 => "is never met".to_owned(),
        1 => "is met once".to_owned(),
        count => format!("is met {count} times"),
    };
    Err(Failure::new(Exit::Failed, format_args!("--around: {}: the condition {times}", file.display()))
        .with_help("dipc rules test FILE --snapshot-on CONDITION lists when"))
}

/// The search for a condition's nth match.
struct Matches {
    occurrence: u64,
    count: u64,
    wanted: Option<Match>,
}

impl Matches {
    fn add(&mut self, found: Match) {
        self.count += 1;
        if self.count == self.occurrence {
            self.wanted = Some(found);
        }
    }
}
