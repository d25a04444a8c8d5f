//! Exports of recordings to files that other programs open.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nettrace_export::page::Page;
use nettrace_export::{Format, Metric, NameForm, TooLarge, WriteOptions};

use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::event_list::{self, EventList, ListFormat};
use crate::inspect::page::{self, RecordingPage};
use crate::inspect::profile::{self, ProfileOptions, ProfileRequest};
use crate::inspect::rewrite::refuse_input;
use crate::render::destination::Destination;
use crate::render::output_file::{self, NameOrigin};
use crate::render::{messages, output, units};

/// The program that results name as their origin.
const EXPORTER: &str = concat!("dipc ", env!("CARGO_PKG_VERSION"));

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportFormat {
    /// Weighted stacks.
    Profile(Format),
    /// A page that shows the recording over time.
    Page,
    /// The events themselves, one JSON object per line.
    Events,
}

impl ExportFormat {
    const fn is_binary(self) -> bool {
        matches!(self, Self::Profile(Format::Pprof | Format::Perfetto))
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Profile(format) => format.extension(),
            Self::Page => "html",
            Self::Events => "jsonl",
        }
    }
}

/// The export of a recording.
#[derive(Debug)]
pub(crate) struct Export<'a> {
    /// The recording; `-` is standard input.
    pub(crate) file: &'a Path,
    pub(crate) format: ExportFormat,
    /// The path of the result: `-` is standard output, `None` a file next to the recording.
    pub(crate) output: Option<&'a Path>,
    pub(crate) metric: Option<Metric>,
    pub(crate) profile: ProfileOptions,
    /// True to separate threads in formats that show no time.
    pub(crate) by_thread: bool,
    /// True if cells that spreadsheets would take for formulas begin with an apostrophe.
    pub(crate) for_spreadsheets: bool,
}

impl<'a> Export<'a> {
    /// The export of a recording to a file next to it, without further options.
    pub(crate) fn beside(file: &'a Path, format: ExportFormat, names: NameForm) -> Self {
        Self {
            file,
            format,
            output: None,
            metric: None,
            profile: ProfileOptions { names, ..ProfileOptions::default() },
            by_thread: false,
            for_spreadsheets: false,
        }
    }

    /// Reads the recording and writes the result.
    pub(crate) fn write(&self) -> Outcome {
        self.write_named().map(|(exit, _)| exit)
    }

    /// Like [`write`](Self::write), and returns the path of the result, which may be another than the
    /// requested one where names are chosen; `None` for standard output.
    pub(crate) fn write_named(&self) -> Result<(Exit, Option<PathBuf>), Failure> {
        match self.format {
            ExportFormat::Profile(format) => self.write_profile(format),
            ExportFormat::Page => self.write_page(),
            ExportFormat::Events => self.write_events(),
        }
    }

    fn write_profile(&self, format: Format) -> Result<(Exit, Option<PathBuf>), Failure> {
        let path = self.output_path()?;
        if path.is_none() && self.format.is_binary() {
            output::refuse_terminal("this format")?;
        }
        let request = ProfileRequest {
            metric: self.metric,
            tracks: format.needs_tracks(),
            kinds: true,
            idle_stacks: false,
        };
        let read = profile::read(self.file, &self.profile, request)?;
        if let Some(waiting) = profile::waiting(&read) {
            let profile = &read.profile;
            messages::note(format_args!(
                "{}: {}, {waiting}",
                profile.measure.name,
                units::time(Duration::from_nanos(profile.total()))
            ));
        }
        let path = self.write_to(path.as_deref(), |options, out| {
            nettrace_export::write(&read.profile, format, options, out)
        })?;
        Ok((read.exit, path))
    }

    fn write_page(&self) -> Result<(Exit, Option<PathBuf>), Failure> {
        let path = self.output_path()?;
        let RecordingPage { profile, reports, notes, findings, exit } =
            page::read(self.file, &self.profile, self.metric)?;
        let path = self.write_to(path.as_deref(), |options, out| {
            let page = Page::new(&profile, options).with_reports(reports).with_notes(notes);
            page.with_findings(findings).write(out)
        })?;
        Ok((exit, path))
    }

