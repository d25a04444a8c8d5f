//! Errors.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of an export. A damaged recording is not a failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A recording cannot be read, or the file is not a recording.
    #[error("{}: {error}", path.display())]
    Recording {
        /// The recording.
        path: PathBuf,
        /// The reason.
        error: nettrace::Error,
    },
    /// A recording ends inside its header, before any event.
    #[error("{}: cut inside its header", path.display())]
    CutHeader {
        /// The recording.
        path: PathBuf,
    },
    /// A recording's bytes differ from the bytes that were hashed.
    #[error("{}: changed while it was exported", path.display())]
    Changed {
        /// The recording.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A storage other than a directory cannot be reached, or refuses.
    #[error("{place}: {message}")]
    Store {
        /// The address of the file, or of the folder.
        place: String,
        /// The message of the storage, and the remedy.
        message: String,
    },
    /// The name of a column to promote belongs to another column in the data set.
    #[error("{wanted}: the data set has its column {name} for {known}")]
    Promoted {
        /// The name of the column.
        name: String,
        /// The field that the data set has under the name, and its type.
        known: String,
        /// The field to promote, and its type.
        wanted: String,
    },
    /// The Parquet writer failed.
    #[error("{}: {message}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The writer's message.
        message: String,
    },
}

impl Error {
    /// Returns a function that adds a file's path to an I/O error.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<'_> {
        move |error| Self::File { path: path.to_owned(), error }
    }

    /// Returns a function that adds a file's path to an error of the Parquet writer.
    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Self + use<'_> {
        move |error| Self::Parquet { path: path.to_owned(), message: error.to_string() }
    }
}
