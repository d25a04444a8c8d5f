//! The way of a complete file to its name, which survives an end of the program at any point.
//!
//! A job's file is written as `.NAME.ID.part`. It gets its name by a link, which replaces nothing; the part
//! and the record of the job are removed afterwards. After a restart, a name that is a link to the part says
//! that the file has arrived.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dipc_client::dipc_transport::FolderBelow;
use dipc_collect::staged::{copy_private, link_new, numbered, sync_folder};

use super::catalog::path_of;
use super::open_part::OpenPart;
use super::{at, held, open_parent};
use crate::configuration::DirectoryEgress;

/// Maximum number of files of one name.
const MAX_PER_NAME: u32 = 10_000;

/// The places of a job's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// The file while it is written.
    pub(super) part: PathBuf,
    /// A copy of it in the directory of its name, if the part is on another file system.
    copy: PathBuf,
    /// The name of the file, with a number added if another file has it.
    target: PathBuf,
    /// The directory of the provider.
    directory: PathBuf,
}

/// A step that changes a disk, after which the program may have ended. Tests end there.
pub(super) type Step<'s> = &'s dyn Fn() -> io::Result<()>;

impl Places {
    /// Returns the places of the file `name` in an egress directory.
    ///
    /// # Errors
    /// If the name leads out of the directory.
    pub(super) fn new(egress: &DirectoryEgress, name: &str, id: &str) -> io::Result<Self> {
        let Some(target) = path_of(&egress.directory, name) else {
            let message = format!("{name:?} is not the name of a file below {}", egress.directory.display());
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, message));
        };
        let parent = target.parent().unwrap_or(&egress.directory);
        let parts = egress.intermediate.as_deref().unwrap_or(parent);
        let file_name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self {
            part: parts.join(format!(".{file_name}.{id}.part")),
            copy: parent.join(format!(".{file_name}.{id}.copy")),
            target,
            directory: egress.directory.clone(),
        })
    }

    /// Creates the file, in place of a left-over one.
    pub(super) fn create(&self) -> io::Result<OpenPart> {
        let folder = open_parent(&self.directory, &self.target)?;
        let parts = self.part.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parts).map_err(|error| at(parts, &error))?;
        self.held(&folder).remove_files();
        OpenPart::create(folder, self.parent(), &self.part)
    }

    /// The places by the open directory of the name.
    fn held(&self, folder: &FolderBelow) -> Self {
        let held = |path: &Path| held(folder, self.parent(), path);
        Self {
            part: held(&self.part),
            copy: held(&self.copy),
            target: held(&self.target),
            directory: self.directory.clone(),
        }
    }

    /// The directory of the name.
    fn parent(&self) -> &Path {
        self.target.parent().unwrap_or(&self.directory)
    }

    /// Gives the complete file its name, and returns it. It may have it already.
    pub(super) fn deliver(&self, step: Step<'_>) -> io::Result<PathBuf> {
        let folder = open_parent(&self.directory, &self.target)?;
        let places = self.held(&folder);
        let sources = [&places.part, &places.copy];
        let is_gone = sources.iter().all(|source| fs::symlink_metadata(source).is_err());
        for number in 1..=MAX_PER_NAME {
            let target = numbered(&places.target, "-", number);
            // The part of a file system without links was renamed.
            let has_arrived = sources.iter().any(|source| is_same(source, &target))
                || is_gone && fs::symlink_metadata(&target).is_ok();
            if has_arrived {
                return Ok(numbered(&self.target, "-", number));
            }
            if is_gone {
                break;
            }
            step()?;
            match places.link(&target, step) {
                Ok(()) => {
                    step()?;
                    sync_folder(&folder.join("."))?;
                    return Ok(numbered(&self.target, "-", number));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at(&numbered(&self.target, "-", number), &error)),
            }
        }
        Err(at(&self.part, &io::ErrorKind::NotFound.into()))
    }

    fn link(&self, target: &Path, step: Step<'_>) -> io::Result<()> {
        match link_new(&self.part, target) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                // A left-over copy may be cut.
                let _ = fs::remove_file(&self.copy);
                copy_private(&self.part, &self.copy)?;
                step()?;
                link_new(&self.copy, target)
            }
            result => result,
        }
    }

    /// Removes the remaining intermediate files. The file keeps its name.
    pub(super) fn remove_part(&self) {
        let below = self.parent().strip_prefix(&self.directory).unwrap_or(Path::new(""));
        match FolderBelow::open(&self.directory, below) {
            Ok(folder) => self.held(&folder).remove_files(),
            // The other files of a directory behind a link are left alone.
            Err(_) if self.part.parent() != Some(self.parent()) => {
                let _ = fs::remove_file(&self.part);
            }
            Err(_) => {}
        }
    }

    fn remove_files(&self) {
        for path in [&self.part, &self.copy] {
            // There may be none.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns true if two paths are links to one file.
#[cfg(unix)]
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let identity = |path: &Path| fs::symlink_metadata(path).map(|it| (it.dev(), it.ino())).ok();
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

/// Without file numbers, the content decides.
#[cfg(not(unix))]
fn is_same(one: &Path, other: &Path) -> bool {
    let length = |path: &Path| fs::symlink_metadata(path).map(|it| it.len()).ok();
    length(one).is_some_and(|length_of_one| Some(length_of_one) == length(other))
        && fs::read(one).is_ok_and(|bytes| fs::read(other).is_ok_and(|other| bytes == other))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Others may write to the directories of artifacts.
    #[test]
    fn a_file_stays_in_its_directory_when_a_link_takes_that_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("other")).unwrap();
        let egress = DirectoryEgress { directory: at("egress"), ..DirectoryEgress::default() };
        let places = Places::new(&egress, "sub/a", "7").unwrap();
        places.create().unwrap().file.write_all(b"memory").unwrap();
        let swap = || {
            if !at("moved").exists() {
                fs::rename(at("egress/sub"), at("moved"))?;
                std::os::unix::fs::symlink(at("other"), at("egress/sub"))?;
            }
            Ok(())
        };
        assert_eq!(places.deliver(&swap).unwrap(), at("egress/sub/a"));
        assert_eq!(fs::read(at("moved/a")).unwrap(), b"memory");
        assert!(fs::read_dir(at("other")).unwrap().next().is_none());
        // What has its name now, in another directory, stays.
        fs::write(at("other/.a.7.part"), "theirs").unwrap();
        places.remove_part();
        assert_eq!(fs::read(at("other/.a.7.part")).unwrap(), b"theirs");
        // The next file is refused.
        let error = places.create().unwrap_err().to_string();
        assert!(error.contains("egress/sub: a folder in the path is a link"), "{error}");
    }
}