    /// Returns the page of the recording, of this many bytes at most.
    pub(crate) fn page(&self, budget: u64) -> Result<(Exit, Vec<u8>), Failure> {
        let read = page::read(self.file, &self.profile, self.metric)?;
        let title = title(self.file);
        let page = Page::new(&read.profile, WriteOptions::new(&title, EXPORTER)).with_budget(budget);
        let page = page.with_findings(read.findings);
        let mut bytes = Vec::new();
        page.with_reports(read.reports).with_notes(read.notes).write(&mut bytes).map_err(|error| {
            Failure::new(Exit::Failed, format_args!("{}: page: {error}", self.file.display()))
        })?;
        Ok((read.exit, bytes))
    }

    /// Opens the destination, and writes the result to it. Returns the path of a file.
    fn write_to(
        &self,
        path: Option<&Path>,
        write: impl FnOnce(WriteOptions<'_>, &mut dyn io::Write) -> io::Result<()>,
    ) -> Result<Option<PathBuf>, Failure> {
        let title = title(self.file);
        let options = WriteOptions::new(&title, EXPORTER)
            .with_by_thread(self.by_thread)
            .with_for_spreadsheets(self.for_spreadsheets);
        let mut out = Destination::create(path, self.name_origin())?;
        match write(options, &mut out).and_then(|()| out.flush()) {
            Ok(()) => out.close_named(),
            Err(error) if is_too_large(&error) => {
                let failure = too_large(&out, &error);
                out.discard();
                Err(failure)
            }
            Err(error) => Err(out.failed(&error)),
        }
    }

    /// Writes the events as `dipc events --format jsonl` prints them.
    fn write_events(&self) -> Result<(Exit, Option<PathBuf>), Failure> {
        let path = self.output_path()?;
        let list = EventList {
            file: self.file,
            format: ListFormat::Jsonl,
            in_time_order: true,
            criteria: self.profile.criteria(),
            head: None,
            // Names require a second reading, which a pipe does not allow.
            symbols: self.file.as_os_str() != "-",
            lines: self.profile.lines.clone(),
            stacks: true,
            payload: false,
        };
        let exit = event_list::write(&list, || Destination::create(path.as_deref(), self.name_origin()))?;
        Ok((exit, path))
    }

    const fn name_origin(&self) -> NameOrigin {
        if self.output.is_some() { NameOrigin::User } else { NameOrigin::Chosen }
    }

    /// Returns the path of the result, which must not be the recording; `None` is standard output.
    fn output_path(&self) -> Result<Option<PathBuf>, Failure> {
        let path = match self.output {
            Some(path) if path.as_os_str() == "-" => return Ok(None),
            // The name of a device or a pipe is used as it is.
            Some(path) if output_file::is_device(path) => path.to_owned(),
            Some(path) => with_extension(path, self.format.extension()),
            None if self.file.as_os_str() == "-" => return Ok(None),
            None => sibling_path(self.file, self.format)?,
        };
        refuse_input(&[self.file], &path)?;
        Ok(Some(path))
    }
}

/// The path of an export next to its recording.
pub(crate) fn sibling_path(recording: &Path, format: ExportFormat) -> Result<PathBuf, Failure> {
    let path = recording.with_extension(format.extension());
    if path == recording {
        return Err(Failure::usage(format_args!("{}: would be replaced", path.display()))
            .with_help("name another file with -o"));
    }
    Ok(path)
}

/// Adds the extension of the format, unless the name already has it.
fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let last = extension.rsplit('.').next().unwrap_or(extension);
    if path.extension().is_some_and(|has| has.eq_ignore_ascii_case(last)) {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// The title of a profile.
fn title(file: &Path) -> String {
    let stem = file.file_stem().filter(|_| file.as_os_str() != "-");
    stem.map_or_else(|| "recording".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn is_too_large(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooLarge>)
}

fn too_large(out: &Destination, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {out}: {error}")).with_help(
        "--fold-recursion and --hide make stacks shorter, --from, --to and --tid take less; \
         flamegraph and report topN write each name once",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_ending_of_their_format() {
        for (name, extension, expected) in [
            ("x", "speedscope.json", "x.speedscope.json"),
            ("x.JSON", "speedscope.json", "x.JSON"),
            ("a.b", "html", "a.b.html"),
            ("a.html", "html", "a.html"),
        ] {
            assert_eq!(with_extension(Path::new(name), extension), PathBuf::from(expected));
        }
    }
}
