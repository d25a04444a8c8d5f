//! Result files: opened before the work, locked against a second writer, and closed with error checks.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dipc_collect::staged::{StagedFile, folder_of, numbered, publish_first};
use jiff::{Timestamp, tz::TimeZone};

use crate::exit::{Exit, Failure};
use crate::render::messages;
use crate::render::output_link::{self, follow};

/// Maximum number of names to try for a file that gets a new name.
const MAX_NAMES: u32 = 1000;
/// The number of attempts to open a path if its file is concurrently removed.
const ATTEMPTS: usize = 8;

/// An output file. A device or a pipe is written directly.
///
/// A stream is written to its final place: [`open`](Self::open), [`create_new`](Self::create_new). A result
/// is [written next to](Self::beside) its final place, and gets its name once it is whole.
#[derive(Debug)]
pub(crate) struct OutputFile {
    /// The open file; `None` after it was closed.
    file: Option<File>,
    path: PathBuf,
    /// True if opening created the file.
    created: bool,
    /// The name that it gets when it is closed.
    pending: Option<PendingName>,
}

/// The origin of a name, which decides what happens to an existing file or link with that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameOrigin {
    /// The user gave the name: an existing file is replaced, links are followed, and a device or a pipe is
    /// written to.
    User,
    /// Derived from a name that the user gave: an existing file is replaced, and links are not followed.
    Derived,
    /// Chosen by this program: an existing file stays, and another name is used.
    Chosen,
}

/// The name that a file gets later.
#[derive(Debug)]
struct PendingName {
    staged: StagedFile,
    /// The destination of links.
    to: PathBuf,
    origin: NameOrigin,
    /// The file to be replaced; while open, it keeps its lock.
    replaced: Option<File>,
}

impl OutputFile {
    /// Opens the file that the user named, to be written in place. An existing file keeps its content until
    /// [`OutputFile::begin`].
    ///
    /// # Errors
    /// If it cannot be written, or another program is writing to it.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        output_link::check(path)?;
        Self::open_in_place(path)
    }

    fn open_in_place(path: &Path) -> Result<Self, Failure> {
        for _ in 0..ATTEMPTS {
            let (file, created) = match options().create_new(true).open(path) {
                Ok(file) => (file, true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let file = options().create(true).truncate(false).open(path);
                    (file.map_err(|error| cannot_open(path, &error))?, false)
                }
                Err(error) => return Err(cannot_open(path, &error)),
            };
            lock(&file, path)?;
            // Another program may have removed it before the lock.
            if created || is_at(&file, path) {
                return Ok(Self::in_place(file, path.to_owned(), created));
            }
        }
        Err(in_use(path))
    }

    const fn in_place(file: File, path: PathBuf, created: bool) -> Self {
        Self { file: Some(file), path, created, pending: None }
    }

    /// Creates a file next to `path`, which is renamed to `path` when it is [closed](Self::close). Otherwise
    /// nothing is left of it, and an existing file with that name stays. An existing file with several names,
    /// or with an owner that the new file cannot have, is written in place.
    ///
    /// # Errors
    /// If the file could not be given that name, or another program is writing to it.
    pub(crate) fn beside(path: &Path, origin: NameOrigin) -> Result<Self, Failure> {
        if origin == NameOrigin::User {
            output_link::check(path)?;
        }
        let place = if origin == NameOrigin::User { follow(path) } else { Some(path.to_owned()) };
        let Some(to) = place else { return Self::open_in_place(path) };
        let replaced = match to.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                return Err(cannot_open(path, &io::ErrorKind::IsADirectory.into()));
            }
            Ok(metadata) if metadata.is_file() && origin != NameOrigin::Chosen => {
                let file = options().open(&to).map_err(|error| cannot_open(path, &error))?;
                lock(&file, path)?;
                Some(file)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot_open(path, &error)),
            Ok(_) | Err(_) => None,
        };
        let (file, staged) = match (StagedFile::create(folder_of(&to)), &replaced) {
            (Ok(created), _) => created,
            // The folder does not allow new files, but its existing files may still be writable.
            (Err(error), Some(_)) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Self::open_in_place(path);
            }
            (Err(error), _) => return Err(cannot_open(path, &error)),
        };
        if replaced.as_ref().is_some_and(|replaced| !take_over(&file, replaced)) {
            drop(replaced);
            return Self::open_in_place(path);
        }
        let pending = Some(PendingName { staged, to, origin, replaced });
        Ok(Self { file: Some(file), path: path.to_owned(), created: false, pending })
    }

    /// Creates a new file, with this name, or with `_2`, `_3` and so on before its extension.
    pub(crate) fn create_new(path: &Path) -> Result<Self, Failure> {
        for candidate in unused_names(path) {
            match options().create_new(true).open(&candidate) {
                Ok(file) => {
                    lock(&file, &candidate)?;
                    return Ok(Self::in_place(file, candidate, true));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot_open(&candidate, &error)),
            }
        }
        Err(cannot_open(path, &io::ErrorKind::AlreadyExists.into()))
    }

    /// Empties the file, and prints a note that its content is overwritten.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        if let Some(PendingName { replaced, .. }) = &self.pending {
            if let Some(metadata) = replaced.as_ref().and_then(|file| file.metadata().ok()) {
                note_overwritten(&self.path, &metadata);
            }
            return Ok(());
        }
        let Some(file) = &self.file else { return Ok(()) };
        // A pipe or a device does not need truncation.
        let Some(metadata) = file.metadata().ok().filter(Metadata::is_file) else { return Ok(()) };
        note_overwritten(&self.path, &metadata);
        file.set_len(0).map_err(|error| {
            Failure::new(Exit::Failed, format_args!("empty output: {}: {error}", self.path.display()))
        })
    }

    /// Removes the file if opening it created it, because there is nothing to write.
    pub(crate) fn discard(self) {
        if self.created {
            // A leftover empty file does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Closes the file, and gives it its name. A file system may report only now that it could not store the
    /// data.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        let Some(file) = self.file.take() else { return Ok(()) };
        dipc_transport::close(file).map_err(|error| self.failed("close", &error))?;
        match self.pending.take() {
            Some(pending) => self.name(pending),
            None => Ok(()),
        }
    }

    fn name(&mut self, pending: PendingName) -> Result<(), Failure> {
        let PendingName { mut staged, to, origin, replaced } = pending;
        // Windows cannot rename over an open file.
        drop(replaced);
        if origin != NameOrigin::Chosen {
            return staged.name_over(&to).map_err(|error| self.failed("name", &error));
        }
        let name = publish_first(unused_names(&to), |name| staged.name_new(name));
        let name = name.map_err(|error| self.failed("name", &error))?;
        if name != self.path {
            messages::note(format_args!("Not overwritten: {}", self.path.display()));
            self.path = name;
        }
        Ok(())
    }

    /// Flushes the data to disk, and closes the file.
    pub(crate) fn store(&mut self) -> Result<(), Failure> {
        if let Some(file) = self.file.as_ref().filter(|file| file.metadata().is_ok_and(|it| it.is_file())) {
            file.sync_data().map_err(|error| self.failed("store", &error))?;
        }
        self.close()
    }

    /// Returns the failure of a step, with its remedy.
    pub(crate) fn failed(&self, step: &str, error: &io::Error) -> Failure {
        with_help(Failure::new(Exit::Failed, format_args!("{step}: {self}: {error}")), error)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, for writing at any offset; `None` after it was closed.
    pub(crate) const fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    fn open_file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("the file is closed"))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open_file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open_file()?.flush()
    }
}

