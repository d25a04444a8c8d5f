//! The file of an artifact while it is written: in its place or, once that has failed, among the waiting
//! files.

use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use dipc_client::dipc_transport::FolderBelow;

use super::open_part::OpenPart;
use super::{BUFFER, at, uploads};

/// A file that is written. When its place fails, its content is copied to the spare place, and writing goes
/// on there: the process does not send the artifact twice.
#[derive(Debug)]
pub(super) struct PartWriter {
    path: PathBuf,
    part: OpenPart,
    buffer: Vec<u8>,
    /// The bytes in the file.
    written: u64,
    /// Maximum number of bytes of the file.
    most: u64,
    spare: Option<PathBuf>,
    /// The error of its place, once it has left it.
    failure: Option<io::Error>,
}

/// A complete file, which is durable.
#[derive(Debug)]
pub(super) struct CompletePart {
    pub(super) path: PathBuf,
    /// The open directory of the artifact; `None` if the file is in the spare place.
    pub(super) folder: Option<FolderBelow>,
    /// The error of its place, if it is in the spare one.
    pub(super) failure: Option<io::Error>,
}

impl PartWriter {
    /// Begins a file that `open` creates at `path`.
    ///
    /// # Errors
    /// If neither it nor the spare place can be written.
    pub(super) fn begin(
        path: &Path,
        open: impl FnOnce() -> io::Result<OpenPart>,
        spare: Option<PathBuf>,
    ) -> io::Result<Self> {
        let (path, part, most, failure, spare) = match (open(), spare) {
            (Ok(part), spare) => (path.to_owned(), part, u64::MAX, None, spare),
            (Err(error), None) => return Err(error),
            (Err(error), Some(spare)) => {
                let (part, most) = open_spare(&spare).map_err(|second| both(&error, &second))?;
                (spare, part, most, Some(error), None)
            }
        };
        Ok(Self { path, part, buffer: Vec::with_capacity(BUFFER), written: 0, most, spare, failure })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len().saturating_add(bytes.len()) > BUFFER {
            self.flush()?;
        }
        if bytes.len() < BUFFER {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        for piece in bytes.chunks(BUFFER) {
            self.buffer.extend_from_slice(piece);
            self.flush()?;
        }
        Ok(())
    }

    /// Makes the file durable.
    pub(super) fn finish(mut self) -> io::Result<CompletePart> {
        self.flush()?;
        if let Err(error) = self.part.file.sync_all() {
            self.go_on_elsewhere(at(&self.path, &error))?;
            self.part.file.sync_all().map_err(|error| self.failed(&at(&self.path, &error)))?;
        }
        Ok(CompletePart { path: self.path, folder: self.part.folder, failure: self.failure })
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = self.buffer.get(done..).filter(|rest| !rest.is_empty()) {
            let is_beyond = self.written.saturating_add(rest.len() as u64) > self.most;
            let result = if is_beyond { Err(uploads::full()) } else { self.part.file.write(rest) };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    done = done.saturating_add(count);
                    self.written = self.written.saturating_add(count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.go_on_elsewhere(at(&self.path, &error))?,
            }
        }
        self.buffer.clear();
        Ok(())
    }

    /// Leaves the place that has failed.
    fn go_on_elsewhere(&mut self, error: io::Error) -> io::Result<()> {
        let Some(spare) = self.spare.take() else { return Err(self.failed(&error)) };
        let moved = open_spare(&spare).and_then(|(mut part, most)| {
            self.part.file.rewind()?;
            let copied = io::copy(&mut (&self.part.file).take(self.written), &mut part.file)?;
            if copied == self.written { Ok((part, most)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        });
        match moved {
            Ok((part, most)) => {
                // The file takes space that may be missing.
                self.part.remove();
                (self.path, self.part, self.most, self.failure) = (spare, part, most, Some(error));
                Ok(())
            }
            Err(second) => {
                let _ = fs::remove_file(&spare);
                Err(both(&error, &second))
            }
        }
    }

    /// Adds the failure of the place that was left to an error.
    fn failed(&self, error: &io::Error) -> io::Error {
        match &self.failure {
            Some(first) => both(first, error),
            None => io::Error::new(error.kind(), error.to_string()),
        }
    }

    /// Removes the written file.
    pub(super) fn remove(self) {
        self.part.remove();
    }
}

/// Creates the file of a spare place. Returns the most bytes that it may have.
fn open_spare(path: &Path) -> io::Result<(OpenPart, u64)> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(|error| at(directory, &error))?;
    let room = uploads::MAX_BYTES.saturating_sub(uploads::size_of(directory));
    if room == 0 {
        return Err(at(directory, &uploads::full()));
    }
    // A file may have been left over.
    let _ = fs::remove_file(path);
    Ok((OpenPart::create_own(path)?, room))
}

/// The error of a place, and of its substitute.
fn both(first: &io::Error, second: &io::Error) -> io::Error {
    io::Error::new(second.kind(), format!("{first}; in the queue instead: {second}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of an artifact, more than a buffer.
    fn artifact() -> Vec<u8> {
        (0..3 * BUFFER + 5).map(|number| u8::try_from(number % 251).unwrap()).collect()
    }

    /// Writes an artifact in pieces to a file of at most `most` bytes.
    fn write(folder: &Path, most: u64, spare: Option<PathBuf>) -> io::Result<CompletePart> {
        let path = folder.join("part");
        let mut writer = PartWriter::begin(&path, || OpenPart::create_own(&path), spare)?;
        writer.most = most;
        for piece in artifact().chunks(1000) {
            writer.write(piece)?;
        }
        writer.finish()
    }

    #[test]
    fn a_file_continues_elsewhere_at_any_byte() {
        let all = artifact().len() as u64;
        for most in [0, 1, BUFFER as u64 - 1, BUFFER as u64, 2 * BUFFER as u64 + 1, all - 1, all] {
            let folder = tempfile::tempdir().unwrap();
            let spare = folder.path().join("queue/spare");
            let complete = write(folder.path(), most, Some(spare.clone())).unwrap();
            assert_eq!(fs::read(&complete.path).unwrap(), artifact(), "{most}");
            let has_moved = most < all;
            assert_eq!(
                (complete.path == spare, complete.failure.is_some()),
                (has_moved, has_moved),
                "{most}"
            );
            assert_eq!(folder.path().join("part").exists(), !has_moved, "{most}");
        }
    }

    #[test]
    fn a_file_without_any_place_fails_with_both_reasons() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(folder.path(), 9, None).unwrap_err();
        assert!(!error.to_string().contains("in the queue instead"), "{error}");
        // A directory that cannot be created, and a spare one.
        fs::write(folder.path().join("file"), "").unwrap();
        let beyond = folder.path().join("file/a");
        let begin = |spare| PartWriter::begin(&beyond, || OpenPart::create_own(&beyond), spare);
        let error = begin(Some(folder.path().join("file/b/c"))).unwrap_err().to_string();
        assert!(error.contains("file/a: ") && error.contains("; in the queue instead: "), "{error}");
        assert!(begin(None).is_err());
        let complete = begin(Some(folder.path().join("spare"))).unwrap().finish().unwrap();
        assert_eq!(complete.path, folder.path().join("spare"));
    }
}
