//! The contents of a page, gathered from a recording in one pass.

use std::cell::RefCell;
use std::path::Path;

use clr_findings::{RecordedReadings, RecordingFindings};
use nettrace_edit::TrackedCriteria;
use nettrace_export::page::{OTHER_METRICS, PageContents, PageFinding, PageOptions, PageReports};
use nettrace_export::{Metric, Profile, ProfileReader};

use crate::exit::{Exit, Failure};
use crate::inspect::crash_note::CrashNote;
use crate::inspect::filter::warn_of_misses;
use crate::inspect::names::code_beside;
use crate::inspect::needs::Needs;
use crate::inspect::profile::diagnostics::{
    describe_liveness, needs, no_causality, no_samples, note_of_unknown_callers, warn_of_omissions,
    warn_of_unmatched_waits,
};
use crate::inspect::profile::{ProfileOptions, ProfileRequest, is_regular};
use crate::inspect::recording::{Input, Origin, Recording};
use crate::inspect::spans::may_have_spans;
use crate::inspect::thread_times::kernel_times_beside;
use crate::render::messages;

/// The profile and the reports of a page, and the exit code for the state of the recording.
pub(crate) struct RecordingPage {
    pub(crate) profile: Profile,
    pub(crate) reports: PageReports,
    /// Sentences about the missing parts of the page.
    pub(crate) notes: Vec<String>,
    /// The facts to know first.
    pub(crate) findings: Vec<PageFinding>,
    pub(crate) exit: Exit,
}

/// Reads a recording in time order. Findings are of thread time and of the whole recording: a page of another
/// metric or of a part has none.
pub(crate) fn read(
    file: &Path,
    options: &ProfileOptions,
    metric: Option<Metric>,
) -> Result<RecordingPage, Failure> {
    let mut reading = Reading::new(file, options, metric)?;
    // Anything but a regular file can be read only once.
    if metric.is_none() && is_regular(file) {
        for other in OTHER_METRICS {
            if reading.has_samples() {
                break;
            }
            let mut of_other = Reading::new(file, options, Some(other))?;
            if of_other.has_samples() {
                let Needs { what, .. } = needs(reading.contents.read.profile.metric);
                messages::note(format_args!(
                    "{}: no {what}: the flame graph is of {}",
                    file.display(),
                    of_other.contents.read.profile.measure.name
                ));
                of_other.contents.findings = reading.contents.findings;
                reading = of_other;
            }
        }
    }
    reading.finish(file, options, metric)
}

fn has_findings(options: &ProfileOptions, metric: Option<Metric>) -> bool {
    metric.is_none() && options.selection.is_all() && !options.changes_stacks()
}

/// A recording that was read to its end.
struct Reading {
    contents: PageContents<Input>,
    criteria: TrackedCriteria,
    origin: Origin,
}

impl Reading {
    fn new(file: &Path, options: &ProfileOptions, metric: Option<Metric>) -> Result<Self, Failure> {
        let has_findings = has_findings(options, metric);
        // Waits are a switch of the page.
        let metric = metric.or(Some(Metric::Wall));
        let request = ProfileRequest { metric, tracks: true, kinds: false, idle_stacks: true };
        let mut lines = options.lines.open();
        let mut reader = ProfileReader::new(options.profile_options(request));
        if let Some(lines) = &mut lines {
            reader = reader.with_lines(lines);
        }
        let mut add_code = code_beside(file);
        reader = reader.with_code(&mut add_code).with_kernel_times(kernel_times_beside(file));
        let mut criteria = TrackedCriteria::new(options.criteria());
        let recording = Recording::open(file)?;
        let has_spans = may_have_spans(&recording);
        let (events, origin) = recording.into_parts();
        let page = PageOptions::default()
            .with_selection(options.selection.clone())
            .with_spans(has_spans)
            .with_findings(has_findings);
        let end = CrashNote::beside(file).map(|note| note.end());
        let readings = RefCell::new(RecordedReadings::default());
        let contents = PageContents::read(
            reader,
            events,
            &page,
            |event| {
                criteria.add(event);
                readings.borrow_mut().add(event);
            },
            |overview| {
                let readings = readings.take().finish().unwrap_or_default();
                let end = end.or_else(|| readings.end());
                RecordingFindings::of(overview, &readings, end.as_ref()).into_page()
            },
        );
        let contents = contents.map_err(|error| origin.failed(&error))?;
        Ok(Self { contents, criteria, origin })
    }

    fn has_samples(&self) -> bool {
        self.contents.has_samples()
    }

    /// Reports what the recording lacks. A requested metric must be present.
    fn finish(
        self,
        file: &Path,
        options: &ProfileOptions,
        wanted: Option<Metric>,
    ) -> Result<RecordingPage, Failure> {
        let has_samples = self.has_samples();
        let mut notes = self.contents.notes();
        let Self { contents: PageContents { read, reports, findings, .. }, criteria, origin } = self;
        warn_of_misses(&criteria.misses(read.events.metadata()));
        let exit = origin.report_damage(&read.events);
        warn_of_omissions(&read.omissions);
        describe_liveness(&read.omissions, read.events.loss().total());
        if let Some(failure) = no_causality(file, read.omissions.grouping, exit.or_failed()) {
            return Err(failure);
        }
        note_of_unknown_callers(read.omissions.grouping);
        options.lines.warn_if_missing(read.omissions.lines);
        warn_of_unmatched_waits(&options.waits_for_work, &read.omissions, read.profile.metric);
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
        Ok(RecordingPage { profile: read.profile, reports, notes, findings, exit })
    }
}