impl fmt::Display for OutputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// Returns true if the path leads to something writable that cannot be replaced by name: a device, a pipe,
/// standard output.
pub(crate) fn is_device(path: &Path) -> bool {
    follow(path).is_none() && fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir())
}

/// The path, followed by similar ones to use if it is taken.
pub(crate) fn unused_names(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    (1..=MAX_NAMES).map(move |number| numbered(path, "_", number))
}

/// Prints a note that a file with content is overwritten.
pub(crate) fn note_overwritten(path: &Path, metadata: &Metadata) {
    if !metadata.is_file() || metadata.len() == 0 {
        return;
    }
    let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    let from =
        modified.map(|time| time.to_zoned(TimeZone::system()).strftime(" of %Y-%m-%d %H:%M:%S").to_string());
    messages::note(format_args!(
        "Overwriting    : {}, {} bytes{}",
        path.display(),
        metadata.len(),
        from.unwrap_or_default()
    ));
}

/// Adds the help for a system error in writing a file.
pub(crate) fn with_help(failure: Failure, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            failure.with_help("make room there, or name a file on another disk")
        }
        io::ErrorKind::FileTooLarge => failure.with_help(
            "the file has reached the limit on file sizes (ulimit -f) or what its file system can hold",
        ),
        _ => failure,
    }
}

/// Gives a file the permissions and the owner of the file that it replaces. Returns true if that succeeded
/// and the replaced file lacks other names, which would keep the old content.
#[cfg(unix)]
fn take_over(file: &File, replaced: &File) -> bool {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let (Ok(own), Ok(replaced)) = (file.metadata(), replaced.metadata()) else { return false };
    let is_same_owner = (own.uid(), own.gid()) == (replaced.uid(), replaced.gid());
    replaced.nlink() == 1
        && (is_same_owner || fchown(file, Some(replaced.uid()), Some(replaced.gid())).is_ok())
        && file.set_permissions(replaced.permissions()).is_ok()
}

#[cfg(not(unix))]
fn take_over(_: &File, _: &File) -> bool {
    true
}

#[cfg(not(windows))]
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    options
}

