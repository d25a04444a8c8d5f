//! Recording with file rotation: when a file is large enough, a new one begins, and each is a whole recording
//! with names.

use std::path::PathBuf;
use std::time::Duration;

use dipc_client::Target;
use dipc_collect::{RecordStream, Retention};
use nettrace_edit::Rotation;

use super::file_series::{FileNames, FileSeries};
use super::session::FlightSummary;
use super::snapshot::{cannot_write, check_room, give_name, partial};
use crate::duration;
use crate::exit::Failure;
use crate::record::recorder::{Consumer, StreamEnd};
use crate::record::stopping_event::StoppingEvent;
use crate::record::stream_stats::lost_in_words;
use crate::render::output_file::OutputFile;
use crate::render::{messages, units};

/// A consumer of a stream that writes it into one file after the other.
pub(crate) struct RotatingRecorder {
    /// The size at which a file ends, in bytes.
    size: u64,
    stream: RecordStream,
    files: FileSeries,
    /// The parts of the stream; `None` before its header.
    rotation: Option<Rotation>,
    current: Option<CurrentFile>,
}

/// The file that is being written.
struct CurrentFile {
    out: OutputFile,
    /// The name that it gets when it is complete.
    path: PathBuf,
}

impl RotatingRecorder {
    pub(crate) fn new(
        size: u64,
        retention: Retention,
        stopping_event: Option<StoppingEvent>,
        duration: Option<Duration>,
        file_name: FileNames,
    ) -> Self {
        let files = FileSeries::new(retention, stopping_event, duration, file_name);
        Self { size, stream: RecordStream::default(), files, rotation: None, current: None }
    }

    /// Makes the runtime list its methods from time to time.
    pub(crate) fn list_methods(&mut self, target: &Target, needs_help: bool, is_starting: bool) {
        self.files.list_methods(target, needs_help, is_starting);
    }

    fn read(&mut self) -> Result<(), Failure> {
        let Self { stream, files, rotation, current, .. } = self;
        stream.for_each(|record| {
            files.stopping_event.add_record(record);
            match (&mut *rotation, &mut *current) {
                (Some(rotation), Some(CurrentFile { out, .. })) => {
                    rotation.add(record, out).map_err(|error| cannot_write(error, out))
                }
                _ => Ok(()),
            }
        })?;
        if self.rotation.as_ref().is_some_and(Rotation::is_full) {
            self.turn()?;
        }
        Ok(())
    }

    /// Ends the file, and begins the next one.
    fn turn(&mut self) -> Result<(), Failure> {
        // The old file is finished first, because the disk may be too full for the next: then this one is
        // whole, and surplus ones are already removed.
        self.finish_file(true)?;
        self.begin()
    }

    /// Begins a file, with the names from the earlier ones.
    fn begin(&mut self) -> Result<(), Failure> {
        let Some(rotation) = &mut self.rotation else { return Ok(()) };
        let path = (self.files.file_name)();
        check_room(&path, rotation.expected_bytes())?;
        let mut out = OutputFile::create_new(&partial(&path))?;
        let begun = rotation.begin(self.stream.decoder().threads(), &mut out);
        begun.map_err(|error| cannot_write(error, &out))?;
        self.current = Some(CurrentFile { out, path });
        Ok(())
    }

    /// Ends a file, adding the runtime's list if the stream has not contained it.
    fn finish_file(&mut self, needs_list: bool) -> Result<(), Failure> {
        let (Some(rotation), Some(CurrentFile { mut out, path })) = (&mut self.rotation, self.current.take())
        else {
            return Ok(());
        };
        let list = self.files.last_list().filter(|_| needs_list);
        let ended = rotation.end(self.stream.decoder().threads(), list, &mut out);
        let Some(written) = ended.map_err(|error| cannot_write(error, &out))? else { return Ok(()) };
        out.store()?;
        let path = give_name(out.path(), &path)?;
        let time = written
            .range
            .map(|(first, last)| format!(" of {}", duration::display(last.saturating_duration_since(first))));
        messages::note(format_args!(
            "File           : {}, {}, {} events{}",
            path.display(),
            units::bytes(written.bytes),
            written.events,
            time.unwrap_or_default()
        ));
        self.files.add_file(path, written.bytes);
        Ok(())
    }

