//! Files without their final names.

use std::fs::File;
use std::io;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

use tempfile::TempPath;

use super::{builder, folder_of, publish_new};

/// A file without its final name, with the permissions of the umask. Dropping it removes the file.
#[derive(Debug)]
pub struct StagedFile(Stage);

#[derive(Debug)]
enum Stage {
    /// The file is unnamed, so it disappears however the program ends.
    #[cfg(target_os = "linux")]
    Unnamed(File),
    /// The file has a unique name. The open file is held elsewhere.
    Named(TempPath),
}

impl StagedFile {
    /// Creates a file in `folder`, and returns it with its stage.
    ///
    /// # Errors
    /// Errors of creating.
    pub fn create(folder: &Path) -> io::Result<(File, Self)> {
        #[cfg(target_os = "linux")]
        if let Ok(file) = create_unnamed(folder) {
            let written = file.try_clone()?;
            return Ok((written, Self(Stage::Unnamed(file))));
        }
        Self::create_named(folder)
    }

    fn create_named(folder: &Path) -> io::Result<(File, Self)> {
        let (file, path) = shared_builder().tempfile_in(folder)?.into_parts();
        Ok((file, Self(Stage::Named(path))))
    }

    /// Names it `path`, if nothing has that name, not even a dangling link.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the name is taken; the file is still staged then.
    pub fn name_new(&mut self, path: &Path) -> io::Result<()> {
        match &mut self.0 {
            #[cfg(target_os = "linux")]
            Stage::Unnamed(file) => link(file, path),
            Stage::Named(from) => {
                publish_new(from, path)?;
                from.disable_cleanup(true);
                Ok(())
            }
        }
    }

    /// Names it `path`, replacing a file or link with that name.
    ///
    /// # Errors
    /// Errors of naming. The other file keeps its content then.
    pub fn name_over(self, path: &Path) -> io::Result<()> {
        match self.0 {
            #[cfg(target_os = "linux")]
            Stage::Unnamed(file) => {
                let named = shared_builder().make_in(folder_of(path), |name| link(&file, name))?;
                named.into_temp_path().persist(path).map_err(|error| error.error)
            }
            Stage::Named(from) => from.persist(path).map_err(|error| error.error),
        }
    }
}

fn shared_builder() -> tempfile::Builder<'static, 'static> {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "there are no permissions"))]
    let mut builder = builder();
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
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_staged_file_has_its_name_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let count = || fs::read_dir(folder.path()).unwrap().count();
        let at = |name: &str| folder.path().join(name);
        for create in [StagedFile::create, StagedFile::create_named] {
            let stage = || {
                let (mut file, staged) = create(folder.path()).unwrap();
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
            assert_eq!(count(), 2, "others are left");
            fs::remove_file(at("free")).unwrap();
        }
    }
}
