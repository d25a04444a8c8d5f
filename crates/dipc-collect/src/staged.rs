//! Files that get their names when they are complete, and that replace others only on purpose.

mod staged_file;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use dipc_transport::open_own;

pub use self::staged_file::StagedFile;

/// Creates a file that only its owner can read: recordings and dumps have the memory of processes. It can be
/// read, too, because it may have to be copied when its name is another file's.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if anything has the name, even a dangling link, and errors of creating.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a file that only its owner can read, durably. A name that is taken stays.
///
/// # Errors
/// As for [`create_private`], and errors of writing; the file may be incomplete then.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_private(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Renames a complete file or folder to an unused name on the same file system.
///
/// ```
/// use dipc_collect::staged::{publish_new, write_private};
///
/// let folder = tempfile::tempdir()?;
/// let at = |name: &str| folder.path().join(name);
/// write_private(&at(".part"), b"complete")?;
/// std::fs::write(at("a"), "other")?;
/// assert!(publish_new(&at(".part"), &at("a")).is_err());
/// publish_new(&at(".part"), &at("b"))?;
/// assert_eq!(std::fs::read(at("b"))?, b"complete");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the name is taken, even by a dangling link, and errors of renaming.
/// The file keeps its name then.
pub fn publish_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
            // The file system may not support the flag.
            Err(error) if !is_final(&error) => {}
            result => return result,
        }
    }
    if fs::symlink_metadata(from)?.is_dir() {
        // A rename replaces an empty folder.
        return match fs::symlink_metadata(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        };
    }
    match fs::hard_link(from, to) {
        Ok(()) => {
            // It has its name. The other one takes no space.
            let _ = fs::remove_file(from);
            Ok(())
        }
        Err(error) if is_final(&error) => Err(error),
        Err(_) => reserve_and_rename(from, to),
    }
}

/// Gives a complete file an unused name in addition to its own, by which a restarted program can tell that it
/// has arrived. Where files cannot have two names, it is renamed.
///
/// # Errors
/// As for [`publish_new`].
pub fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if !is_final(&error) => publish_new(from, to),
        result => result,
    }
}

/// Moves a complete file to an unused name, also from another file system: it is copied next to its name
/// first.
///
/// # Errors
/// As for [`publish_new`], and errors of copying. The file keeps its name then.
pub fn move_new(from: &Path, to: &Path) -> io::Result<()> {
    match publish_new(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_new(from, to),
        result => result,
    }
}

/// Moves a complete file to a name, in place of a file or link with that name, also from another file system.
///
/// # Errors
/// Errors of moving. The file keeps its name then, and the other one its content.
pub fn move_over(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_over(from, to),
        result => result,
    }
}

