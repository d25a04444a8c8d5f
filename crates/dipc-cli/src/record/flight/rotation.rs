//! Recording with file rotation: when a file is large enough, a new one begins, and each is a whole recording
//! with names.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use dipc_client::Target;
use nettrace::{Decoder, Record, RelativeTime, TraceInfo};
use nettrace_writer::{Error, Transcoder, Version};

use super::method_lists::MethodLists;
use super::names_store::NamesStore;
use super::retention::{KeptFiles, Retention};
use super::segment::{SegmentWriter, Storage};
use super::session::{FileNames, FlightSummary, cannot_keep};
use super::snapshot::{append_list, check_room, give_name, partial};
use crate::duration;
use crate::exit::{Exit, Failure};
use crate::inspect::slice::names_others;
use crate::record::recorder::{Consumer, StreamEnd};
use crate::record::stopping_event::StoppingEvent;
use crate::record::stream_stats::{lost_in_words, report_damage};
use crate::render::live_line::LiveLine;
use crate::render::output_file::OutputFile;
use crate::render::{messages, units};

/// The bytes written at once.
const BUFFER: usize = 256 << 10;

/// A consumer of a stream that writes it into one file after the other.
pub(crate) struct RotatingRecorder {
    /// The size at which a file ends, in bytes.
    size: u64,
    retention: Retention,
    stopping_event: Option<StoppingEvent>,
    file_name: FileNames,
    decoder: Decoder,
    info: Option<TraceInfo>,
    current: Option<CurrentFile>,
    /// Names of the files before the current one.
    store: NamesStore,
    /// Whether events of a kind name others, by metadata index.
    naming: Vec<Option<bool>>,
    lists: Option<MethodLists>,
    files: KeptFiles,
    count: usize,
    line: Option<LiveLine>,
    events: u64,
    stopped_by: Option<String>,
    unreadable: Option<nettrace::Error>,
}

/// The file that is being written.
struct CurrentFile {
    out: OutputFile,
    /// The name that it gets when it is complete.
    path: PathBuf,
    transcoder: Transcoder,
    /// The bytes of the names carried over from earlier files, which do not count toward the size.
    carried: u64,
    /// A second copy of its events that name others.
    names: Option<SegmentWriter>,
    events: u64,
    range: Option<(RelativeTime, RelativeTime)>,
}

impl RotatingRecorder {
    pub(crate) fn new(
        size: u64,
        retention: Retention,
        stopping_event: Option<StoppingEvent>,
        duration: Option<Duration>,
        file_name: FileNames,
    ) -> Self {
        Self {
            size,
            retention,
            stopping_event,
            file_name,
            decoder: Decoder::new(),
            info: None,
            current: None,
            store: NamesStore::default(),
            naming: Vec::new(),
            lists: None,
            files: KeptFiles::default(),
            count: 0,
            line: Some(LiveLine::new(duration)),
            events: 0,
            stopped_by: None,
            unreadable: None,
        }
    }

    /// Makes the runtime list its methods from time to time.
    pub(crate) fn list_methods(&mut self, target: &Target, needs_help: bool, is_starting: bool) {
        self.lists = Some(MethodLists::start(target, needs_help, is_starting));
    }

