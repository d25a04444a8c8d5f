//! Reading a recording from a file or from standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nettrace::{Events, ReadAt, Reader, Source, read_file_at};

use crate::exit::{Exit, Failure};
use crate::inspect::ring_folder;
use crate::render::{messages, shell};

/// The name of the first object of a `.gcdump` file, found in its first bytes.
const FIRST_OBJECT: &[u8] = b"GCHeapDump";
/// The number of bytes in which that name is searched.
const BEGINNING: u64 = 64;

/// The input of a recording.
pub(crate) struct Input {
    source: InputSource,
    count: Arc<AtomicU64>,
}

enum InputSource {
    File(FileReader),
    /// A stream that can neither be read again nor be skipped forward.
    Stream(Box<dyn Read + Send>),
}

impl InputSource {
    fn of_file(file: File) -> Self {
        Self::File(FileReader { file: Arc::new(file), at: 0, end: u64::MAX })
    }
}

/// A reader of a file that others may read at the same time.
struct FileReader {
    file: Arc<File>,
    /// Offset of the next byte.
    at: u64,
    /// Offset of the end, which may lie before that of the file.
    end: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let count = read_file_at(&self.file, &mut buffer[..most], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Input {
    /// Skips bytes without reading them.
    fn skip(&mut self, count: u64) -> io::Result<()> {
        match &mut self.source {
            InputSource::File(file) => {
                file.at = file.at.checked_add(count).ok_or(io::ErrorKind::InvalidInput)?;
                Ok(())
            }
            InputSource::Stream(stream) => {
                io::copy(&mut stream.take(count), &mut io::sink())?;
                Ok(())
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.source {
            InputSource::File(file) => file.read(buffer)?,
            InputSource::Stream(stream) => stream.read(buffer)?,
        };
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// A recording after its header was read.
pub(crate) struct Recording {
    pub(crate) events: Reader<Input>,
    count: Arc<AtomicU64>,
    name: String,
}

/// Adds help to the failure of a file that does not exist and has a number as its name: a process was meant.
pub(crate) fn suggest_process(failure: Failure, path: &Path, error: &io::Error) -> Failure {
    match path.to_str().and_then(|name| name.parse::<u32>().ok()) {
        Some(pid) if error.kind() == io::ErrorKind::NotFound => failure.with_help(format_args!(
            "{pid} is read as the name of a file; commands for processes take it as -p {pid}"
        )),
        _ => failure,
    }
}

/// True if a recording is, or was, standard input.
static STDIN_IS_TAKEN: AtomicBool = AtomicBool::new(false);

impl Recording {
    /// Opens a recording; `-` is standard input, and a folder is that of a ring.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let (source, name) = if path.as_os_str() == "-" {
            // Input that another recording has consumed is gone.
            if STDIN_IS_TAKEN.swap(true, Ordering::Relaxed) {
                return Err(Failure::usage("-: standard input is read already, and can be read once"));
            }
            (InputSource::Stream(Box::new(io::stdin())), "standard input".to_owned())
        } else if path.is_dir() {
            // Readers of it share the file, at offsets of their own.
            let file = ring_folder::open(path)?;
            (InputSource::File(FileReader { file, at: 0, end: u64::MAX }), path.display().to_string())
        } else {
            let file = File::open(path).map_err(|error| {
                let failure = Failure::new(Exit::Failed, format_args!("open: {}: {error}", path.display()));
                suggest_process(failure, path, &error)
            })?;
            let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
            let source =
                if is_file { InputSource::of_file(file) } else { InputSource::Stream(Box::new(file)) };
            (source, path.display().to_string())
        };
        Self::read_header(source, name)
    }

    /// Opens a companion of the recording that the user named. Others may have put something else in its
    /// place, such as a pipe, which would be waited for.
    pub(crate) fn open_beside(path: &Path) -> Result<Self, Failure> {
        let file = dipc_transport::open_regular(path)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("open: {}: {error}", path.display())))?;
        Self::read_header(InputSource::of_file(file), path.display().to_string())
    }

    /// Reads an open file from its beginning; messages call it `name`.
    pub(crate) fn of_file(file: File, name: &str) -> Result<Self, Failure> {
        let source = InputSource::File(FileReader { file: Arc::new(file), at: 0, end: u64::MAX });
        Self::read_header(source, name.to_owned())
    }

    fn read_header(source: InputSource, name: String) -> Result<Self, Failure> {
        let count = Arc::new(AtomicU64::new(0));
        // Several readers of a file must agree, wherever their bytes end. A pipe may belong to a live
        // session.
        let is_file = matches!(source, InputSource::File(_));
        let events =
            Reader::with_skip(Input { source, count: Arc::clone(&count) }, Input::skip).map_err(|error| {
                match error {
                    // An input that ends within its header was cut, for example because its process died at
                    // once.
                    nettrace::Error::BadHeader { offset, .. } if offset == count.load(Ordering::Relaxed) => {
                        Failure::new(
                            Exit::Incomplete,
                            format_args!("read: {name}: cut at offset {offset}, inside its header"),
                        )
                        .with_help(
                            "it contains no events; the process may have ended as soon as the recording began",
                        )
                    }
                    error => cannot_read(&name, &error),
                }
            })?;
        let events = if is_file { events.with_lookahead() } else { events };
        Ok(Self { events, count, name })
    }

    /// Returns the file, with its current length, to be read by several readers; `None` if the input is not a
    /// file.
    pub(crate) fn file(&self) -> Option<RecordingFile> {
        let InputSource::File(reader) = &self.events.input().source else { return None };
        let length = reader.file.metadata().ok()?.len();
        Some(RecordingFile { file: Arc::clone(&reader.file), length, name: self.name.clone() })
    }

    /// Splits the recording into its reader and its origin.
    pub(crate) fn into_parts(self) -> (Reader<Input>, Origin) {
        (self.events, Origin { count: self.count, name: self.name })
    }
}

/// A file with a recording, which several readers read to the same end, also while it grows.
#[derive(Debug)]
pub(crate) struct RecordingFile {
    file: Arc<File>,
    length: u64,
    name: String,
}

impl RecordingFile {
    /// Opens the recording once more.
    pub(crate) fn open(&self) -> Result<Recording, Failure> {
        let reader = FileReader { file: Arc::clone(&self.file), at: 0, end: self.length };
        Recording::read_header(InputSource::File(reader), self.name.clone())
    }
}

impl ReadAt for RecordingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        read_file_at(&self.file, buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.length)
    }
}