/// Publishes under the first of several names that is not taken, by `publish`, and returns it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if all are taken, and the first other error of `publish`.
pub fn publish_first(
    names: impl IntoIterator<Item = PathBuf>,
    mut publish: impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    for name in names {
        match publish(&name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns the `number`th name of a file: from the second one on with a separator and the number before its
/// extension.
///
/// ```
/// use dipc_collect::staged::numbered;
///
/// assert_eq!(numbered("a/b.dmp".as_ref(), "-", 1), std::path::Path::new("a/b.dmp"));
/// assert_eq!(numbered("a/b.dmp".as_ref(), "-", 2), std::path::Path::new("a/b-2.dmp"));
/// ```
pub fn numbered(path: &Path, separator: &str, number: u32) -> PathBuf {
    if number <= 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("{separator}{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Copies a file to a new private one, durably. An incomplete copy is removed. The source is a file of this
/// program in a folder to which others may write: no link is followed.
///
/// # Errors
/// As for [`create_private`] and [`open_own`], and errors of copying.
pub fn copy_private(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = create_private(to)?;
    let mut copy = || {
        io::copy(&mut open_own(from, OpenOptions::new().read(true))?, &mut file)?;
        file.sync_all()
    };
    copy().inspect_err(|_| {
        // The copy takes space that may be missing.
        let _ = fs::remove_file(to);
    })
}

/// Makes the names in a folder durable.
///
/// # Errors
/// Errors of the file system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Returns the folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the bytes that are free for this user on the file system of a folder; `None` if the system does
/// not report them.
#[cfg(unix)]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(folder).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize))
}

/// Returns `None`: the system is not asked.
#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Returns true for the errors of renaming and linking that no other call avoids.
fn is_final(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::CrossesDevices)
}

/// Reserves a name with an empty file until the rename, for file systems without links.
fn reserve_and_rename(from: &Path, to: &Path) -> io::Result<()> {
    drop(create_private(to)?);
    fs::rename(from, to).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}

/// Copies a file into the folder of its new name, names the copy, and removes the file.
fn copy_new(from: &Path, to: &Path) -> io::Result<()> {
    let copy = builder().make_in(folder_of(to), |path| copy_private(from, path))?;
    publish_new(copy.path(), to)?;
    copy.into_temp_path().disable_cleanup(true);
    fs::remove_file(from)
}

/// Copies a file next to its new name, replaces that by the copy, and removes the file.
fn copy_over(from: &Path, to: &Path) -> io::Result<()> {
    let copy = builder().make_in(folder_of(to), |path| copy_private(from, path))?;
    copy.into_temp_path().persist(to).map_err(|error| error.error)?;
    fs::remove_file(from)
}

/// Returns a builder of random names, which are short even if the final name is long.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".dipc-").suffix(".partial");
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Makes a folder with a file, a name that is taken, and where possible a dangling link.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        write_private(&folder.path().join("part"), b"complete").unwrap();
        fs::write(folder.path().join("taken"), "other").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        folder
    }

    const TAKEN: &[&str] = if cfg!(unix) { &["taken", "link"] } else { &["taken"] };

    #[test]
    fn private_files_replace_nothing() {
        let folder = folder();
        for name in TAKEN {
            let error = write_private(&folder.path().join(name), b"x").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        assert_eq!(fs::read(folder.path().join("taken")).unwrap(), b"other");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let part = folder.path().join("part");
            assert_eq!(fs::metadata(&part).unwrap().permissions().mode() & 0o777, 0o600);
            // A copy is private, too, and does not follow a link.
            copy_private(&part, &folder.path().join("copy")).unwrap();
            assert_eq!(fs::metadata(folder.path().join("copy")).unwrap().permissions().mode() & 0o777, 0o600);
            assert!(copy_private(&folder.path().join("link"), &folder.path().join("other")).is_err());
            assert!(!folder.path().join("other").exists());
        }
    }

    #[test]
    fn files_get_names_that_are_not_taken() {
        let ways = [publish_new, link_new, move_new, copy_new, reserve_and_rename];
        for (way, publish) in ways.into_iter().enumerate() {
            let folder = folder();
            let at = |name: &str| folder.path().join(name);
            for name in TAKEN {
                let error = publish(&at("part"), &at(name)).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{way} {name}");
            }
            assert_eq!(fs::read(at("part")).unwrap(), b"complete");
            publish(&at("part"), &at("free")).unwrap();
            assert_eq!(fs::read(at("free")).unwrap(), b"complete");
            assert_eq!(fs::read(at("taken")).unwrap(), b"other");
            // Only a link leaves the first name.
            assert_eq!(at("part").exists(), way == 1, "{way}");
            assert_eq!(names(folder.path()).len(), TAKEN.len() + 1 + usize::from(way == 1), "{way}");
        }
    }

    #[test]
    fn folders_get_names_that_are_not_taken() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        for name in ["new", "empty"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in TAKEN.iter().chain(&["empty"]) {
            assert_eq!(publish_new(&at("new"), &at(name)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        publish_new(&at("new"), &at("free")).unwrap();
        assert!(at("free").is_dir() && at("empty").is_dir() && !at("new").exists());
    }

    #[test]
    fn a_moved_file_replaces_another_one() {
        for publish in [move_over, copy_over] {
            let folder = folder();
            let at = |name: &str| folder.path().join(name);
            publish(&at("part"), &at("taken")).unwrap();
            assert_eq!(fs::read(at("taken")).unwrap(), b"complete");
            assert_eq!(names(folder.path()).len(), TAKEN.len());
        }
    }

    #[test]
    fn the_first_free_name_is_taken() {
        let folder = folder();
        let path = folder.path().join("a.b.dmp");
        let candidates = || (1..=3).map(|number| numbered(&path, "-", number));
        for name in ["a.b.dmp", "a.b-2.dmp", "a.b-3.dmp"] {
            let published = publish_first(candidates(), |name| write_private(name, b"")).unwrap();
            assert_eq!(published, folder.path().join(name));
        }
        let error = publish_first(candidates(), |name| write_private(name, b"")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let missing = folder.path().join("missing/a");
        assert_eq!(
            publish_first([missing], |name| write_private(name, b"")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(numbered("a".as_ref(), "_", 2), Path::new("a_2"));
    }
}