/// Others may read but not write the file meanwhile.
#[cfg(windows)]
fn options() -> OpenOptions {
    use std::os::windows::fs::OpenOptionsExt as _;
    const FILE_SHARE_READ: u32 = 1;
    let mut options = OpenOptions::new();
    options.write(true).share_mode(FILE_SHARE_READ);
    options
}

/// Keeps other programs that lock their output from writing to the file until it is closed.
#[cfg(not(windows))]
fn lock(file: &File, path: &Path) -> Result<(), Failure> {
    use std::fs::TryLockError;
    // Several programs may write to one device or pipe.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(());
    }
    match file.try_lock() {
        // Not every file system supports locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(in_use(path)),
    }
}

/// [`options`] already locks it; a lock here would also keep readers out.
#[cfg(windows)]
fn lock(_: &File, _: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Returns true if an input and an output are the same file, even under different names; the input `-` is
/// standard input.
pub(crate) fn is_same_file(input: &Path, output: &Path) -> bool {
    input == output || is_same_regular_file(input, output)
}

#[cfg(unix)]
fn is_same_regular_file(input: &Path, output: &Path) -> bool {
    use std::os::fd::AsFd as _;
    let metadata = if input.as_os_str() == "-" {
        io::stdin().as_fd().try_clone_to_owned().and_then(|stdin| File::from(stdin).metadata())
    } else {
        fs::metadata(input)
    };
    // A device or a pipe may be both.
    metadata.as_ref().is_ok_and(Metadata::is_file) && identity(metadata) == identity(fs::metadata(output))
}

/// Hard links, and a file as standard input, cannot be detected here.
#[cfg(not(unix))]
fn is_same_regular_file(input: &Path, output: &Path) -> bool {
    input.canonicalize().is_ok_and(|input| output.canonicalize().is_ok_and(|output| input == output))
}

/// Returns true if the path still names the file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    identity(file.metadata()) == identity(fs::metadata(path))
}

/// Returns the numbers of the file's device and of the file on it.
#[cfg(unix)]
fn identity(metadata: io::Result<Metadata>) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    metadata.ok().map(|it| (it.dev(), it.ino()))
}

/// An open file cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

fn in_use(path: &Path) -> Failure {
    Failure::new(
        Exit::Failed,
        format_args!("open output: {}: another program is writing to this file", path.display()),
    )
    .with_help("name another file with -o; nothing was written")
}

fn cannot_open(path: &Path, error: &io::Error) -> Failure {
    #[cfg(windows)]
    {
        const ERROR_SHARING_VIOLATION: i32 = 32;
        if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) {
            return in_use(path);
        }
    }
    let failure = Failure::new(Exit::Failed, format_args!("open output: {}: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::NotFound => {
            let folder = folder_of(path);
            if folder.is_dir() {
                // A folder of the kernel, such as /proc, or one reached through a dangling link.
                return failure
                    .with_help("no file can be made there: name one in another folder; nothing was written");
            }
            failure.with_help(format_args!(
                "the folder {} does not exist; nothing was written",
                folder.display()
            ))
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            failure.with_help("name a file in a folder that you can write to; nothing was written")
        }
        io::ErrorKind::IsADirectory => failure.with_help("name a file, not a folder; nothing was written"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let folder = folder();
        let path = folder.path().join("app_7_20260102.nettrace");
        let made: Vec<_> = (0..3).map(|_| OutputFile::create_new(&path).unwrap()).collect();
        let names: Vec<_> =
            made.iter().map(|file| file.path().file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(
            names,
            ["app_7_20260102.nettrace", "app_7_20260102_2.nettrace", "app_7_20260102_3.nettrace"]
        );
    }

    #[test]
    fn a_second_writer_is_refused_and_harms_nothing() {
        let folder = folder();
        let path = folder.path().join("x");
        let mut first = OutputFile::open(&path).unwrap();
        first.write_all(b"first").unwrap();
        let failure = OutputFile::open(&path).unwrap_err();
        assert!(failure.message.contains("another program is writing"), "{failure}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        first.close().unwrap();
        OutputFile::open(&path).unwrap().discard();
        assert_eq!(fs::read(&path).unwrap(), b"first", "a file that was there is not removed");
    }

    #[test]
    fn a_file_is_refused_that_was_removed_while_it_was_opened() {
        let folder = folder();
        let path = folder.path().join("x");
        let file = OutputFile::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another").unwrap();
        assert!(!is_at(file.file.as_ref().unwrap(), &path));
    }

    #[test]
    #[cfg(unix)]
    fn devices_are_shared_and_stay() {
        let null = Path::new("/dev/null");
        let (mut one, other) = (OutputFile::open(null).unwrap(), OutputFile::open(null).unwrap());
        one.begin().unwrap();
        one.write_all(b"x").unwrap();
        one.store().unwrap();
        other.discard();
        assert!(is_device(null) && !is_device(Path::new("/")) && !is_device(Path::new("/nosuch")));
    }
}