    /// Ends the last file.
    pub(crate) fn finish(mut self, end: &StreamEnd) -> Result<FlightSummary, Failure> {
        self.files.end_line();
        self.files.read_lists();
        self.finish_file(!end.is_whole())?;
        let Self { stream, files, .. } = &self;
        let damage = files.report(stream, "files have the readable part");
        let loss = stream.decoder().loss();
        Ok(FlightSummary {
            text: format!(
                "Recorded {} events, {} lost, in {}; {} file{} written",
                stream.event_count(),
                lost_in_words(loss),
                duration::display(end.elapsed()),
                files.written,
                if files.written == 1 { "" } else { "s" },
            ),
            lost: loss.total(),
            damage,
            has_crashed_as_asked: false,
            failure: None,
        })
    }
}

impl Consumer for RotatingRecorder {
    type Error = Failure;

    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.stream.unreadable().is_some() {
            return Ok(());
        }
        self.stream.feed(bytes);
        if self.rotation.is_none()
            && let Some(info) = self.stream.read_header()
        {
            self.rotation = Some(Rotation::new(self.size, info));
            self.begin()?;
        }
        self.files.read_lists();
        self.read()
    }

    fn pause(&mut self) -> Result<(), Failure> {
        if let Some(lists) = &mut self.files.lists {
            lists.request_again();
            lists.read();
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.stream.end_of_input();
        self.read()
    }

    fn is_satisfied(&self) -> bool {
        self.files.is_over(&self.stream)
    }

    fn is_whole(&self) -> bool {
        self.stream.is_whole()
    }

    fn show(&mut self, elapsed: Duration, is_stopping: bool) {
        let bytes = self.rotation.as_ref().map_or(0, Rotation::bytes);
        self.files.show(&self.stream, elapsed, bytes, is_stopping);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    use nettrace_edit::RecordedRange;

    use super::*;
    use crate::exit::Exit;
    use crate::record::flight::method_lists::MethodLists;
    use crate::record::flight::test_stream::TestStream;

    /// A recorder with files named `0`, `1` and so on in a folder.
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

    /// Returns the payload lengths of a whole recording without losses, which states its range at the end.
    fn payloads(path: &Path) -> Vec<usize> {
        let mut reader = nettrace::Reader::new(fs::File::open(path).unwrap()).unwrap();
        let (mut lengths, mut range) = (Vec::new(), None);
        reader
            .for_each(|event| {
                assert_eq!(range, None);
                range = RecordedRange::of(&event);
                lengths.extend(range.is_none().then_some(event.payload().len()));
            })
            .unwrap();
        assert!(range.is_some(), "{}", path.display());
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
        recorder.finish(&StreamEnd::whole(&Target::from_path("/nowhere"))).unwrap();
        assert_eq!(names(folder.path()), ["0", "1"]);
        assert_eq!(payloads(&folder.path().join("0")), [5000]);
        assert_eq!(payloads(&folder.path().join("1")), [&[5000][..], &[100; 10]].concat());
    }

    #[test]
    fn a_file_is_finished_before_the_next_is_begun() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Retention::default().with_files(Some(1));
        let mut recorder = recorder(folder.path(), 100, limits);
        let own = recorder.files.file_name;
        // The files that exist when each one begins.
        let seen = Arc::new(Mutex::new(Vec::new()));
        recorder.files.file_name = Box::new({
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
        for (end, expected) in
            [(StreamEnd::abandoned(&target), &[10, 77][..]), (StreamEnd::whole(&target), &[10])]
        {
            let folder = tempfile::tempdir().unwrap();
            let mut recorder = recorder(folder.path(), 1 << 20, Retention::default());
            recorder.files.lists = Some(MethodLists::with_last(&target, &TestStream::list(77)));
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
        let end = StreamEnd::abandoned(&Target::from_path("/nowhere"));
        assert_eq!(recorder.finish(&end).unwrap().damage, Exit::Incomplete);
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
