//! Lists that the monitor keeps in directories of artifacts, to which others may write.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dipc_client::dipc_transport::{FolderBelow, open_own};

/// Maximum size of a list to read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum length of a name of an artifact in bytes, with room for a number.
const MAX_NAME_LENGTH: usize = 200;

/// The locks of directories, which are few. A directory that does not answer does not hold up others.
static LOCKS: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// Returns the path of an artifact below a directory; `None` if its name leads out of it.
pub(crate) fn path_of(directory: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name);
    let is_inside = name.components().all(|part| matches!(part, Component::Normal(_)));
    let length = name.file_name()?.len();
    (is_inside && length <= MAX_NAME_LENGTH).then(|| directory.join(name))
}

/// A file of lines in a directory.
pub(crate) struct DirectoryList<'d> {
    directory: &'d Path,
    name: &'static str,
}

impl<'d> DirectoryList<'d> {
    pub(crate) const fn new(directory: &'d Path, name: &'static str) -> Self {
        Self { directory, name }
    }

    /// Runs `change` while no other thread changes lists of the directory.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&Self) -> io::Result<T>) -> io::Result<T> {
        let lock = {
            let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(self.directory.to_owned()).or_default())
        };
        let _guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        change(self)
    }

    fn path(&self) -> PathBuf {
        self.directory.join(self.name)
    }

    /// The bytes of the list; 0 if it is missing.
    pub(crate) fn len(&self) -> u64 {
        fs::symlink_metadata(self.path()).map_or(0, |list| list.len())
    }

    /// Reads the list. Empty if the list is missing, or if something else has its name.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match open_own(&self.path(), OpenOptions::new().read(true)) {
            Ok(file) => file.take(MAX_BYTES).read_to_end(&mut bytes)?,
            Err(error) if is_replaced(&error) || error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(bytes)
    }

    /// Appends a line in one write: a line that is cut by a full disk is left out by readers. Something else that
    /// has the list's name is replaced.
    pub(crate) fn append(&self, line: &[u8]) -> io::Result<()> {
        match open_own(&self.path(), private(OpenOptions::new().append(true).create(true))) {
            Ok(mut file) => file.write_all(line),
            Err(error) if is_replaced(&error) => self.replace(line),
            Err(error) => Err(error),
        }
    }

    /// Rewrites the whole list.
    pub(crate) fn replace(&self, content: &[u8]) -> io::Result<()> {
        let new = self.directory.join(format!("{}.new", self.name));
        // A file may have been left over.
        let _ = fs::remove_file(&new);
        let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(new, self.path())
    }
}

/// Returns true for a link or a pipe, which the monitor has not written.
fn is_replaced(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// Has a file created that only its owner can read.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// A regular file that a list names, below its directory.
#[derive(Debug)]
pub(crate) struct ListedFile {
    folder: FolderBelow,
    file_name: String,
    pub(crate) metadata: fs::Metadata,
}

impl ListedFile {
    /// Finds a file by name; `None` if the name leads out of the directory, also by a link, or is not a file.
    pub(crate) fn find(directory: &Path, name: &str) -> Option<Self> {
        path_of(directory, name)?;
        let name = Path::new(name);
        let file_name = name.file_name()?.to_str()?.to_owned();
        let folder = FolderBelow::open(directory, name.parent()?).ok()?;
        let metadata = fs::symlink_metadata(folder.join(&file_name)).ok()?;
        metadata.is_file().then_some(Self { folder, file_name, metadata })
    }

    pub(crate) fn open(&self) -> io::Result<File> {
        open_own(&self.folder.join(&self.file_name), OpenOptions::new().read(true))
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(self.folder.join(&self.file_name))
    }
}
