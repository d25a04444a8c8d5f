//! Shared parts of the reports that read events.

use std::fmt::Display;
use std::path::Path;

use clap::Args;
use nettrace::{Event, Interest, Metadata, RelativeTime};
use nettrace_edit::{Criteria, RecordedRange, TrackedCriteria};
use nettrace_export::{Metric, Selection};
use serde::Serialize;

use crate::args::format::Format;
use crate::args::names::NameArgs;
use crate::args::times::TimeArgs;
use crate::args::user_code::UserCodeArgs;
use crate::command::report::callers::{Callers, CallersBuilder};
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::filter::warn_of_misses;
use crate::inspect::names::code_beside;
use crate::inspect::needs::Needs;
use crate::inspect::recording::Recording;
use crate::inspect::time_range::{PartTimes, recorded_range};
use crate::render::output;
use crate::render::width;

/// The part of a recording to read, and the form of the output.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadingArgs {
    /// Number of rows to show [default: 20; all with --format json and for gc]
    #[arg(short, long = "rows", alias = "number", value_name = "N")]
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

/// The part of a recording that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadPart {
    pub(super) exit: Exit,
    /// The time to which percentages and rates refer: the part of the requested range that the recording or
    /// the process covers.
    pub(super) start: RelativeTime,
    pub(super) end: RelativeTime,
    /// True if it is the whole recording.
    pub(super) is_whole: bool,
}

/// The same for reports that have names of methods or types.
#[derive(Debug, Clone, Args)]
pub(crate) struct NamedReadingArgs {
    #[command(flatten)]
    pub(super) reading: ReadingArgs,
    #[command(flatten)]
    pub(super) names: NameArgs,
}

/// The same for reports that name the user's methods.
#[derive(Debug, Clone, Args)]
pub(crate) struct WithUserCode<A: Args> {
    #[command(flatten)]
    pub(super) args: A,
    #[command(flatten)]
    pub(super) user_code: UserCodeArgs,
}

impl<A: Args> WithUserCode<A> {
    /// Passes the selected events of some kinds to `each`, as [`ReadingArgs::read_kinds`] does, and returns
    /// the user's methods that led to the subjects of a metric in the part of the recording.
    pub(super) fn read_kinds(
        &self,
        file: &Path,
        reading: &ReadingArgs,
        (is_needed, metric): (fn(&Metadata) -> bool, Metric),
        mut each: impl FnMut(&Event<'_>),
    ) -> Result<(ReadPart, Callers), Failure> {
        let mut callers = CallersBuilder::new(metric, reading.selection(file)?, self.user_code.patterns());
        code_beside(file)(callers.code_mut());
        let part = if reading.selects_all(file) {
            let interest = move |kind: &Metadata| {
                Interest::all_if(is_needed(kind) || CallersBuilder::needs(metric, kind))
            };
            reading.read_session_by(file, interest, |event| {
                callers.add(event);
                each(event);
            })?
        } else {
            // Methods are named outside of the part, too.
            reading.read_with(file, Some(&mut |event| callers.add(event)), each)?
        };
        Ok((part, callers.finish()))
    }
}

impl ReadingArgs {
    /// The number of rows of a table.
    pub(super) fn rows(&self) -> usize {
        self.number.unwrap_or(20)
    }

    /// The number of rows if all are shown by default.
    pub(super) fn all_rows(&self) -> usize {
        self.number.unwrap_or(usize::MAX)
    }

    /// The time from which events of this recording are read.
    pub(super) fn start(&self, file: &Path) -> Result<RelativeTime, Failure> {
        let (from, _) = self.times.range().resolve_in_part(file)?.selected();
        Ok(from.unwrap_or(RelativeTime::START).max(RelativeTime::START))
    }

    /// Returns true if a time is selected.
    const fn selects_time(&self) -> bool {
        self.times.from.is_some() || self.times.to.is_some()
    }

    /// Returns true if a part of the events is selected.
    const fn selects_events(&self) -> bool {
        self.selects_time() || !self.pid.is_empty()
    }

    /// Returns true if all events of a recording are selected.
    pub(super) fn selects_all(&self, file: &Path) -> bool {
        !self.selects_events() && recorded_range(file).is_none()
    }

    /// Returns true if events outside a part of the recording's time are left out.
    pub(super) fn is_of_part(&self, file: &Path) -> bool {
        self.selects_time() || recorded_range(file).is_some()
    }

