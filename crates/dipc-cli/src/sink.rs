//! Where a recording goes.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};
use crate::output;

/// A file, or standard output.
#[derive(Debug)]
pub(crate) struct Sink {
    place: Place,
    written: u64,
}

#[derive(Debug)]
enum Place {
    File { file: File, path: PathBuf, created: bool },
    StandardOutput,
}

impl Sink {
    /// Opens the output before a session exists that would have to be stopped again. A file that is there keeps what it holds
    /// until [`Sink::begin`].
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            output::refuse_terminal("a recording")?;
            return Ok(Self { place: Place::StandardOutput, written: 0 });
        }
        let created = fs::symlink_metadata(path).is_err();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| cannot_open(path, &error))?;
        Ok(Self { place: Place::File { file, path: path.to_owned(), created }, written: 0 })
    }

    /// Empties the file: the session runs, and what was there is replaced.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        if let Place::File { file, path, .. } = &self.place {
            let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
            // A pipe or a device has nothing to be emptied of.
            if is_file {
                file.set_len(0).map_err(|error| {
                    Failure::new(Exit::Failed, format_args!("empty output: {}: {error}", path.display()))
                })?;
            }
        }
        Ok(())
    }

    /// Takes back what [`Sink::open`] did, when there is no session.
    pub(crate) fn discard(self) {
        if let Place::File { path, created: true, .. } = self.place {
            // An empty file that stays is no harm.
            let _ = fs::remove_file(path);
        }
    }

    /// Writes all bytes, or says how many the file holds.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let result = match &mut self.place {
            Place::File { file, .. } => write_all(file, bytes),
            Place::StandardOutput => write_all(&mut output::stream(), bytes),
        };
        let (count, result) = result;
        self.written += count;
        result.map_err(|error| self.cannot_write(&error))
    }

    /// Bytes written so far.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    fn cannot_write(&self, error: &io::Error) -> Failure {
        if matches!(self.place, Place::StandardOutput) && error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::reader_left();
        }
        let kept = self.written;
        let failure = Failure::new(
            Exit::Failed,
            format_args!("write: {self}: {error}; {kept} bytes were written and kept"),
        );
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failure.with_help("the session was stopped; what is in the file can be read up to there")
            }
            _ => failure,
        }
    }
}

/// Like `write_all`, and tells how far it came.
fn write_all(out: &mut impl Write, mut bytes: &[u8]) -> (u64, io::Result<()>) {
    let mut count = 0;
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return (count, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => {
                count += n as u64;
                bytes = &bytes[n..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (count, Err(error)),
        }
    }
    (count, out.flush())
}

fn cannot_open(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(Exit::Failed, format_args!("open output: {}: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::NotFound => {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            failure.with_help(format_args!(
                "the folder {} does not exist; nothing was recorded",
                folder.display()
            ))
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            failure.with_help("name a file in a folder that you can write to; nothing was recorded")
        }
        io::ErrorKind::IsADirectory => failure.with_help("name a file, not a folder; nothing was recorded"),
        _ => failure,
    }
}

/// The path, or `standard output`.
impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File { path, .. } => path.display().fmt(f),
            Place::StandardOutput => f.write_str("standard output"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_what_it_holds_until_the_session_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.nettrace");
        fs::write(&path, "a longer text").unwrap();
        Sink::open(&path).unwrap().discard();
        assert_eq!(fs::read(&path).unwrap(), b"a longer text");
        let mut sink = Sink::open(&path).unwrap();
        sink.begin().unwrap();
        sink.write(b"new").unwrap();
        assert_eq!((sink.written(), fs::read(&path).unwrap()), (3, b"new".to_vec()));
    }

    #[test]
    fn a_file_made_for_nothing_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.nettrace");
        let sink = Sink::open(&path).unwrap();
        assert!(path.exists());
        sink.discard();
        assert!(!path.exists());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let failure = Sink::open(Path::new("/nosuch/x.nettrace")).unwrap_err();
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.starts_with("open output: /nosuch/x.nettrace: "), "{failure}");
        assert!(failure.help.unwrap().contains("/nosuch does not exist"));
        assert!(Sink::open(Path::new("/tmp")).unwrap_err().help.unwrap().contains("not a folder"));
    }

    #[test]
    fn a_full_device_says_what_was_kept() {
        let mut sink = Sink::open(Path::new("/dev/full")).unwrap();
        sink.begin().unwrap();
        let failure = sink.write(b"xyz").unwrap_err();
        assert!(
            failure.message.starts_with("write: /dev/full: ") && failure.message.contains("0 bytes"),
            "{failure}"
        );
        assert!(failure.help.is_some());
        sink.discard();
        assert!(Path::new("/dev/full").exists());
    }
}
