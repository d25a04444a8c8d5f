//! Rewriting recordings: the choice of records, and the output.

use std::io::Write as _;
use std::path::Path;

use nettrace::{Event, Events, Format, PassedPoint, Reader, Record, Source, TraceInfo};
use nettrace_writer::{Error, Omissions, Transcoder, Version};

use crate::exit::{Exit, Failure};
use crate::inspect::names::refuse_beside;
use crate::inspect::recording::{Input, Origin, Recording};
use crate::render::behind::Behind;
use crate::render::destination::Destination;
use crate::render::output_file::{NameOrigin, is_same_file};
use crate::render::{messages, output};

/// The bytes collected before they are written.
pub(crate) const BUFFER: usize = 256 * 1024;

/// The decision about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It is written.
    Keep,
    /// It is written, but the losses before it are left out: it lies outside the time kept.
    KeepBeyond,
    /// It is left out, and does not count as a loss.
    Remove,
    /// It is left out, together with the losses before it.
    Skip,
}

/// The choice of records.
pub(crate) trait Chooser {
    /// Decides about an event.
    fn event(&mut self, event: &Event<'_>) -> Choice;

    /// Whether to keep the losses that a sequence point reports.
    fn keeps_point(&mut self, point: &PassedPoint<'_>, info: &TraceInfo) -> bool;

    /// Makes the reader skip blocks in which nothing is wanted. Returns whether there may be such blocks.
    fn skip_blocks<S: Source>(&self, events: &mut Events<S>) -> bool {
        let _ = events;
        false
    }

    /// Whether all records are written as they are.
    fn keeps_all(&self) -> bool {
        false
    }

    /// Returns the payload to write for an event.
    fn payload<'a>(&'a mut self, event: &Event<'a>) -> &'a [u8] {
        event.payload()
    }

    /// Whether stacks are kept.
    fn keeps_stacks(&self) -> bool {
        true
    }
}

/// The choice of everything.
pub(crate) struct All;

impl Chooser for All {
    fn keeps_all(&self) -> bool {
        true
    }

    fn event(&mut self, _: &Event<'_>) -> Choice {
        Choice::Keep
    }

    fn keeps_point(&mut self, _: &PassedPoint<'_>, _: &TraceInfo) -> bool {
        true
    }
}

/// A recording whose events are added to another one of the same process.
pub(crate) struct AddedRecording<'a> {
    pub(crate) path: &'a Path,
    /// The name for messages.
    pub(crate) name: &'a str,
    pub(crate) recording: &'a Recording,
}

/// A recording that is being rewritten.
pub(crate) struct Rewrite {
    pub(crate) events: Reader<Input>,
    pub(crate) origin: Origin,
    transcoder: Transcoder,
    out: Behind,
    /// The number of events read, and of events written.
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl Rewrite {
    /// Opens the recording, and creates the output, which must not be one of the inputs. Events of `added`,
    /// which must be of the same process, can be appended later. The version defaults to that of the
    /// recording.
    pub(crate) fn open(
        file: &Path,
        added: Option<&AddedRecording<'_>>,
        (output, name_origin): (&Path, NameOrigin),
        version: Option<Version>,
    ) -> Result<Self, Failure> {
        let (events, origin) = Recording::open(file)?.into_parts();
        let Some(info) = events.info().cloned() else {
            return Err(Failure::new(
                Exit::Failed,
                format_args!("read: {}: it has no header", file.display()),
            ));
        };
        let version = version_of(&info, version)?;
        if let Some(added) = added {
            check_process(added, &info)?;
        }
        let files: Vec<_> = std::iter::once(file).chain(added.map(|added| added.path)).collect();
        let out = create_output(&files, output, name_origin)?;
        let transcoder = Transcoder::new(version, &info).map_err(|error| cannot_write(&error, &out))?;
        Ok(Self { events, origin, transcoder, out: Behind::new(out)?, read: 0, written: 0 })
    }

    /// The version that is written.
    pub(crate) const fn version(&self) -> Version {
        self.transcoder.version()
    }

    /// Writes the records that are chosen.
    pub(crate) fn copy(mut self, chooser: &mut impl Chooser) -> Result<Self, Failure> {
        let Some(info) = self.events.info().cloned() else { return Ok(self) };
        if info.format == Format::Netperf {
            return self.copy_in_time_order(chooser);
        }
        let Self { events, origin, transcoder, out, read, written } = &mut self;
        if chooser.skip_blocks(events) {
            transcoder.take_losses_from_reader();
        }
        let keeps_all = chooser.keeps_all();
        let copied = events.try_for_each_record(|record| {
            let outcome = match &record {
                Record::Event(event) if keeps_all => {
                    *read += 1;
                    *written += 1;
                    transcoder.event(event)
                }
                Record::Event(event) => {
                    *read += 1;
                    let choice = chooser.event(event);
                    *written += u64::from(choice.is_written());
                    write_event(transcoder, event, choice, chooser)
                }
                Record::SequencePoint(point) if !chooser.keeps_point(point, &info) => {
                    transcoder.skip(&record)
                }
                _ => transcoder.write(&record),
            };
            outcome.map_err(|error| Interrupted::Failed(cannot_encode(&error, out)))?;
            drain(transcoder, out, BUFFER).map_err(Interrupted::Failed)
        });
        match copied {
            Ok(()) => {}
            Err(Interrupted::Read(error)) => return Err(origin.failed(&error)),
            Err(Interrupted::Failed(failure)) => return Err(failure),
        }
        Ok(self)
    }

    /// Writes a recording that has no sequence points, and inserts them.
    fn copy_in_time_order(self, chooser: &mut impl Chooser) -> Result<Self, Failure> {
        let Self { events, origin, mut transcoder, mut out, mut read, mut written } = self;
        let mut events = events.in_time_order();
        while let Some(event) = events.next().map_err(|error| origin.failed(&error))? {
            read += 1;
            let choice = chooser.event(&event);
            written += u64::from(choice.is_written());
            write_event(&mut transcoder, &event, choice, chooser)
                .map_err(|error| cannot_encode(&error, &out))?;
            drain(&mut transcoder, &mut out, BUFFER)?;
            if transcoder.is_large_since_point() {
                let threads = events.events().threads();
                transcoder.sequence_point(threads).map_err(|error| cannot_encode(&error, &out))?;
            }
        }
        Ok(Self { events: events.into_events(), origin, transcoder, out, read, written })
    }

    /// Appends events of the recording `added` that was given to [`open`](Self::open). Returns their number.
    pub(crate) fn append(
        &mut self,
        recording: Recording,
        mut is_wanted: impl FnMut(&Event<'_>) -> bool,
    ) -> Result<u64, Failure> {
        let (mut events, origin) = recording.into_parts();
        let Some(info) = events.info().cloned() else { return Ok(0) };
        let Self { transcoder, out, .. } = self;
        transcoder.next_source(&info, self.events.threads()).map_err(|error| cannot_encode(&error, out))?;
        let mut count = 0;
        while let Some(event) = events.next().map_err(|error| origin.failed(&error))? {
            if is_wanted(&event) {
                count += 1;
                transcoder.event_at_end(&event).map_err(|error| cannot_encode(&error, out))?;
                drain(transcoder, out, BUFFER)?;
            }
        }
        origin.report_damage(&events);
        transcoder.sequence_point(events.threads()).map_err(|error| cannot_encode(&error, out))?;
        Ok(count)
    }

    /// Completes the new recording. Returns its size in bytes, and the reader.
    pub(crate) fn finish(self) -> Result<(u64, Events<impl Source>, Origin), Failure> {
        let Self { events, origin, mut transcoder, mut out, .. } = self;
        transcoder.finish(events.threads()).map_err(|error| cannot_encode(&error, &out))?;
        drain(&mut transcoder, &mut out, 0)?;
        let mut out = out.finish()?;
        warn_of_omissions(transcoder.omissions());
        out.flush().map_err(|error| out.failed(&error))?;
        out.close()?;
        Ok((transcoder.offset(), events, origin))
    }
}

/// The reason that a copy ended before the recording did.
enum Interrupted {
    Read(nettrace::Error),
    Failed(Failure),
}

impl From<nettrace::Error> for Interrupted {
    fn from(error: nettrace::Error) -> Self {
        Self::Read(error)
    }
}

impl Choice {
    const fn is_written(self) -> bool {
        matches!(self, Self::Keep | Self::KeepBeyond)
    }
}

fn write_event(
    transcoder: &mut Transcoder,
    event: &Event<'_>,
    choice: Choice,
    chooser: &mut impl Chooser,
) -> Result<(), Error> {
    let with_stack = chooser.keeps_stacks();
    match choice {
        Choice::Keep => transcoder.event_with(event, chooser.payload(event), with_stack),
        Choice::KeepBeyond => {
            transcoder.skip_losses_before(event);
            transcoder.event_with(event, chooser.payload(event), with_stack)
        }
        Choice::Remove => {
            transcoder.remove(event);
            Ok(())
        }
        Choice::Skip => transcoder.skip(&Record::Event(*event)),
    }
}

/// Queues the pending bytes for writing if there are more than `most`.
fn drain(transcoder: &mut Transcoder, out: &mut Behind, most: usize) -> Result<(), Failure> {
    if transcoder.bytes().len() <= most {
        return Ok(());
    }
    let bytes = transcoder.take_bytes(out.buffer());
    out.write(bytes)
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

/// Returns the version to write. Versions older than the recording's cannot represent its content.
fn version_of(info: &TraceInfo, wanted: Option<Version>) -> Result<Version, Failure> {
    let own = Version::of(info);
    match wanted {
        Some(Version::V4) if own == Version::V6 => Err(Failure::usage(
            "--upgrade 4: the recording has version 6, and version 4 can hold only part of it",
        )),
        Some(wanted) => Ok(wanted),
        None => Ok(own),
    }
}

/// Creates the output, which must not be one of the inputs.
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

/// Refuses an output that is one of the inputs.
pub(crate) fn refuse_input(files: &[impl AsRef<Path>], output: &Path) -> Result<(), Failure> {
    if files.iter().any(|file| is_same_file(file.as_ref(), output)) {
        return Err(Failure::usage(format_args!("{}: it would be overwritten", output.display()))
            .with_help("name another file with -o"));
    }
    Ok(())
}

fn cannot_encode(error: &Error, out: &Behind) -> Failure {
    Failure::new(Exit::Failed, format_args!("write: {out}: {error}"))
}

pub(crate) fn cannot_write(error: &Error, out: &Destination) -> Failure {
    match error {
        Error::Io { error, .. } => out.failed(error),
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