    /// Passes the selected events of a recording to `each`, in the order that reports need: all kinds for
    /// which `is_needed` is true, and possibly others.
    pub(super) fn read_kinds(
        &self,
        file: &Path,
        is_needed: fn(&Metadata) -> bool,
        each: impl FnMut(&Event<'_>),
    ) -> Result<ReadPart, Failure> {
        self.read_by(file, move |kind| Interest::all_if(is_needed(kind)), each)
    }

    /// Like `read_kinds`, for reports that also look at activities.
    pub(super) fn read_by(
        &self,
        file: &Path,
        interest: impl Fn(&Metadata) -> Interest + Send + Sync + 'static,
        each: impl FnMut(&Event<'_>),
    ) -> Result<ReadPart, Failure> {
        if recorded_range(file).is_some() {
            self.read(file, each)
        } else {
            self.read_session_by(file, interest, each)
        }
    }

    /// Like `read_kinds`, for reports that need events from before the time of a part.
    pub(super) fn read_session(
        &self,
        file: &Path,
        is_needed: fn(&Metadata) -> bool,
        each: impl FnMut(&Event<'_>),
    ) -> Result<ReadPart, Failure> {
        self.read_session_by(file, move |kind| Interest::all_if(is_needed(kind)), each)
    }

    fn read_session_by(
        &self,
        file: &Path,
        interest: impl Fn(&Metadata) -> Interest + Send + Sync + 'static,
        mut each: impl FnMut(&Event<'_>),
    ) -> Result<ReadPart, Failure> {
        // Unmatched values of a selection are known only after a full read.
        if self.selects_events() {
            return self.read(file, each);
        }
        let (events, origin) = Recording::open(file)?.into_parts();
        let read = nettrace_export::report::read_by(events, interest, &mut each);
        let read = read.map_err(|error| origin.failed(&error))?;
        let end = read.last_time().unwrap_or(RelativeTime::START);
        let exit = origin.report_damage(read.events());
        Ok(ReadPart { exit, start: RelativeTime::START, end, is_whole: true })
    }

    /// The selection of events.
    pub(super) fn selection(&self, file: &Path) -> Result<Selection, Failure> {
        Ok(self.selection_of(self.times.range().resolve_in_part(file)?))
    }

    fn selection_of(&self, times: PartTimes) -> Selection {
        let (from, to) = times.selected();
        Selection::of_time(from, to).with_processes(self.pid.clone())
    }

    /// Passes the selected events of all kinds to `each`, in the order that reports need.
    pub(super) fn read(&self, file: &Path, each: impl FnMut(&Event<'_>)) -> Result<ReadPart, Failure> {
        self.read_with(file, None, each)
    }

    /// Like `read`; also passes all events of the recording to `each_of_all`, if given.
    fn read_with(
        &self,
        file: &Path,
        mut each_of_all: Option<&mut dyn FnMut(&Event<'_>)>,
        mut each: impl FnMut(&Event<'_>),
    ) -> Result<ReadPart, Failure> {
        let part = self.times.range().resolve_in_part(file)?;
        let selection = self.selection_of(part);
        let (from, to) = part.requested;
        let mut criteria = TrackedCriteria::new(
            Criteria::default().with_processes(self.pid.clone()).with_from(from).with_to(to),
        );
        let (mut events, origin) = Recording::open(file)?.into_parts();
        if each_of_all.is_none() {
            criteria.skip_blocks(&mut events);
        }
        let of_processes = Selection::default().with_processes(self.pid.clone());
        let mut times: Option<(RelativeTime, RelativeTime)> = None;
        let mut extend = |time: RelativeTime| {
            let (first, last) = times.get_or_insert((time, time));
            (*first, *last) = ((*first).min(time), (*last).max(time));
        };
        let read = nettrace_export::report::read(events, |event| {
            if RecordedRange::of(event).is_some() {
                return;
            }
            criteria.add(event);
            if let Some(each_of_all) = &mut each_of_all {
                each_of_all(event);
            }
            if of_processes.contains(event) {
                extend(event.relative_time());
            }
            if selection.contains(event) {
                each(event);
            }
        });
        let events = read.map_err(|error| origin.failed(&error))?;
        criteria.add_skipped(&events);
        if let (Some(info), Some((_, last))) = (events.info(), events.skipped_times()) {
            extend(info.relative_time(last));
        }
        warn_of_misses(&criteria.misses(events.metadata()));
        // A session begins with its recording; in a merged recording, a process may appear later.
        let (first, last) = times.unwrap_or_default();
        let first = if self.pid.is_empty() { RelativeTime::START } else { first.max(RelativeTime::START) };
        // The last events of a part may have been left out of it.
        let last = part.recorded.map_or(last, |recorded| recorded.to);
        let start = selection.from.map_or(first, |from| from.max(first));
        let end = selection.to.map_or(last, |to| to.min(last)).max(start);
        Ok(ReadPart { exit: origin.report_damage(&events), start, end, is_whole: false })
    }

    /// Prints the report, or states the data missing from the recording. `cut` limits a JSON list to the
    /// first rows if fewer are requested.
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
            let where_ =
                if self.selects_events() { "the requested part of the recording" } else { "the recording" };
            return Err(Failure::new(
                exit,
                format_args!("{}: {where_} has no {}", file.display(), needs.what),
            )
            .with_help(format_args!(
                "record them: {}; if they were recorded, there were none",
                needs.command
            )));
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