    fn read(&mut self) -> Result<(), Failure> {
        while self.unreadable.is_none() {
            let record = match self.decoder.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    self.unreadable = Some(error);
                    break;
                }
            };
            if let Record::Event(event) = &record {
                self.events += 1;
                if let Some(stopping_event) = &self.stopping_event
                    && self.stopped_by.is_none()
                {
                    self.stopped_by = stopping_event.name_if_matches(event);
                }
            }
            if let (Some(current), Some(info)) = (&mut self.current, &self.info) {
                current.add(&record, info, &mut self.naming)?;
            }
        }
        if self.current.as_ref().is_some_and(|current| current.is_full(self.size)) {
            self.turn()?;
        }
        Ok(())
    }

    /// Ends the file, and begins the next one.
    fn turn(&mut self) -> Result<(), Failure> {
        let Some(mut before) = self.current.take() else { return Ok(()) };
        if let (Some(info), Some(names)) = (&self.info, &mut before.names) {
            let names = names.segment().map_err(|error| cannot_keep(&error))?;
            self.store.add(Version::of(info), info, &names).map_err(|error| cannot_keep(&error))?;
        }
        let place = self.place_of(&before.transcoder).map_err(|error| cannot_keep(&error))?;
        // The old file is finished first, because there may be no room for the next: then this one is whole,
        // and surplus ones are already removed.
        self.finish_file(before, true)?;
        self.current = self.begin(place.as_ref())?;
        Ok(())
    }

    /// Returns a transcoder at the same position in the stream as `before`, which loses its position when it
    /// is finished.
    fn place_of(&self, before: &Transcoder) -> Result<Option<Transcoder>, Error> {
        let Some(info) = &self.info else { return Ok(None) };
        let mut place = Transcoder::new(Version::of(info), info)?;
        place.begin_behind(before, self.decoder.threads());
        Ok(Some(place))
    }

    /// Begins a file, with the names from the earlier ones.
    fn begin(&mut self, before: Option<&Transcoder>) -> Result<Option<CurrentFile>, Failure> {
        let Some(info) = &self.info else { return Ok(None) };
        let version = Version::of(info);
        let path = (self.file_name)();
        check_room(&path, self.size.saturating_add(self.store.bytes()))?;
        let mut out = OutputFile::create_new(&partial(&path))?;
        let names = self.store.segment().map_err(|error| cannot_keep(&error))?;
        let mut begun = || -> Result<Transcoder, Error> {
            let mut transcoder = Transcoder::new(version, info)?;
            if let Some(names) = &names {
                let mut events = names.read()?;
                while let Some(record) = events.next_record()? {
                    transcoder.write(&record)?;
                    drain(&mut transcoder, &mut out, BUFFER)?;
                }
                transcoder.continue_with(info, events.threads())?;
            }
            if let Some(before) = before {
                transcoder.begin_behind(before, self.decoder.threads());
            }
            transcoder.flush()?;
            drain(&mut transcoder, &mut out, 0)?;
            Ok(transcoder)
        };
        match begun() {
            Ok(transcoder) => {
                let carried = transcoder.offset();
                Ok(Some(CurrentFile { out, path, transcoder, carried, names: None, events: 0, range: None }))
            }
            Err(error) => Err(cannot_write(error, &out)),
        }
    }

    /// Ends a file, adding the runtime's list if the stream has not contained it.
    fn finish_file(&mut self, mut file: CurrentFile, needs_list: bool) -> Result<(), Failure> {
        let list = self.lists.as_ref().and_then(|lists| lists.last.as_ref()).filter(|_| needs_list);
        let CurrentFile { out, transcoder, .. } = &mut file;
        let threads = self.decoder.threads();
        let outcome = match list {
            Some(list) => append_list(transcoder, list, threads, |transcoder| drain(transcoder, out, BUFFER))
                .and_then(|threads| transcoder.finish(&threads)),
            None => transcoder.finish(threads),
        };
        outcome.and_then(|()| drain(transcoder, out, 0)).map_err(|error| cannot_write(error, out))?;
        file.out.store()?;
        let bytes = file.transcoder.offset();
        let path = give_name(file.out.path(), &file.path)?;
        let time = file
            .range
            .map(|(first, last)| format!(" of {}", duration::display(last.saturating_duration_since(first))));
        messages::note(format_args!(
            "File           : {}, {}, {} events{}",
            path.display(),
            units::bytes(bytes),
            file.events,
            time.unwrap_or_default()
        ));
        self.count += 1;
        self.files.add(path, bytes, &self.retention);
        Ok(())
    }

    /// Ends the last file.
    pub(crate) fn finish(mut self, end: &StreamEnd) -> Result<FlightSummary, Failure> {
        if let Some(line) = self.line.take() {
            line.end();
        }
        if let Some(lists) = &mut self.lists {
            lists.read();
        }
        if let Some(file) = self.current.take() {
            self.finish_file(file, !end.is_whole())?;
        }
        if let Some(event) = &self.stopped_by {
            messages::note(format_args!("Stopping event : {event}"));
        }
        let damage = report_damage(&self.decoder, self.unreadable.as_ref(), "files have what could be read");
        Ok(FlightSummary {
            text: format!(
                "Recorded {} events, {} lost, in {}; {} file{} written",
                self.events,
                lost_in_words(self.decoder.loss()),
                duration::display(end.elapsed),
                self.count,
                if self.count == 1 { "" } else { "s" },
            ),
            lost: self.decoder.loss().total(),
            damage,
            failure: None,
        })
    }
}

