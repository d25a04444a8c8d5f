//! The contents of a page, read from a recording.

use std::io::Read;
use std::time::Duration;

use nettrace::{Error, Event, Reader};

use super::{PageFinding, PageFindings, PageReports};
use crate::profile::metric::Metric;
use crate::profile::options::Options;
use crate::profile::read::{ProfileReader, ProfiledRecording};
use crate::profile::selection::Selection;
use crate::report::{Overview, RUNNING_OR_WAITING, StreamFacts};
use crate::units;

/// The metrics of a page for a recording without thread samples: the first one with events is used.
pub const OTHER_METRICS: [Metric; 4] = [Metric::Alloc, Metric::Contention, Metric::Wait, Metric::Exception];

/// Returns the options of a page's profile. Without a metric it has the time of threads; if the recording has
/// the kernel's samples of running threads, the page shows these first, as every other view does.
pub fn profile_options(metric: Option<Metric>) -> Options {
    let metric = metric.or(Some(Metric::Wall));
    let options = Options::default().with_kinds(false).with_idle(false).with_idle_stacks(true);
    Options { metric, ..options }
}

/// The reading of a recording for a page.
#[derive(Debug, Clone)]
pub struct PageOptions {
    selection: Selection,
    has_spans: bool,
    has_findings: bool,
}

impl Default for PageOptions {
    /// All of a recording, with its findings.
    fn default() -> Self {
        Self { selection: Selection::default(), has_spans: true, has_findings: true }
    }
}

impl PageOptions {
    /// With the reports of a part of the recording. A part has no findings.
    #[must_use]
    pub fn with_selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// With false if no kind of event of the recording [starts or stops a
    /// span](clr_activity::Spans::is_start_or_stop): then fewer events are needed.
    #[must_use]
    pub fn with_spans(self, has_spans: bool) -> Self {
        Self { has_spans, ..self }
    }

    /// With or without findings.
    #[must_use]
    pub fn with_findings(self, has_findings: bool) -> Self {
        Self { has_findings, ..self }
    }
}

/// A recording that was read for a page.
#[derive(Debug)]
#[non_exhaustive]
pub struct PageContents<R> {
    /// The profile, with the reader at the end of the recording.
    pub read: ProfiledRecording<R>,
    /// The other events.
    pub reports: PageReports,
    /// The facts to know first, problems first; without findings, empty.
    pub findings: Vec<PageFinding>,
}

impl<R> PageContents<R> {
    /// Returns true if the recording has samples of the profile's metric.
    pub fn has_samples(&self) -> bool {
        self.read.profile.samples() > 0
    }
}

impl<R: Read> PageContents<R> {
    /// Reads a recording in time order. `each` is called with every event if there is a selection, and
    /// otherwise with events that are needed. `judge` is called with the overview if the page has findings:
    /// causes are those of clr-findings, and [`Overview::notes`] has the other facts.
    ///
    /// # Errors
    /// If reading failed.
    pub fn read(
        mut reader: ProfileReader<'_>,
        recording: Reader<R>,
        options: &PageOptions,
        mut each: impl FnMut(&Event<'_>),
        judge: impl FnOnce(&Overview) -> Vec<PageFinding>,
    ) -> Result<Self, Error> {
        let PageOptions { selection, has_spans, has_findings } = options;
        let (has_spans, is_all) = (*has_spans, selection.is_all());
        let mut findings =
            (*has_findings && is_all).then(|| PageFindings::new(recording.info(), reader.options()));
        if let Some(findings) = &findings {
            reader = reader.with_others(findings.others().to_vec());
        }
        if is_all {
            let has_findings = findings.is_some();
            reader = reader.with_interest(move |kind| {
                let of_page = PageReports::interest(kind, has_spans);
                if has_findings { of_page.max(PageFindings::interest(kind, has_spans)) } else { of_page }
            });
        }
        let mut reports = PageReports::default();
        let mut read = reader.read(recording, |event| {
            each(event);
            if let Some(findings) = &mut findings {
                findings.add(event);
            }
            if selection.contains(event) {
                reports.add(event);
            }
        })?;
        reports.set_cpu_first(read.omissions.samples.on_cpu > 0);
        let last = read.last_time.unwrap_or_default();
        if read.last_time.is_some() && is_all {
            reports.extend_to(last);
            reports.add_counts(&read);
        }
        let found;
        (read, found) = match findings {
            Some(findings) => {
                let stream = StreamFacts::of(&read.events, &read.counts, last);
                let others = std::mem::take(&mut read.others);
                let (profile, found) =
                    findings.finish((read.profile, &read.omissions), others, stream, judge);
                (ProfiledRecording { profile, ..read }, found)
            }
            None => (read, Vec::new()),
        };
        Ok(Self { read, reports, findings: found })
    }

    /// The omissions of the recording and its profile, as sentences for [`Page::with_notes`].
    ///
    /// [`Page::with_notes`]: super::Page::with_notes
    pub fn notes(&self) -> Vec<String> {
        let (events, omissions) = (&self.read.events, &self.read.omissions);
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
            notes
                .push(format!("The recording is damaged in {} places.", units::count(events.damage_count())));
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
        if let Some(liveness) = &omissions.live {
            let sentences = liveness.doubt(lost).into_iter().chain([liveness.basis()]);
            notes.extend(sentences.map(|sentence| format!("Live bytes: {sentence}.")));
        }
        if omissions.unverified > 0 {
            let time = units::time(Duration::from_nanos(omissions.unverified));
            notes.push(format!("Time of threads: {time} {RUNNING_OR_WAITING}."));
        }
        let unresolved: u64 = omissions.unresolved.iter().map(|(_, count)| count).sum();
        if unresolved > 0 {
            notes.push(format!("Addresses without a name: {}.", units::count(unresolved)));
        }
        notes
    }
}
