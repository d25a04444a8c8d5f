//! Shared parts of the reports that read events.

use std::fmt::Display;
use std::path::Path;

use clap::Args;
use nettrace::{Event, Metadata, RelativeTime};
use nettrace_export::Selection;
use serde::Serialize;

use crate::args::format::Format;
use crate::args::names::NameArgs;
use crate::args::times::TimeArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::filter::{Criteria, TrackedCriteria};
use crate::inspect::needs::Needs;
use crate::inspect::recording::Recording;
use crate::render::output;
use crate::render::width;

/// Which part of a recording is read, and how the answer is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadingArgs {
    /// Number of rows to show [default: 20, with --format json and for gc all]
    #[arg(short, long, value_name = "N")]
    number: Option<usize>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    #[command(flatten)]
    times: TimeArgs,
    /// Only this process, in recordings of many; may be given several times
    #[arg(long, value_name = "PID")]
    pid: Vec<u64>,
}

/// The same of reports that have names of methods or types.
#[derive(Debug, Clone, Args)]
pub(crate) struct NamedReadingArgs {
    #[command(flatten)]
    pub(super) reading: ReadingArgs,
    #[command(flatten)]
    pub(super) names: NameArgs,
}

impl ReadingArgs {
    /// Rows of a table.
    pub(super) fn rows(&self) -> usize {
        self.number.unwrap_or(20)
    }

    /// Rows where all are shown by default.
    pub(super) fn all_rows(&self) -> usize {
        self.number.unwrap_or(usize::MAX)
    }

    /// The time from which events of this recording are read.
    pub(super) fn start(&self, file: &Path) -> Result<RelativeTime, Failure> {
        let (from, _) = self.times.range().resolve(file)?;
        Ok(from.unwrap_or(RelativeTime::START))
    }

    /// Whether events of other times are left out.
    pub(super) const fn is_of_part(&self) -> bool {
        self.times.from.is_some() || self.times.to.is_some()
    }

    /// Passes the selected events of a recording to `each`, in the order that reports need: those of the kinds for which `is_needed` is true, and
    /// perhaps others. Returns the time of the last event of the recording, if not all that are selected were passed.
    pub(super) fn read_kinds(
        &self,
        file: &Path,
        is_needed: fn(&Metadata) -> bool,
        mut each: impl FnMut(&Event<'_>),
    ) -> Result<(Exit, Option<RelativeTime>), Failure> {
        // Which values of a selection match nothing is known once all events were looked at.
        if self.is_of_part() || !self.pid.is_empty() {
            return Ok((self.read(file, each)?, None));
        }
        let (events, origin) = Recording::open(file)?.into_parts();
        let read = nettrace_export::report::read_kinds(events, is_needed, &mut each);
        let read = read.map_err(|error| origin.failed(&error))?;
        Ok((origin.report_damage(read.events()), read.last_time()))
    }

    /// Passes the selected events of all kinds to `each`, in the order that reports need.
    pub(super) fn read(&self, file: &Path, mut each: impl FnMut(&Event<'_>)) -> Result<Exit, Failure> {
        let mut selection = Selection::default();
        (selection.from, selection.to) = self.times.range().resolve(file)?;
        selection.processes.clone_from(&self.pid);
        let mut criteria = TrackedCriteria::new(Criteria {
            processes: self.pid.clone(),
            from: selection.from,
            to: selection.to,
            ..Criteria::default()
        });
        let (mut events, origin) = Recording::open(file)?.into_parts();
        criteria.skip_blocks(&mut events);
        let read = nettrace_export::report::read(events, |event| {
            criteria.add(event);
            if selection.contains(event) {
                each(event);
            }
        });
        let events = read.map_err(|error| origin.failed(&error))?;
        criteria.add_skipped(&events);
        criteria.warn_of_misses(events.metadata());
        Ok(origin.report_damage(&events))
    }

    /// Prints the report, or says what the recording lacks for it. Of a list in JSON the first rows are kept, if fewer are
    /// wanted, by `cut`.
    pub(super) fn show<R: Serialize, T: Display>(
        &self,
        (file, exit): (&Path, Exit),
        needs: &Needs,
        report: Option<R>,
        cut: impl FnOnce(&mut R, usize),
        table: impl FnOnce(&R) -> T,
    ) -> Outcome {
        let Some(mut report) = report else {
            let exit = exit.or_failed();
            let where_ = if self.is_of_part() || !self.pid.is_empty() {
                "the part of the recording that was asked for"
            } else {
                "the recording"
            };
            return Err(Failure::new(
                exit,
                format_args!("{}: {where_} has no {}", file.display(), needs.what),
            )
            .with_help(format_args!("record them: {}; if they were, there was none", needs.command)));
        };
        match self.format {
            Format::Json => {
                cut(&mut report, self.all_rows());
                output::print_json(&report)?;
            }
            Format::Table => {
                output::print(width::wrapped(&table(&report).to_string(), width::of_output()))?;
            }
        }
        Ok(exit)
    }
}