/// The instant at which a recording starts; `None` if its header does not name one.
pub(crate) fn start_time(start: nettrace::SystemTime) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(start.unix_milliseconds()?).ok()
}

/// The origin of a recording.
pub(crate) struct Origin {
    count: Arc<AtomicU64>,
    name: String,
}

impl Origin {
    /// Bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the failure for an error that ended the reading.
    pub(crate) fn failed(&self, error: &nettrace::Error) -> Failure {
        cannot_read(&self.name, error)
    }

    /// Warns of the parts missing from a recording that was read to its end. Returns the exit code for them.
    pub(crate) fn report_damage<S: Source>(&self, events: &Events<S>) -> Exit {
        let mut exit = Exit::Done;
        if let Some(offset) = events.truncated_at() {
            exit = Exit::Incomplete;
            messages::warning(format_args!(
                "{}: cut at offset {offset}; everything before it was read",
                self.name
            ));
        }
        for damage in events.damage().iter().take(SHOWN) {
            exit = Exit::Incomplete;
            messages::warning(format_args!("{}: damaged at {damage}", self.name));
        }
        let more = events.damage_count().saturating_sub(SHOWN as u64);
        if more > 0 {
            messages::warning(format_args!("{}: damaged in {more} more places", self.name));
        }
        exit
    }
}

/// The number of damaged parts that are reported individually.
const SHOWN: usize = 5;

fn cannot_read(name: &str, error: &nettrace::Error) -> Failure {
    let failure = Failure::new(Exit::Failed, format_args!("read: {name}: {error}"));
    match error {
        nettrace::Error::Empty => {
            failure.with_help("the program that recorded it may have ended before the first byte arrived")
        }
        nettrace::Error::BadHeader { .. } if is_gcdump(Path::new(name)) => failure.with_help(format_args!(
            "it is a .gcdump file: dipc gcdump report {}",
            shell::path(Path::new(name))
        )),
        nettrace::Error::NotATrace { begins } if is_compressed(begins) => {
            failure.with_help("the file is compressed: decompress it first")
        }
        nettrace::Error::NotATrace { .. } => {
            failure.with_help("name a file that dipc trace or dotnet-trace collect wrote (.nettrace)")
        }
        _ => failure,
    }
}

/// Returns true if a file identifies itself as a `.gcdump`.
pub(crate) fn is_gcdump(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    read.is_ok() && beginning.windows(FIRST_OBJECT.len()).any(|bytes| bytes == FIRST_OBJECT)
}

/// Returns true if a file with this beginning is compressed with gzip, xz or zstd.
fn is_compressed(begins: &[u8]) -> bool {
    const MAGIC: [&[u8]; 3] = [b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"];
    MAGIC.iter().any(|magic| begins.starts_with(magic))
}
