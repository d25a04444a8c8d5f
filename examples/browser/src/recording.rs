//! The page of a recording.

use std::io::Read as _;

use clr_findings::RecordingFindings;
use nettrace::{Error, Reader, TraceInfo};
use nettrace_export::clr_events::CodeMap;
use nettrace_export::page::{OTHER_METRICS, Page, PageContents, PageOptions, profile_options};
use nettrace_export::{KernelTimes, Metric, NameForm, ProfileReader, WriteOptions};

use crate::file::File;

/// Maximum number of seconds between the beginnings of a recording and of the files beside it.
const MAX_START_DIFFERENCE: u64 = 60;

/// Returns the page of the recording among the files: the one that is not beside another.
pub(crate) fn page(exporter: &str, names: &[&str]) -> Result<Vec<u8>, String> {
    let files = Files::new(names)?;
    let mut contents = files.read(None)?;
    for other in OTHER_METRICS {
        if contents.has_samples() {
            break;
        }
        let mut of_other = files.read(Some(other))?;
        if of_other.has_samples() {
            of_other.findings = contents.findings;
            contents = of_other;
        }
    }
    let mut notes = contents.notes();
    if !contents.has_samples() {
        if contents.reports.is_empty() {
            return Err("The recording has nothing that a page shows: no samples, collections, exceptions, \
                        allocations, requests or counters. `dipc profile` records all of them."
                .to_owned());
        }
        notes.push("The recording has no samples of threads, and so the page has no flame graph.".to_owned());
    }
    let title = files.title();
    let PageContents { read, reports, findings, .. } = contents;
    let page = Page::new(&read.profile, WriteOptions::new(title, exporter));
    let mut bytes = Vec::new();
    let written = page.with_reports(reports).with_notes(notes).with_findings(findings).write(&mut bytes);
    written.map_err(|error| format!("The page cannot be made: {error}."))?;
    Ok(bytes)
}

/// A recording, and what `dipc trace` leaves beside some: names of methods, and the kernel's account of
/// threads.
struct Files<'a> {
    name: &'a str,
    recording: u32,
    names: Option<u32>,
    threads: Option<u32>,
}

impl<'a> Files<'a> {
    fn new(names: &[&'a str]) -> Result<Self, String> {
        let numbered = || (0u32..).zip(names.iter().copied());
        let is_beside = |name: &str| ["names", "threads"].iter().any(|kind| ends_with(name, kind));
        let mut recordings = numbered().filter(|(_, name)| !is_beside(name));
        let (recording, name) = match (recordings.next(), recordings.next()) {
            (Some(recording), None) => recording,
            // Such a file alone is a recording, too.
            (None, _) if names.len() == 1 => (0, names[0]),
            (None, _) => return Err("No recording is among the files.".to_owned()),
            (Some(_), Some(_)) => return Err("Choose one recording at a time.".to_owned()),
        };
        let beside = |kind: &str| {
            let mut all = numbered().filter(|(number, name)| *number != recording && ends_with(name, kind));
            all.next().map(|(number, _)| number)
        };
        Ok(Self { name, recording, names: beside("names"), threads: beside("threads") })
    }

    /// The name of the recording without its extension.
    fn title(&self) -> &'a str {
        self.name
            .rsplit_once('.')
            .map_or(self.name, |(stem, _)| if stem.is_empty() { self.name } else { stem })
    }

    fn read(&self, metric: Option<Metric>) -> Result<PageContents<File>, String> {
        let recording = open(self.recording).map_err(|error| self.failed(&error))?;
        let times = self.kernel_times(recording.info())?;
        let names = self.names.filter(|names| is_of(*names, recording.info()));
        let mut add_code = |code: &mut CodeMap| {
            // What could be read is valid.
            let _ = names.map(|names| open(names)?.for_each(|event| code.add(&event)));
        };
        let options = profile_options(metric).with_names(NameForm::CSharp);
        // Findings are of thread time.
        let page = PageOptions::default().with_findings(metric.is_none());
        let reader = ProfileReader::new(options).with_code(&mut add_code).with_kernel_times(times);
        PageContents::read(
            reader,
            recording,
            &page,
            |_| {},
            |overview| RecordingFindings::of(overview, None).into_page(),
        )
        .map_err(|error| self.failed(&error))
    }

    fn kernel_times(&self, recorded: Option<&TraceInfo>) -> Result<Option<KernelTimes>, String> {
        let Some(threads) = self.threads.filter(|threads| is_of(*threads, recorded)) else { return Ok(None) };
        let mut times = KernelTimes::default();
        let read = open(threads).and_then(|mut events| events.for_each(|event| times.add(&event)));
        read.map_err(|error| format!("The account of threads cannot be read: {error}."))?;
        Ok(Some(times))
    }

    /// What is wrong, and what can be done.
    fn failed(&self, error: &Error) -> String {
        let mut begins = Vec::new();
        let read = File::open(self.recording).take(64).read_to_end(&mut begins);
        let help = match error {
            _ if read.is_ok() && begins.windows(10).any(|bytes| bytes == b"GCHeapDump") => {
                " It is a heap: `dipc convert FILE -f html` makes a page of it."
            }
            Error::Empty => " The program that recorded it may have ended before the first byte came.",
            Error::NotATrace { .. }
                if [&b"\x1f\x8b"[..], b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"]
                    .iter()
                    .any(|magic| begins.starts_with(magic)) =>
            {
                " The file is compressed: decompress it first."
            }
            Error::NotATrace { .. } => {
                " Choose a file that `dipc trace` or `dotnet-trace collect` wrote (.nettrace)."
            }
            _ => "",
        };
        format!("{} cannot be read: {error}.{help}", self.name)
    }
}

/// Returns true if a file lies beside a recording, as a file of this kind.
fn ends_with(name: &str, kind: &str) -> bool {
    name.strip_suffix(".nettrace")
        .and_then(|stem| stem.strip_suffix(kind))
        .is_some_and(|stem| stem.ends_with('.'))
}

fn open(number: u32) -> Result<Reader<File>, Error> {
    Ok(Reader::with_skip(File::open(number), File::skip)?.with_lookahead())
}

/// Returns true if a file beside a recording is of the same process and time.
fn is_of(number: u32, recorded: Option<&TraceInfo>) -> bool {
    let Ok(beside) = open(number) else { return false };
    let (Some(beside), Some(recorded)) = (beside.info(), recorded) else { return false };
    let apart = beside.start_ticks.0.abs_diff(recorded.start_ticks.0);
    (beside.process_id, beside.frequency) == (recorded.process_id, recorded.frequency)
        && apart <= recorded.frequency.saturating_mul(MAX_START_DIFFERENCE)
}
