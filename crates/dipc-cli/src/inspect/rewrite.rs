//! Rewriting recordings: files as inputs and output, and messages.

use std::io::Write as _;
use std::path::Path;

use nettrace::{Event, ReadSource, Reader, TraceInfo};
use nettrace_edit::{Copier, CopySummary, Error, RecordSelector};
use nettrace_writer::{Omissions, Transcoder, Version};

use crate::exit::{Exit, Failure};
use crate::inspect::names::refuse_beside;
use crate::inspect::recording::{Input, Origin, Recording};
use crate::render::background_writer::BackgroundWriter;
use crate::render::destination::Destination;
use crate::render::output_file::{NameOrigin, is_same_file};
use crate::render::{messages, output};

/// A recording with events that are added to another recording of the same process.
pub(crate) struct AddedRecording<'a> {
    pub(crate) path: &'a Path,
    /// The name for messages.
    pub(crate) name: &'a str,
    pub(crate) recording: &'a Recording,
}

/// A recording that is being rewritten.
pub(crate) struct Rewrite {
    copier: Copier<ReadSource<Input>>,
    origin: Origin,
    out: BackgroundWriter,
}

/// A recording that was rewritten.
pub(crate) struct Rewritten {
    pub(crate) version: Version,
    pub(crate) copied: CopySummary,
    /// The reader of the original at its end.
    pub(crate) events: Reader<Input>,
    pub(crate) origin: Origin,
}

impl Rewrite {
    /// Opens the recording, and creates the output, which must differ from the inputs. Events of `added`,
    /// which must be of the same process, can be appended later. The version defaults to the recording's
    /// version.
    pub(crate) fn open(
        file: &Path,
        added: Option<&AddedRecording<'_>>,
        (output, name_origin): (&Path, NameOrigin),
        version: Option<Version>,
    ) -> Result<Self, Failure> {
        let (events, origin) = Recording::open(file)?.into_parts();
        let info = events.info().cloned();
        let copier = Copier::new(events, version).map_err(|error| match error {
            Error::NoHeader => {
                Failure::new(Exit::Failed, format_args!("read: {}: it has no header", file.display()))
            }
            Error::OlderVersion => Failure::usage(format_args!("--upgrade 4: {error}")),
            error => Failure::new(Exit::Failed, format_args!("write: {}: {error}", output.display())),
        })?;
        if let (Some(added), Some(info)) = (added, &info) {
            check_process(added, info)?;
        }
        let files: Vec<_> = std::iter::once(file).chain(added.map(|added| added.path)).collect();
        let out = create_output(&files, output, name_origin)?;
        Ok(Self { copier, origin, out: BackgroundWriter::new(out)? })
    }

    /// The reader of the recording.
    pub(crate) const fn events(&self) -> &Reader<Input> {
        self.copier.events()
    }

    /// Writes the records that are chosen.
    pub(crate) fn copy(self, chooser: &mut impl RecordSelector) -> Result<Self, Failure> {
        let Self { copier, origin, mut out } = self;
        let copier = copier.copy(chooser, write_to(&mut out)).map_err(|error| error.at(&origin, &out))?;
        Ok(Self { copier, origin, out })
    }

