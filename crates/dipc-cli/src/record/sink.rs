//! The destination of a recording.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::inspect::names::refuse_beside;
use crate::render::destination::Destination;
use crate::render::output;
use crate::render::output_file::{OutputFile, with_help};

/// A file, or standard output.
#[derive(Debug)]
pub(crate) struct Sink {
    destination: Destination,
    written: u64,
}

impl Sink {
    /// Opens the output that the user named, `-` being standard output. This happens before a session exists
    /// that would have to be stopped on failure. An existing file keeps its content until [`Sink::begin`].
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            output::refuse_terminal("a recording")?;
            return Ok(Self { destination: Destination::StandardOutput, written: 0 });
        }
        refuse_beside(path)?;
        Ok(Self { destination: Destination::File(OutputFile::open(path)?), written: 0 })
    }

    /// Creates a new file, with this name or a similar one.
    pub(crate) fn create_new(path: &Path) -> Result<Self, Failure> {
        Ok(Self { destination: Destination::File(OutputFile::create_new(path)?), written: 0 })
    }

    /// Empties the file: the session runs, and its content is replaced.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        self.destination.begin()
    }

    /// Removes a file that opening it created, after a session failed to start.
    pub(crate) fn discard(self) {
        if let Destination::File(file) = self.destination {
            file.discard();
        }
    }

    /// Flushes the data to disk, and closes the file.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match &mut self.destination {
            Destination::File(file) => file.store(),
            Destination::StandardOutput => Ok(()),
        }
    }

    /// The path of the file; `None` for standard output.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.destination {
            Destination::File(file) => Some(file.path()),
            Destination::StandardOutput => None,
        }
    }

    /// Writes all bytes. The failure names the number of bytes that were kept.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let (count, result) = write_all(&mut self.destination, bytes);
        self.written += count;
        result.map_err(|error| self.cannot_write(&error))
    }

    /// Bytes written so far.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    fn cannot_write(&self, error: &io::Error) -> Failure {
        if matches!(self.destination, Destination::StandardOutput)
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            return Failure::closed_output();
        }
        let kept = self.written;
        let message = format_args!(
            "write: {self}: {error}; the session was stopped, and {kept} bytes were written and kept"
        );
        with_help(Failure::new(Exit::Failed, message), error)
    }
}

/// Like `write_all`, and also returns the number of bytes written.
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

/// The path, or `standard output`.
impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.destination.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_only_once_the_session_runs() {
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
        let in_proc = Sink::open(Path::new("/proc/x")).unwrap_err().help.unwrap();
        assert!(in_proc.starts_with("no file can be made there"), "{in_proc}");
        assert!(Sink::open(Path::new("/tmp")).unwrap_err().help.unwrap().contains("not a folder"));
    }

    #[test]
    fn a_full_device_error_states_the_kept_bytes() {
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
