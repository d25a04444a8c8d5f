//! The destination of a result.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};
use crate::render::output_file::{NameOrigin, OutputFile, with_help};
use crate::render::{messages, output};

/// A file, or standard output.
#[derive(Debug)]
pub(crate) enum Destination {
    File(OutputFile),
    StandardOutput,
}

impl Destination {
    /// Opens and empties a file that the user named, for writing a stream. Without a path, opens standard
    /// output.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let mut out = path.map(OutputFile::open).transpose()?.map_or(Self::StandardOutput, Self::File);
        out.begin()?;
        Ok(out)
    }

    /// Creates the file of a result, which gets its name when it is [closed](Self::close). Without a path,
    /// uses standard output.
    pub(crate) fn create(path: Option<&Path>, origin: NameOrigin) -> Result<Self, Failure> {
        let mut out = Self::prepare(path, origin)?;
        out.begin()?;
        Ok(out)
    }

    /// Like [`create`](Self::create); [`begin`](Self::begin) is called once there is something to write.
    pub(crate) fn prepare(path: Option<&Path>, origin: NameOrigin) -> Result<Self, Failure> {
        let file = path.map(|path| OutputFile::beside(path, origin)).transpose()?;
        Ok(file.map_or(Self::StandardOutput, Self::File))
    }

    /// Empties the file, or prints a note that it is replaced, because there is something to write.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.begin(),
            Self::StandardOutput => Ok(()),
        }
    }

    /// Removes a file that was not there before.
    pub(crate) fn discard(self) {
        if let Self::File(file) = self {
            file.discard();
        }
    }

    /// Closes the file, which then has its name, and prints a note with its path.
    pub(crate) fn close(self) -> Result<(), Failure> {
        self.close_named().map(|_| ())
    }

    /// Like [`close`](Self::close), and returns the path of the file.
    pub(crate) fn close_named(self) -> Result<Option<PathBuf>, Failure> {
        let Self::File(mut file) = self else { return Ok(None) };
        file.close()?;
        messages::note(format_args!("Written        : {file}"));
        Ok(Some(file.path().to_owned()))
    }

    /// Writes a result, and closes it.
    pub(crate) fn write_with(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        match write(&mut self).and_then(|()| self.flush()) {
            Ok(()) => self.close(),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Returns the failure for a write error.
    pub(crate) fn failed(&self, error: &io::Error) -> Failure {
        match self {
            Self::StandardOutput => output::failed(error),
            Self::File(file) => {
                with_help(Failure::new(Exit::Failed, format_args!("write: {file}: {error}")), error)
            }
        }
    }
}

/// The path, or `standard output`.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.fmt(f),
            Self::StandardOutput => f.write_str("standard output"),
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::StandardOutput => output::stream().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::StandardOutput => output::stream().flush(),
        }
    }
}
