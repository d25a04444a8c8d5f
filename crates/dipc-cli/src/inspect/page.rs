//! The contents of a page, gathered from a recording in one pass.

use std::path::Path;

use nettrace::{Event, Interest, Metadata, TraceInfo};
use nettrace_edit::TrackedCriteria;
use nettrace_export::page::{OTHER_METRICS, PageContents, PageFinding, PageReports};
use nettrace_export::{Metric, Options, Profile, ProfileReader, ProfiledRecording};

use crate::exit::{Exit, Failure};
use crate::inspect::filter::warn_of_misses;
use crate::inspect::names::code_beside;
use crate::inspect::needs::Needs;
use crate::inspect::profile::diagnostics::{
    needs, no_causality, no_samples, note_of_unknown_callers, warn_of_omissions, warn_of_unmatched_waits,
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

/// The facts of a recording to know first, found in the reading of its page.
pub(crate) struct PageFindings {
    /// The interest in events of a kind, in a recording with or without spans, in addition to the profiles'
    /// events.
    pub(crate) interest: fn(&Metadata, bool) -> Interest,
    /// The profiles of the same reading that they need.
    pub(crate) others: Vec<Options>,
    pub(crate) builder: Box<dyn FindingsBuilder>,
}

/// Finds the facts to know first.
pub(crate) trait FindingsBuilder {
    /// Adds an event, which may be of any kind.
    fn add(&mut self, event: &Event<'_>);

    /// Returns the recording, and its facts.
    fn finish(
        self: Box<Self>,
        read: ProfiledRecording<Input>,
        origin: &Origin,
    ) -> (ProfiledRecording<Input>, Vec<PageFinding>);
}

/// Returns the facts of a recording with this header, for a page that has a profile with these options.
pub(crate) type FindingsOf = fn(&Path, Option<&TraceInfo>, &Options) -> PageFindings;

/// Reads a recording in time order. Findings are of thread time, if no other metric is wanted.
pub(crate) fn read(
    file: &Path,
    options: &ProfileOptions,
    metric: Option<Metric>,
    findings: Option<FindingsOf>,
) -> Result<RecordingPage, Failure> {
    let mut reading = Reading::new(file, options, metric, findings.filter(|_| metric.is_none()))?;
    // Anything but a regular file can be read only once.
    if metric.is_none() && is_regular(file) {
        for other in OTHER_METRICS {
            if reading.has_samples() {
                break;
            }
            let mut of_other = Reading::new(file, options, Some(other), None)?;
            if of_other.has_samples() {
                let Needs { what, .. } = needs(reading.contents.read.profile.metric);
                messages::note(format_args!(
                    "{}: no {what}: the flame graph is of {}",
                    file.display(),
                    of_other.contents.read.profile.measure.name
                ));
                of_other.findings = reading.findings;
                reading = of_other;
            }
        }
    }
    reading.finish(file, options, metric)
}

fn no_interest(_: &Metadata, _: bool) -> Interest {
    Interest::None
}

/// A recording that was read to its end.
struct Reading {
    contents: PageContents<Input>,
    criteria: TrackedCriteria,
    origin: Origin,
    findings: Vec<PageFinding>,
}

impl Reading {
    fn new(
        file: &Path,
        options: &ProfileOptions,
        metric: Option<Metric>,
        findings: Option<FindingsOf>,
    ) -> Result<Self, Failure> {
        // Waits are a switch of the page.
        let metric = metric.or(Some(Metric::Wall));
        let request = ProfileRequest { metric, tracks: true, kinds: false, idle_stacks: true };
        let mut lines = options.lines.open();
        let profile_options = options.profile_options(request);
        let mut reader = ProfileReader::new(profile_options.clone());
        if let Some(lines) = &mut lines {
            reader = reader.with_lines(lines);
        }
        let mut add_code = code_beside(file);
        reader = reader.with_code(&mut add_code).with_kernel_times(kernel_times_beside(file));
        let mut criteria = TrackedCriteria::new(options.criteria());
        let recording = Recording::open(file)?;
        let has_spans = may_have_spans(&recording);
        let (events, origin) = recording.into_parts();
        let (mut interest, mut builder) = (no_interest as fn(&Metadata, bool) -> Interest, None);
        if let Some(findings) = findings {
            let findings = findings(file, events.info(), &profile_options);
            (interest, builder) = (findings.interest, Some(findings.builder));
            reader = reader.with_others(findings.others);
        }
        let each = |event: &Event<'_>| {
            criteria.add(event);
            if let Some(builder) = &mut builder {
                builder.add(event);
            }
        };
        let interest = move |kind: &Metadata| interest(kind, has_spans);
        let contents = PageContents::read(reader, events, &options.selection, has_spans, interest, each);
        let PageContents { mut read, reports, .. } = contents.map_err(|error| origin.failed(&error))?;
        let mut findings = Vec::new();
        if let Some(builder) = builder {
            (read, findings) = builder.finish(read, &origin);
        }
        Ok(Self { contents: PageContents::new(read, reports), criteria, origin, findings })
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
        let Self { contents: PageContents { read, reports, .. }, criteria, origin, findings } = self;
        warn_of_misses(&criteria.misses(read.events.metadata()));
        let exit = origin.report_damage(&read.events);
        warn_of_omissions(&read.omissions);
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
