//! The contents of a page, read from a recording.

use std::io::Read;
use std::time::Duration;

use nettrace::{Error, Event, Interest, Metadata, Reader};

use super::PageReports;
use crate::profile::metric::Metric;
use crate::profile::options::Options;
use crate::profile::read::{ProfileReader, ProfiledRecording};
use crate::profile::selection::Selection;
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

/// A recording that was read for a page.
#[derive(Debug)]
#[non_exhaustive]
pub struct PageContents<R> {
    /// The profile, with the reader at the end of the recording.
    pub read: ProfiledRecording<R>,
    /// The other events.
    pub reports: PageReports,
}

impl<R> PageContents<R> {
    /// The contents with another profile, such as one that was displayed meanwhile.
    pub const fn new(read: ProfiledRecording<R>, reports: PageReports) -> Self {
        Self { read, reports }
    }

    /// Returns true if the recording has samples of the profile's metric.
    pub fn has_samples(&self) -> bool {
        self.read.profile.samples() > 0
    }
}

impl<R: Read> PageContents<R> {
    /// Reads a recording in time order. `each` is called with every event if there is a selection, and
    /// otherwise with events that are needed or of `interest`. `has_spans` is false if no kind of event of
    /// the recording [starts or stops a span](clr_activity::Spans::is_start_or_stop): then fewer events are
    /// needed.
    ///
    /// # Errors
    /// If reading failed.
    pub fn read(
        reader: ProfileReader<'_>,
        recording: Reader<R>,
        selection: &Selection,
        has_spans: bool,
        interest: impl Fn(&Metadata) -> Interest + Send + Sync + 'static,
        mut each: impl FnMut(&Event<'_>),
    ) -> Result<Self, Error> {
        let mut reports = PageReports::default();
        let is_all = selection.is_all();
        let reader = if is_all {
            reader.with_interest(move |kind| PageReports::interest(kind, has_spans).max(interest(kind)))
        } else {
            reader
        };
        let read = reader.read(recording, |event| {
            each(event);
            if selection.contains(event) {
                reports.add(event);
            }
        })?;
        reports.set_cpu_first(read.omissions.samples.on_cpu > 0);
        if let Some(last) = read.last_time.filter(|_| is_all) {
            reports.extend_to(last);
            reports.add_counts(&read);
        }
        Ok(Self { read, reports })
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

/// Describes time known only from samples that do not distinguish running from waiting: all samples of .NET 9
/// and early 10.0, and all samples of native code.
pub const RUNNING_OR_WAITING: &str = "of it running or waiting, which these samples do not tell apart";
