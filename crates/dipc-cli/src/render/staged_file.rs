//! Files that get their names only when they are whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

/// Maximum number of links to follow in a path, as on Linux.
const MAX_LINKS: usize = 40;

/// A file without its final name. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct StagedFile(Stage);

#[derive(Debug)]
enum Stage {
    /// The file is unnamed, so it disappears however the program ends.
    #[cfg(target_os = "linux")]
    Unnamed(File),
    /// The file has a unique name. The open file is held elsewhere.
    Named(TempPath),
}

impl StagedFile {
    /// Creates a file in `folder`, with the permissions of the umask.
    pub(crate) fn create(folder: &Path) -> io::Result<(File, Self)> {
        #[cfg(target_os = "linux")]
        if let Ok(file) = create_unnamed(folder) {
            let written = file.try_clone()?;
            return Ok((written, Self(Stage::Unnamed(file))));
        }
        let (file, path) = builder().tempfile_in(folder)?.into_parts();
        Ok((file, Self(Stage::Named(path))))
    }

    /// Names it `path`, if nothing has that name, not even a dangling link.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the name is taken; the file is still staged then.
    pub(crate) fn name_new(&mut self, path: &Path) -> io::Result<()> {
        match &mut self.0 {
            #[cfg(target_os = "linux")]
            Stage::Unnamed(file) => link(file, path),
            Stage::Named(from) => {
                rename_new(from, path)?;
                from.disable_cleanup(true);
                Ok(())
            }
        }
    }

    /// Names it `path`, replacing a file or link with that name.
    pub(crate) fn name_over(self, path: &Path) -> io::Result<()> {
        match self.0 {
            #[cfg(target_os = "linux")]
            Stage::Unnamed(file) => {
                let folder = folder_of(path);
                let named = builder().make_in(folder, |name| link(&file, name))?;
                named.into_temp_path().persist(path).map_err(|error| error.error)
            }
            Stage::Named(from) => from.persist(path).map_err(|error| error.error),
        }
    }
}

/// Renames a file to an unused name.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the name is taken, and the errors of renaming. The file keeps its name
/// then.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            // The file system may not support the flag.
            Err(_) => {}
        }
    }
    // Reserve the name with an empty file until the rename.
    drop(File::create_new(to)?);
    fs::rename(from, to).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}

/// Returns the path of the regular file that `path` leads to, following links in its last part; the file need
/// not exist. `None` if the path leads elsewhere: to a device, a pipe, a folder, or through `/proc` to an
/// open file.
pub(crate) fn follow(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = folder_of(&path);
        if folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
            return None;
        }
        path = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => folder.join(path.read_link().ok()?),
            Ok(metadata) if !metadata.is_file() => return None,
            _ => return Some(path),
        };
    }
    None
}

/// Gives a file the permissions and the owner of the file that it replaces. Returns true if that succeeded
/// and the replaced file lacks other names, which would keep the old content.
#[cfg(unix)]
pub(crate) fn take_over(file: &File, replaced: &File) -> bool {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let (Ok(own), Ok(replaced)) = (file.metadata(), replaced.metadata()) else { return false };
    let is_same_owner = (own.uid(), own.gid()) == (replaced.uid(), replaced.gid());
    replaced.nlink() == 1
        && (is_same_owner || fchown(file, Some(replaced.uid()), Some(replaced.gid())).is_ok())
        && file.set_permissions(replaced.permissions()).is_ok()
}

#[cfg(not(unix))]
pub(crate) fn take_over(_: &File, _: &File) -> bool {
    true
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a builder of random names, which are short even if the final name is long.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".dipc-").suffix(".partial");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

#[cfg(target_os = "linux")]
fn create_unnamed(folder: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file: File = open(folder, flags, Mode::from_raw_mode(0o666))?.into();
    // Without /proc, it could not be named later.
    descriptor_path(&file).symlink_metadata()?;
    Ok(file)
}

/// Gives an unnamed file an unused name.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(target_os = "linux")]
fn descriptor_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_existing_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for is_named in [false, true] {
            let stage = || {
                let (mut file, staged) = if is_named {
                    let (file, path) = builder().tempfile_in(folder.path()).unwrap().into_parts();
                    (file, StagedFile(Stage::Named(path)))
                } else {
                    StagedFile::create(folder.path()).unwrap()
                };
                file.write_all(b"new").unwrap();
                staged
            };
            fs::write(at("taken"), "old").unwrap();
            let mut staged = stage();
            assert_eq!(staged.name_new(&at("taken")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            staged.name_new(&at("free")).unwrap();
            drop(staged);
            stage().name_over(&at("taken")).unwrap();
            drop(stage());
            assert_eq!(fs::read(at("free")).unwrap(), b"new");
            assert_eq!(fs::read(at("taken")).unwrap(), b"new");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "others are left");
            fs::remove_file(at("free")).unwrap();
        }
    }

    #[test]
    #[cfg(unix)]
    fn links_of_the_user_lead_to_files_and_not_into_proc() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).unwrap();
        fs::write(at("file"), "").unwrap();
        link("file", "one");
        link("one", "two");
        link("missing", "nowhere");
        link("round", "round");
        link("/dev/stdout", "output");
        for (name, expected) in [("file", "file"), ("two", "file"), ("nowhere", "missing"), ("new", "new")] {
            assert_eq!(follow(&at(name)), Some(at(expected)), "{name}");
        }
        for path in [at("round"), at("output"), at(""), "/dev/null".into(), "/dev/fd/0".into()] {
            assert_eq!(follow(&path), None, "{}", path.display());
        }
    }
}
