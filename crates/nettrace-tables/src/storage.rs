//! The place of a data set: a directory, or another store that keeps files by name.

use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::error::Error;

/// The age at which files left by killed exports are removed.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// A store that keeps files by name, each whole or not at all. Names have `/` between folders and are chosen
/// by [`Dataset`](crate::Dataset): dates, percent-encoded services, hashes and names of tables and columns.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Returns the names of the files in a folder, without the folder; none if it is not there.
    ///
    /// # Errors
    /// If the place cannot be reached, or refuses.
    fn list(&self, folder: &str) -> Result<Vec<String>, Error>;

    /// Returns the content of a file.
    ///
    /// # Errors
    /// If the file does not exist or cannot be read.
    fn read(&self, name: &str) -> Result<Vec<u8>, Error>;

    /// Publishes the local file at `from` atomically, replacing any file of that name.
    ///
    /// # Errors
    /// If it cannot be stored. Then no part of it is visible.
    fn put(&self, from: &Path, name: &str) -> Result<(), Error>;

    /// Creates a file with these bytes unless a file of that name exists. Returns whether it was created.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error>;

    /// Removes a file; an absent file is not an error.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, name: &str) -> Result<(), Error>;

    /// Removes the files of killed exports.
    fn clean(&self) {}

    /// The local directory in which files are written before they are [put](Self::put) in place. It is
    /// created when needed, and removed when empty.
    fn staging(&self) -> PathBuf;
}

/// A directory. Files are written below its `_tmp`, and moved.
///
/// ```
/// use nettrace_tables::{Directory, Storage as _};
///
/// # let folder = tempfile::tempdir()?;
/// let storage = Directory::new(folder.path());
/// assert!(storage.create("_promoted/p_a.json", b"{}")?);
/// // It exists already.
/// assert!(!storage.create("_promoted/p_a.json", b"{}")?);
/// assert_eq!(storage.list("_promoted")?, ["p_a.json"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// Creates a storage in a directory, which is made at the first write.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

impl Storage for Directory {
    fn list(&self, folder: &str) -> Result<Vec<String>, Error> {
        let folder = self.root.join(folder);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::file(&folder)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(Error::file(&folder))?.file_name();
            // Names in data sets are valid UTF-8.
            names.extend(name.into_string());
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.root.join(name);
        read_bounded(&path).map_err(Error::file(&path))
    }

    fn put(&self, from: &Path, name: &str) -> Result<(), Error> {
        let to = self.root.join(name);
        make_folder(&to)?;
        fs::rename(from, &to).map_err(Error::file(&to))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        let to = self.root.join(name);
        make_folder(&to)?;
        // A hard link appears complete, and does not replace an existing file.
        let staging = make_staging(&self.staging())?;
        let from = staging.path().join("file");
        let write = |path: &Path| {
            let mut file = fs::File::create_new(path)?;
            file.write_all(bytes).and_then(|()| file.sync_all())
        };
        write(&from).map_err(Error::file(&from))?;
        let linked = fs::hard_link(&from, &to);
        drop(staging);
        let _ = fs::remove_dir(self.staging());
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // A file system without hard links.
            Err(_) if !to.exists() => write(&to).map_err(Error::file(&to)).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.root.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file(&path)(error)),
            _ => Ok(()),
        }
    }

    fn clean(&self) {
        let Ok(entries) = fs::read_dir(self.staging()) else { return };
        for entry in entries.flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
            if age.is_some_and(|age| age > STALE) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn staging(&self) -> PathBuf {
        self.root.join("_tmp")
    }
}

/// Maximum size of a file to read into memory: a list of exported recordings, or a promoted column.
const MAX_READ_SIZE: u64 = 64 << 20;

/// Reads a regular file. Anyone who can write to the data set may have put something else in its place: a
/// pipe would not end, and a link could lead anywhere.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut options = fs::File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    // Opening a device can have effects.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(refused("it is not a regular file".to_owned()));
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(refused("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MAX_READ_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_READ_SIZE {
        return Err(refused(format!("it has more than {MAX_READ_SIZE} bytes")));
    }
    Ok(bytes)
}

/// The attempts at making a directory in a folder that others remove.
const ATTEMPTS: usize = 100;

/// Makes a directory in `folder` that no other export uses, and `folder` if necessary: exports in other
/// containers may have the same process id. Another export that finds `folder` empty may remove it in
/// between.
pub(crate) fn make_staging(folder: &Path) -> Result<TempDir, Error> {
    let attempt = || fs::create_dir_all(folder).and_then(|()| tempfile::tempdir_in(folder));
    let mut made = attempt();
    for _ in 0..ATTEMPTS {
        match &made {
            Err(error) if error.kind() == io::ErrorKind::NotFound => made = attempt(),
            _ => break,
        }
    }
    made.map_err(Error::file(folder))
}

fn make_folder(file: &Path) -> Result<(), Error> {
    match file.parent() {
        Some(folder) => fs::create_dir_all(folder).map_err(Error::file(folder)),
        None => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").expect("a file");
        std::os::unix::fs::symlink(at("file"), at("link")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo");
        assert!(made.success());
        let large = fs::File::create(at("large")).expect("a file");
        large.set_len(MAX_READ_SIZE + 1).expect("a sparse file");
        let directory = Directory::new(folder.path());
        assert_eq!(directory.read("file").expect("bytes"), b"text");
        for name in ["link", "pipe", "large", "."] {
            let error = directory.read(name).expect_err(name).to_string();
            assert!(error.contains("regular file") || error.contains("more than"), "{name}: {error}");
        }
    }
}