impl CurrentFile {
    /// Whether its own content has reached `size` bytes.
    fn is_full(&self, size: u64) -> bool {
        self.events > 0 && self.transcoder.offset() - self.carried >= size
    }

    fn add(
        &mut self,
        record: &Record<'_>,
        info: &TraceInfo,
        naming: &mut Vec<Option<bool>>,
    ) -> Result<(), Failure> {
        let outcome = (|| {
            if let Record::Event(event) = record {
                self.events += 1;
                let time = event.relative_time();
                let (first, last) = self.range.unwrap_or((time, time));
                self.range = Some((first.min(time), last.max(time)));
                let index = event.metadata_index();
                if naming.len() <= index {
                    naming.resize(index + 1, None);
                }
                if *naming[index].get_or_insert_with(|| names_others(event.metadata())) {
                    let names = match &mut self.names {
                        Some(names) => names,
                        none => none.insert(SegmentWriter::new(Version::of(info), info, &Storage::Memory)?),
                    };
                    names.add_name(event)?;
                }
            }
            self.transcoder.write(record)?;
            drain(&mut self.transcoder, &mut self.out, BUFFER)
        })();
        outcome.map_err(|error| cannot_write(error, &self.out))
    }
}

/// Writes the pending bytes if there are more than `most`.
fn drain(transcoder: &mut Transcoder, out: &mut OutputFile, most: usize) -> Result<(), Error> {
    if transcoder.bytes().len() <= most {
        return Ok(());
    }
    let offset = transcoder.offset() - transcoder.bytes().len() as u64;
    out.write_all(transcoder.bytes()).map_err(|error| Error::Io { offset, error })?;
    transcoder.clear_bytes();
    Ok(())
}

fn cannot_write(error: Error, out: &OutputFile) -> Failure {
    match error {
        Error::Io { error, .. } => out.failed("write", &error),
        error => Failure::new(Exit::Failed, format_args!("write: {out}: {error}")),
    }
}

