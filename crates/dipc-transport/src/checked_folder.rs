#[cfg(not(target_os = "linux"))]
use std::fs;
use std::io;
#[cfg(not(target_os = "linux"))]
use std::path::{Path, PathBuf};

/// Returns the result of creating a folder, without the error that it exists.
pub(crate) fn unless_it_exists(created: io::Result<()>) -> io::Result<()> {
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// A folder with a path that was free of links when it was checked.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) struct CheckedFolder(PathBuf);

#[cfg(not(target_os = "linux"))]
impl CheckedFolder {
    pub(crate) fn open(folder: &Path, below: &Path, creates: bool) -> io::Result<Self> {
        let mut path = fs::canonicalize(folder)?;
        for part in below {
            path.push(part);
            if creates {
                unless_it_exists(fs::create_dir(&path))?;
            }
            if !fs::symlink_metadata(&path)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}
