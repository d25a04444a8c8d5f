//! The contents of a page, gathered from a recording in one pass.

use std::path::Path;

use nettrace::Source;
use nettrace_edit::TrackedCriteria;
use nettrace_export::page::PageReports;
use nettrace_export::{Metric, Omissions, Profile, ProfileReader, ProfiledRecording};

use crate::exit::{Exit, Failure};
use crate::inspect::filter::warn_of_misses;
use crate::inspect::names::code_beside;
use crate::inspect::needs::Needs;
use crate::inspect::profile::diagnostics::{
    needs, no_causality, no_samples, warn_of_omissions, warn_of_unmatched_waits,
};
use crate::inspect::profile::{ProfileOptions, ProfileRequest, RUNNING_OR_WAITING};
use crate::inspect::recording::{Input, Origin, Recording};
use crate::inspect::thread_times::kernel_times_beside;
use crate::render::{messages, units};

/// The contents of a page, and the exit code for the state of the recording.
pub(crate) struct PageContents {
    pub(crate) profile: Profile,
    pub(crate) reports: PageReports,
    /// Sentences about what is missing from the page.
    pub(crate) notes: Vec<String>,
    pub(crate) exit: Exit,
}

/// The metrics of a page for a recording without thread samples, unless the user names one: the first one
/// that has events.
const OTHER_METRICS: [Metric; 4] = [Metric::Alloc, Metric::Contention, Metric::Wait, Metric::Exception];

/// Reads a recording in time order.
pub(crate) fn read(
    file: &Path,
    options: &ProfileOptions,
    metric: Option<Metric>,
) -> Result<PageContents, Failure> {
    let mut reading = Reading::new(file, options, metric)?;
    // Anything but a regular file can be read only once.
    let is_file = std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file());
    if metric.is_none() && is_file {
        for other in OTHER_METRICS {
            if reading.has_samples() {
                break;
            }
            let of_other = Reading::new(file, options, Some(other))?;
            if of_other.has_samples() {
                let Needs { what, .. } = needs(reading.read.profile.metric);
                messages::note(format_args!(
                    "{}: no {what}: the flame graph is of {}",
                    file.display(),
                    of_other.read.profile.measure.name
                ));
                reading = of_other;
            }
        }
    }
    reading.finish(file, options, metric)
}

/// A recording that was read to its end.
struct Reading {
    read: ProfiledRecording<Input>,
    reports: PageReports,
    criteria: TrackedCriteria,
    origin: Origin,
}

impl Reading {
    fn new(file: &Path, options: &ProfileOptions, metric: Option<Metric>) -> Result<Self, Failure> {
        let request = ProfileRequest { metric, tracks: true, kinds: false, idle_stacks: true };
        let mut lines = options.lines.open();
        let mut reader = ProfileReader::new(options.profile_options(request));
        if let Some(lines) = &mut lines {
            reader = reader.with_lines(lines);
        }
        let mut add_code = code_beside(file);
        reader = reader.with_code(&mut add_code).with_kernel_times(kernel_times_beside(file));
        let mut criteria = TrackedCriteria::new(options.criteria());
        let mut reports = PageReports::default();
        let (events, origin) = Recording::open(file)?.into_parts();
        let read = reader.read(events, |event| {
            criteria.add(event);
            if options.selection.contains(event) {
                reports.add(event);
            }
        });
        let read = read.map_err(|error| origin.failed(&error))?;
        Ok(Self { read, reports, criteria, origin })
    }

    fn has_samples(&self) -> bool {
        self.read.profile.samples() > 0
    }

    /// Reports what the recording lacks. A requested metric must be present.
    fn finish(
        self,
        file: &Path,
        options: &ProfileOptions,
        wanted: Option<Metric>,
    ) -> Result<PageContents, Failure> {
        let has_samples = self.has_samples();
        let Self { read, reports, criteria, origin } = self;
        warn_of_misses(&criteria.misses(read.events.metadata()));
        let exit = origin.report_damage(&read.events);
        warn_of_omissions(&read.omissions);
        if let Some(failure) = no_causality(file, read.omissions.grouping, exit.or_failed()) {
            return Err(failure);
        }
        options.lines.warn_if_missing(read.omissions.lines);
        warn_of_unmatched_waits(&options.waits_for_work, &read.omissions, read.profile.metric);
        let mut notes = notes(&read.events, &read.omissions);
        if !has_samples {
            let metric = read.profile.metric;
            if wanted.is_some() || reports.is_empty() {
                let are_filtered = !read.profile.stack_totals.is_empty() || !options.selection.is_all();
                return Err(no_samples(file, metric, are_filtered, exit.or_failed()));
            }
            let Needs { what, command } = needs(metric);
            messages::warning(format_args!("{}: no {what}: the page has no flame graph", file.display()));
            messages::help(format_args!("record them: {command}"));
            notes.push(format!(
                "The recording has no {what}, and so the page has no flame graph; to record them: {command}"
            ));
        }
        Ok(PageContents { profile: read.profile, reports, notes, exit })
    }
}

/// The omissions of the recording and its profile, as sentences.
fn notes<S: Source>(events: &nettrace::Events<S>, omissions: &Omissions) -> Vec<String> {
    let mut notes = Vec::new();
    let lost = events.loss().total();
    if lost > 0 {
        let at_least = if events.loss().is_lower_bound() { "At least " } else { "" };
        notes.push(format!("{at_least}{} events were lost while recording.", units::count(lost)));
    }
    if let Some(offset) = events.truncated_at() {
        notes.push(format!("The recording was cut at offset {offset}."));
    }
    if events.damage_count() > 0 {
        notes.push(format!("The recording is damaged in {} places.", units::count(events.damage_count())));
    }
    for (count, what) in [
        (omissions.frames, "frames were left out: there were too many stacks"),
        (omissions.long_names, "names of methods were cut"),
        (omissions.code, "methods were left out: there were too many"),
    ] {
        if count > 0 {
            notes.push(format!("{} {what}.", units::count(count)));
        }
    }
    if omissions.unverified > 0 {
        let time = units::time(std::time::Duration::from_nanos(omissions.unverified));
        notes.push(format!("Time of threads: {time} {RUNNING_OR_WAITING}."));
    }
    let unresolved: u64 = omissions.unresolved.iter().map(|(_, count)| count).sum();
    if unresolved > 0 {
        notes.push(format!("Addresses without a name: {}.", units::count(unresolved)));
    }
    notes
}