impl Consumer for RotatingRecorder {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.unreadable.is_some() {
            return Ok(());
        }
        self.decoder.feed(bytes);
        // The next record reports an error in the header.
        if self.info.is_none()
            && let Ok(Some(info)) = self.decoder.read_header()
        {
            self.info = Some(info.clone());
            self.current = self.begin(None)?;
        }
        if let Some(lists) = &mut self.lists {
            lists.read();
        }
        self.read()
    }

    fn pause(&mut self) -> Result<(), Failure> {
        if let Some(lists) = &mut self.lists {
            lists.request_again();
            lists.read();
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.decoder.end_of_input();
        self.read()
    }

    fn is_satisfied(&self) -> bool {
        // An unreadable stream yields no more events.
        self.stopped_by.is_some() || self.unreadable.is_some()
    }

    fn is_whole(&self) -> bool {
        self.unreadable.is_none() && self.decoder.truncated_at().is_none()
    }

    fn show(&mut self, elapsed: Duration, is_stopping: bool) {
        let bytes = self.current.as_ref().map_or(0, |current| current.transcoder.offset());
        if let Some(line) = &mut self.line {
            line.show(elapsed, bytes, self.events, self.decoder.loss().total(), is_stopping);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::record::flight::test_stream::TestStream;

    /// A recorder whose files are `0`, `1` and so on in a folder.
    fn recorder(folder: &Path, size: u64, retention: Retention) -> RotatingRecorder {
        let (folder, number) = (folder.to_owned(), Mutex::new(0));
        let file_name = Box::new(move || {
            let mut number = number.lock().unwrap();
            *number += 1;
            folder.join((*number - 1).to_string())
        });
        RotatingRecorder::new(size, retention, None, None, file_name)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns the payload lengths of a whole recording without losses.
    fn payloads(path: &Path) -> Vec<usize> {
        let mut reader = nettrace::Reader::new(fs::File::open(path).unwrap()).unwrap();
        let mut lengths = Vec::new();
        reader.for_each(|event| lengths.push(event.payload().len())).unwrap();
        assert!(reader.truncated_at().is_none() && reader.damage().is_empty(), "{}", path.display());
        assert_eq!(reader.loss().total(), 0, "{}", path.display());
        lengths
    }

    #[test]
    fn names_of_the_files_before_fill_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorder(folder.path(), 3000, Retention::default());
        let mut stream = TestStream::new();
        recorder.take(&stream.name(5000)).unwrap();
        for _ in 0..10 {
            recorder.take(&stream.event(100)).unwrap();
        }
        recorder.take(&stream.end()).unwrap();
        recorder.end().unwrap();
        recorder.finish(&StreamEnd::whole(Target::from_path("/nowhere").address().clone())).unwrap();
        assert_eq!(names(folder.path()), ["0", "1"]);
        assert_eq!(payloads(&folder.path().join("0")), [5000]);
        assert_eq!(payloads(&folder.path().join("1")), [&[5000][..], &[100; 10]].concat());
    }

    #[test]
    fn a_file_is_finished_before_the_next_is_begun() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Retention { files: Some(1), ..Retention::default() };
        let mut recorder = recorder(folder.path(), 100, limits);
        let own = recorder.file_name;
        // The files that exist when each one begins.
        let seen = Arc::new(Mutex::new(Vec::new()));
        recorder.file_name = Box::new({
            let (seen, folder) = (Arc::clone(&seen), folder.path().to_owned());
            move || {
                let mut seen = seen.lock().unwrap();
                seen.push(names(&folder));
                if seen.len() == 4 { folder.join("missing/3") } else { own() }
            }
        });
        let mut stream = TestStream::new();
        for _ in 0..2 {
            recorder.take(&stream.event(200)).unwrap();
        }
        let failure = recorder.take(&stream.event(200)).unwrap_err();
        assert!(failure.message.contains("missing"), "{failure}");
        assert_eq!(*seen.lock().unwrap(), [&[][..], &["0".to_owned()], &["1".to_owned()], &["2".to_owned()]]);
        assert_eq!(names(folder.path()), ["2"]);
        assert_eq!(payloads(&folder.path().join("2")), [200]);
    }

    #[test]
    fn the_last_file_of_a_stream_without_its_end_has_the_list() {
        let target = Target::from_path("/nowhere");
        for (end, expected) in [
            (StreamEnd::abandoned(target.address().clone()), &[10, 77][..]),
            (StreamEnd::whole(target.address().clone()), &[10]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut recorder = recorder(folder.path(), 1 << 20, Retention::default());
            recorder.lists = Some(MethodLists::with_last(&target, &TestStream::list(77)));
            recorder.take(&TestStream::new().event(10)).unwrap();
            recorder.finish(&end).unwrap();
            assert_eq!(payloads(&folder.path().join("0")), expected);
        }
    }

    #[test]
    fn a_stream_that_cannot_be_read_ends_the_recording() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorder(folder.path(), 100, Retention::default());
        recorder.take(&[1; 100]).unwrap();
        assert!(recorder.is_satisfied() && !recorder.is_whole());
        let end = StreamEnd::abandoned(Target::from_path("/nowhere").address().clone());
        assert_eq!(recorder.finish(&end).unwrap().damage, Exit::Incomplete);
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
