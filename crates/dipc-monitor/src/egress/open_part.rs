//! An open file of an artifact, and the directory that has it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use dipc_client::dipc_transport::FolderBelow;
use dipc_collect::staged::create_private;

use super::{at, held};

/// An open file, with the directory that it is removed from, whatever has its name meanwhile.
#[derive(Debug)]
pub(super) struct OpenPart {
    pub(super) file: File,
    /// The path by the open directory.
    path: PathBuf,
    /// `None` for a directory of the monitor.
    pub(super) folder: Option<FolderBelow>,
}

impl OpenPart {
    /// Creates the file `path` of the directory `parent`, which `folder` is, or of one of the monitor.
    pub(super) fn create(folder: FolderBelow, parent: &Path, path: &Path) -> io::Result<Self> {
        let held = held(&folder, parent, path);
        let file = create_private(&held).map_err(|error| at(path, &error))?;
        Ok(Self { file, path: held, folder: Some(folder) })
    }

    /// Creates a file of a directory of the monitor.
    pub(super) fn create_own(path: &Path) -> io::Result<Self> {
        let file = create_private(path).map_err(|error| at(path, &error))?;
        Ok(Self { file, path: path.to_owned(), folder: None })
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        // A file that stays only takes space.
        let _ = fs::remove_file(&self.path);
    }
}
