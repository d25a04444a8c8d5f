//! A snapshot: a whole recording made from the content of the ring and the list of methods.

use std::path::{Path, PathBuf};

use dipc_collect::staged::{folder_of, free_bytes, publish_first, publish_new};
use nettrace::RelativeTime;
use nettrace_edit::{Error, Segment, Snapshot};

use crate::exit::{Exit, Failure};
use crate::render::output_file::{OutputFile, unused_names, with_help};

/// The file of a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotFile {
    pub(super) snapshot: Snapshot,
    /// The runtime's list of its methods, as it sent it.
    pub(super) list: Option<Segment>,
    /// File name; if it is taken, a similar one is used.
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

/// A snapshot that was written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) events: u64,
    /// The times of the oldest and the newest event of the ring.
    pub(super) range: Option<(RelativeTime, RelativeTime)>,
    pub(super) reason: String,
    pub(super) is_cut_short: bool,
    pub(super) names_left_out: u64,
}

impl SnapshotFile {
    /// The approximate maximum size of the file, in bytes.
    fn expected_bytes(&self) -> u64 {
        self.snapshot.expected_bytes().saturating_add(self.list.as_ref().map_or(0, Segment::bytes))
    }

    /// Writes it under a temporary name, and renames it once it is whole.
    pub(super) fn write(&self) -> Result<Written, Failure> {
        check_room(&self.path, self.expected_bytes())?;
        let mut file = OutputFile::create_new(&partial(&self.path))?;
        let written = self.snapshot.write(self.list.as_ref(), &mut file);
        let written = written.map_err(|error| cannot_write(error, &file)).and_then(|written| {
            file.store()?;
            Ok(written)
        });
        let place = file.path().to_owned();
        let written = written.inspect_err(|_| {
            // A file that cannot be removed either stays under its temporary name.
            let _ = std::fs::remove_file(&place);
        })?;
        let path = give_name(&place, &self.path)?;
        Ok(Written {
            path,
            bytes: written.bytes,
            events: written.events,
            range: written.range,
            reason: self.reason.clone(),
            is_cut_short: self.snapshot.is_cut_short(),
            names_left_out: self.snapshot.names_left_out(),
        })
    }
}

pub(super) fn cannot_write(error: Error, out: &OutputFile) -> Failure {
    match error {
        Error::Write(nettrace_writer::Error::Io { error, .. }) => out.failed("write", &error),
        error => Failure::new(Exit::Failed, format_args!("write: {out}: {error}")),
    }
}

/// The name of a file that is being written.
pub(super) fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Rejects a path in an unwritable folder before a snapshot is due.
pub(crate) fn check_output(path: &Path) -> Result<(), Failure> {
    OutputFile::create_new(&partial(path)).map(OutputFile::discard)
}

/// Renames a file to a name that is not taken.
pub(super) fn give_name(from: &Path, path: &Path) -> Result<PathBuf, Failure> {
    publish_first(unused_names(path), |name| publish_new(from, name)).map_err(|error| {
        let failure = format_args!("rename: {} to {}: {error}", from.display(), path.display());
        with_help(Failure::new(Exit::Failed, failure), &error)
    })
}

/// The bytes to leave free on the disk.
const RESERVE: u64 = 16 << 20;

/// Refuses to fill the disk.
pub(super) fn check_room(path: &Path, bytes: u64) -> Result<(), Failure> {
    let folder = folder_of(path);
    // If the system does not report the free space, writing will fail instead.
    let Some(free) = free_bytes(folder) else { return Ok(()) };
    if free >= bytes.saturating_add(RESERVE) {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Failed,
        format_args!(
            "write: {}: {bytes} bytes are needed in addition to {RESERVE} for other programs, and {free} are free",
            folder.display()
        ),
    )
    .with_help("make room there, or name another disk with -o, or --keep-in for the ring"))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use nettrace_edit::{Ring, RingCapacity, SegmentStorage};

    use super::*;
    use crate::record::flight::test_stream::TestStream;

    /// The case of two recorders that write to one folder.
    #[test]
    fn concurrent_files_get_different_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.nettrace");
        let names: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    let path = &path;
                    scope.spawn(move || {
                        let name = |n| {
                            let from = path.with_file_name(format!("{thread}-{n}.partial"));
                            std::fs::write(&from, from.file_name().unwrap().as_encoded_bytes()).unwrap();
                            give_name(&from, path).unwrap()
                        };
                        (0..50).map(name).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let contents: std::collections::BTreeSet<_> =
            names.iter().map(|it| std::fs::read(it).unwrap()).collect();
        assert_eq!((contents.len(), std::fs::read_dir(folder.path()).unwrap().count()), (400, 400));
    }

    #[test]
    fn a_list_that_cannot_be_read_costs_the_names_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = TestStream::new();
        let bytes = [stream.event(10), stream.event(10)].concat();
        let mut decoder = nettrace::Decoder::new();
        decoder.feed(&bytes);
        let info = decoder.read_header().unwrap().unwrap().clone();
        let capacity = RingCapacity { time: None, bytes: 1 << 20 };
        let mut ring = Ring::new(capacity, SegmentStorage::Memory, &info, Instant::now()).unwrap();
        while let Some(record) = decoder.next_record().unwrap() {
            ring.add(&record).unwrap();
        }
        let snapshot = ring.snapshot(decoder.threads()).unwrap();
        let path = folder.path().join("a");
        let file = SnapshotFile { snapshot, list: Some(Segment::default()), path, reason: String::new() };
        assert_eq!(file.write().unwrap().events, 2);
    }
}