    /// Appends events of the recording `added` that was given to [`open`](Self::open). Returns their number.
    pub(crate) fn append(
        &mut self,
        recording: Recording,
        is_wanted: impl FnMut(&Event<'_>) -> bool,
    ) -> Result<u64, Failure> {
        let (mut events, origin) = recording.into_parts();
        let Self { copier, out, .. } = self;
        let appended = copier.append(&mut events, is_wanted, write_to(out));
        let count = appended.map_err(|error| error.at(&origin, out))?;
        origin.report_damage(&events);
        Ok(count)
    }

    /// Completes the new recording.
    pub(crate) fn finish(self) -> Result<Rewritten, Failure> {
        let Self { copier, origin, mut out } = self;
        let version = copier.version();
        let finished = copier.finish(write_to(&mut out));
        let (copied, events) = finished.map_err(|error| error.at(&origin, &out))?;
        let mut out = out.finish()?;
        warn_of_omissions(&copied.omissions);
        out.flush().map_err(|error| out.failed(&error))?;
        out.close()?;
        Ok(Rewritten { version, copied, events, origin })
    }
}

/// The reason that a copy ended before the recording did.
enum Interrupted {
    Edit(Error),
    Failed(Failure),
}

impl From<Error> for Interrupted {
    fn from(error: Error) -> Self {
        Self::Edit(error)
    }
}

impl Interrupted {
    /// Returns the failure of a copy from `origin` to `out`.
    fn at(self, origin: &Origin, out: &BackgroundWriter) -> Failure {
        match self {
            Self::Edit(Error::Read(error)) => origin.failed(&error),
            Self::Edit(error) => Failure::new(Exit::Failed, format_args!("write: {out}: {error}")),
            Self::Failed(failure) => failure,
        }
    }
}

/// Returns a function that queues the pending bytes for writing.
fn write_to(out: &mut BackgroundWriter) -> impl FnMut(&mut Transcoder) -> Result<(), Interrupted> + use<'_> {
    |transcoder| {
        let bytes = transcoder.take_bytes(out.buffer());
        out.write(bytes).map_err(Interrupted::Failed)
    }
}

/// Refuses a recording of another process: its addresses have other names.
fn check_process(added: &AddedRecording<'_>, own: &TraceInfo) -> Result<(), Failure> {
    let Some(info) = added.recording.events.info() else { return Ok(()) };
    if (info.process_id, info.pointer_size) == (own.process_id, own.pointer_size) {
        return Ok(());
    }
    let process = |info: &TraceInfo| info.process_id.map_or("unknown".to_owned(), |id| id.to_string());
    let what = format!("{}: of process {}, not of {}", added.name, process(info), process(own));
    Err(Failure::new(Exit::Failed, what).with_help("addresses have other names in another process"))
}

/// Creates the output, which must differ from the inputs.
pub(crate) fn create_output(
    files: &[impl AsRef<Path>],
    output: &Path,
    origin: NameOrigin,
) -> Result<Destination, Failure> {
    if output.as_os_str() == "-" {
        output::refuse_terminal("a recording")?;
        return Destination::create(None, origin);
    }
    refuse_input(files, output)?;
    refuse_beside(output)?;
    Destination::create(Some(output), origin)
}

/// Rejects an output that is also an input.
pub(crate) fn refuse_input(files: &[impl AsRef<Path>], output: &Path) -> Result<(), Failure> {
    if files.iter().any(|file| is_same_file(file.as_ref(), output)) {
        return Err(Failure::usage(format_args!("{}: it would be overwritten", output.display()))
            .with_help("name another file with -o"));
    }
    Ok(())
}

pub(crate) fn cannot_write(error: &nettrace_writer::Error, out: &Destination) -> Failure {
    match error {
        nettrace_writer::Error::Io { error, .. } => out.failed(error),
        error => Failure::new(Exit::Failed, format_args!("write: {out}: {error}")),
    }
}

/// Warns of content that the new version cannot represent.
pub(crate) fn warn_of_omissions(omissions: &Omissions) {
    for (count, what) in [
        (omissions.field_lists, "kinds of events have fields that the new version cannot describe"),
        (omissions.dates, "kinds of events have dates, which the new version describes as numbers"),
        (omissions.descriptions, "kinds of events have descriptions that the new version has no place for"),
        (
            omissions.numbers,
            "kinds of events have a version or level above 255, which the new version has no place for",
        ),
        (omissions.labels, "events have labels that the new version has no place for"),
        (omissions.thread_descriptions, "threads have names that the new version has no place for"),
        (omissions.key_values, "properties of the recording have no place in the new version"),
    ] {
        if count > 0 {
            messages::warning(format_args!("{count} {what}"));
        }
    }
}
